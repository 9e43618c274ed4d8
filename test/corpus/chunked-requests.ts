/** Chunks, their extensions, and trailer sections (RFC 9112 7.1). */
import { chunked, POST_X, type RequestCase } from './request-case.ts'

const HELLO = { line: POST_X, body: 'hello', chunked: true }

/** Bodies that are read as "hello" and leave in chunks of the gateway's own. */
const readAsHello: readonly (readonly [string, string])[] = [
  ['one chunk', '5\r\nhello\r\n0\r\n\r\n'],
  ['several chunks', '1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n\r\n'],
  ['chunks of one byte', '1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n'],
  ['leading zeros in a size', '0005\r\nhello\r\n0\r\n\r\n'],
  ['as many leading zeros as a 64-bit size has digits', '0000000000000005\r\nhello\r\n0\r\n\r\n'],
  ['a last chunk of many zeros', '5\r\nhello\r\n00000\r\n\r\n'],
  ['an extension with a value is dropped', '5;name=value\r\nhello\r\n0\r\n\r\n'],
  ['an extension without a value is dropped', '5;name\r\nhello\r\n0\r\n\r\n'],
  ['several extensions are dropped', '5;a=b;c;d=e\r\nhello\r\n0\r\n\r\n'],
  ['an extension with a quoted value is dropped', '5;a="b;c d"\r\nhello\r\n0\r\n\r\n'],
  ['a quoted pair in an extension is no end of it', '5;a="b\\"c"\r\nhello\r\n0\r\n\r\n'],
  ['an extension of the last chunk is dropped', '5\r\nhello\r\n0;a=b\r\n\r\n'],
]

/** Bodies that end in a refusal, whatever of the head has left by then. */
const refused: readonly (readonly [string, string])[] = [
  ['7.1: a size in the manner of C', '0x5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a size with a plus sign', '+5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a size with a minus sign', '-5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: white space in front of a size', ' 5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: white space behind a size', '5 \r\nhello\r\n0\r\n\r\n'],
  ['7.1: a tab behind a size', '5\t\r\nhello\r\n0\r\n\r\n'],
  ['7.1: white space in front of an extension', '5 ;a=b\r\nhello\r\n0\r\n\r\n'],
  ['7.1: no size', '\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a digit that is none', 'g\r\nhello\r\n0\r\n\r\n'],
  ['7.1: an underscore within a size', '0_5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a comma behind a size', '5,5\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a size that overflows 64 bits to 5', '10000000000000005\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a size that overflows 64 bits to nothing', '10000000000000000\r\n\r\n'],
  ['7.1: a size of 64 set bits and one more digit', 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
  ['7.1: NUL behind a size', '5\0\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a line feed without CR behind a size', '5\nhello\r\n0\r\n\r\n'],
  ['7.1: CR without a line feed behind a size', '5\rhello\r\n0\r\n\r\n'],
  ['7.1: two CRs behind a size', '5\r\r\nhello\r\n0\r\n\r\n'],
  ['7.1: a line feed without CR behind the data', '5\r\nhello\n0\r\n\r\n'],
  ['7.1: nothing between the data and the next size', '5\r\nhello0\r\n\r\n'],
  ['7.1: CR without a line feed behind the data', '5\r\nhello\r0\r\n\r\n'],
  ['7.1: data longer than its size', '4\r\nhello\r\n0\r\n\r\n'],
  ['7.1: data shorter than its size', '6\r\nhello\r\n0\r\n\r\n'],
  ['7.1: two line ends behind the data', '5\r\nhello\r\n\r\n0\r\n\r\n'],
  ['7.1: a line feed without CR behind the last chunk', '5\r\nhello\r\n0\n\r\n'],
  ['7.1: a line feed without CR at the end', '5\r\nhello\r\n0\r\n\n'],
  ['7.1: CR without a line feed at the end', '5\r\nhello\r\n0\r\n\rX'],
  ['7.1.1: an extension without a name', '5;\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension that ends in a line feed', '5;a\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension with a line feed inside', '5;a=b\nc\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension with a bare CR inside', '5;a=b\rc\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: a line end within a quoted extension', '5;a="\r\nhello\r\n0\r\n\r\n"\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: a line feed within a quoted extension', '5;a="\n"\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: NUL within an extension', '5;a=\0\r\nhello\r\n0\r\n\r\n'],
  ['7.1.1: an extension with a space for a semicolon', '5 a=b\r\nhello\r\n0\r\n\r\n'],
  ['7.1.2: a trailer line without a colon', '5\r\nhello\r\n0\r\nX-Trailer\r\n\r\n'],
  ['7.1.2: white space before the colon of a trailer', '5\r\nhello\r\n0\r\nX-Trailer : a\r\n\r\n'],
  ['7.1.2: a folded trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\r\n b\r\n\r\n'],
  ['7.1.2: a bare CR in a trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\rb\r\n\r\n'],
  ['7.1.2: a bare line feed in a trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\nX-More: b\r\n\r\n'],
  ['7.1.2: NUL in a trailer', '5\r\nhello\r\n0\r\nX-Trailer: a\0b\r\n\r\n'],
  ['7.1.2: a trailer without a name', '5\r\nhello\r\n0\r\n: a\r\n\r\n'],
  ['7.1.2: Content-Length for a trailer', '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'],
  ['7.1.2: Transfer-Encoding for a trailer', '5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['7.1.2: a request line for a trailer', '5\r\nhello\r\n0\r\nGET /echo/x HTTP/1.1\r\nHost: evil\r\n\r\n'],
]

/** Trailer lines that are sent, and those of them that arrive. */
const trailers: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['a trailer passes as a trailer', ['X-Check: abc'], ['X-Check: abc']],
  ['several trailers keep order, case and number', ['B: 1', 'a: 2', 'B: 3'], ['B: 1', 'a: 2', 'B: 3']],
  ['bytes of a trailer are not re-encoded', ['X-Name: M\xfcller \xe2\x82\xac'], ['X-Name: M\xfcller \xe2\x82\xac']],
  ['an empty trailer value passes', ['X-Empty:', 'X-Next: a'], ['X-Empty: ', 'X-Next: a']],
  ['routing in trailers is dropped', ['Host: evil.test', 'X: y'], ['X: y']],
  [
    'credentials in trailers are dropped',
    ['Authorization: Bearer x', 'Cookie: a=b', 'Proxy-Authorization: x', 'Set-Cookie: a=b', 'WWW-Authenticate: x'],
    [],
  ],
  [
    'what describes the content is dropped from trailers',
    ['Content-Type: text/html', 'Content-Encoding: gzip', 'Content-Range: bytes 0-1/2', 'Trailer: X', 'X: y'],
    ['X: y'],
  ],
  [
    'request modifiers in trailers are dropped',
    ['Cache-Control: no-cache', 'Expect: 100-continue', 'Max-Forwards: 1', 'Pragma: x', 'Range: bytes=0-', 'TE: gzip'],
    [],
  ],
  [
    'conditions in trailers are dropped',
    ['If-Match: "a"', 'If-None-Match: *', 'If-Modified-Since: x', 'If-Unmodified-Since: x', 'If-Range: "a"', 'X: y'],
    ['X: y'],
  ],
  [
    "the gateway's own fields are dropped from trailers",
    ['X-Forwarded-For: 1.2.3.4', 'Forwarded: for=x', 'Via: 1.1 evil', 'activityid: forged', 'X-Real-IP: x', 'X: y'],
    ['X: y'],
  ],
  [
    'hop-by-hop fields are dropped from trailers',
    ['Connection: close', 'Keep-Alive: x', 'Upgrade: h2c', 'X: y'],
    ['X: y'],
  ],
  ['forbidden names are known in any case', ['hOsT: evil.test', 'AUTHORIZATION: x', 'sEt-CoOkIe: a', 'X: y'], ['X: y']],
]

const bounded: readonly RequestCase[] = [
  {
    name: 'chunk.max_extension_bytes: extensions within the limit',
    raw: chunked(`5;a=${'b'.repeat(60)}\r\nhello\r\n0\r\n\r\n`),
    status: 200,
    reaches: HELLO,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'chunk.max_extension_bytes: one long extension',
    raw: chunked(`5;a=${'b'.repeat(120)}\r\nhello\r\n0\r\n\r\n`),
    status: 400,
    breaks: true,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'chunk.max_extension_bytes: many short extensions',
    raw: chunked(`${'1;a=0123456789012345678901234567\r\nh\r\n'.repeat(20)}0\r\n\r\n`),
    status: 400,
    breaks: true,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'chunk.max_extension_bytes: leading zeros without end',
    raw: chunked(`${'0'.repeat(200)}5\r\nhello\r\n0\r\n\r\n`),
    status: 400,
    breaks: true,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: trailers within the limit',
    raw: chunked(`5\r\nhello\r\n0\r\nX-Long: ${'a'.repeat(50)}\r\n\r\n`),
    status: 200,
    reaches: { ...HELLO, trailers: [`X-Long: ${'a'.repeat(50)}`] },
    http: { 'trailer.max_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: one long trailer',
    raw: chunked(`5\r\nhello\r\n0\r\nX-Long: ${'a'.repeat(100)}\r\n\r\n`),
    status: 400,
    breaks: true,
    http: { 'trailer.max_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: many short trailers',
    raw: chunked(`5\r\nhello\r\n0\r\n${'X: y\r\n'.repeat(30)}\r\n`),
    status: 400,
    breaks: true,
    http: { 'trailer.max_bytes': 64 },
  },
  {
    name: 'header.max_count: more trailers than fields are allowed',
    raw: chunked(`5\r\nhello\r\n0\r\n${'X: y\r\n'.repeat(9)}\r\n`),
    status: 400,
    breaks: true,
    http: { 'header.max_count': 8 },
  },
]

export const CHUNKED_REQUESTS: readonly RequestCase[] = [
  ...readAsHello.map(([name, body]) => ({
    name: `RFC 9112 7.1: ${name}`,
    raw: chunked(body),
    status: 200,
    reaches: HELLO,
  })),
  ...refused.map(([name, body]) => ({
    name: `RFC 9112 ${name} is refused`,
    raw: chunked(body),
    status: 400,
    breaks: true,
  })),
  ...trailers.map(([name, sent, arrives]) => ({
    name: `RFC 9110 6.5.1: ${name}`,
    raw: chunked(`5\r\nhello\r\n0\r\n${sent.map(line => `${line}\r\n`).join('')}\r\n`),
    status: 200,
    reaches: { ...HELLO, trailers: arrives },
  })),
  {
    name: 'RFC 9112 7.1: an empty body in chunks',
    raw: chunked('0\r\n\r\n'),
    status: 200,
    reaches: { ...HELLO, body: '' },
  },
  {
    name: 'RFC 9112 7.1: trailers without a body',
    raw: chunked('0\r\nX-Check: abc\r\n\r\n'),
    status: 200,
    reaches: { ...HELLO, body: '', trailers: ['X-Check: abc'] },
  },
  ...bounded,
]
