/**
 * Messages of the broker: topics, and JSON bodies in the shape of the reference platform. Whatever comes from outside
 * is checked here; a body of another shape is an error.
 */
import type { RevocationRecord, SubscriptionUpdate } from '../auth/records.ts'
import type { DenyPolicy, PolicySet } from '../throttle/policy.ts'

/** Topic of revoked tokens. */
export const REVOCATIONS = 'tokenRevocation'
/** Topic of changed subscriptions and policies. */
export const NOTIFICATIONS = 'notification'
/** Topic of nodes that ask for everything that they may have missed. */
export const SYNCHRONISATION = 'synchronisation'

/** A decision of a traffic manager on one key. */
export interface Decision {
  readonly key: string
  readonly isThrottled: boolean
  /** Milliseconds since 1970: end of the window. */
  readonly untilMs: number
}

const KEY_CHARS_MAX = 2048
/** Revocations of one message. */
const TOKENS_MAX = 10_000
/** The tenant of the platform that has no name of its own. */
const SUPER_TENANT_ID = -1234

type Body = Readonly<Record<string, unknown>>

function isBody(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= KEY_CHARS_MAX
}

/** `{"event":{"payloadData":{…}}}`, or the payload alone. Throws for anything else. */
function payloadOf(body: unknown): Body {
  const event = isBody(body) && isBody(body.event) ? body.event.payloadData : body
  if (!isBody(event)) throw new Error('the message has no event.payloadData')
  return event
}

export function decisionMessage({ key, isThrottled, untilMs }: Decision): object {
  return { event: { payloadData: { throttleKey: key, isThrottled, expiryTimeStamp: untilMs } } }
}

/** Null for a message of another kind, such as a deny policy. Throws for a malformed decision. */
export function readDecision(body: unknown): Decision | null {
  const { throttleKey, isThrottled, expiryTimeStamp } = payloadOf(body)
  if (throttleKey === undefined) return null
  const throttled = isThrottled === true || isThrottled === 'true'
  const untilMs = Number(expiryTimeStamp)
  if (!isKey(throttleKey) || !Number.isSafeInteger(untilMs)) throw new Error('throttleKey or expiryTimeStamp is wrong')
  return { key: throttleKey, isThrottled: throttled, untilMs }
}

const CONDITIONS: readonly DenyPolicy['type'][] = ['API', 'APPLICATION', 'USER', 'SUBSCRIPTION', 'IP', 'IPRANGE']

/** A deny policy as the platform tells it. */
export function denyMessage(
  { id, type, value, inverted, enabled }: DenyPolicy,
  state: 'true' | 'false' | 'delete' = enabled ? 'true' : 'false',
): object {
  const conditionValue =
    type === 'IP'
      ? JSON.stringify({ fixedIp: value, invert: inverted })
      : type === 'IPRANGE'
        ? rangeOf(value, inverted)
        : value
  return {
    event: { payloadData: { id, blockingCondition: type, conditionValue, state, tenantDomain: 'carbon.super' } },
  }
}

function rangeOf(value: string, inverted: boolean): string {
  const [startingIp, endingIp] = value.split('-')
  return JSON.stringify({ startingIp, endingIp, invert: inverted })
}

/** Null for a message of another kind. `isRemoved`: the state is `delete`. Throws for a malformed deny policy. */
export function readDeny(body: unknown): { readonly policy: DenyPolicy; readonly isRemoved: boolean } | null {
  const { id, blockingCondition, conditionValue, state } = payloadOf(body)
  if (blockingCondition === undefined) return null
  const type = CONDITIONS.find(known => known === blockingCondition)
  if (type === undefined || !isKey(conditionValue)) throw new Error('blockingCondition or conditionValue is wrong')
  const name = isKey(id) || typeof id === 'number' ? String(id) : `${type} ${conditionValue}`
  const enabled = state === true || state === 'true'
  const policy = { id: name, type, enabled, ...addressesOf(type, conditionValue) }
  return { policy, isRemoved: state === 'delete' }
}

function addressesOf(type: DenyPolicy['type'], text: string): Pick<DenyPolicy, 'value' | 'inverted'> {
  if (!(type === 'IP' || type === 'IPRANGE') || !text.startsWith('{')) return { value: text, inverted: false }
  const { fixedIp, startingIp, endingIp, invert } = JSON.parse(text) as Body
  const value = type === 'IP' ? fixedIp : `${String(startingIp)}-${String(endingIp)}`
  if (!isKey(value)) throw new Error('conditionValue names no address')
  return { value, inverted: invert === true || invert === 'true' }
}

/** `eventId`: known by receivers that get a message twice. `ttlMs`: for which the message waits for receivers. */
export function revocationMessage({ key, expiresMs }: RevocationRecord, eventId: string, ttlMs: number): object {
  const payloadData = {
    ...{ eventId, revokedToken: key, ttl: String(ttlMs), expiryTime: expiresMs },
    ...{ type: 'DEFAULT', tenantId: SUPER_TENANT_ID },
  }
  return { event: { payloadData } }
}

/** Throws for a message of another shape. */
export function readRevocation(body: unknown): RevocationRecord {
  const { revokedToken, expiryTime } = payloadOf(body)
  const expiresMs = Number(expiryTime)
  if (!isKey(revokedToken) || !Number.isSafeInteger(expiresMs) || expiresMs < 0) {
    throw new Error('revokedToken or expiryTime is wrong')
  }
  return { key: revokedToken, expiresMs }
}

/** Messages of key managers to gateways beside revocations. */
export type Notification =
  | { readonly type: 'SUBSCRIPTIONS'; readonly update: SubscriptionUpdate }
  | { readonly type: 'POLICIES'; readonly set: PolicySet }
  | { readonly type: 'REVOCATIONS'; readonly tokens: readonly RevocationRecord[] }
  /** An answer to `SYNCHRONISATION` begins: all applications, keys and subscriptions follow. */
  | { readonly type: 'RESET' }
  /** A part of the answer between RESET and COMPLETE. */
  | { readonly type: 'RECORDS'; readonly update: SubscriptionUpdate }
  | { readonly type: 'COMPLETE' }
  /** A key manager has connected: workers ask for everything. */
  | { readonly type: 'CONNECTED' }

/** Throws for a message of another shape. The parts are checked one level deep: only key managers publish them. */
export function readNotification(body: unknown): Notification {
  if (!isBody(body)) throw new Error('the notification is no object')
  const { type } = body
  if (type === 'RESET' || type === 'COMPLETE' || type === 'CONNECTED') return { type }
  if (type === 'REVOCATIONS') return { type, tokens: readTokens(body.tokens) }
  if (type === 'POLICIES' && isBody(body.set) && Array.isArray(body.set.policies) && Array.isArray(body.set.denied)) {
    return { type, set: body.set as unknown as PolicySet }
  }
  if ((type === 'SUBSCRIPTIONS' || type === 'RECORDS') && isBody(body.update)) {
    return { type, update: readUpdate(body.update) }
  }
  throw new Error('the type of the notification is unknown, or its member is missing')
}

function readTokens(tokens: unknown): readonly RevocationRecord[] {
  if (!Array.isArray(tokens) || tokens.length > TOKENS_MAX) throw new Error('tokens is no list, or too long')
  return tokens.map(token => {
    if (!isBody(token) || !isKey(token.key) || !Number.isSafeInteger(token.expiresMs))
      throw new Error('a token is wrong')
    return { key: token.key, expiresMs: token.expiresMs as number }
  })
}

function readUpdate(update: Body): SubscriptionUpdate {
  const { applications, keys, subscriptions, removed } = update
  const lists = [applications, keys, subscriptions]
  const removals = isBody(removed) ? [removed.applications, removed.keys, removed.subscriptions] : [null]
  if (![...lists, ...removals].every(Array.isArray)) throw new Error('the update lacks a list')
  if (!lists.flat().every(isBody)) throw new Error('a record of the update is no object')
  return update as unknown as SubscriptionUpdate
}
