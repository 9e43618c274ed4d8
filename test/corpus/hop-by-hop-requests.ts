/** Fields that end at this hop (RFC 9110 7.6.1), expectations (10.1.1), and requests of HTTP/1.0. */
import { GET_X, get, POST_X, post, type RequestCase } from './request-case.ts'

const OWN = [
  'Via: 1.1 sluice',
  'X-Forwarded-For: 127.0.0.1',
  'X-Forwarded-Proto: http',
  'X-Forwarded-Host: gateway.test',
  'activityid: …',
]
const ACCEPTS_TRAILERS = [...OWN, 'TE: trailers', 'Connection: TE']

/** Fields of a GET, and those of them that pass. */
const stripped: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['a field that Connection names', ['Connection: X-Hop', 'X-Hop: a', 'X-End: b'], ['X-End: b']],
  ['a field named behind it', ['X-Hop: a', 'Connection: X-Hop', 'X-End: b'], ['X-End: b']],
  ['names in any case', ['Connection: x-hOP', 'X-Hop: a', 'X-HOP: c', 'X-End: b'], ['X-End: b']],
  ['names in a list', ['Connection: A, B ,\tC', 'A: 1', 'B: 2', 'C: 3', 'D: 4'], ['D: 4']],
  ['names in repeated fields', ['Connection: A', 'Connection: B', 'A: 1', 'B: 2', 'D: 4'], ['D: 4']],
  ['names in odd spellings of Connection', ['cONNECTION: A', 'A: 1', 'D: 4'], ['D: 4']],
  ['names among empty list elements', ['Connection: ,, A,,', 'A: 1', 'D: 4'], ['D: 4']],
  ['a name that only begins like it', ['Connection: X-Hop', 'X-Hopper: a', 'X-Ho: b'], ['X-Hopper: a', 'X-Ho: b']],
  ['an empty Connection names nothing', ['Connection:', 'A: 1'], ['A: 1']],
  ['a name without a field', ['Connection: X-None', 'A: 1'], ['A: 1']],
  ['what is no name', ['Connection: "A", B=c, (d)', 'A: 1', 'B: 2'], ['A: 1', 'B: 2']],
  ['Keep-Alive', ['Keep-Alive: timeout=5', 'A: 1'], ['A: 1']],
  ['Proxy-Connection', ['Proxy-Connection: keep-alive', 'A: 1'], ['A: 1']],
  ['Proxy-Authorization', ['Proxy-Authorization: Basic abc', 'A: 1'], ['A: 1']],
  ['Proxy-Authenticate', ['Proxy-Authenticate: Basic', 'A: 1'], ['A: 1']],
  ['TE without trailers', ['TE: gzip', 'Connection: TE', 'A: 1'], ['A: 1']],
  ['Upgrade that was not asked for by Connection', ['Upgrade: websocket', 'A: 1'], ['A: 1']],
  [
    'an upgrade to h2c',
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__', 'A: 1'],
    ['A: 1'],
  ],
  ['HTTP2-Settings alone', ['HTTP2-Settings: AAMAAABkAAQAAP__', 'A: 1'], ['A: 1']],
  ['Trailer where there can be none', ['Trailer: X-Check', 'A: 1'], ['A: 1']],
  [
    'many of them, the first and the last field among them',
    ['TE: x', 'A: 1', 'Upgrade: x', 'B: 2', 'Keep-Alive: x'],
    ['A: 1', 'B: 2'],
  ],
  ['all there are', ['TE: x', 'Upgrade: x', 'Keep-Alive: x'], []],
]

/** Fields that ask for an upgrade, and the list of protocols that the backend is asked for; '' for none. */
const upgrades: readonly (readonly [string, readonly string[], string])[] = [
  ['websocket', ['Connection: Upgrade', 'Upgrade: websocket'], 'websocket'],
  ['in any case', ['connection: uPGRADE', 'uPGRADE: WebSocket'], 'WebSocket'],
  ['named among other options', ['Connection: keep-alive, Upgrade', 'Upgrade: websocket'], 'websocket'],
  ['in a second Connection', ['Connection: keep-alive', 'Connection: upgrade', 'Upgrade: websocket'], 'websocket'],
  ['with a version', ['Connection: Upgrade', 'Upgrade: echo/1.0'], 'echo/1.0'],
  ['a list', ['Connection: Upgrade', 'Upgrade: a , b/2,,c'], 'a, b/2, c'],
  ['in several fields', ['Connection: Upgrade', 'Upgrade: a', 'Upgrade: b/2'], 'a, b/2'],
  ['a list without h2c', ['Connection: Upgrade', 'Upgrade: h2c, websocket'], 'websocket'],
  ['a list without h2c in any case', ['Connection: Upgrade', 'Upgrade: websocket, H2C, h2c-14'], 'websocket'],
  ['a list without other ways past the gateway', ['Connection: Upgrade', 'Upgrade: TLS/1.0, HTTP/1.1, x'], 'x'],
  ['TLS alone, which would hide what follows', ['Connection: Upgrade', 'Upgrade: TLS/1.0'], ''],
  ['an empty list', ['Connection: Upgrade', 'Upgrade: ,'], ''],
  ['an option without its field', ['Connection: Upgrade'], ''],
]

const brokenUpgrades: readonly (readonly [string, string])[] = [
  ['what is no token', 'Upgrade: "websocket"'],
  ['a space within', 'Upgrade: web socket'],
  ['an empty version', 'Upgrade: websocket/'],
  ['two versions', 'Upgrade: websocket/1/2'],
  ['a parameter', 'Upgrade: websocket;v=1'],
  ['more than 256 bytes', `Upgrade: ${'a'.repeat(257)}`],
]

/** What Connection cannot name away. */
const kept: readonly (readonly [string, RequestCase])[] = [
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
    "the gateway's own fields",
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

/** TE, as far as it concerns trailers. */
const trailersAccepted: readonly (readonly [string, readonly string[]])[] = [
  ['alone', ['TE: trailers']],
  ['in any case', ['te: Trailers', 'Connection: TE']],
  ['in a list', ['TE: gzip;q=0.5, trailers , deflate']],
  ['in a second field', ['TE: gzip', 'TE: trailers']],
]

const closing: readonly (readonly [string, readonly string[]])[] = [
  ['close', ['Connection: close']],
  ['close in any case', ['connection: CLOSE']],
  ['close in a list', ['Connection: keep-alive, X, close']],
  ['close in a second field', ['Connection: keep-alive', 'Connection: close']],
]

const expectations: readonly (readonly [string, string])[] = [
  ['an unknown expectation', '200-ok'],
  ['an unknown one beside a known one', '100-continue, 200-ok'],
  ['an expectation with a parameter', '100-continue;a=b'],
  ['an expectation that only begins like the known one', '100-continued'],
]

export const HOP_BY_HOP_REQUESTS: readonly RequestCase[] = [
  ...stripped.map(([name, sent, fields]) => ({
    name: `RFC 9110 7.6.1: stripped are ${name}`,
    raw: get(...sent),
    status: 200,
    reaches: { line: GET_X, fields },
  })),
  ...upgrades.map(([name, fields, asked]) => ({
    name: `RFC 9110 7.8: an upgrade is asked for in our name: ${name}`,
    raw: get(...fields, 'A: 1'),
    status: 200,
    reaches: {
      line: GET_X,
      fields: ['A: 1'],
      own: asked === '' ? OWN : [...OWN, `Upgrade: ${asked}`, 'Connection: Upgrade'],
    },
  })),
  ...brokenUpgrades.map(([name, field]) => ({
    name: `RFC 9110 7.8: an Upgrade is refused with ${name}`,
    raw: get('Connection: Upgrade', field),
    status: 400,
  })),
  {
    name: 'RFC 9110 7.8: the Upgrade of an HTTP/1.0 request is ignored',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X },
  },
  ...kept.map(([name, row]) => ({ ...row, name: `RFC 9110 7.6.1: Connection cannot name away ${name}` })),
  ...trailersAccepted.map(([name, fields]) => ({
    name: `RFC 9110 10.1.4: TE: trailers ${name} is said to the backend in our name`,
    raw: get(...fields),
    status: 200,
    reaches: { line: GET_X, own: ACCEPTS_TRAILERS },
  })),
  ...closing.map(([name, fields]) => ({
    name: `RFC 9112 9.6: nothing is read behind a request with Connection: ${name}`,
    raw: get(...fields),
    status: 200,
    closes: true,
    reaches: { line: GET_X },
  })),
  {
    name: 'RFC 9112 9.3: Proxy-Connection: close closes nothing',
    raw: get('Proxy-Connection: close'),
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9110 6.6.2: Trailer passes with a body that has trailers',
    raw: post(['Trailer: X-Check', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\nX-Check: a\r\n\r\n'),
    status: 200,
    reaches: { line: POST_X, fields: ['Trailer: X-Check'], body: 'hello', chunked: true, trailers: ['X-Check: a'] },
  },
  {
    name: 'RFC 9112 6.3: an upgrade with a body has a body',
    raw: post(['Connection: upgrade', 'Upgrade: x', 'Content-Length: 5'], 'hello'),
    status: 200,
    reaches: { line: POST_X, fields: ['Content-Length: 5'], body: 'hello' },
  },
  {
    name: 'RFC 9110 10.1.1: 100-continue in any case is passed on',
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
    name: 'RFC 9110 15.5.18: an unknown expectation beside a known one in two fields is refused with 417',
    raw: post(['Expect: 100-continue', 'Expect: x', 'Content-Length: 5'], 'hello'),
    status: 417,
  },
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 client that says keep-alive is kept',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: Keep-Alive\r\n\r\n',
    status: 200,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9112 9.3: an HTTP/1.0 client that says close and keep-alive is not kept',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: keep-alive, close\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X },
  },
  {
    name: 'RFC 9110 2.5: the version that goes out is our own',
    raw: 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nA: b\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X, fields: ['A: b'] },
  },
]
