/** Requests that test the forwarding fields: Via, X-Forwarded-*, Forwarded (RFC 7239), correlation id. */
import { GET_X, get, only, type RequestCase } from './request-case.ts'

const VIA = 'Via: 1.1 sluice'
const ID = 'activityid: …'
const X = ['X-Forwarded-For: 127.0.0.1', 'X-Forwarded-Proto: http', 'X-Forwarded-Host: gateway.test']
const FORWARDED = 'Forwarded: for=127.0.0.1;host="gateway.test";proto=http'

/** Forwarding fields sent by the client. */
const CLIENT_FIELDS = [
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

/** The same names with underscores: CGI, WSGI and PHP map both forms to one variable. */
const UNDERSCORED_FIELDS = [
  ...['X_Forwarded_For: 1.2.3.4', 'x-forwarded_proto: https', 'X_FORWARDED-Port: 443', 'X_Real_IP: 1.2.3.4'],
  ...['X-Real_IP: 1.2.3.4', 'X_Original_URL: /admin', 'x_rewrite-url: /admin'],
]

const TRUSTED = { trusted_proxies: ['127.0.0.0/8'] }
const OTHER_TRUSTED = { trusted_proxies: ['192.0.2.0/24', '::1'] }

type Mode = 'x-forwarded' | 'forwarded' | 'both' | 'none'

function row(
  name: string,
  mode: Mode,
  more: object,
  sent: readonly string[],
  passed: readonly string[],
  added: string[],
) {
  return {
    name: `forwarded.headers = ${mode}: ${name}`,
    raw: get('First: a', ...sent, 'Last: z'),
    status: 200,
    reaches: { line: GET_X, fields: ['First: a', ...passed, 'Last: z'], added },
    http: { 'forwarded.headers': mode, ...more },
  }
}

const OTHER_FIELDS = [
  ...['X-Forwarded-Port: 443', 'X-Forwarded-Prefix: /admin', 'X-Forwarded-Server: evil', 'X-Real-IP: 1.2.3.4'],
  ...['X-Original-URL: /admin', 'x-rewrite-url: /admin'],
]
const PROTO_HOST = ['x-forwarded-proto: https', 'X-Forwarded-Host: evil.test']

const modes: readonly RequestCase[] = [
  row('a request without forwarding fields gets those of the gateway', 'x-forwarded', {}, [], [], [VIA, ...X, ID]),
  row('a request without forwarding fields gets those of the gateway', 'forwarded', {}, [], [], [VIA, FORWARDED, ID]),
  row('a request without forwarding fields gets those of the gateway', 'both', {}, [], [], [VIA, ...X, FORWARDED, ID]),
  row('a request gets no forwarding field but Via', 'none', {}, [], [], [VIA, ID]),
  row('forwarding fields of an untrusted client are replaced', 'x-forwarded', {}, CLIENT_FIELDS, [], [VIA, ...X, ID]),
  row(
    'forwarding fields of an untrusted client are replaced',
    'forwarded',
    {},
    CLIENT_FIELDS,
    [],
    [VIA, FORWARDED, ID],
  ),
  row(
    'forwarding fields of an untrusted client are replaced',
    'both',
    {},
    CLIENT_FIELDS,
    [],
    [VIA, ...X, FORWARDED, ID],
  ),
  row('forwarding fields of an untrusted client are removed', 'none', {}, CLIENT_FIELDS, [], [VIA, ID]),
  row(
    'forwarding fields of a client outside trusted_proxies are replaced',
    'x-forwarded',
    OTHER_TRUSTED,
    CLIENT_FIELDS,
    [],
    [VIA, ...X, ID],
  ),
  row(
    'a request of a trusted proxy without forwarding fields gets those of the gateway',
    'x-forwarded',
    TRUSTED,
    [],
    [],
    [VIA, ...X, ID],
  ),
  row(
    'a request of a trusted proxy without forwarding fields gets those of the gateway',
    'both',
    TRUSTED,
    [],
    [],
    [VIA, ...X, FORWARDED, ID],
  ),
  row(
    'forwarding fields of a trusted proxy are extended',
    'x-forwarded',
    TRUSTED,
    CLIENT_FIELDS,
    [...PROTO_HOST, ...OTHER_FIELDS, 'Forwarded: for=1.2.3.4;host=evil.test;proto=https'],
    [VIA, 'X-Forwarded-For: 1.2.3.4, 127.0.0.1', ID],
  ),
  row(
    'forwarding fields of a trusted proxy are extended',
    'forwarded',
    TRUSTED,
    CLIENT_FIELDS,
    ['X-Forwarded-For: 1.2.3.4', ...PROTO_HOST, ...OTHER_FIELDS],
    [VIA, `Forwarded: for=1.2.3.4;host=evil.test;proto=https, ${FORWARDED.slice(11)}`, ID],
  ),
  row(
    'forwarding fields of a trusted proxy are extended',
    'both',
    TRUSTED,
    CLIENT_FIELDS,
    [...PROTO_HOST, ...OTHER_FIELDS],
    [
      VIA,
      'X-Forwarded-For: 1.2.3.4, 127.0.0.1',
      `Forwarded: for=1.2.3.4;host=evil.test;proto=https, ${FORWARDED.slice(11)}`,
      ID,
    ],
  ),
  row('forwarding fields of a trusted proxy are forwarded unchanged', 'none', TRUSTED, CLIENT_FIELDS, CLIENT_FIELDS, [
    VIA,
    ID,
  ]),
  row('forwarding fields with underscores are removed', 'x-forwarded', {}, UNDERSCORED_FIELDS, [], [VIA, ...X, ID]),
  row(
    'forwarding fields with underscores are removed, also from a trusted proxy',
    'x-forwarded',
    TRUSTED,
    UNDERSCORED_FIELDS,
    [],
    [VIA, ...X, ID],
  ),
  row(
    'several fields of a trusted proxy are joined into one list in order',
    'x-forwarded',
    TRUSTED,
    ['X-Forwarded-For: 1.1.1.1, 2.2.2.2', 'A: b', 'x-forwarded-for: 3.3.3.3'],
    ['A: b'],
    [VIA, 'X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 127.0.0.1', ...X.slice(1), ID],
  ),
  row(
    'Connection cannot remove the forwarding fields of a trusted proxy',
    'x-forwarded',
    TRUSTED,
    ['X-Forwarded-For: 1.2.3.4', 'Connection: X-Forwarded-For'],
    [],
    [VIA, 'X-Forwarded-For: 1.2.3.4, 127.0.0.1', ...X.slice(1), ID],
  ),
]

const LONG = 'a'.repeat(128)

/** Field lines with a correlation id, and the line that reaches the backend. */
const correlation: readonly (readonly [string, readonly string[], string])[] = [
  ['an id of the client is forwarded', ['activityid: order 1/2'], 'activityid: order 1/2'],
  ['the field name is recognised in any letter case', ['ActivityID: order 1/2'], 'activityid: order 1/2'],
  ['only the first of several ids is forwarded', ['activityid: order 1/2', 'activityid: b c'], 'activityid: order 1/2'],
  ['an empty id is replaced', ['activityid:'], ID],
  ['an id of 128 bytes is forwarded', [`activityid: ${LONG.slice(1)}!`], `activityid: ${LONG.slice(1)}!`],
  ['a longer id is replaced', [`activityid: ${LONG}!`], ID],
]

export const FORWARDED_REQUESTS: readonly RequestCase[] = [
  ...modes,
  ...correlation.map(([name, fields, arrives]) => ({
    name: `correlation.header: ${name}`,
    raw: get(...fields),
    status: 200,
    reaches: { line: GET_X, added: [VIA, ...X, arrives] },
  })),
  {
    name: 'correlation.header: the id is read from the configured field',
    raw: get('X-Request-ID: order 1/2', 'activityid: of a client'),
    status: 200,
    reaches: { line: GET_X, fields: ['activityid: of a client'], added: [VIA, ...X, 'X-Request-ID: order 1/2'] },
    http: { 'correlation.header': 'X-Request-ID' },
  },
  {
    name: 'RFC 7239 4: an IPv6 host in Forwarded is quoted',
    raw: only('Host: [::1]:80'),
    status: 200,
    reaches: { line: GET_X, added: [VIA, 'Forwarded: for=127.0.0.1;host="[::1]:80";proto=http', ID] },
    http: { 'forwarded.headers': 'forwarded' },
  },
  {
    name: 'RFC 7239 4: Forwarded of a request without Host has no host parameter',
    raw: 'GET /echo/x HTTP/1.0\r\n\r\n',
    status: 200,
    closes: true,
    reaches: { line: GET_X, added: [VIA, 'Forwarded: for=127.0.0.1;proto=http', ID] },
    http: { 'forwarded.headers': 'forwarded' },
  },
  {
    name: 'http.user.agent.preserve: false replaces User-Agent by that of the gateway',
    raw: get('User-Agent: curl/8', 'A: b'),
    status: 200,
    reaches: { line: GET_X, fields: ['A: b'], added: [VIA, ...X, ID, 'User-Agent: Sluice'] },
    http: { 'http.user.agent.preserve': false },
  },
  {
    name: 'http.headers.preserve: a listed User-Agent is forwarded',
    raw: get('User-Agent: curl/8', 'A: b'),
    status: 200,
    reaches: { line: GET_X, fields: ['User-Agent: curl/8', 'A: b'] },
    http: { 'http.user.agent.preserve': false, 'http.headers.preserve': ['User-Agent'] },
  },
  {
    name: 'disable_connection_keepalive: the backend gets Connection: close',
    raw: get('A: b'),
    status: 200,
    reaches: { line: GET_X, fields: ['A: b'], added: [VIA, ...X, ID, 'Connection: close'] },
    http: { disable_connection_keepalive: true },
  },
]
