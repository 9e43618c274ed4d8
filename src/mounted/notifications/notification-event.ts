/** Events that senders turn into messages: what a client publishes, and its text for one kind of message. */
import { FILLED_CHARS_MAX, joinUpTo } from './body-template.ts'
import type { Channel } from './sender-configuration.ts'
import { CHANNELS } from './sender-configuration.ts'
import { shown } from './refusals.ts'
import { invalid, isMailAddress, isObject } from './sender-request.ts'

/** An event as it is stored. */
export interface NotificationEvent {
  /** '' where the sender names it (`email.address`). */
  readonly recipient: string
  /** The text, or a template with `{{name}}` for properties of the event. */
  readonly text: string
  readonly isTemplate: boolean
  /** A template too, where the text is one; '' where the sender names it (`email.subject`). */
  readonly subject: string
  readonly properties: Readonly<Record<string, string>>
}

/** The stream that senders pick the event from. */
export interface StreamId {
  readonly streamName: string
  readonly version: string
  readonly type: Channel
}

export interface PublishedEvent {
  readonly stream: StreamId
  /** The only sender that shall take it; null: all of the stream. */
  readonly sender: string | null
  readonly idempotencyKey: string | null
  readonly event: NotificationEvent
}

export type Streams = Readonly<Record<Channel, Pick<StreamId, 'streamName' | 'version'>>>

const EVENT_MEMBERS = ['recipient', 'text', 'template', 'subject', 'properties']
const PUBLISH_MEMBERS = ['type', 'streamName', 'version', 'sender', 'idempotencyKey', ...EVENT_MEMBERS]
const RECIPIENT_CHARS_MAX = 320
const SUBJECT_CHARS_MAX = 998
const KEY_CHARS_MAX = 255
const PROPERTIES_MAX = 100
const PLACEHOLDER = /\{\{\s*(\w+(?:[.-]\w+)*)\s*\}\}/g

/** Throws Refused. `key`: of the field `Idempotency-Key`; undefined without one. */
export function readPublished(body: unknown, streams: Streams, key: string | undefined): PublishedEvent {
  if (!isObject(body)) throw invalid('the body is no JSON object')
  refuseOthers(body, PUBLISH_MEMBERS)
  const type = CHANNELS.find(channel => channel === body.type)
  if (type === undefined) throw invalid(`type is one of ${CHANNELS.join(', ')}`)
  const stream = {
    type,
    streamName: optionalText(body, 'streamName', KEY_CHARS_MAX) || streams[type].streamName,
    version: optionalText(body, 'version', KEY_CHARS_MAX) || streams[type].version,
  }
  const sender = optionalText(body, 'sender', KEY_CHARS_MAX) || null
  return {
    stream,
    sender,
    idempotencyKey: readKey(optionalText(body, 'idempotencyKey', KEY_CHARS_MAX), key),
    event: eventOf(body, type),
  }
}

/** The event of a dry run or a test. Throws Refused. */
export function readEvent(body: unknown, type: Channel): NotificationEvent {
  if (!isObject(body)) throw invalid('the body is no JSON object')
  refuseOthers(body, EVENT_MEMBERS)
  return eventOf(body, type)
}

function refuseOthers(body: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(body).find(member => !known.includes(member))
  if (unknown !== undefined) throw invalid(`${shown(unknown)} is none of the members ${known.join(', ')}`)
}

function readKey(ofBody: string, ofField: string | undefined): string | null {
  // A structured field holds a string in quotes.
  const field = ofField?.trim().replace(/^"(.*)"$/, '$1') ?? ''
  if (ofBody !== '' && field !== '' && ofBody !== field) throw invalid('idempotencyKey and Idempotency-Key differ')
  const key = ofBody || field
  if (key.length > KEY_CHARS_MAX) throw invalid(`the idempotency key has more than ${KEY_CHARS_MAX} characters`)
  return key === '' ? null : key
}

function eventOf(body: Readonly<Record<string, unknown>>, type: Channel): NotificationEvent {
  const recipient = optionalText(body, 'recipient', RECIPIENT_CHARS_MAX)
  if (type === 'sms' && recipient === '') throw invalid('recipient is missing')
  if (type === 'email' && recipient !== '' && !isMailAddress(recipient)) throw invalid('recipient is no mail address')
  const subject = optionalText(body, 'subject', SUBJECT_CHARS_MAX)
  if (type === 'sms' && subject !== '') throw invalid('an SMS has no subject')
  const { text, template } = body
  const isTemplate = template !== undefined
  const content = isTemplate ? template : text
  if (isTemplate && text !== undefined) throw invalid('text and template exclude each other')
  if (typeof content !== 'string' || content === '') throw invalid('text, or template, is missing or no text')
  const event = { recipient, text: content, isTemplate, subject, properties: readProperties(body.properties) }
  const missing = missingProperties(event)
  if (missing.length > 0) throw invalid(`the template needs the properties ${missing.join(', ')}`)
  renderEvent(event, type === 'email')
  return event
}

/** '' where it is missing. */
function optionalText(body: Readonly<Record<string, unknown>>, member: string, most: number): string {
  const value = body[member] ?? ''
  if (typeof value !== 'string') throw invalid(`${member} is no text`)
  if (value.length > most) throw invalid(`${member} has more than ${most} characters`)
  if (/[\0-\x1f\x7f]/.test(value)) throw invalid(`${member} has control characters`)
  return value
}

function readProperties(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {}
  if (!Array.isArray(value) || value.length > PROPERTIES_MAX) {
    throw invalid(`properties is no array of at most ${PROPERTIES_MAX} {key, value}`)
  }
  const pairs = (value as readonly unknown[]).map(property => {
    const { key, value: text } = isObject(property) ? property : {}
    if (typeof key !== 'string' || typeof text !== 'string') throw invalid('a property is no {key, value} of texts')
    return [key, text] as const
  })
  if (new Set(pairs.map(([key]) => key)).size < pairs.length) throw invalid('a property is given twice')
  return Object.fromEntries(pairs)
}

function missingProperties({ text, subject, isTemplate, properties }: NotificationEvent): readonly string[] {
  if (!isTemplate) return []
  const named = [...`${text}\n${subject}`.matchAll(PLACEHOLDER)].map(([, name]) => name!)
  return [...new Set(named.filter(name => !Object.hasOwn(properties, name)))]
}

/** Text and subject of the message. Values are not read again, and are escaped in HTML. Throws Refused: too long. */
export function renderEvent(
  event: NotificationEvent,
  isHtml: boolean,
): { readonly text: string; readonly subject: string } {
  const { text, subject, isTemplate, properties } = event
  if (!isTemplate) return { text, subject }
  const fill = (template: string, most: number, write: (value: string) => string): string => {
    const filled = joinUpTo(
      most,
      filledPieces(template, name => write(properties[name] ?? '')),
    )
    if (filled === null) throw invalid(`the filled-in template has more than ${most} characters`)
    return filled
  }
  return {
    text: fill(text, FILLED_CHARS_MAX, isHtml ? escapedHtml : same),
    subject: fill(subject, SUBJECT_CHARS_MAX, same),
  }
}

function* filledPieces(template: string, written: (name: string) => string): Generator<string> {
  let from = 0
  for (const match of template.matchAll(PLACEHOLDER)) {
    yield template.slice(from, match.index)
    yield written(match[1]!)
    from = match.index + match[0].length
  }
  yield template.slice(from)
}

function same(text: string): string {
  return text
}

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;' },
  ...{ '"': '&quot;', "'": '&#39;' },
}

function escapedHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, char => HTML_ESCAPES[char]!)
}
