/**
 * Rules for heads that llhttp accepts and a proxy must refuse, because a parser behind it could read them differently.
 * Each rule names the section that it enforces. llhttp itself refuses bare CR and LF, NUL, obs-fold, white space before
 * the colon, repeated Content-Length, and Content-Length beside Transfer-Encoding.
 */
import { type BadMessage, bad } from './bad-message.ts'
import { isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'

const SPACE = 32
const CR = 13
const LF = 10
const SLASH = 47
const COLON = 58
const COMMA = 44

const BAD = {
  startLine: bad(400, 'request line is not "method SP target SP version" (RFC 9112 3)'),
  version: bad(505, 'HTTP version is not 1.0 or 1.1 (RFC 9110 15.6.6)'),
  fragment: bad(400, 'request target holds a fragment (RFC 9112 3.2)'),
  targetForm: bad(400, 'request target is in none of the forms that its method allows (RFC 9112 3.2)'),
  absoluteForm: bad(400, 'absolute-form target without plain authority and the right scheme (RFC 9112 3.2.2)'),
  hostMissing: bad(400, 'Host is missing (RFC 9112 3.2)'),
  hostTwice: bad(400, 'Host occurs more than once (RFC 9112 3.2)'),
  hostValue: bad(400, 'Host is not a valid authority (RFC 9112 3.2)'),
  transferEncoding10: bad(400, 'Transfer-Encoding in an HTTP/1.0 message (RFC 9112 6.1)'),
  transferEncodingTwice: bad(400, 'Transfer-Encoding occurs more than once (RFC 9112 6.1)'),
  coding: bad(501, 'transfer coding besides chunked (RFC 9112 6.1)'),
  codingLast: bad(400, 'last transfer coding is not chunked (RFC 9112 6.3)'),
  bothFramings: bad(400, 'Content-Length beside Transfer-Encoding (RFC 9112 6.1)'),
  lengthTwice: bad(400, 'Content-Length occurs more than once (RFC 9112 6.3)'),
  length: bad(400, 'Content-Length is not a plain decimal number (RFC 9110 8.6)'),
  expectation: bad(417, 'unknown expectation (RFC 9110 10.1.1)'),
  connection: bad(400, 'Connection lists more options than the limit (RFC 9110 7.6.1)'),
  responseConnection: bad(502, 'Connection of the response lists more options than the limit (RFC 9110 7.6.1)'),
  statusLine: bad(502, 'status line is not "HTTP/1.x SP code SP reason" (RFC 9112 4)'),
  reason: bad(502, 'reason phrase holds a control character (RFC 9112 4)'),
  responseLength: bad(502, 'Content-Length of the response is invalid or repeated (RFC 9112 6.3)'),
  responseFramings: bad(502, 'response has Content-Length beside Transfer-Encoding (RFC 9112 6.1)'),
  responseCoding: bad(502, 'response has a transfer coding other than chunked, or one in HTTP/1.0 (RFC 9112 6.1)'),
} as const

/** Bytes of a host name or IPv4 address: unreserved and sub-delims without comma (RFC 3986 3.2.2). */
const HOST_BYTE = new Uint8Array(256)
for (const byte of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+;=%")) {
  HOST_BYTE[byte] = 1
}
/** Bytes inside the brackets of an IPv6 literal. */
const IPV6_BYTE = new Uint8Array(256)
for (const byte of Buffer.from('0123456789ABCDEFabcdef:.')) IPV6_BYTE[byte] = 1
const DIGITS_MAX = 15
/** Each option is compared with every field. */
const CONNECTION_OPTIONS_MAX = 32
/** Bound of D24. */
const AUTHORITY_BYTES_MAX = 512

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57
}

/** End of the value without the trailing white space that llhttp leaves in. */
export function trimmedEnd(bytes: Uint8Array, head: Head, field: number): number {
  const at = head.valueAt(field)
  let end = at + head.valueLength(field)
  while (end > at && (bytes[end - 1] === SPACE || bytes[end - 1] === 9)) end--
  return end
}

/** True if "HTTP/" is at `at`; case counts (RFC 9112 2.3). */
function isHttp(bytes: Uint8Array, at: number): boolean {
  return (
    bytes[at] === 72 && bytes[at + 1] === 84 && bytes[at + 2] === 84 && bytes[at + 3] === 80 && bytes[at + 4] === SLASH
  )
}

/** A plain decimal number, or -1 (RFC 9110 8.6: no sign, no list, no white space inside). */
export function decimal(bytes: Uint8Array, at: number, end: number): number {
  if (end === at || end - at > DIGITS_MAX) return -1
  let value = 0
  for (let i = at; i < end; i++) {
    if (!isDigit(bytes[i]!)) return -1
    value = value * 10 + bytes[i]! - 48
  }
  return value
}

/**
 * True if the bytes are host [":" port] without user information. An empty host is refused, and one longer than a name
 * can be (RFC 1035 2.3.4): the backend gets it in several fields behind the head.
 */
function isAuthority(bytes: Uint8Array, at: number, end: number): boolean {
  let i = at
  if (end - at > AUTHORITY_BYTES_MAX) return false
  if (bytes[i] === 91) {
    i++
    while (i < end && IPV6_BYTE[bytes[i]!] === 1) i++
    if (i >= end || bytes[i] !== 93 || i - at < 3) return false
    i++
  } else {
    while (i < end && HOST_BYTE[bytes[i]!] === 1) i++
    if (i === at) return false
  }
  if (i === end) return true
  if (bytes[i] !== COLON) return false
  const port = decimal(bytes, i + 1, end)
  return port > 0 && port < 65536
}

/** Start of the path in `scheme "://" authority path`, or -1 when the authority is invalid (RFC 9112 3.2.2). */
export function absoluteFormPath(bytes: Uint8Array, at: number, end: number, scheme: string): number {
  const colon = at + scheme.length
  const authority = colon + 3
  if (end <= authority || !isName(bytes, at, scheme.length, scheme) || bytes[colon] !== COLON) return -1
  if (bytes[colon + 1] !== SLASH || bytes[colon + 2] !== SLASH) return -1
  let i = authority
  while (i < end && bytes[i] !== SLASH && bytes[i] !== 63) i++
  return isAuthority(bytes, authority, i) ? i : -1
}

function checkHost(bytes: Uint8Array, head: Head): BadMessage | undefined {
  if (head.host < 0) return head.minorVersion === 0 ? undefined : BAD.hostMissing
  if (head.isRepeated(KIND.HOST)) return BAD.hostTwice
  return isAuthority(bytes, head.valueAt(head.host), trimmedEnd(bytes, head, head.host)) ? undefined : BAD.hostValue
}

function isChunked(bytes: Uint8Array, head: Head): boolean {
  const field = head.transferEncoding
  const at = head.valueAt(field)
  let end = at + head.valueLength(field)
  // llhttp accepts spaces behind the coding, but no tab: what llhttp does not see as chunked must not be chunked here.
  while (end > at && bytes[end - 1] === SPACE) end--
  return isName(bytes, at, end - at, 'chunked')
}

/** True if the last of several codings is chunked. */
function endsInChunked(bytes: Uint8Array, head: Head): boolean {
  const field = head.transferEncoding
  const at = trimmedEnd(bytes, head, field) - 'chunked'.length
  if (at <= head.valueAt(field) || !isName(bytes, at, 'chunked'.length, 'chunked')) return false
  return bytes[at - 1] === COMMA || bytes[at - 1] === SPACE
}

function checkRequestFraming(bytes: Uint8Array, head: Head): BadMessage | undefined {
  if (head.transferEncoding >= 0) {
    if (head.minorVersion === 0) return BAD.transferEncoding10
    if (head.contentLength >= 0) return BAD.bothFramings
    if (head.isRepeated(KIND.TRANSFER_ENCODING)) return BAD.transferEncodingTwice
    if (!isChunked(bytes, head)) return endsInChunked(bytes, head) ? BAD.coding : BAD.codingLast
  } else if (head.contentLength >= 0) {
    if (head.isRepeated(KIND.CONTENT_LENGTH)) return BAD.lengthTwice
    const field = head.contentLength
    if (decimal(bytes, head.valueAt(field), trimmedEnd(bytes, head, field)) < 0) return BAD.length
  }
  return undefined
}

/** Checks the request line around its target; sets `minorVersion`. `at` is the first byte of the message. */
function checkRequestLine(bytes: Uint8Array, head: Head, at: number): BadMessage | undefined {
  const target = head.targetAt
  const end = target + head.targetLength
  // llhttp skips bare CR and LF in front of the method, and extra spaces around the target.
  if (bytes[at]! <= SPACE) return BAD.startLine
  if (target - at < 2 || bytes[target - 1] !== SPACE || bytes[target - 2] === SPACE) return BAD.startLine
  if (bytes[end] !== SPACE || !isHttp(bytes, end + 1)) return BAD.startLine
  if (bytes[end + 6] !== 49 || bytes[end + 7] !== 46 || bytes[end + 9] !== CR) return BAD.version
  if (bytes[end + 10] !== LF) return BAD.startLine
  head.minorVersion = bytes[end + 8]! - 48
  return head.minorVersion > 1 ? BAD.version : undefined
}

/** True if " HTTP/1.1" and CRLF are all that is between the end of a target and the fields. */
export function isRequestLineEnd(bytes: Uint8Array, at: number, fieldsAt: number): boolean {
  if (at + 11 !== fieldsAt || bytes[at] !== SPACE || !isHttp(bytes, at + 1)) return false
  return bytes[at + 6] === 49 && bytes[at + 7] === 46 && bytes[at + 8] === 49 && bytes[at + 9] === CR
}

/** Accepts asterisk-form, origin-form, and absolute-form with this scheme; CONNECT is refused before. */
function checkTarget(bytes: Uint8Array, head: Head, scheme: string): BadMessage | undefined {
  const at = head.targetAt
  const end = at + head.targetLength
  for (let i = at; i < end; i++) if (bytes[i] === 35) return BAD.fragment
  if (bytes[at] === SLASH) return undefined
  if (bytes[at] === 42) return head.targetLength === 1 ? undefined : BAD.targetForm
  return absoluteFormPath(bytes, at, end, scheme) < 0 ? BAD.absoluteForm : undefined
}

function checkExpect(bytes: Uint8Array, head: Head): BadMessage | undefined {
  if (!head.has(KIND.EXPECT)) return undefined
  for (let field = 0; field < head.count; field++) {
    if (head.kinds[field] !== KIND.EXPECT) continue
    const at = head.valueAt(field)
    if (!isName(bytes, at, trimmedEnd(bytes, head, field) - at, '100-continue')) return BAD.expectation
  }
  return undefined
}

/** True if Connection has too many options. Empty elements count, so one pass over the commas decides. */
function hasTooManyOptions(bytes: Uint8Array, head: Head): boolean {
  if (head.connection < 0) return false
  let options = 0
  for (let field = head.connection; field < head.count; field++) {
    if (head.kinds[field] !== KIND.CONNECTION) continue
    options++
    const end = head.valueAt(field) + head.valueLength(field)
    for (let i = head.valueAt(field); i < end; i++) if (bytes[i] === COMMA) options++
  }
  return options > CONNECTION_OPTIONS_MAX
}

/** Checks the request line of a complete head whose first byte is at `at`. `scheme`: that of the listener. */
export function checkRequestStart(bytes: Uint8Array, head: Head, at: number, scheme: string): BadMessage | undefined {
  return checkRequestLine(bytes, head, at) ?? checkTarget(bytes, head, scheme)
}

/** Checks the classified fields of a request whose line is valid. */
export function checkRequestFields(bytes: Uint8Array, head: Head): BadMessage | undefined {
  return (
    checkHost(bytes, head) ??
    checkRequestFraming(bytes, head) ??
    checkExpect(bytes, head) ??
    (hasTooManyOptions(bytes, head) ? BAD.connection : undefined)
  )
}

/** Checks the status line; sets `minorVersion`. */
export function checkStatusLine(bytes: Uint8Array, head: Head, at: number): BadMessage | undefined {
  if (!isHttp(bytes, at) || bytes[at + 5] !== 49 || bytes[at + 6] !== 46) return BAD.statusLine
  head.minorVersion = bytes[at + 7]! - 48
  if (head.minorVersion > 1 || head.status < 100 || bytes[at + 8] !== SPACE) return BAD.statusLine
  if (bytes[at + 12] !== SPACE && bytes[at + 12] !== CR) return BAD.statusLine
  // llhttp accepts two CRs at the end of this line.
  if (bytes[head.fieldsAt - 2] !== CR || bytes[head.fieldsAt - 1] !== LF) return BAD.statusLine
  for (let i = at + 13; i < head.fieldsAt - 2; i++) {
    const byte = bytes[i]!
    if ((byte < SPACE && byte !== 9) || byte === 127) return BAD.reason
  }
  return undefined
}

/** Checks a complete, classified response head whose first byte is at `at`. */
export function checkResponse(bytes: Uint8Array, head: Head, at: number): BadMessage | undefined {
  const line = checkStatusLine(bytes, head, at)
  if (line !== undefined) return line
  if (hasTooManyOptions(bytes, head)) return BAD.responseConnection
  if (head.transferEncoding >= 0) {
    if (head.contentLength >= 0) return BAD.responseFramings
    if (head.minorVersion === 0 || head.isRepeated(KIND.TRANSFER_ENCODING)) return BAD.responseCoding
    return isChunked(bytes, head) ? undefined : BAD.responseCoding
  }
  if (head.contentLength < 0) return undefined
  const field = head.contentLength
  if (head.isRepeated(KIND.CONTENT_LENGTH)) return BAD.responseLength
  return decimal(bytes, head.valueAt(field), trimmedEnd(bytes, head, field)) < 0 ? BAD.responseLength : undefined
}
