/** Requests with hop-by-hop fields (RFC 9110 7.6.1), upgrades (7.8), expectations (10.1.1), and of HTTP/1.0. */
import { GET_X, get, POST_X, post, type RequestCase } from './request-case.ts'

const GATEWAY_FIELDS = [
  'Via: 1.1 sluice',
  'X-Forwarded-For: 127.0.0.1',
  'X-Forwarded-Proto: http',
  'X-Forwarded-Host: gateway.test',
  'activityid: …',
]
const ACCEPTS_TRAILERS = [...GATEWAY_FIELDS, 'TE: trailers', 'Connection: TE']

/** Fields of a GET, and the fields that reach the backend. */
const stripped: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  [
    'a field after Connection that Connection names is stripped',
    ['Connection: X-Hop', 'X-Hop: a', 'X-End: b'],
    ['X-End: b'],
  ],
  [
    'a field before Connection that Connection names is stripped',
    ['X-Hop: a', 'Connection: X-Hop', 'X-End: b'],
    ['X-End: b'],
  ],
  [
    'the names in Connection are case-insensitive',
    ['Connection: x-hOP', 'X-Hop: a', 'X-HOP: c', 'X-End: b'],
    ['X-End: b'],
  ],
  [
    'every field that a list in Connection names is stripped',
    ['Connection: A, B ,\tC', 'A: 1', 'B: 2', 'C: 3', 'D: 4'],
    ['D: 4'],
  ],
  [
    'every field that repeated Connection fields name is stripped',
    ['Connection: A', 'Connection: B', 'A: 1', 'B: 2', 'D: 4'],
    ['D: 4'],
  ],
  ['the name Connection is case-insensitive', ['cONNECTION: A', 'A: 1', 'D: 4'], ['D: 4']],
  ['empty list elements in Connection are ignored', ['Connection: ,, A,,', 'A: 1', 'D: 4'], ['D: 4']],
  [
    'a field whose name is only similar to a name in Connection is forwarded',
    ['Connection: X-Hop', 'X-Hopper: a', 'X-Ho: b'],
    ['X-Hopper: a', 'X-Ho: b'],
  ],
  ['an empty Connection strips no field', ['Connection:', 'A: 1'], ['A: 1']],
  ['a name in Connection without a field is ignored', ['Connection: X-None', 'A: 1'], ['A: 1']],
  ['invalid names in Connection are ignored', ['Connection: "A", B=c, (d)', 'A: 1', 'B: 2'], ['A: 1', 'B: 2']],
  ['Keep-Alive is stripped', ['Keep-Alive: timeout=5', 'A: 1'], ['A: 1']],
  ['Proxy-Connection is stripped', ['Proxy-Connection: keep-alive', 'A: 1'], ['A: 1']],
  ['Proxy-Authorization is stripped', ['Proxy-Authorization: Basic abc', 'A: 1'], ['A: 1']],
  ['Proxy-Authenticate is stripped', ['Proxy-Authenticate: Basic', 'A: 1'], ['A: 1']],
  ['TE without trailers is stripped', ['TE: gzip', 'Connection: TE', 'A: 1'], ['A: 1']],
  ['Upgrade that Connection does not name is stripped', ['Upgrade: websocket', 'A: 1'], ['A: 1']],
  [
    'an upgrade to h2c is stripped',
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__', 'A: 1'],
    ['A: 1'],
  ],
  ['HTTP2-Settings alone is stripped', ['HTTP2-Settings: AAMAAABkAAQAAP__', 'A: 1'], ['A: 1']],
  ['Trailer of a request without chunks is stripped', ['Trailer: X-Check', 'A: 1'], ['A: 1']],
  [
    'the first and the last field of a request can be stripped',
    ['TE: x', 'A: 1', 'Upgrade: x', 'B: 2', 'Keep-Alive: x'],
    ['A: 1', 'B: 2'],
  ],
  ['all fields of a request can be stripped', ['TE: x', 'Upgrade: x', 'Keep-Alive: x'], []],
]

/** Upgrade fields of the client, and the value of Upgrade that reaches the backend; '' for no Upgrade. */
const upgrades: readonly (readonly [string, readonly string[], string])[] = [
  ['an upgrade to websocket is forwarded', ['Connection: Upgrade', 'Upgrade: websocket'], 'websocket'],
  ['an upgrade in mixed case is forwarded', ['connection: uPGRADE', 'uPGRADE: WebSocket'], 'WebSocket'],
  [
    'an upgrade named among other connection options is forwarded',
    ['Connection: keep-alive, Upgrade', 'Upgrade: websocket'],
    'websocket',
  ],
  [
    'an upgrade named by a second Connection field is forwarded',
    ['Connection: keep-alive', 'Connection: upgrade', 'Upgrade: websocket'],
    'websocket',
  ],
  ['an upgrade to a protocol with a version is forwarded', ['Connection: Upgrade', 'Upgrade: echo/1.0'], 'echo/1.0'],
  ['an upgrade to one of several protocols is forwarded', ['Connection: Upgrade', 'Upgrade: a , b/2,,c'], 'a, b/2, c'],
  ['several Upgrade fields are joined into one', ['Connection: Upgrade', 'Upgrade: a', 'Upgrade: b/2'], 'a, b/2'],
  ['h2c is removed from the protocols of an upgrade', ['Connection: Upgrade', 'Upgrade: h2c, websocket'], 'websocket'],
  [
    'h2c is removed from the protocols of an upgrade in any letter case',
    ['Connection: Upgrade', 'Upgrade: websocket, H2C, h2c-14'],
    'websocket',
  ],
  [
    'TLS and HTTP/1.1 are removed from the protocols of an upgrade',
    ['Connection: Upgrade', 'Upgrade: TLS/1.0, HTTP/1.1, x'],
    'x',
  ],
  ['an upgrade to TLS alone is stripped', ['Connection: Upgrade', 'Upgrade: TLS/1.0'], ''],
  ['an empty Upgrade is stripped', ['Connection: Upgrade', 'Upgrade: ,'], ''],
  ['the connection option Upgrade without an Upgrade field is ignored', ['Connection: Upgrade'], ''],
]

const brokenUpgrades: readonly (readonly [string, string])[] = [
  ['a quoted protocol', 'Upgrade: "websocket"'],
  ['a space in the protocol', 'Upgrade: web socket'],
  ['an empty version', 'Upgrade: websocket/'],
  ['two versions', 'Upgrade: websocket/1/2'],
  ['a parameter', 'Upgrade: websocket;v=1'],
  ['more than 256 bytes', `Upgrade: ${'a'.repeat(257)}`],
]

/** Fields that Connection cannot remove. */
const protectedFields: readonly (readonly [string, RequestCase])[] = [
  ['Host', { name: '', raw: get('Connection: Host, keep-alive'), status: 200, reaches: { line: GET_X } }],
  [
    'Content-Length',
    {
      name: '',
      raw: post(['Connection: Content-Length', 'Content-Length: 5'], 'hello'),
      status: 200,
      reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello' },
    },
  ],
  [
    'Transfer-Encoding',
    {
      name: '',
      raw: post(['Connection: transfer-encoding', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'),
      status: 200,
      reaches: { line: POST_X, body: 'hello', chunked: true },
    },
  ],
  [
    'the forwarding fields of the gateway',
    {
      name: '',
      raw: get(
        'Connection: Via, X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Forwarded, activityid, A',
        'A: 1',
      ),
      status: 200,
      reaches: { line: GET_X },
    },
  ],
  [
    'Via of other proxies',
    {
      name: '',
      raw: get('Connection: Via', 'Via: 1.0 a'),
      status: 200,
      reaches: { line: GET_X, fields: ['Via: 1.0 a'] },
    },
  ],
  [
    'Expect',
    {
      name: '',
      raw: post(['Connection: Expect', 'Expect: 100-continue', 'Content-Length: 5'], 'hello'),
      status: 200,
      reaches: { line: POST_X, fields: ['Expect: 100-continue', 'Content-Length: 5'], body: 'hello' },
    },
  ],
]

/** TE fields that accept trailers. */
const trailersAccepted: readonly (readonly [string, readonly string[]])[] = [
  ['alone', ['TE: trailers']],
  ['in mixed case', ['te: Trailers', 'Connection: TE']],
  ['in a list', ['TE: gzip;q=0.5, trailers , deflate']],
  ['in a second field', ['TE: gzip', 'TE: trailers']],
]

const closing: readonly (readonly [string, readonly string[]])[] = [
  ['close', ['Connection: close']],
  ['close in mixed case', ['connection: CLOSE']],
  ['close in a list', ['Connection: keep-alive, X, close']],
  ['close in a second field', ['Connection: keep-alive', 'Connection: close']],
]

const expectations: readonly (readonly [string, string])[] = [
  ['an unknown expectation', '200-ok'],
  ['an unknown expectation in a list with 100-continue', '100-continue, 200-ok'],
  ['an expectation with a parameter', '100-continue;a=b'],
  ['an expectation that only begins with 100-continue', '100-continued'],
]

export const HOP_BY_HOP_REQUESTS: readonly RequestCase[] = [
  ...stripped.map(([name, sent, fields]) => ({
    name: `RFC 9110 7.6.1: ${name}`,
    raw: get(...sent),
    status: 200,
    reaches: { line: GET_X, fields },
  })),
  ...upgrades.map(([name, fields, protocols]) => ({
    name: `RFC 9110 7.8: ${name}`,
    raw: get(...fields, 'A: 1'),
    status: 200,
    reaches: {
      line: GET_X,
      fields: ['A: 1'],
      added: protocols === '' ? GATEWAY_FIELDS : [...GATEWAY_FIELDS, `Upgrade: ${protocols}`, 'Connection: Upgrade'],
    },
  })),
  ...brokenUpgrades.map(([name, field]) => ({
    name: `RFC 9110 7.8: an Upgrade with ${name} is refused`,
    raw: get('Connection: Upgrade', field),
    status: 400,
  })),
  {
    name: 'RFC 9110 7.8: Upgrade of an HTTP/1.0 request is ignored',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X },
  },
  ...protectedFields.map(([name, row]) => ({ ...row, name: `RFC 9110 7.6.1: Connection cannot remove ${name}` })),
  ...trailersAccepted.map(([name, fields]) => ({
    name: `RFC 9110 10.1.4: TE: trailers ${name} is forwarded to the backend`,
    raw: get(...fields),
    status: 200,
    reaches: { line: GET_X, added: ACCEPTS_TRAILERS },
  })),
  ...closing.map(([name, fields]) => ({
    name: `RFC 9112 9.6: nothing is read after a request with Connection: ${name}`,
    raw: get(...fields),
    status: 200,
    closes: true,
    reaches: { line: GET_X },
  })),
  {
    name: 'RFC 9112 9.3: Proxy-Connection: close does not end the connection',
    raw: get('Proxy-Connection: close'),
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9110 6.6.2: Trailer of a chunked request is forwarded',
    raw: post(['Trailer: X-Check', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\nX-Check: a\r\n\r\n'),
    status: 200,
    reaches: { line: POST_X, fields: ['Trailer: X-Check'], body: 'hello', chunked: true, trailers: ['X-Check: a'] },
  },
  {
    name: 'RFC 9112 6.3: the body of a request with Upgrade is forwarded',
    raw: post(['Connection: upgrade', 'Upgrade: x', 'Content-Length: 5'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9110 10.1.1: 100-continue in mixed case is forwarded',
    raw: post(['Expect: 100-Continue', 'Content-Length: 5'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Expect: 100-Continue', 'Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9110 10.1.1: 100-continue of an HTTP/1.0 request is ignored',
    raw: 'POST /echo/x HTTP/1.0\r\nHost: gateway.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello',
    status: 200,
    closes: true,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  ...expectations.map(([name, value]) => ({
    name: `RFC 9110 15.5.18: ${name} is refused with 417`,
    raw: post([`Expect: ${value}`, 'Content-Length: 5'], 'hello'),
    status: 417,
  })),
  {
    name: 'RFC 9110 15.5.18: an unknown expectation in a second Expect field is refused with 417',
    raw: post(['Expect: 100-continue', 'Expect: x', 'Content-Length: 5'], 'hello'),
    status: 417,
  },
  {
    name: 'RFC 9112 9.3: the connection of an HTTP/1.0 client with keep-alive stays open',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: Keep-Alive\r\n\r\n',
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9112 9.3: the connection of an HTTP/1.0 client with close and keep-alive is closed',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: keep-alive, close\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9110 2.5: an HTTP/1.0 request is forwarded as HTTP/1.1',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nA: b\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X, fields: ['A: b'] },
  },
]
