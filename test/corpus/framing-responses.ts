/** Where a response ends (RFC 9112 6 and 7), and what must not be taken for one. */
import { DATE, GET_10, HEAD, OK, KEEP_10, type ResponseCase, response } from './response-case.ts'

const HELLO_CHUNKS = '5\r\nhello\r\n0\r\n\r\n'
const CHUNKED = 'Transfer-Encoding: chunked'
const LENGTH = 'Content-Length: 5'
const HELLO = { start: OK, fields: [DATE, LENGTH], body: 'hello', framing: 'length' } as const
const IN_CHUNKS = { start: OK, fields: [DATE], body: 'hello', framing: 'chunked' } as const
/** A response that nobody asked for. */
const EVIL = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'

const served: readonly ResponseCase[] = [
  { name: 'RFC 9112 6.2: a body of Content-Length bytes', raw: response([LENGTH], 'hello'), gets: HELLO, reused: true },
  {
    name: 'RFC 9112 6.2: Content-Length 0 is no body',
    raw: response(['Content-Length: 0'], ''),
    gets: { start: OK, fields: [DATE, 'Content-Length: 0'], framing: 'length' },
    reused: true,
  },
  { name: 'RFC 9112 7.1: a body in chunks', raw: response([CHUNKED], HELLO_CHUNKS), gets: IN_CHUNKS, reused: true },
  {
    name: 'RFC 9112 7.1: chunked in odd case, with leading zeros and extensions',
    raw: response(['tRANSFER-eNCODING: ChunkeD'], '0001;a=b\r\nh\r\n4;c="d"\r\nello\r\n000;e\r\n\r\n'),
    gets: IN_CHUNKS,
    reused: true,
  },
  {
    name: 'RFC 9112 7.1: no body in chunks',
    raw: response([CHUNKED], '0\r\n\r\n'),
    gets: { ...IN_CHUNKS, body: '' },
    reused: true,
  },
  {
    name: 'RFC 9112 7.1.2: trailers pass as trailers',
    raw: response([CHUNKED, 'Trailer: X-Check'], '5\r\nhello\r\n0\r\nX-Check: \xfc\r\nx-check: b\r\n\r\n'),
    gets: { ...IN_CHUNKS, fields: [DATE, 'Trailer: X-Check'], trailers: ['X-Check: \xfc', 'x-check: b'] },
    reused: true,
  },
  {
    name: 'RFC 9110 6.5.1: what a recipient might merge is dropped from trailers',
    raw: response([CHUNKED], '5\r\nhello\r\n0\r\nSet-Cookie: a=b\r\nLocation: /\r\nX: y\r\nCache-Control: x\r\n\r\n'),
    gets: { ...IN_CHUNKS, trailers: ['X: y'] },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body that ends with the connection is framed for the client',
    raw: response([], 'hello'),
    ends: 'FIN',
    gets: IN_CHUNKS,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 8: such a body may be empty',
    raw: response([], ''),
    ends: 'FIN',
    gets: { ...IN_CHUNKS, body: '' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 8: Connection: close alone does not end a body with a length',
    raw: response([LENGTH, 'Connection: close'], 'hello'),
    gets: HELLO,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 1: HEAD has no body, whatever its length',
    raw: response([LENGTH], ''),
    request: HEAD,
    gets: { start: OK, fields: [DATE, LENGTH], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: HEAD has no body, whatever its coding',
    raw: response([CHUNKED], ''),
    request: HEAD,
    gets: { start: OK, fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: HEAD without a framing field needs no end of the connection',
    raw: response([], ''),
    request: HEAD,
    gets: { start: OK, fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: bytes behind the answer to HEAD are dropped with their connection',
    raw: response([LENGTH], 'hello'),
    request: HEAD,
    gets: { start: OK, fields: [DATE, LENGTH], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9110 15.3.5: 204 has no body',
    raw: response([], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9110 8.6: 204 goes out without Content-Length',
    raw: response(['Content-Length: 0'], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a body of 204 is dropped with its connection',
    raw: response([LENGTH], 'hello', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 1: a 204 that announces a body may send it late, so it is not waited for',
    raw: response([LENGTH], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.1: 204 goes out without Transfer-Encoding, and its connection does not serve again',
    raw: response([CHUNKED], '', 'HTTP/1.1 204 No Content'),
    gets: { start: 'HTTP/1.1 204 No Content', fields: [DATE], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9112 6.3 rule 1: 304 has no body, and keeps the length it speaks of',
    raw: response([LENGTH, 'ETag: "a"'], '', 'HTTP/1.1 304 Not Modified'),
    gets: { start: 'HTTP/1.1 304 Not Modified', fields: [DATE, LENGTH, 'ETag: "a"'], framing: 'none' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 1: bytes behind a 304 are dropped with their connection',
    raw: response([LENGTH], 'hello', 'HTTP/1.1 304 Not Modified'),
    gets: { start: 'HTTP/1.1 304 Not Modified', fields: [DATE, LENGTH], framing: 'none' },
    reused: false,
  },
  {
    name: 'RFC 9110 15.4.7: 205 ends where its fields say',
    raw: response(['Content-Length: 0'], '', 'HTTP/1.1 205 Reset Content'),
    gets: { start: 'HTTP/1.1 205 Reset Content', fields: [DATE, 'Content-Length: 0'], framing: 'length' },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3: bytes behind a complete response are dropped with their connection',
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
    name: 'RFC 9112 6.3: a second response behind chunks is dropped with its connection',
    raw: response([CHUNKED], HELLO_CHUNKS + EVIL),
    gets: IN_CHUNKS,
    reused: false,
  },
  {
    name: 'RFC 9112 6.3: an empty line behind a response is no part of it',
    raw: response([LENGTH], 'hello\r\n'),
    gets: HELLO,
    reused: false,
  },
]

/** Answers to clients of HTTP/1.0. */
const to10: readonly ResponseCase[] = [
  {
    name: 'RFC 9112 7: chunks are taken apart for an HTTP/1.0 client',
    raw: response([CHUNKED, 'Trailer: X'], '2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n'),
    request: GET_10,
    gets: { start: OK, fields: [DATE], body: 'hello', framing: 'close', closes: true },
    reused: true,
  },
  {
    name: 'RFC 9112 9.3: chunks end an HTTP/1.0 connection that was to be kept',
    raw: response([CHUNKED], HELLO_CHUNKS),
    request: KEEP_10,
    gets: { start: OK, fields: [DATE], body: 'hello', framing: 'close', closes: true },
    reused: true,
  },
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 client that wants to be kept is told so',
    raw: response([LENGTH], 'hello'),
    request: KEEP_10,
    gets: { ...HELLO, keepsAlive: true },
    reused: true,
  },
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 client is closed otherwise',
    raw: response([LENGTH], 'hello'),
    request: GET_10,
    gets: { ...HELLO, closes: true },
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body that ends with the connection does so for an HTTP/1.0 client',
    raw: response([], 'hello'),
    request: KEEP_10,
    ends: 'FIN',
    gets: { start: OK, fields: [DATE], body: 'hello', framing: 'close', closes: true },
    reused: false,
  },
]

/** Responses of backends that speak HTTP/1.0. */
const from10: readonly ResponseCase[] = [
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 backend closes behind its response',
    raw: response([LENGTH], 'hello', 'HTTP/1.0 200 OK'),
    gets: HELLO,
    reused: false,
  },
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 backend that says keep-alive serves again',
    raw: response([LENGTH, 'Connection: Keep-Alive'], 'hello', 'HTTP/1.0 200 OK'),
    gets: HELLO,
    reused: true,
  },
  {
    name: 'RFC 9112 6.3 rule 8: a body of an HTTP/1.0 backend that ends with the connection',
    raw: response(['Connection: keep-alive'], 'hello', 'HTTP/1.0 200 OK'),
    ends: 'FIN',
    gets: IN_CHUNKS,
    reused: false,
  },
]

/** Framing that is refused before anything reaches the client. */
const faults: readonly (readonly [string, string])[] = [
  ['6.1: Content-Length beside Transfer-Encoding', response([LENGTH, CHUNKED], HELLO_CHUNKS)],
  ['6.1: Transfer-Encoding beside Content-Length', response([CHUNKED, LENGTH], HELLO_CHUNKS)],
  ['6.1: Transfer-Encoding of HTTP/1.0', response([CHUNKED], HELLO_CHUNKS, 'HTTP/1.0 200 OK')],
  ['6.1: gzip', response(['Transfer-Encoding: gzip'], 'hello')],
  ['6.1: gzip, chunked', response(['Transfer-Encoding: gzip, chunked'], HELLO_CHUNKS)],
  ['6.1: chunked, gzip', response(['Transfer-Encoding: chunked, gzip'], HELLO_CHUNKS)],
  ['6.1: identity', response(['Transfer-Encoding: identity'], 'hello')],
  ['6.1: chunked with a tab behind', response(['Transfer-Encoding: chunked\t'], HELLO_CHUNKS)],
  ['6.1: an empty coding', response(['Transfer-Encoding:'], 'hello')],
  ['6.1: chunked twice', response([CHUNKED, CHUNKED], HELLO_CHUNKS)],
  ['6.1: TE.TE', response([CHUNKED, 'Transfer-Encoding: identity'], HELLO_CHUNKS)],
  ['6.3: equal lengths', response([LENGTH, LENGTH], 'hello')],
  ['6.3: differing lengths', response([LENGTH, 'Content-Length: 6'], 'hello')],
  ['6.3: a list of lengths', response(['Content-Length: 5, 5'], 'hello')],
  ['6.3: a length with a sign', response(['Content-Length: +5'], 'hello')],
  ['6.3: a negative length', response(['Content-Length: -5'], 'hello')],
  ['6.3: a length in hexadecimal', response(['Content-Length: 0x5'], 'hello')],
  ['6.3: an empty length', response(['Content-Length:'], 'hello')],
  ['6.3: a length that overflows', response(['Content-Length: 18446744073709551621'], 'hello')],
  ['6.3: a length with white space inside', response(['Content-Length: 5 5'], 'hello')],
  ['5: white space before the colon of a length', response(['Content-Length : 5'], 'hello')],
  ['5.2: a folded coding', response(['Transfer-Encoding:', ' chunked'], HELLO_CHUNKS)],
]

/** Bodies that break, or stop, after the head has left: the client must see that it has not got the whole. */
const cut: readonly (readonly [string, string, 'FIN' | 'RST' | undefined])[] = [
  ['8: a length and an early FIN', response(['Content-Length: 10'], 'hello'), 'FIN'],
  ['8: a length and no byte', response(['Content-Length: 10'], ''), 'FIN'],
  ['8: a length and a reset', response(['Content-Length: 10'], 'hello'), 'RST'],
  ['8: chunks and an early FIN', response([CHUNKED], '5\r\nhello\r\n'), 'FIN'],
  ['8: a FIN within a chunk', response([CHUNKED], 'a\r\nhello'), 'FIN'],
  ['8: a FIN within a size line', response([CHUNKED], '5\r\nhello\r\n5'), 'FIN'],
  ['8: a FIN before the trailers end', response([CHUNKED], '5\r\nhello\r\n0\r\nX: y\r\n'), 'FIN'],
  ['8: a FIN before the last line', response([CHUNKED], '5\r\nhello\r\n0\r\n'), 'FIN'],
  [
    '8: a FIN within trailers that speak of another coding',
    response([CHUNKED], '5\r\nhello\r\n0\r\nX: y\r\nTransfer-Encoding: chunked, gzip\r\n'),
    'FIN',
  ],
  ['8: chunks and a reset', response([CHUNKED], '5\r\nhello\r\n'), 'RST'],
  ['8: a reset of a body that ends with the connection', response([], 'hello'), 'RST'],
  ['7.1: a size that is none', response([CHUNKED], '5\r\nhello\r\ng\r\n'), undefined],
  ['7.1: a size line with a bare LF', response([CHUNKED], '5\r\nhello\r\n5\nhello\r\n0\r\n\r\n'), undefined],
  ['7.1: data longer than its size', response([CHUNKED], '4\r\nhello\r\n0\r\n\r\n'), undefined],
  ['7.1: a size that overflows', response([CHUNKED], '5\r\nhello\r\n10000000000000005\r\nhello\r\n'), undefined],
  ['7.1.2: a bare CR in a trailer', response([CHUNKED], '5\r\nhello\r\n0\r\nX: a\rb\r\n\r\n'), undefined],
  ['7.1.2: a length for a trailer', response([CHUNKED], '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'), undefined],
]

const limits: readonly ResponseCase[] = [
  {
    name: 'chunk.max_extension_bytes: extensions of a response',
    raw: response([CHUNKED], `5\r\nhello\r\n5;a=${'b'.repeat(200)}\r\nhello\r\n0\r\n\r\n`),
    gets: 'cut',
    reused: false,
    http: { 'chunk.max_extension_bytes': 64 },
  },
  {
    name: 'trailer.max_bytes: trailers of a response',
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
  ...faults.map(([name, raw]) => ({ name: `RFC 9112 ${name}: a fault`, raw, gets: 'fault' as const, reused: false })),
  ...cut.map(([name, raw, ends]) => ({
    name: `RFC 9112 ${name}: cut short, never made whole`,
    raw,
    ...(ends === undefined ? {} : { ends }),
    gets: 'cut' as const,
    reused: false,
  })),
  ...limits,
]
