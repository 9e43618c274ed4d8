/** Names and values of fields (RFC 9110 5), and targets, that sequences may set. */
import { isToken } from '../http1/token.ts'
import { MediationFault } from './mediation-fault.ts'

const NAME_MAX = 256
/** Fields of framing and of the connection, and those that the gateway writes itself. */
const RESERVED = [
  ...['connection', 'content-length', 'date', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  'upgrade',
]

/** Reason why a response cannot have a field of this name, '' if it can. Removing a reserved field is harmless. */
export function fieldNameError(name: string, isRemoved = false): string {
  if (name.length > NAME_MAX || !isToken(name)) return 'is not a valid header field name'
  return !isRemoved && RESERVED.includes(name.toLowerCase()) ? 'is set by the gateway alone' : ''
}

const VALUE_MAX = 8192
/** Excludes control characters, and characters of more than one byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Reason why a field cannot have this value; '' if it can. */
export function fieldValueError(value: string): string {
  if (value.length > VALUE_MAX) return `is longer than ${VALUE_MAX} characters`
  return VALUE.test(value) ? '' : 'has characters that a header field cannot have'
}

/** Methods that a request can be given, in the spelling of their registry. HEAD is for requests of `<call>` alone. */
const METHODS = new Set(
  (
    'GET HEAD POST PUT DELETE PATCH OPTIONS PROPFIND REPORT SEARCH QUERY ACL BIND CHECKOUT COPY LINK LOCK M-SEARCH ' +
    'MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY PROPPATCH PURGE REBIND SOURCE SUBSCRIBE UNBIND UNLINK UNLOCK ' +
    'UNSUBSCRIBE'
  ).split(' '),
)

export function isMethod(text: string): boolean {
  return METHODS.has(text)
}

/** The method that a sequence has set. Throws MediationFault: another method would make another request. */
export function methodOf(text: string): string {
  if (isMethod(text)) return text
  const cause = 'HTTP_METHOD is no method that requests can be given, in upper case'
  throw new MediationFault({ code: UNSENDABLE, message: 'Mediation failed', cause })
}

/** Characters that a target cannot have (RFC 3986 3.3, 3.4), and those beyond ASCII. */
const NOT_IN_TARGET = /[^!$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]+/g

const UNFINISHED_ESCAPE = /%(?![0-9A-Fa-f]{2})/g

const ESCAPE = /%([0-9A-Fa-f]{2})/g
/** Some backends decode a path twice. */
const DECODINGS = 3
/** "." or ".." as a segment, also before path parameters (RFC 3986 5.2.4). */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?=$|[/\\;])/

/**
 * Path and query that a sequence has set, with what they cannot have percent-encoded; '' stays. Slashes at the start
 * are one. Throws MediationFault for a dot segment, by which a client's value would leave the path of the endpoint.
 */
export function targetOf(text: string): string {
  const encoded = text.toWellFormed().replace(NOT_IN_TARGET, encodeURIComponent).replace(UNFINISHED_ESCAPE, '%25')
  if (hasDotSegment(encoded)) {
    const cause = 'the path that a sequence has set has a dot segment'
    throw new MediationFault({ code: UNSENDABLE, message: 'Mediation failed', cause })
  }
  return encoded === '' || encoded.startsWith('?') ? encoded : `/${encoded.replace(/^\/+/, '')}`
}

/** Tells whether the path of a target has a dot segment, also an escaped one. */
export function hasDotSegment(target: string): boolean {
  let [path = ''] = target.split('?', 1)
  for (let decoding = 0; decoding < DECODINGS; decoding++) {
    if (DOT_SEGMENT.test(path)) return true
    path = path.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  return DOT_SEGMENT.test(path)
}

/** A sequence has made a message that cannot be sent. */
const UNSENDABLE = 102532
