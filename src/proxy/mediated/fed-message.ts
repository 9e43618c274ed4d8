/**
 * Sends messages that a worker has made. The head is written as HTTP/1.1 text, and the gateway's parser reads it under
 * the rules for every peer. So no sequence can make a head that two parsers read differently, split a field, or frame a
 * body that is not there.
 */
import { REASON_PHRASES } from '../../faults/reason-phrases.ts'
import { KIND } from '../../http1/field-kinds.ts'
import { CHUNKED, isBodiless } from '../../http1/framing.ts'
import type { Head } from '../../http1/head.ts'
import { checkRequestFields, checkRequestStart, checkResponse } from '../../http1/head-rules.ts'
import { arena, Parser } from '../../http1/llhttp.ts'
import { MessageReader } from '../../http1/message-reader.ts'
import type { StrippedKinds } from '../../http1/rewrite.ts'
import { isToken } from '../../http1/token.ts'
import { isFieldText, putText } from '../../http1/writer.ts'
import { CHUNK_MAX } from '../../runtime/arena.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'

export type Fields = readonly (readonly [name: string, value: string])[]

/** A head that may be used during a call alone. `at`: its first byte. */
type UseHead = (head: Head, at: number) => void

interface RequestStart {
  readonly method: string
  /** Path with query. */
  readonly target: string
  readonly scheme: 'http' | 'https'
}

interface ResponseStart {
  readonly status: number
  /** '' for none. */
  readonly reason: string
}

/** Fields that a fed message has from the gateway alone. */
const OWN_FIELDS = new Set([
  ...['connection', 'content-length', 'expect', 'host', 'http2-settings', 'keep-alive', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
])
const REFUSED_METHODS = ['CONNECT', 'TRACE']
/** RFC 9110 8.6: a request of these methods says that its body is empty. */
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH']
/** Fields that end at this hop, or that only the gateway may send: no flow sees them. */
const HIDDEN: readonly number[] = [
  ...[KIND.CONNECTION, KIND.KEEP_ALIVE, KIND.HOP_BY_HOP, KIND.NOMINATED, KIND.TRANSFER_ENCODING, KIND.TE, KIND.UPGRADE],
  ...[KIND.TRAILER, KIND.EXPECT, KIND.CREDENTIAL],
]

/** The fields of a head that flows see, in order. `hidden`: further kinds that they do not. */
export function fieldsOf(head: Head, hidden: StrippedKinds | null = null): Fields {
  const { bytes } = arena
  const fields: (readonly [string, string])[] = []
  for (let field = 0; field < head.count; field++) {
    const kind = head.kinds[field]!
    if (HIDDEN.includes(kind) || (hidden !== null && hidden[kind] !== 0)) continue
    const at = head.nameAt(field)
    fields.push([bytes.latin1Slice(at, at + head.nameLength(field)), head.value(bytes, field)])
  }
  return fields
}

/** The reason phrase of a response head that begins at `at`; '' for none. */
export function reasonOf(head: Head, at: number): string {
  return arena.bytes.latin1Slice(at + 'HTTP/1.1 200'.length, head.fieldsAt).trim()
}

/**
 * Hands a request head with a body of `length` to `use`. Returns the rule that the head breaks; '' for none: only then
 * `use` was called.
 */
export function feedRequest(
  { method, target, scheme }: RequestStart,
  fields: Fields,
  length: number,
  context: ConnectionContext,
  use: UseHead,
): string {
  if (!isToken(method) || REFUSED_METHODS.includes(method)) return 'the method is not one of requests to backends'
  if (!isFieldText(target)) return 'the target has a character that no target can have'
  const hasLength = length > 0 || METHODS_WITH_BODY.includes(method)
  const own = `Host: fed\r\n${hasLength ? `Content-Length: ${length}\r\n` : ''}`
  const lines = linesOf(fields)
  if (lines === null) return BAD_FIELD
  const parser = Parser.forRequests(context.part.spans)
  if (parser === undefined) return NO_MEMORY
  const { requestKinds, requestHeads, trailerHeads, requestLimits } = context
  const reader = new MessageReader(parser, requestKinds, requestHeads, trailerHeads, requestLimits)
  return feed(`${method} ${target} HTTP/1.1\r\n${own}${lines.text}`, reader, (head, at) => {
    const broken = checkRequestStart(arena.bytes, head, at, scheme) ?? checkRequestFields(arena.bytes, head)
    if (broken !== undefined) return broken.rule
    if (head.count !== lines.count + (hasLength ? 2 : 1)) return BAD_FIELD
    use(head, at)
    return ''
  })
}

/**
 * Hands a response head to `use`, as `feedRequest`. `length`: of the body, CHUNKED where it is not known; the head of a
 * response to HEAD says the length of the body that it leaves out.
 */
export function feedResponse(
  { status, reason }: ResponseStart,
  fields: Fields,
  length: number,
  context: ConnectionContext,
  use: UseHead,
): string {
  if (!Number.isInteger(status) || status < 200 || status > 599) return 'the status is not one of a final response'
  if (!isFieldText(reason)) return 'the reason phrase has a character that no head can have'
  const lines = linesOf(fields)
  if (lines === null) return BAD_FIELD
  const reader = responseReader(context)
  if (reader === null) return NO_MEMORY
  // A chunked head says so by its framing alone: the writer of each client knows what its version takes.
  const hasLength = length !== CHUNKED && !isBodiless(status)
  const own = hasLength ? `Content-Length: ${length}\r\n` : ''
  const phrase = reason === '' ? (REASON_PHRASES[status] ?? '') : reason
  return feed(`HTTP/1.1 ${status} ${phrase}\r\n${own}${lines.text}`, reader, (head, at) => {
    const broken = checkResponse(arena.bytes, head, at)
    if (broken !== undefined) return broken.rule
    if (head.count !== lines.count + (hasLength ? 1 : 0)) return BAD_FIELD
    use(head, at)
    return ''
  })
}

/** Hands the head of 100 (Continue) to `use`. Returns as `feedResponse`. */
export function feedContinue(context: ConnectionContext, use: UseHead): string {
  const reader = responseReader(context)
  if (reader === null) return NO_MEMORY
  return feed('HTTP/1.1 100 Continue\r\n', reader, (head, at) => {
    use(head, at)
    return ''
  })
}

function responseReader(context: ConnectionContext): MessageReader | null {
  const parser = Parser.forResponses(context.part.spans)
  const { responseKinds, responseHeads, trailerHeads, responseLimits } = context
  return parser === undefined
    ? null
    : new MessageReader(parser, responseKinds, responseHeads, trailerHeads, responseLimits)
}

/** Not a rule: the gateway has no memory for the head. */
export const NO_MEMORY = 'no memory for a head'
const BAD_FIELD = 'a field has a name or a value that no head can have'

/** Null where a name or a value cannot stand in a head. */
function linesOf(fields: Fields): { readonly text: string; readonly count: number } | null {
  let text = ''
  let count = 0
  for (const [name, value] of fields) {
    if (!isToken(name) || !isFieldText(value)) return null
    if (OWN_FIELDS.has(name.toLowerCase())) continue
    text += `${name}: ${value}\r\n`
    count++
  }
  return { text, count }
}

/** `check` returns the rule that a parsed head breaks. */
function feed(text: string, reader: MessageReader, check: (head: Head, at: number) => string): string {
  const length = text.length + '\r\n'.length
  const chunk = length > CHUNK_MAX ? undefined : arena.acquire(length)
  try {
    if (chunk === undefined) return length > CHUNK_MAX ? 'the head is longer than the limit' : NO_MEMORY
    const at = chunk.offset
    putText(arena.bytes, at, `${text}\r\n`)
    reader.begin(at)
    if (!reader.readHead(at, at + length, true)) return reader.error?.rule ?? 'the head has no end'
    return check(reader.head, at)
  } finally {
    reader.dispose()
    if (chunk !== undefined) arena.release(chunk)
  }
}

const OF_CONTENT = ['content-type', 'content-encoding']

/**
 * Tells whether a request leaves out the body that it has from another message: no content of GET, HEAD and
 * DELETE has a meaning (RFC 9110 9.3). `bodyMethod`: as of `methodOfBody`.
 */
export function leavesBodyOut(method: string, bodyMethod: string | undefined): boolean {
  if (bodyMethod === undefined || bodyMethod === method) return false
  return method === 'GET' || method === 'HEAD' || (method === 'DELETE' && bodyMethod === '')
}

/** The fields of a request whose body is left out. */
export function withoutContent(fields: Fields): Fields {
  return fields.filter(([name]) => !OF_CONTENT.includes(name.toLowerCase()))
}
