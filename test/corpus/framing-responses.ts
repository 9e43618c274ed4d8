/** Responses with valid and invalid framing (RFC 9112 6 and 7), and surplus bytes after them. */
import { DATE, GET_10, HEAD, OK, KEEP_10, type ResponseCase, response } from './response-case.ts'

const HELLO_CHUNKS = '5\r\nhello\r\n0\r\n\r\n'
const CHUNKED = 'Transfer-Encoding: chunked'
const LENGTH = 'Content-Length: 5'
const HELLO = { start: OK, fields: [DATE, LENGTH], body: 'hello', framing: 'length' } as const
const IN_CHUNKS = { start: OK, fields: [DATE], body: 'hello', framing: 'chunked' } as const
/** A response without a request. */
const EVIL = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'

const served: readonly ResponseCase[] = [
  {
    name: 'RFC 9112 6.2: a body of Content-Length bytes is forwarded',
    raw: response([LENGTH], 'hello'),
    gets: HELLO,
    reused: true,
  },
  {
    name: 'RFC 9112 6.2: Content-Length 0 means an empty body',
    raw: response(['Content-Length: 0'], ''),
    gets: { start: OK, fields: [DATE, 'Content-Length: 0'], framing: 'length' },
    reused: true,
  },
  {
    name: 'RFC 9112 7.1: a chunked body is forwarded in chunks',
    raw: response([CHUNKED], HELLO_CHUNKS),
    gets: IN_CHUNKS,
    reused: true,
  },
  {
    name: 'RFC 9112 7.1: mixed case, leading zeros and extensions are accepted',
    raw: response(['tRANSFER-eNCODING: ChunkeD'], '0001;a=b\r\nh\r\n4;c="d"\r\nello\r\n000;e\r\n\r\n'),
    gets: IN_CHUNKS,
    reused: true,
  },
  {
    name: 'RFC 9112 7.1: an empty chunked body is forwarded',
    raw: response([CHUNKED], '0\r\n\r\n'),
    gets: { ...IN_CHUNKS, body: '' },
    reused: true,
  },
  {
    name: 'RFC 9112 7.1.2: trailers are forwarded as trailers',
    raw: response([CHUNKED, 'Trailer: X-Check'], '5\r\nhello\r\n0\r\nX-Check: \xfc\r\nx-check: b\r\n\r\n'),
    gets: { ...IN_CHUNKS, fields: [DATE, 'Trailer: X-Check'], trailers: ['X-Check: \xfc', 'x-check: b'] },
    reused: true,
  },
  {
    name: 'RFC 9110 6.5.1: fields that a recipient could merge into the head are dropped from trailers',
    raw: response([CHUNKED], '5\r\nhello\r\n0\r\nSet-Cookie: a=b\r\nLocation: /\r\nX: y\r\nCache-Control: x\r\n\r\n'),
    gets: { ...IN_CHUNKS, trailers: ['X: y'] },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body that ends with the connection is sent to the client in chunks',
    raw: response([], 'hello'),
    ends: 'FIN',
    gets: IN_CHUNKS,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 8: an empty body that ends with the connection is sent in chunks',
    raw: response([], ''),
    ends: 'FIN',
    gets: { ...IN_CHUNKS, body: '' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body with a length ends by its length despite Connection: close',
    raw: response([LENGTH, 'Connection: close'], 'hello'),
    gets: HELLO,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a response to HEAD with Content-Length has no body',
    raw: response([LENGTH], ''),
    request: HEAD,
    gets: { start: OK, fields: [DATE, LENGTH], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a response to HEAD with Transfer-Encoding has no body',
    raw: response([CHUNKED], ''),
    request: HEAD,
    gets: { start: OK, fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a response to HEAD without a framing field leaves the connection reusable',
    raw: response([], ''),
    request: HEAD,
    gets: { start: OK, fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: bytes after a response to HEAD are dropped with their connection',
    raw: response([LENGTH], 'hello'),
    request: HEAD,
    gets: { start: OK, fields: [DATE, LENGTH], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9110 15.3.5: a 204 response has no body',
    raw: response([], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9110 8.6: a 204 response is sent without Content-Length',
    raw: response(['Content-Length: 0'], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a body of a 204 response is dropped with its connection',
    raw: response([LENGTH], 'hello', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a 204 response that announces a body ends its connection',
    raw: response([LENGTH], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.1: a 204 response is sent without Transfer-Encoding, and its connection is not reused',
    raw: response([CHUNKED], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a 304 response has no body and keeps its Content-Length',
    raw: response([LENGTH, 'ETag: "a"'], '', 'HTTP/1.1 304 Not Modified'),
    gets: { start: 'HTTP/1.1 304 Not Modified', fields: [DATE, LENGTH, 'ETag: "a"'], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: bytes after a 304 response are dropped with their connection',
    raw: response([LENGTH], 'hello', 'HTTP/1.1 304 Not Modified'),
    gets: { start: 'HTTP/1.1 304 Not Modified', fields: [DATE, LENGTH], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9110 15.3.6: a 205 response is framed by its fields',
    raw: response(['Content-Length: 0'], '', 'HTTP/1.1 205 Reset Content'),
    gets: { start: 'HTTP/1.1 205 Reset Content', fields: [DATE, 'Content-Length: 0'], framing: 'length' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3: bytes after a complete response are dropped with their connection',
    raw: response([LENGTH], 'helloworld'),
    gets: HELLO,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3: a second response is dropped with its connection',
    raw: response([LENGTH], `hello${EVIL}`),
    gets: HELLO,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3: a second response after a chunked body is dropped with its connection',
    raw: response([CHUNKED], HELLO_CHUNKS + EVIL),
    gets: IN_CHUNKS,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3: an empty line after a response is dropped with its connection',
    raw: response([LENGTH], 'hello\r\n'),
    gets: HELLO,
    reused: false,
  },
]

/** Responses to HTTP/1.0 clients. */
const to10: readonly ResponseCase[] = [
  {
    name: 'RFC 9112 7: a chunked body is sent to an HTTP/1.0 client without chunks',
    raw: response([CHUNKED, 'Trailer: X'], '2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n'),
    request: GET_10,
    gets: { start: OK, fields: [DATE], body: 'hello', framing: 'close', closes: true },
    reused: true,
  },
  {
    name: 'RFC 9112 9.3: a chunked body ends an HTTP/1.0 connection despite keep-alive',
    raw: response([CHUNKED], HELLO_CHUNKS),
    request: KEEP_10,
    gets: { start: OK, fields: [DATE], body: 'hello', framing: 'close', closes: true },
    reused: true,
  },
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 client that asks for keep-alive gets Connection: keep-alive',
    raw: response([LENGTH], 'hello'),
    request: KEEP_10,
    gets: { ...HELLO, hasKeepAlive: true },
    reused: true,
  },
  {
    name: 'RFC 9112 9.3: the connection of an HTTP/1.0 client without keep-alive is closed',
    raw: response([LENGTH], 'hello'),
    request: GET_10,
    gets: { ...HELLO, closes: true },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body that ends with the connection also ends the connection of an HTTP/1.0 client',
    raw: response([], 'hello'),
    request: KEEP_10,
    ends: 'FIN',
    gets: { start: OK, fields: [DATE], body: 'hello', framing: 'close', closes: true },
    reused: false,
  },
]

/** Responses of HTTP/1.0 backends. */
const from10: readonly ResponseCase[] = [
  {
    name: 'RFC 9112 9.3: a connection to an HTTP/1.0 backend is not reused',
    raw: response([LENGTH], 'hello', 'HTTP/1.0 200 OK'),
    gets: HELLO,
    reused: false,
  },
  {
    name: 'RFC 9112 9.3: a connection to an HTTP/1.0 backend with keep-alive is reused',
    raw: response([LENGTH, 'Connection: Keep-Alive'], 'hello', 'HTTP/1.0 200 OK'),
    gets: HELLO,
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body of an HTTP/1.0 backend without a length ends with the connection',
    raw: response(['Connection: keep-alive'], 'hello', 'HTTP/1.0 200 OK'),
    ends: 'FIN',
    gets: IN_CHUNKS,
    reused: false,
  },
]

/** Invalid framing: the client gets a fault and nothing of the response. */
const faults: readonly (readonly [string, string])[] = [
  ['6.1: Content-Length beside Transfer-Encoding', response([LENGTH, CHUNKED], HELLO_CHUNKS)],
  ['6.1: Transfer-Encoding beside Content-Length', response([CHUNKED, LENGTH], HELLO_CHUNKS)],
  ['6.1: Transfer-Encoding in an HTTP/1.0 response', response([CHUNKED], HELLO_CHUNKS, 'HTTP/1.0 200 OK')],
  ['6.1: the transfer coding gzip', response(['Transfer-Encoding: gzip'], 'hello')],
  ['6.1: the transfer coding gzip before chunked', response(['Transfer-Encoding: gzip, chunked'], HELLO_CHUNKS)],
  ['6.1: the transfer coding gzip after chunked', response(['Transfer-Encoding: chunked, gzip'], HELLO_CHUNKS)],
  ['6.1: the transfer coding identity', response(['Transfer-Encoding: identity'], 'hello')],
  ['6.1: a tab after chunked', response(['Transfer-Encoding: chunked\t'], HELLO_CHUNKS)],
  ['6.1: an empty Transfer-Encoding', response(['Transfer-Encoding:'], 'hello')],
  ['6.1: a second Transfer-Encoding: chunked', response([CHUNKED, CHUNKED], HELLO_CHUNKS)],
  ['6.1: a second Transfer-Encoding: identity', response([CHUNKED, 'Transfer-Encoding: identity'], HELLO_CHUNKS)],
  ['6.3: a second Content-Length with the same value', response([LENGTH, LENGTH], 'hello')],
  ['6.3: a second Content-Length with another value', response([LENGTH, 'Content-Length: 6'], 'hello')],
  ['6.3: a list as Content-Length', response(['Content-Length: 5, 5'], 'hello')],
  ['6.3: a Content-Length with a plus sign', response(['Content-Length: +5'], 'hello')],
  ['6.3: a negative Content-Length', response(['Content-Length: -5'], 'hello')],
  ['6.3: a hexadecimal Content-Length', response(['Content-Length: 0x5'], 'hello')],
  ['6.3: an empty Content-Length', response(['Content-Length:'], 'hello')],
  ['6.3: a Content-Length that overflows 64 bits', response(['Content-Length: 18446744073709551621'], 'hello')],
  ['6.3: a Content-Length with a space inside', response(['Content-Length: 5 5'], 'hello')],
  ['5: a space before the colon of Content-Length', response(['Content-Length : 5'], 'hello')],
  ['5.2: a folded Transfer-Encoding', response(['Transfer-Encoding:', ' chunked'], HELLO_CHUNKS)],
]

/** Bodies that break off after the head was sent: the client must see that the response is incomplete. */
const cut: readonly (readonly [string, string, 'FIN' | 'RST' | undefined])[] = [
  ['8: a FIN within a body with a length', response(['Content-Length: 10'], 'hello'), 'FIN'],
  ['8: a FIN before the first byte of a body with a length', response(['Content-Length: 10'], ''), 'FIN'],
  ['8: a reset within a body with a length', response(['Content-Length: 10'], 'hello'), 'RST'],
  ['8: a FIN between chunks', response([CHUNKED], '5\r\nhello\r\n'), 'FIN'],
  ['8: a FIN within a chunk', response([CHUNKED], 'a\r\nhello'), 'FIN'],
  ['8: a FIN within a chunk size line', response([CHUNKED], '5\r\nhello\r\n5'), 'FIN'],
  ['8: a FIN within trailers', response([CHUNKED], '5\r\nhello\r\n0\r\nX: y\r\n'), 'FIN'],
  ['8: a FIN before the last line of a chunked body', response([CHUNKED], '5\r\nhello\r\n0\r\n'), 'FIN'],
  [
    '8: a FIN after a Transfer-Encoding trailer',
    response([CHUNKED], '5\r\nhello\r\n0\r\nX: y\r\nTransfer-Encoding: chunked, gzip\r\n'),
    'FIN',
  ],
  ['8: a reset between chunks', response([CHUNKED], '5\r\nhello\r\n'), 'RST'],
  ['8: a reset within a body that ends with the connection', response([], 'hello'), 'RST'],
  ['7.1: a chunk size that is not hexadecimal', response([CHUNKED], '5\r\nhello\r\ng\r\n'), undefined],
  ['7.1: a chunk size line with a bare LF', response([CHUNKED], '5\r\nhello\r\n5\nhello\r\n0\r\n\r\n'), undefined],
  ['7.1: chunk data longer than the chunk size', response([CHUNKED], '4\r\nhello\r\n0\r\n\r\n'), undefined],
  [
    '7.1: a chunk size that overflows 64 bits',
    response([CHUNKED], '5\r\nhello\r\n10000000000000005\r\nhello\r\n'),
    undefined,
  ],
  ['7.1.2: a bare CR in a trailer', response([CHUNKED], '5\r\nhello\r\n0\r\nX: a\rb\r\n\r\n'), undefined],
  [
    '7.1.2: Content-Length as a trailer',
    response([CHUNKED], '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'),
    undefined,
  ],
]

const limits: readonly ResponseCase[] = [
  {
    name: 'chunk.max_extension_bytes: chunk extensions of a response over the limit cut the response short',
    raw: response([CHUNKED], `5\r\nhello\r\n5;a=${'b'.repeat(200)}\r\nhello\r\n0\r\n\r\n`),
    gets: 'cut',
    reused: false,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: trailers of a response over the limit cut the response short',
    raw: response([CHUNKED], `5\r\nhello\r\n0\r\n${'X: y\r\n'.repeat(40)}\r\n`),
    gets: 'cut',
    reused: false,
    http: { 'trailer.max_bytes': 64 },
  },
]

export const FRAMING_RESPONSES: readonly ResponseCase[] = [
  ...served,
  ...to10,
  ...from10,
  ...faults.map(([name, raw]) => ({
    name: `RFC 9112 ${name} causes a fault`,
    raw,
    gets: 'fault' as const,
    reused: false,
  })),
  ...cut.map(([name, raw, ends]) => ({
    name: `RFC 9112 ${name} leaves the response to the client incomplete`,
    raw,
    ...(ends === undefined ? {} : { ends }),
    gets: 'cut' as const,
    reused: false,
  })),
  ...limits,
]
