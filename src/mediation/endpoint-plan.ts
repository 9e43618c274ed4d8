/** The endpoints of sequences as plain data: as the primary parses them, and as it plans them for the reactors. */
import type { Expression } from './expression.ts'
import type { Scope } from './message.ts'
import type { TokenRequest } from '../plan/backend-planning.ts'
import { type EndpointSettings, type EndpointsDefinition, LONE_ENDPOINT_SETTINGS } from '../apis/api-definition.ts'

/** A variable of a URI template, or literal text. `keeps`: reserved characters stay as they are (RFC 6570 3.2.3). */
export type TemplatePiece = string | { readonly name: string; readonly keeps: boolean }

/**
 * Where requests go. `message`: to the destination of the message. `template`: to a URL whose variables are properties
 * of the message; `origin` is scheme, host and port, or '' where variables decide them. `urls`: to known origins.
 * `group`: to a group that names files. `recipients`: a copy to each endpoint of a list.
 * `instance`: to what a template makes.
 */
export type EndpointAddress =
  | { readonly kind: 'message'; readonly settings: EndpointSettings }
  | {
      readonly kind: 'template'
      readonly origin: string
      /** The URL behind `origin`. */
      readonly pieces: readonly TemplatePiece[]
      readonly settings: EndpointSettings
      /** Addresses that are kept with idle connections, where variables decide them; left out: no limit of its own. */
      readonly kept?: number
    }
  | {
      readonly kind: 'urls'
      readonly endpoints: EndpointsDefinition
      /** Path and query behind the URLs of a group, which are the same for all of them; left out: none. */
      readonly pieces?: readonly TemplatePiece[]
    }
  | ({ readonly kind: 'group' } & GroupAddress)
  | ({ readonly kind: 'recipients' } & RecipientsAddress)
  | ({ readonly kind: 'instance' } & TemplateInstance)

/** A group that names endpoints of files: `endpoint-groups.ts` makes `urls` of it once the files are known. */
export interface GroupAddress {
  readonly isFailover: boolean
  readonly algorithm: EndpointsDefinition['algorithm']
  readonly failsOver: boolean
  /** Endpoints of the group, or the keys of files. */
  readonly members: readonly (EndpointForm | string)[]
}

/** A list of recipients: `recipients.ts` sends a copy of a message to each. */
export interface RecipientsAddress {
  /** Endpoints of the list, the keys of files, or those keys with what the files make of requests. */
  readonly members: readonly (EndpointForm | string | Recipient)[]
  /** Finds addresses, with commas between them, for the only member. Left out: the members are the recipients. */
  readonly list?: Expression
}

/** An endpoint of a template: `endpoint-groups.ts` makes its form once the templates are known. */
export interface TemplateInstance {
  readonly template: string
  /** Values by the names of parameters; may hold secrets. */
  readonly given: Readonly<Record<string, string>>
}

export type Recipient = Pick<SequenceEndpoint, 'name' | 'form'>

/** Content of requests; `kept`: that of the message. */
export type EndpointFormat = 'kept' | 'soap11' | 'soap12' | 'pox' | 'get'

export interface EndpointForm {
  /** In capitals; '' for that of the message. */
  readonly method: string
  readonly format: EndpointFormat
  /** Path and query of the message follow those of the URL: not for `<http>` and SOAP, whose URLs are whole. */
  readonly appendsPath: boolean
  readonly address: EndpointAddress
  /** Properties that the endpoint sets on requests for it; may hold secrets. Left out: none. */
  readonly properties?: readonly EndpointProperty[]
  /** How the gateway gets an access token for requests to the endpoint. Left out: they need none of it. */
  readonly oauth?: TokenRequest
  /** Settings of a single endpoint of a file as a member of a group. */
  readonly asMember?: EndpointSettings
}

export interface EndpointProperty {
  readonly name: string
  readonly scope: Scope
  readonly value: Expression
}

/** An endpoint that a sequence names or contains. */
export interface SequenceEndpoint {
  /** Key of a file, or a name made from the definition: equal definitions are one endpoint. */
  readonly name: string
  /** null: the endpoint of a file. */
  readonly form: EndpointForm | null
  /** Finds the name of a file; `name` is FOUND_BY_EXPRESSION then. Left out: the name is known. */
  readonly key?: Expression
  /** Endpoints that `key` may find: all files, with what they make of requests. Left out: none. */
  readonly known?: Readonly<Record<string, EndpointForm | null>>
  /** The mediator cannot send to a list of recipients. */
  readonly takesOne?: true
}

/** Name of an endpoint that each message chooses. No file has this name. */
export const FOUND_BY_EXPRESSION = '(expression)'

/** Name of an endpoint within a list of recipients. No file has such a name. */
export function memberName(list: string, at: number): string {
  return `${list}/${at + 1}`
}

/** Where `<call/>` sends: to the destination of the message. No file has this name. */
export const DESTINATION: SequenceEndpoint = {
  name: '(destination)',
  form: {
    method: '',
    format: 'kept',
    appendsPath: false,
    address: { kind: 'message', settings: LONE_ENDPOINT_SETTINGS },
  },
}

/** Property that has the address of a recipient, where an expression finds the list. */
export const RECIPIENT_VARIABLE = 'uri.var.recipient'

/** In calls of tasks: the endpoint of the API, with its credentials. No file has this name. */
export const OWN_ENDPOINT = '(API)'

/** Stands for the address that a sequence sets, or for a sequence as backend. RFC 6761 6.4: it never resolves. */
export const DESTINATION_URL = 'http://destination.invalid'
