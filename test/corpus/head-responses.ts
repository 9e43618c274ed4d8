/** Responses with valid and invalid heads: status lines, fields, interim responses, stripped and added fields. */
import { DATE, GET_10, OK, type ResponseCase, response } from './response-case.ts'

const LENGTH = 'Content-Length: 5'
const HELLO = { start: OK, fields: [DATE, LENGTH], body: 'hello', framing: 'length' } as const
const FINAL = response([LENGTH], 'hello')

/** Invalid status lines. */
const badStarts: readonly (readonly [string, string])[] = [
  ['a status of two digits', 'HTTP/1.1 20 OK'],
  ['a status of four digits', 'HTTP/1.1 2000 OK'],
  ['status 099', 'HTTP/1.1 099 Odd'],
  ['status 000', 'HTTP/1.1 000 Odd'],
  ['a status with a sign', 'HTTP/1.1 +20 OK'],
  ['a status of letters', 'HTTP/1.1 abc OK'],
  ['no status', 'HTTP/1.1'],
  ['no status after the space', 'HTTP/1.1 '],
  ['a second space after the version', 'HTTP/1.1  200 OK'],
  ['a tab after the version', 'HTTP/1.1\t200 OK'],
  ['a reason without a space before it', 'HTTP/1.1 200OK'],
  ['version HTTP/1.2', 'HTTP/1.2 200 OK'],
  ['version HTTP/2.0', 'HTTP/2.0 200 OK'],
  ['version HTTP/0.9', 'HTTP/0.9 200 OK'],
  ['a version without a minor number', 'HTTP/1 200 OK'],
  ['the protocol ICY', 'ICY 200 OK'],
  ['the protocol RTSP', 'RTSP/1.0 200 OK'],
  ['the protocol name in lower case', 'http/1.1 200 OK'],
  ['a space before the status line', ' HTTP/1.1 200 OK'],
  ['an empty line before the status line', '\r\nHTTP/1.1 200 OK'],
  ['a byte order mark before the status line', '\xef\xbb\xbfHTTP/1.1 200 OK'],
  ['a request line instead of a status line', 'GET / HTTP/1.1'],
  ['a bare CR in the reason', 'HTTP/1.1 200 O\rK'],
  ['CR CR LF after the reason', 'HTTP/1.1 200 OK\r'],
  ['CR CR instead of a line end', 'HTTP/1.1 200 OK\r\rName: a'],
  ['CR CR CR LF instead of two line ends', 'HTTP/1.1 200 OK\r\r\r\n'],
  ['CR CR LF after the status', 'HTTP/1.1 200\r'],
  ['a bare LF in the reason', 'HTTP/1.1 200 O\nK'],
  ['NUL in the reason', 'HTTP/1.1 200 O\0K'],
  ['ESC in the reason', 'HTTP/1.1 200 \x1b[1m'],
  ['DEL in the reason', 'HTTP/1.1 200 O\x7fK'],
]

const badFields: readonly (readonly [string, string])[] = [
  ['5.5: a bare CR in a value', 'Name: a\rb'],
  ['5.5: a bare LF in a value', 'Name: a\nb'],
  ['5.5: NUL in a value', 'Name: a\0b'],
  ['5.5: a control character in a value', 'Name: a\x01b'],
  ['5.5: DEL in a value', 'Name: a\x7fb'],
  ['5.2: a folded line', 'Name: a\r\n b'],
  ['5.1: a space before the colon', 'Name : a'],
  ['5.1: a field name with a space', 'Na me: a'],
  ['5.1: a line without a colon', 'Name'],
  ['5.1: an empty field name', ': a'],
  ['5.1: a byte beyond ASCII in a field name', 'N\xe4me: a'],
  ['5: a status line among the fields (response splitting)', 'HTTP/1.1 200 OK'],
  ['5.5: LF LF in a value (response splitting)', 'Name: a\n\nHTTP/1.1 200 OK'],
]

/** Fields of a response, and the fields that reach the client. */
const fields: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  [
    'RFC 6265 3: Set-Cookie lines are not joined',
    ['Set-Cookie: a=b', 'X: y', 'Set-Cookie: c=d'],
    ['Set-Cookie: a=b', 'X: y', 'Set-Cookie: c=d'],
  ],
  ['RFC 9110 5: the order, case and number of fields are kept', ['b: 1', 'A: 2', 'b: 1'], ['b: 1', 'A: 2', 'b: 1']],
  [
    'RFC 9110 5.5: bytes and white space of values are kept',
    ['A:  \xfc\t b ', 'C:', 'D:\t'],
    ['A:  \xfc\t b ', 'C:', 'D:\t'],
  ],
  ['RFC 9110 10.2.4: Server is stripped', ['Server: Apache/2.4', 'A: b'], ['A: b']],
  [
    'RFC 9110 7.6.1: hop-by-hop fields are stripped',
    ['Keep-Alive: timeout=50', 'Proxy-Connection: x', 'Proxy-Authenticate: y', 'TE: z', 'Upgrade: h2c', 'A: b'],
    ['A: b'],
  ],
  [
    'RFC 9110 7.6.1: a field that Connection names is stripped',
    ['Connection: X-Hop, keep-alive', 'x-hop: a', 'A: b'],
    ['A: b'],
  ],
  [
    'RFC 9110 7.6.1: fields that Connection names are stripped in any case, from lists and repeated fields',
    ['Connection: A', 'connection: b,C', 'a: 1', 'B: 2', 'c: 3', 'D: 4'],
    ['D: 4'],
  ],
  [
    'RFC 9110 7.6.1: Connection cannot remove Content-Length and Date',
    ['Connection: Content-Length, Date, Transfer-Encoding', 'A: b'],
    ['A: b'],
  ],
  ['RFC 9110 6.6.2: Trailer is stripped from a response without chunks', ['Trailer: X', 'A: b'], ['A: b']],
  [
    'correlation.header: the id of a backend is replaced by that of the gateway',
    ['activityid: forged', 'A: b'],
    ['A: b'],
  ],
  ['RFC 9110 7.6.3: Via of a backend is forwarded', ['Via: 1.1 inner'], ['Via: 1.1 inner']],
  [
    'RFC 6797 6.1: Strict-Transport-Security and WWW-Authenticate are forwarded',
    ['Strict-Transport-Security: max-age=1', 'WWW-Authenticate: Basic', 'WWW-Authenticate: Bearer'],
    ['Strict-Transport-Security: max-age=1', 'WWW-Authenticate: Basic', 'WWW-Authenticate: Bearer'],
  ],
]

/** Valid status lines, and the status lines that reach the client. */
const starts: readonly (readonly [string, string, string])[] = [
  ['an unregistered status', 'HTTP/1.1 299 Odd but fine', 'HTTP/1.1 299 Odd but fine'],
  ['a status of an unregistered class', 'HTTP/1.1 999 Whatever', 'HTTP/1.1 999 Whatever'],
  ['an empty reason', 'HTTP/1.1 200 ', 'HTTP/1.1 200 '],
  ['a status line without a reason and its space', 'HTTP/1.1 200', 'HTTP/1.1 200 '],
  ['a reason with bytes beyond ASCII', 'HTTP/1.1 200 \xc3\xa4', 'HTTP/1.1 200 \xc3\xa4'],
  ['a reason with spaces', 'HTTP/1.1 200  O  K ', 'HTTP/1.1 200  O  K '],
  ['an HTTP/1.0 status line, rewritten to HTTP/1.1,', 'HTTP/1.0 404 Not Found', 'HTTP/1.1 404 Not Found'],
]

const EARLY = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

const interims: readonly (readonly [string, ResponseCase])[] = [
  [
    'RFC 8297 2: a 103 response is forwarded',
    { name: '', raw: EARLY + FINAL, gets: { ...HELLO, interims: [EARLY] }, reused: true },
  ],
  [
    'RFC 9110 15.2: several interim responses are forwarded in order',
    {
      name: '',
      raw: CONTINUE + EARLY + EARLY + FINAL,
      gets: { ...HELLO, interims: [CONTINUE, EARLY, EARLY] },
      reused: true,
    },
  ],
  [
    'RFC 9110 15.2: an interim response of an unknown status is forwarded',
    {
      name: '',
      raw: `HTTP/1.1 199 Odd\r\nA: b\r\n\r\n${FINAL}`,
      gets: { ...HELLO, interims: ['HTTP/1.1 199 Odd\r\nA: b\r\n\r\n'] },
      reused: true,
    },
  ],
  [
    'RFC 9110 8.6: framing fields of an interim response are dropped and frame nothing',
    {
      name: '',
      raw: `HTTP/1.1 102 Processing\r\nContent-Length: 5\r\nA: b\r\n\r\n${FINAL}`,
      gets: { ...HELLO, interims: ['HTTP/1.1 102 Processing\r\nA: b\r\n\r\n'] },
      reused: true,
    },
  ],
  [
    'RFC 9110 7.6.1: hop-by-hop fields of an interim response are stripped',
    {
      name: '',
      raw: `HTTP/1.1 103 Early Hints\r\nConnection: X-Hop\r\nX-Hop: a\r\nKeep-Alive: x\r\nA: b\r\n\r\n${FINAL}`,
      gets: { ...HELLO, interims: ['HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n'] },
      reused: true,
    },
  ],
  [
    'RFC 9110 15.2: interim responses are not sent to an HTTP/1.0 client',
    { name: '', raw: CONTINUE + EARLY + FINAL, request: GET_10, gets: { ...HELLO, closes: true }, reused: true },
  ],
  [
    'RFC 9110 15.2: garbage after an interim response causes a fault',
    { name: '', raw: `${EARLY}hello\r\n\r\n`, gets: 'fault', reused: false },
  ],
  [
    'RFC 9110 15.2.2: a 101 response without an upgrade request causes a fault',
    {
      name: '',
      raw: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      gets: 'fault',
      reused: false,
    },
  ],
  [
    'RFC 9110 15.2.2: a 101 response after a 100 response causes a fault',
    { name: '', raw: `${CONTINUE}HTTP/1.1 101 Switching Protocols\r\n\r\n`, gets: 'fault', reused: false },
  ],
]

const persistence: readonly (readonly [string, readonly string[], boolean])[] = [
  ['RFC 9112 9.6: Connection: close', ['Connection: close'], false],
  ['RFC 9112 9.6: Connection: close in mixed case', ['cONNECTION: Close'], false],
  ['RFC 9112 9.6: Connection: close in a list', ['Connection: X, close'], false],
  ['RFC 9112 9.6: Connection: close in a second field', ['Connection: keep-alive', 'Connection: close'], false],
  ['RFC 9112 9.6: Proxy-Connection: close', ['Proxy-Connection: close'], true],
  ['RFC 2068 19.7.1: Keep-Alive with a timeout of 60 s', ['Keep-Alive: timeout=60, max=100'], true],
  ['RFC 2068 19.7.1: Keep-Alive with a timeout of 5 s', ['Keep-Alive: max=100, timeout=5'], true],
  ['RFC 2068 19.7.1: Keep-Alive with a timeout of 0 s', ['Keep-Alive: timeout=0'], false],
  ['RFC 2068 19.7.1: Keep-Alive with an unknown parameter', ['Keep-Alive: foo'], true],
]

const limits: readonly ResponseCase[] = [
  {
    name: 'RFC 9110 15.2: 64 interim responses are forwarded',
    raw: CONTINUE.repeat(64) + FINAL,
    gets: { ...HELLO, interims: Array(64).fill(CONTINUE) },
    reused: true,
  },
  {
    name: 'RFC 9110 15.2: 65 interim responses cause a fault',
    raw: CONTINUE.repeat(65) + FINAL,
    gets: 'fault',
    reused: false,
  },
  {
    name: 'response.header.max_bytes: a head over the limit causes a fault',
    raw: response([`A: ${'a'.repeat(5000)}`, LENGTH], 'hello'),
    gets: 'fault',
    reused: false,
    http: { 'response.header.max_bytes': 4096 },
  },
  {
    name: 'response.header.max_bytes: an unfinished head over the limit causes a fault',
    raw: `HTTP/1.1 200 OK\r\nA: ${'a'.repeat(5000)}`,
    gets: 'fault',
    reused: false,
    http: { 'response.header.max_bytes': 4096 },
  },
  {
    name: 'disable_connection_keepalive: a backend connection is not reused',
    raw: FINAL,
    gets: HELLO,
    reused: false,
    http: { disable_connection_keepalive: true },
  },
  {
    name: 'preserve_http_server_name: Server is forwarded',
    raw: response(['Server: Apache/2.4', LENGTH], 'hello'),
    gets: { ...HELLO, fields: [DATE, 'Server: Apache/2.4', LENGTH] },
    reused: true,
    http: { preserve_http_server_name: true },
  },
  {
    name: 'http.headers.preserve: a listed Server is forwarded',
    raw: response(['Server: Apache/2.4', LENGTH], 'hello'),
    gets: { ...HELLO, fields: [DATE, 'Server: Apache/2.4', LENGTH] },
    reused: true,
    http: { 'http.headers.preserve': ['Server'] },
  },
]

export const HEAD_RESPONSES: readonly ResponseCase[] = [
  ...badStarts.map(([name, start]) => ({
    name: `RFC 9112 4: ${name} causes a fault`,
    raw: response([LENGTH], 'hello', start),
    gets: 'fault' as const,
    reused: false,
  })),
  ...badFields.map(([name, line]) => ({
    name: `RFC 9110 ${name} causes a fault`,
    raw: response([line, LENGTH], 'hello'),
    gets: 'fault' as const,
    reused: false,
  })),
  {
    name: 'RFC 9112 4: a response that is not HTTP causes a fault',
    raw: 'garbage',
    ends: 'FIN',
    gets: 'fault',
    reused: false,
  },
  ...fields.map(([name, sent, passed]) => ({
    name,
    raw: response([...sent, LENGTH], 'hello'),
    gets: { ...HELLO, fields: [DATE, ...passed, LENGTH] },
    reused: true,
  })),
  ...starts.map(([name, start, arrives]) => ({
    name: `RFC 9112 4: ${name} is forwarded`,
    raw: response([LENGTH, 'Connection: keep-alive'], 'hello', start),
    gets: { ...HELLO, start: arrives },
    reused: true,
  })),
  ...interims.map(([name, row]) => ({ ...row, name })),
  ...persistence.map(([name, lines, reused]) => ({
    name: `${name} leaves the connection ${reused ? 'reusable' : 'closed'}`,
    raw: response([...lines, LENGTH], 'hello'),
    gets: HELLO,
    reused,
  })),
  {
    name: 'RFC 9110 6.6.1: Date is added to a response without Date',
    raw: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    gets: { start: OK, fields: [LENGTH], body: 'hello', framing: 'length' },
    reused: true,
  },
  {
    name: 'RFC 9110 5.5: an empty value as the last field does not hide the end of the head',
    raw: response([LENGTH, 'Empty:'], 'a\r\n\r\n'),
    gets: { start: OK, fields: [DATE, LENGTH, 'Empty:'], body: 'a\r\n\r\n', framing: 'length' },
    reused: true,
  },
  {
    name: 'RFC 9110 5.5: a value of white space as the last field is forwarded',
    raw: response([LENGTH, 'Empty: \t '], 'hello'),
    gets: { start: OK, fields: [DATE, LENGTH, 'Empty: \t '], body: 'hello', framing: 'length' },
    reused: true,
  },
  {
    name: 'RFC 9110 5.5: an empty value as the last field of an interim response is forwarded',
    raw: `HTTP/1.1 103 Early Hints\r\nEmpty:\r\n\r\n${FINAL}`,
    gets: { ...HELLO, interims: ['HTTP/1.1 103 Early Hints\r\nEmpty:\r\n\r\n'] },
    reused: true,
  },
  {
    name: 'RFC 9112 3: a head without fields is accepted',
    raw: 'HTTP/1.1 200 OK\r\n\r\nhello',
    ends: 'FIN',
    gets: { start: OK, body: 'hello', framing: 'chunked' },
    reused: false,
  },
  ...limits,
]
