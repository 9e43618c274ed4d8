/** Refusals of the API: each situation has a code, a status and a message. */
import type { MountedResponse } from '../interface.ts'

const SITUATIONS = {
  exists: ['NSM-60002', 409, 'A sender with this name exists'],
  'no-provider': ['NSM-60003', 400, 'The SMS provider is missing'],
  'no-template': ['NSM-60004', 400, 'There is no body template for the SMS provider'],
  'no-url': ['NSM-60005', 400, 'The URL of the SMS provider is missing'],
  'no-resource': ['NSM-61000', 404, 'There is no such resource'],
  'no-sender': ['NSM-60006', 404, 'There is no such sender'],
  'in-use': ['NSM-60008', 409, 'The sender is in use'],
  'super-tenant': ['NSM-61001', 403, 'The super tenant has no senders in this API'],
  'other-tenant': ['NSM-61002', 403, 'The token belongs to another tenant'],
  'too-many-senders': ['NSM-61003', 409, 'The tenant has too many senders'],
  'too-long': ['NSM-61004', 413, 'The content is too long'],
  'media-type': ['NSM-61005', 415, 'The media type is not supported'],
  'sender-waiting': ['NSM-61010', 429, 'Too many events of the sender wait'],
  'all-waiting': ['NSM-61011', 503, 'Too many events wait'],
  'key-reused': ['NSM-61012', 422, 'The idempotency key belongs to another event'],
  'no-delivery': ['NSM-61013', 404, 'There is no such delivery'],
  'not-dead': ['NSM-61014', 409, 'The delivery is no dead letter'],
  'too-many-tests': ['NSM-61015', 429, 'Too many test messages of the tenant are on the way'],
  'tenant-waiting': ['NSM-61016', 429, 'Too many events of the tenant wait'],
  failed: ['NSM-65001', 500, 'The server has failed'],
  unavailable: ['NSM-65002', 503, 'The database is unavailable'],
  'template-file': ['NSM-65003', 500, 'The template file of the SMS providers is unusable'],
  unreadable: ['NSM-65004', 500, 'The secrets of the sender cannot be decrypted'],
  invalid: ['NSM-65022', 400, 'The input is invalid'],
} as const satisfies Record<string, readonly [code: string, status: number, message: string]>

export type Situation = keyof typeof SITUATIONS
type Fields = NonNullable<MountedResponse['fields']>

/** The request is refused. Its message is the description, for the client: it holds no secret. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly situation: Situation
  readonly fields: Fields

  constructor(situation: Situation, description: string, fields: Fields = []) {
    super(description)
    this.situation = situation
    this.fields = fields
  }
}

/** `traceId`: correlation id of the request. */
export function refusalResponse(
  { situation, message: description, fields }: Refused,
  traceId: string,
): MountedResponse {
  const [code, status, message] = SITUATIONS[situation]
  return json(status, { code, message, description, traceId }, fields)
}

export function json(status: number, value: unknown, fields: Fields = []): MountedResponse {
  // Configurations and deliveries belong to one tenant.
  const own = [...fields, ['Content-Type', 'application/json'], ['Cache-Control', 'no-store']] as const
  return { status, fields: own, body: JSON.stringify(value) }
}

/** A text of a client as messages show it: quoted, cut, printable. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}
