/** Requests with chunked bodies, chunk extensions and trailer sections (RFC 9112 7.1). */
import { chunked, POST_X, type RequestCase } from './request-case.ts'

const HELLO = { line: POST_X, body: 'hello', chunked: true }

/** Chunked bodies that decode to "hello"; the gateway forwards them in chunks of its own. */
const accepted: readonly (readonly [string, string])[] = [
  ['a body of one chunk is forwarded', '5\r\nhello\r\n0\r\n\r\n'],
  ['a body of several chunks is forwarded', '1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n\r\n'],
  ['a body in chunks of one byte is forwarded', '1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n'],
  ['leading zeros in a chunk size are accepted', '0005\r\nhello\r\n0\r\n\r\n'],
  ['leading zeros up to the 16 digits of a 64-bit size are accepted', '0000000000000005\r\nhello\r\n0\r\n\r\n'],
  ['a last chunk whose size is several zeros is accepted', '5\r\nhello\r\n00000\r\n\r\n'],
  ['an extension with a value is dropped', '5;name=value\r\nhello\r\n0\r\n\r\n'],
  ['an extension without a value is dropped', '5;name\r\nhello\r\n0\r\n\r\n'],
  ['several extensions are dropped', '5;a=b;c;d=e\r\nhello\r\n0\r\n\r\n'],
  ['an extension with a quoted value is dropped', '5;a="b;c d"\r\nhello\r\n0\r\n\r\n'],
  ['a quoted pair does not end a quoted extension value', '5;a="b\\"c"\r\nhello\r\n0\r\n\r\n'],
  ['an extension of the last chunk is dropped', '5\r\nhello\r\n0;a=b\r\n\r\n'],
]

/** Bodies that are refused, even when the head has already been sent to the backend. */
const refused: readonly (readonly [string, string])[] = [
  ['7.1: a chunk size with the prefix 0x', '0x5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a chunk size with a plus sign', '+5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a chunk size with a minus sign', '-5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a space before a chunk size', ' 5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a space after a chunk size', '5 \r\nhello\r\n0\r\n\r\n'],
  ['7.1: a tab after a chunk size', '5\t\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a space before a chunk extension', '5 ;a=b\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a missing chunk size', '\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a chunk size that is not hexadecimal', 'g\r\nhello\r\n0\r\n\r\n'],
  ['7.1: an underscore in a chunk size', '0_5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a comma in a chunk size', '5,5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a chunk size that overflows 64 bits to 5', '10000000000000005\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a chunk size that overflows 64 bits to 0', '10000000000000000\r\n\r\n'],
  ['7.1: a chunk size of 17 hexadecimal digits', 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
  ['7.1: NUL after a chunk size', '5\0\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a bare LF after a chunk size', '5\nhello\r\n0\r\n\r\n'],
  ['7.1: a bare CR after a chunk size', '5\rhello\r\n0\r\n\r\n'],
  ['7.1: CR CR LF after a chunk size', '5\r\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a bare LF after chunk data', '5\r\nhello\n0\r\n\r\n'],
  ['7.1: chunk data without a line end', '5\r\nhello0\r\n\r\n'],
  ['7.1: a bare CR after chunk data', '5\r\nhello\r0\r\n\r\n'],
  ['7.1: chunk data longer than the chunk size', '4\r\nhello\r\n0\r\n\r\n'],
  ['7.1: chunk data shorter than the chunk size', '6\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a second line end after chunk data', '5\r\nhello\r\n\r\n0\r\n\r\n'],
  ['7.1: a bare LF after the last chunk', '5\r\nhello\r\n0\n\r\n'],
  ['7.1: a bare LF as the end of the body', '5\r\nhello\r\n0\r\n\n'],
  ['7.1: a bare CR as the end of the body', '5\r\nhello\r\n0\r\n\rX'],
  ['7.1.1: an extension without a name', '5;\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension that ends with a bare LF', '5;a\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension with a bare LF', '5;a=b\nc\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension with a bare CR', '5;a=b\rc\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: CRLF in a quoted extension value', '5;a="\r\nhello\r\n0\r\n\r\n"\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: a bare LF in a quoted extension value', '5;a="\n"\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: NUL in an extension', '5;a=\0\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension after a space instead of a semicolon', '5 a=b\r\nhello\r\n0\r\n\r\n'],
  ['7.1.2: a trailer line without a colon', '5\r\nhello\r\n0\r\nX-Trailer\r\n\r\n'],
  ['7.1.2: a space before the colon of a trailer', '5\r\nhello\r\n0\r\nX-Trailer : a\r\n\r\n'],
  ['7.1.2: a folded trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\r\n b\r\n\r\n'],
  ['7.1.2: a bare CR in a trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\rb\r\n\r\n'],
  ['7.1.2: a bare line feed in a trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\nX-More: b\r\n\r\n'],
  ['7.1.2: NUL in a trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\0b\r\n\r\n'],
  ['7.1.2: a trailer without a name', '5\r\nhello\r\n0\r\n: a\r\n\r\n'],
  ['7.1.2: Content-Length as a trailer', '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'],
  ['7.1.2: Transfer-Encoding as a trailer', '5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['7.1.2: a request line as a trailer', '5\r\nhello\r\n0\r\nGET /echo/x HTTP/1.1\r\nHost: evil\r\n\r\n'],
]

/** Trailer lines of the client, and the trailer lines that reach the backend. */
const trailers: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['a trailer is forwarded as a trailer', ['X-Check: abc'], ['X-Check: abc']],
  ['several trailers keep their order, case and number', ['B: 1', 'a: 2', 'B: 3'], ['B: 1', 'a: 2', 'B: 3']],
  [
    'bytes of a trailer are forwarded unchanged',
    ['X-Name: M\xfcller \xe2\x82\xac'],
    ['X-Name: M\xfcller \xe2\x82\xac'],
  ],
  ['an empty trailer value is forwarded', ['X-Empty:', 'X-Next: a'], ['X-Empty: ', 'X-Next: a']],
  ['a routing field is dropped from trailers', ['Host: evil.test', 'X: y'], ['X: y']],
  [
    'credentials are dropped from trailers',
    ['Authorization: Bearer x', 'Cookie: a=b', 'Proxy-Authorization: x', 'Set-Cookie: a=b', 'WWW-Authenticate: x'],
    [],
  ],
  [
    'fields that describe the content are dropped from trailers',
    ['Content-Type: text/html', 'Content-Encoding: gzip', 'Content-Range: bytes 0-1/2', 'Trailer: X', 'X: y'],
    ['X: y'],
  ],
  [
    'request modifiers are dropped from trailers',
    ['Cache-Control: no-cache', 'Expect: 100-continue', 'Max-Forwards: 1', 'Pragma: x', 'Range: bytes=0-', 'TE: gzip'],
    [],
  ],
  [
    'conditional fields are dropped from trailers',
    ['If-Match: "a"', 'If-None-Match: *', 'If-Modified-Since: x', 'If-Unmodified-Since: x', 'If-Range: "a"', 'X: y'],
    ['X: y'],
  ],
  [
    'fields that the gateway sets itself are dropped from trailers',
    ['X-Forwarded-For: 1.2.3.4', 'Forwarded: for=x', 'Via: 1.1 evil', 'activityid: forged', 'X-Real-IP: x', 'X: y'],
    ['X: y'],
  ],
  [
    'hop-by-hop fields are dropped from trailers',
    ['Connection: close', 'Keep-Alive: x', 'Upgrade: h2c', 'X: y'],
    ['X: y'],
  ],
  [
    'fields not allowed in trailers are recognised in any letter case',
    ['hOsT: evil.test', 'AUTHORIZATION: x', 'sEt-CoOkIe: a', 'X: y'],
    ['X: y'],
  ],
]

const limits: readonly RequestCase[] = [
  {
    name: 'chunk.max_extension_bytes: extensions within the limit are accepted',
    raw: chunked(`5;a=${'b'.repeat(60)}\r\nhello\r\n0\r\n\r\n`),
    status: 200,
    reaches: HELLO,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'chunk.max_extension_bytes: one extension over the limit is refused',
    raw: chunked(`5;a=${'b'.repeat(120)}\r\nhello\r\n0\r\n\r\n`),
    status: 400,
    mayReachPartially: true,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'chunk.max_extension_bytes: many short extensions over the limit are refused',
    raw: chunked(`${'1;a=0123456789012345678901234567\r\nh\r\n'.repeat(20)}0\r\n\r\n`),
    status: 400,
    mayReachPartially: true,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'chunk.max_extension_bytes: leading zeros over the limit are refused',
    raw: chunked(`${'0'.repeat(200)}5\r\nhello\r\n0\r\n\r\n`),
    status: 400,
    mayReachPartially: true,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: trailers within the limit are forwarded',
    raw: chunked(`5\r\nhello\r\n0\r\nX-Long: ${'a'.repeat(50)}\r\n\r\n`),
    status: 200,
    reaches: { ...HELLO, trailers: [`X-Long: ${'a'.repeat(50)}`] },
    http: { 'trailer.max_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: one trailer over the limit is refused',
    raw: chunked(`5\r\nhello\r\n0\r\nX-Long: ${'a'.repeat(100)}\r\n\r\n`),
    status: 400,
    mayReachPartially: true,
    http: { 'trailer.max_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: many short trailers over the limit are refused',
    raw: chunked(`5\r\nhello\r\n0\r\n${'X: y\r\n'.repeat(30)}\r\n`),
    status: 400,
    mayReachPartially: true,
    http: { 'trailer.max_bytes': 64 },
  },
  {
    name: 'header.max_count: more trailers than the limit are refused',
    raw: chunked(`5\r\nhello\r\n0\r\n${'X: y\r\n'.repeat(9)}\r\n`),
    status: 400,
    mayReachPartially: true,
    http: { 'header.max_count': 8 },
  },
]

export const CHUNKED_REQUESTS: readonly RequestCase[] = [
  ...accepted.map(([name, body]) => ({
    name: `RFC 9112 7.1: ${name}`,
    raw: chunked(body),
    status: 200,
    reaches: HELLO,
  })),
  ...refused.map(([name, body]) => ({
    name: `RFC 9112 ${name} is refused`,
    raw: chunked(body),
    status: 400,
    mayReachPartially: true,
  })),
  ...trailers.map(([name, sent, arrives]) => ({
    name: `RFC 9110 6.5.1: ${name}`,
    raw: chunked(`5\r\nhello\r\n0\r\n${sent.map(line => `${line}\r\n`).join('')}\r\n`),
    status: 200,
    reaches: { ...HELLO, trailers: arrives },
  })),
  {
    name: 'RFC 9112 7.1: an empty chunked body is forwarded',
    raw: chunked('0\r\n\r\n'),
    status: 200,
    reaches: { ...HELLO, body: '' },
  },
  {
    name: 'RFC 9112 7.1: trailers after an empty body are forwarded',
    raw: chunked('0\r\nX-Check: abc\r\n\r\n'),
    status: 200,
    reaches: { ...HELLO, body: '', trailers: ['X-Check: abc'] },
  },
  ...limits,
]
