/**
 * What a backend asks of the gateway itself: `endpoint_security` of an exported project, `securityConfig` of the
 * extensions of a document, for production and sandbox each. Passwords may stand elsewhere: `$env{NAME}`, `$file{PATH}`
 * from the folder of the project on. They are shown nowhere, in no fault either.
 */
import { isLoopbackHost } from '../structure/host-name.ts'
import { environmentValue, fileValue } from './outside.ts'
import { asText, asWritten, expand, type Reference, Unresolved } from './references.ts'
import type { Path, YamlFile } from './yaml-file.ts'

/** What backends are told, as far as a project says it. */
export type EndpointCredentials =
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | {
      readonly kind: 'oauth2'
      readonly tokenUrl: string
      readonly clientId: string
      readonly clientSecret: string
      readonly scopes: readonly string[]
      /** Further parameters of the request for a token. */
      readonly parameters: Readonly<Record<string, string>>
    }

/** By the kind of endpoint; null: the backend asks for nothing. */
export type BothCredentials = Readonly<Record<'production' | 'sandbox', EndpointCredentials | null>>

/** Both leave in one line of a head, in base64. */
const CHARS_MAX = 1024
const PARAMETERS_MAX = 32
const ELSEWHERE = 'write it here, or as $env{NAME} or $file{PATH}'
const IN_PROJECT = ['data', 'endpointConfig', 'endpoint_security']
/** What a request for a token is made of (RFC 6749 4.4.2). */
const RESERVED = ['grant_type', 'client_id', 'client_secret', 'client_assertion', 'client_assertion_type']

/** `folder`: where relative paths of `$file{}` start. Faults are noted in the files. */
export function readEndpointSecurity(
  project: YamlFile | undefined,
  document: YamlFile | undefined,
  folder: string,
): BothCredentials {
  const of = (kind: 'production' | 'sandbox'): EndpointCredentials | null => {
    const inProject = [...IN_PROJECT, kind]
    if (project?.has(inProject)) return new SecurityReading(project, inProject, folder).credentials()
    const inDocument = [`x-wso2-${kind}-endpoints`, 'securityConfig']
    if (document?.has(inDocument)) return new SecurityReading(document, inDocument, folder).credentials()
    return null
  }
  return { production: of('production'), sandbox: of('sandbox') }
}

/** One kind of endpoint. */
class SecurityReading {
  readonly #file: YamlFile
  readonly #at: Path
  readonly #folder: string

  constructor(file: YamlFile, at: Path, folder: string) {
    this.#file = file
    this.#at = at
    this.#folder = folder
  }

  credentials(): EndpointCredentials | null {
    if (!this.#file.flag([...this.#at, 'enabled'], true)) return null
    const type = this.#file.optional([...this.#at, 'type'])
    if (/^basic$/i.test(type)) return this.#basic()
    if (/^oauth(?:2)?$/i.test(type)) return this.#oauth()
    // Older exports say "none" and leave it enabled.
    if (type !== '' && !/^none$/i.test(type)) {
      this.#file.warn([...this.#at, 'type'], type, 'the back end gets no such credentials', 'write BASIC or OAUTH')
    }
    return null
  }

  /** RFC 7617 2: a user with a colon in it would end there. */
  #basic(): EndpointCredentials {
    const username = this.#text('username')
    if (username.includes(':')) this.#object('username', 'must hold no ":" (RFC 7617 2)', 'ask for another account')
    return { kind: 'basic', username, password: this.#text('password') }
  }

  #oauth(): EndpointCredentials {
    const grant = this.#file.optional([...this.#at, 'grantType'])
    if (grant !== '' && !/^client_credentials$/i.test(grant)) {
      this.#file.object([...this.#at, 'grantType'], grant, 'expected CLIENT_CREDENTIALS', 'others take a user')
    }
    const tokenUrl = this.#text('tokenUrl')
    if (tokenUrl !== '' && !isSafe(tokenUrl)) {
      const expected = 'must be https, or lead to this machine, and hold no credentials'
      this.#object('tokenUrl', expected, 'the secret of the client is sent there')
    }
    return {
      kind: 'oauth2',
      tokenUrl,
      clientId: this.#text('clientId'),
      clientSecret: this.#text('clientSecret'),
      scopes: this.#file.texts([...this.#at, 'scopes']).flatMap(text => text.split(/[\s,]+/).filter(Boolean)),
      parameters: this.#parameters(),
    }
  }

  /** Exports write them as a map, or as the text of one in JSON. */
  #parameters(): Readonly<Record<string, string>> {
    const path = [...this.#at, 'customParameters']
    const written = this.#file.value(path)
    const given = typeof written === 'string' ? parsed(written) : (written ?? {})
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      this.#file.object(
        path,
        undefined,
        'expected names with their values',
        'for example customParameters: {resource: a}',
      )
      return {}
    }
    const entries = Object.entries(given).filter(([name]) => !RESERVED.includes(name))
    const odd = entries.find(([, value]) => typeof value !== 'string')
    if (odd !== undefined || entries.length > PARAMETERS_MAX) {
      this.#file.object(path, undefined, `expected at most ${PARAMETERS_MAX} texts`, 'write each value as one text')
      return {}
    }
    return Object.fromEntries(entries.map(([name, value]) => [name, this.#resolved(path, value as string)]))
  }

  #text(name: string): string {
    const path = [...this.#at, name]
    const text = this.#resolved(path, this.#file.optional(path))
    // Exports leave secrets out.
    if (text === '') this.#file.object(path, undefined, 'is missing, and the back end asks for it', ELSEWHERE)
    else if (text.length > CHARS_MAX) this.#object(name, `is longer than ${CHARS_MAX} characters`, ELSEWHERE)
    return text
  }

  #resolved(path: Path, written: string): string {
    try {
      const { value } = expand(written, reference => this.#find(reference))
      return asText(value) ?? ''
    } catch (error) {
      if (!(error instanceof Unresolved)) throw error
      this.#file.object(path, undefined, error.message, error.remedy)
      // Reported; anything but nothing, which would be reported once more.
      return '-'
    }
  }

  #find(reference: Reference) {
    const { kind, name } = reference
    this.#file.readsOutside = true
    if (kind === 'env') return environmentValue(name)
    if (kind === 'file') return fileValue(name, this.#folder)
    throw new Unresolved(`${asWritten(reference)} cannot be used in an API`, ELSEWHERE)
  }

  /** Without the value. */
  #object(name: string, expected: string, remedy: string): void {
    this.#file.object([...this.#at, name], undefined, expected, remedy)
  }
}

function parsed(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Over TLS, or to this machine. */
function isSafe(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false
  if (url.protocol === 'https:') return true
  return url.protocol === 'http:' && isLoopbackHost(url.hostname)
}
