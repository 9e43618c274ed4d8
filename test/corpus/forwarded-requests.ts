/** What the backend learns of where a request came from: Via, X-Forwarded-*, Forwarded (RFC 7239), correlation id. */
import { GET_X, get, only, type RequestCase } from './request-case.ts'

const VIA = 'Via: 1.1 sluice'
const ID = 'activityid: …'
const X = ['X-Forwarded-For: 127.0.0.1', 'X-Forwarded-Proto: http', 'X-Forwarded-Host: gateway.test']
const FORWARDED = 'Forwarded: for=127.0.0.1;host="gateway.test";proto=http'

/** What a client says of its own client. */
const SAID = [
  'X-Forwarded-For: 1.2.3.4',
  'x-forwarded-proto: https',
  'X-Forwarded-Host: evil.test',
  'X-Forwarded-Port: 443',
  'X-Forwarded-Prefix: /admin',
  'X-Forwarded-Server: evil',
  'X-Real-IP: 1.2.3.4',
  'X-Original-URL: /admin',
  'x-rewrite-url: /admin',
  'Forwarded: for=1.2.3.4;host=evil.test;proto=https',
]

const TRUSTED = { trusted_proxies: ['127.0.0.0/8'] }
const ELSEWHERE = { trusted_proxies: ['192.0.2.0/24', '::1'] }

type Mode = 'x-forwarded' | 'forwarded' | 'both' | 'none'

function row(
  name: string,
  mode: Mode,
  more: object,
  sent: readonly string[],
  passed: readonly string[],
  own: string[],
) {
  return {
    name: `${mode}: ${name}`,
    raw: get('First: a', ...sent, 'Last: z'),
    status: 200,
    reaches: { line: GET_X, fields: ['First: a', ...passed, 'Last: z'], own },
    http: { 'forwarded.headers': mode, ...more },
  }
}

const OTHERS = [
  ...['X-Forwarded-Port: 443', 'X-Forwarded-Prefix: /admin', 'X-Forwarded-Server: evil', 'X-Real-IP: 1.2.3.4'],
  ...['X-Original-URL: /admin', 'x-rewrite-url: /admin'],
]
const PROTO_HOST = ['x-forwarded-proto: https', 'X-Forwarded-Host: evil.test']

const modes: readonly RequestCase[] = [
  row('a client that says nothing', 'x-forwarded', {}, [], [], [VIA, ...X, ID]),
  row('a client that says nothing', 'forwarded', {}, [], [], [VIA, FORWARDED, ID]),
  row('a client that says nothing', 'both', {}, [], [], [VIA, ...X, FORWARDED, ID]),
  row('a client that says nothing', 'none', {}, [], [], [VIA, ID]),
  row('an untrusted client is not believed', 'x-forwarded', {}, SAID, [], [VIA, ...X, ID]),
  row('an untrusted client is not believed', 'forwarded', {}, SAID, [], [VIA, FORWARDED, ID]),
  row('an untrusted client is not believed', 'both', {}, SAID, [], [VIA, ...X, FORWARDED, ID]),
  row('an untrusted client is not believed', 'none', {}, SAID, [], [VIA, ID]),
  row('a proxy elsewhere does not make a client trusted', 'x-forwarded', ELSEWHERE, SAID, [], [VIA, ...X, ID]),
  row('a trusted proxy that says nothing', 'x-forwarded', TRUSTED, [], [], [VIA, ...X, ID]),
  row('a trusted proxy that says nothing', 'both', TRUSTED, [], [], [VIA, ...X, FORWARDED, ID]),
  row(
    'a trusted proxy is extended',
    'x-forwarded',
    TRUSTED,
    SAID,
    [...PROTO_HOST, ...OTHERS, 'Forwarded: for=1.2.3.4;host=evil.test;proto=https'],
    [VIA, 'X-Forwarded-For: 1.2.3.4, 127.0.0.1', ID],
  ),
  row(
    'a trusted proxy is extended',
    'forwarded',
    TRUSTED,
    SAID,
    ['X-Forwarded-For: 1.2.3.4', ...PROTO_HOST, ...OTHERS],
    [VIA, `Forwarded: for=1.2.3.4;host=evil.test;proto=https, ${FORWARDED.slice(11)}`, ID],
  ),
  row(
    'a trusted proxy is extended',
    'both',
    TRUSTED,
    SAID,
    [...PROTO_HOST, ...OTHERS],
    [
      VIA,
      'X-Forwarded-For: 1.2.3.4, 127.0.0.1',
      `Forwarded: for=1.2.3.4;host=evil.test;proto=https, ${FORWARDED.slice(11)}`,
      ID,
    ],
  ),
  row('a trusted proxy passes as it is', 'none', TRUSTED, SAID, SAID, [VIA, ID]),
  row(
    'several fields of a trusted proxy are one list, in order',
    'x-forwarded',
    TRUSTED,
    ['X-Forwarded-For: 1.1.1.1, 2.2.2.2', 'A: b', 'x-forwarded-for: 3.3.3.3'],
    ['A: b'],
    [VIA, 'X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 127.0.0.1', ...X.slice(1), ID],
  ),
  row(
    'what a trusted proxy says cannot be named away',
    'x-forwarded',
    TRUSTED,
    ['X-Forwarded-For: 1.2.3.4', 'Connection: X-Forwarded-For'],
    [],
    [VIA, 'X-Forwarded-For: 1.2.3.4, 127.0.0.1', ...X.slice(1), ID],
  ),
]

const LONG = 'a'.repeat(128)

/** Field lines with a correlation id, and the line that arrives. */
const correlation: readonly (readonly [string, readonly string[], string])[] = [
  ["the client's own is passed on", ['activityid: order 1/2'], 'activityid: order 1/2'],
  ['its name is known in any case', ['ActivityID: order 1/2'], 'activityid: order 1/2'],
  [
    'the first of several counts, and goes alone',
    ['activityid: order 1/2', 'activityid: b c'],
    'activityid: order 1/2',
  ],
  ['an empty one is replaced', ['activityid:'], ID],
  ['one of 128 bytes is passed on', [`activityid: ${LONG.slice(1)}!`], `activityid: ${LONG.slice(1)}!`],
  ['a longer one is replaced', [`activityid: ${LONG}!`], ID],
]

export const FORWARDED_REQUESTS: readonly RequestCase[] = [
  ...modes,
  ...correlation.map(([name, fields, arrives]) => ({
    name: `correlation.header: ${name}`,
    raw: get(...fields),
    status: 200,
    reaches: { line: GET_X, own: [VIA, ...X, arrives] },
  })),
  {
    name: 'correlation.header: another name',
    raw: get('X-Request-ID: order 1/2', 'activityid: it passes'),
    status: 200,
    reaches: { line: GET_X, fields: ['activityid: it passes'], own: [VIA, ...X, 'X-Request-ID: order 1/2'] },
    http: { 'correlation.header': 'X-Request-ID' },
  },
  {
    name: 'RFC 7239 4: an IPv6 host is quoted',
    raw: only('Host: [::1]:80'),
    status: 200,
    reaches: { line: GET_X, own: [VIA, 'Forwarded: for=127.0.0.1;host="[::1]:80";proto=http', ID] },
    http: { 'forwarded.headers': 'forwarded' },
  },
  {
    name: 'RFC 7239 4: without a host there is none',
    raw: 'GET /echo/x HTTP/1.0\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X, own: [VIA, 'Forwarded: for=127.0.0.1;proto=http', ID] },
    http: { 'forwarded.headers': 'forwarded' },
  },
  {
    name: 'http.user.agent.preserve: the gateway names itself instead',
    raw: get('User-Agent: curl/8', 'A: b'),
    status: 200,
    reaches: { line: GET_X, fields: ['A: b'], own: [VIA, ...X, ID, 'User-Agent: Sluice'] },
    http: { 'http.user.agent.preserve': false },
  },
  {
    name: 'http.headers.preserve: User-Agent is kept by name',
    raw: get('User-Agent: curl/8', 'A: b'),
    status: 200,
    reaches: { line: GET_X, fields: ['User-Agent: curl/8', 'A: b'] },
    http: { 'http.user.agent.preserve': false, 'http.headers.preserve': ['User-Agent'] },
  },
  {
    name: 'disable_connection_keepalive: the backend is told',
    raw: get('A: b'),
    status: 200,
    reaches: { line: GET_X, fields: ['A: b'], own: [VIA, ...X, ID, 'Connection: close'] },
    http: { disable_connection_keepalive: true },
  },
]
