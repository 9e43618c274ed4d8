/**
 * A message between its thread and a sequence: how a transferred message becomes a `Message`, and what a sequence has
 * made of it. All that a sequence can set is checked here: what cannot be sent is left out and reported.
 */
import { mediaTypeOf } from '../http1/media-type.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { namedType } from './formats/body-types.ts'
import { fieldNameError, fieldValueError, methodOf, targetOf } from './field-rules.ts'
import { type BodySource, Message } from './message.ts'
import { defaultStatus } from './soap.ts'
import { textOf } from './value.ts'
import type { TransferredBody, TransferredMessage } from './worker-task.ts'

export interface FormattedBody {
  readonly body: TransferredBody
  /** Value of Content-Type; '' leaves the field as it is. */
  readonly contentType: string
}

type Warn = (cause: string, name: string) => void

/** `body`: source of the transferred body; null for none. */
export function fromTransfer(transferred: TransferredMessage, body: BodySource | null): Message {
  const { method, target, status, reason, fields, state } = transferred
  const byName = new Map<string, string>()
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    const before = byName.get(lower)
    byName.set(lower, before === undefined ? value : `${before}, ${value}`)
  }
  const message = new Message(
    name => byName.get(name),
    () => fields,
  )
  message.receive({ method, target, status, reason }, body)
  message.isFromBackend = status !== 0
  message.restore(state)
  return message
}

/**
 * The message as it goes on. A request that became a response has only the fields that a sequence has set. `format`:
 * makes the body of the payload, in the format that messageType or the payload asks for.
 */
export function toTransfer(
  message: Message,
  format: (message: Message) => FormattedBody,
  report: Report,
): TransferredMessage {
  const warn = warning(report)
  const { method, target, status, reason } = message.receivedHead
  const becameResponse = status === 0 && becomesResponse(message)
  const fate = bodyFate(message)
  const formatted: FormattedBody = fate === 'format' ? format(message) : { body: { kind: fate }, contentType: '' }
  const kept = becameResponse ? [] : [...message.keptFields()].filter(([name]) => !isLength(name))
  const set = setFields(message, warn)
  // A response to HEAD names the type of the content that it leaves out (RFC 9110 9.3.2).
  const hasType = fate !== 'none' || (status !== 0 && message.bodyState === 'none')
  const received = becameResponse && fate === 'untouched' ? (message.receivedField('content-type') ?? '') : ''
  const contentType =
    formatted.contentType || contentTypeProperty(message, fate) || firstValue(set, 'content-type') || received
  return {
    method: becameResponse ? method : validMethod(message) || method,
    target: validTarget(message) ?? target,
    status:
      validStatus(message, warn) ||
      (becameResponse ? defaultStatus(message.bodyState === 'replaced' ? message.payload : null) : status),
    reason: validReason(message, warn) ?? reason,
    fields: withContentType([...kept, ...set], hasType ? contentType : null, warn),
    body: formatted.body,
    state: message.stateForNextFlow(),
  }
}

type Fields = (readonly [name: string, value: string])[]

function firstValue(fields: Fields, lower: string): string {
  return fields.find(([name]) => name.toLowerCase() === lower)?.[1] ?? ''
}

/** `contentType`: null removes the field; '' leaves it. */
function withContentType(fields: Fields, contentType: string | null, warn: Warn): Fields {
  if (contentType === '') return fields
  const others = fields.filter(([name]) => name.toLowerCase() !== 'content-type')
  if (contentType === null) return others
  return [...others, ['Content-Type', withValidValue('Content-Type', contentType, warn)]]
}

function warning(report: Report): Warn {
  return (cause, name) => report('warn', 'message of a sequence', { CAUSE_OF_ERROR: cause, FIELD: name })
}

/** A request whose sequence makes the response: it goes to the client, or to the response flow. */
export function becomesResponse({ outcome, isMarkedResponse }: Message): boolean {
  return outcome === 'responded' || outcome === 'looped' || (outcome === 'sent' && isMarkedResponse)
}

/**
 * Method of the request whose body the message still has; '' for the body of an answer to a call, and of the response
 * that a response flow sends by a method that it names. Undefined: no body, one that a sequence has made, or a response
 * that goes on by the method of its request.
 */
export function methodOfBody(message: Message): string | undefined {
  if (message.bodyState === 'none' || message.bodyState === 'replaced') return undefined
  const { status, method } = message.receivedHead
  if (status !== 0) return message.isFromBackend && !message.namesMethod ? undefined : ''
  return method
}

/** `format`: the body is made from the payload. */
type BodyFate = 'none' | 'untouched' | 'format'

function bodyFate(message: Message): BodyFate {
  const { bodyState } = message
  const isSet = (name: string) => textOf(message.get('axis2', name)) === 'true'
  if (bodyState === 'none' || isSet('NO_ENTITY_BODY')) return 'none'
  const { method, status } = message.head
  const isRequest = status === 0 && !becomesResponse(message)
  if (isRequest && /^(?:POST|PUT)$/.test(method) && isSet('FORCE_POST_PUT_NOBODY')) return 'none'
  if (bodyState === 'replaced') return message.payload === null ? 'none' : 'format'
  const wanted = namedType(textOf(message.get('axis2', 'messageType')))
  const isSame = wanted === '' || mediaTypeOf(wanted) === mediaTypeOf(message.receivedField('content-type') ?? '')
  if (isSame) return 'untouched'
  return message.payload === null ? 'none' : 'format'
}

/** An untouched body keeps its type, whose parameters hold for its bytes, where messageType only names it again. */
function contentTypeProperty(message: Message, fate: BodyFate): string {
  const [contentType, messageType] = ['ContentType', 'messageType'].map(name =>
    namedType(textOf(message.get('axis2', name))),
  )
  const namesAgain = fate === 'untouched' && contentType === messageType && mediaTypeOf(contentType!) === contentType
  return namesAgain ? '' : contentType!
}

/** Fields that a sequence has set, without those that cannot be sent. */
function setFields(message: Message, warn: Warn): Fields {
  const fields: Fields = []
  const isForClient = message.isResponse || becomesResponse(message)
  for (const [name, value] of message.fields()) {
    if (isForClient && message.isOfRequest(name)) continue
    const text = textOf(value)
    const why = fieldNameError(name) || fieldValueError(text)
    if (why !== '') warn(why, name.toLowerCase())
    else if (isLength(name)) warn('is set by the gateway alone', 'content-length')
    else fields.push([name, text])
  }
  return fields
}

/** Sequences read the length that was received; the gateway frames what it sends. */
function isLength(name: string): boolean {
  return name.length === LENGTH.length && name.toLowerCase() === LENGTH
}
const LENGTH = 'content-length'

function withValidValue(name: string, value: string, warn: Warn): string {
  const why = fieldValueError(value)
  if (why === '') return value
  warn(why, name)
  return 'application/octet-stream'
}

/** '' where it is unchanged. Throws MediationFault. */
function validMethod(message: Message): string {
  const { method } = message.head
  return method === '' || method === message.receivedHead.method ? '' : methodOf(method)
}

/** Null where it is unchanged. */
function validTarget(message: Message): string | null {
  const { target } = message.head
  return target === message.receivedHead.target ? null : targetOf(target)
}

/** 0 where it is unchanged; 500 where it is no status of a final response (RFC 9110 15.2). */
function validStatus(message: Message, warn: Warn): number {
  const given = textOf(message.get('axis2', 'HTTP_SC'))
  if (given === '500' && textOf(message.get('axis2', 'FAULTS_AS_HTTP_200')) === 'true') return 200
  const { status } = message.receivedHead
  if (given === '' || (status !== 0 && given === String(status))) return 0
  if (/^[2-5]\d\d$/.test(given)) return Number(given)
  warn('is not a status from 200 to 599', 'HTTP_SC')
  return 500
}

/** Null where it is unchanged. */
function validReason(message: Message, warn: Warn): string | null {
  const { head, receivedHead } = message
  // Another status has its own phrase.
  if (head.reason === receivedHead.reason) return head.status === receivedHead.status ? null : ''
  const why = fieldValueError(head.reason)
  if (why === '') return head.reason
  warn(why, 'HTTP_SC_DESC')
  return null
}
