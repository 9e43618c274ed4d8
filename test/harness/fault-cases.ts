/**
 * Every code that a client can be answered by now: the request that raises it, at a gateway that has an API for each
 * way to fail, and what is said of it.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { NO_ENDPOINTS } from '../../src/config/api-definition.ts'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import type { ApiPlan, EndpointPlan, EndpointsPlan, FaultPlan } from '../../src/plan.ts'
import { AUTHENTICATION_CASES, SECURED, securedApi, tellCases } from './authentication-cases.ts'
import { OPEN_CORS, operation } from './chained.ts'
import { deafListener } from './deaf-listener.ts'
import { startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { type Peer, ScriptedBackend } from './peers.ts'

export interface FaultCase {
  readonly name: string
  readonly code: number
  readonly status: string
  readonly message: string
  readonly description: string
  /** File that words it. */
  readonly sequence: string
  /** `%` stands for fields, whole lines. */
  readonly request: string
  /** Asked before, for what comes of it. */
  readonly first?: string
  /** The head is not there when it is refused: nothing is known of what the client accepts. */
  readonly isHeadless?: true
  /** On the listener for WebSocket. */
  readonly isWebSocket?: true
  /** Fields that it has beside those of every fault. */
  readonly fields?: Readonly<Record<string, RegExp>>
}

const TIMEOUT_MS = 250
const LONG_MS = 3_600_000

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n%\r\n`
}

const MALFORMED = { code: 400, sequence: 'fault', message: 'Bad Request' } as const
const FAILED = { status: '502 Bad Gateway', message: 'Error in Sender', sequence: 'fault' } as const
const LATE = { status: '504 Gateway Timeout', sequence: 'fault' } as const
const UNREADY = { status: '503 Service Unavailable', sequence: 'fault', fields: { 'retry-after': /^\d+$/ } } as const
const METHODS = /^GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS$/

export const FAULT_CASES: readonly FaultCase[] = [
  ...AUTHENTICATION_CASES,
  {
    name: "a back end that refuses the gateway's credentials",
    code: 900424,
    request: get('/protected/a'),
    status: '503 Service Unavailable',
    message: 'Temporary server error',
    description: 'The gateway has no credentials that the back end accepts',
    sequence: 'fault',
  },
  {
    ...MALFORMED,
    name: 'Host that is no authority',
    request: 'GET /well HTTP/1.1\r\nHost: a b\r\n%\r\n',
    status: '400 Bad Request',
    description: 'Host is not a valid authority (RFC 9112 3.2)',
  },
  {
    ...MALFORMED,
    name: 'no HTTP at all',
    request: 'GET /well\x01 HTTP/1.1\r\nHost: a\r\n%\r\n',
    status: '400 Bad Request',
    description: 'Invalid char in url path (RFC 9112)',
    isHeadless: true,
  },
  {
    ...MALFORMED,
    name: 'a target that is too long',
    request: `GET /${'x'.repeat(600)} HTTP/1.1\r\nHost: a\r\n%\r\n`,
    status: '414 URI Too Long',
    message: 'URI Too Long',
    description: 'request target is longer than target.max_bytes (RFC 9110 15.5.15)',
  },
  {
    ...MALFORMED,
    name: 'a head that is too long',
    request: `GET /well HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3000)}\r\n%\r\n`,
    status: '431 Request Header Fields Too Large',
    message: 'Request Header Fields Too Large',
    description: 'head is longer than the limit (RFC 6585 5)',
    isHeadless: true,
  },
  {
    ...MALFORMED,
    name: 'a method that is not offered',
    request: 'TRACE /well HTTP/1.1\r\nHost: a\r\n%\r\n',
    status: '405 Method Not Allowed',
    message: 'Method Not Allowed',
    description: 'CONNECT and TRACE are not offered (RFC 9110 9.3.6, 9.3.8)',
    fields: { allow: METHODS },
  },
  {
    ...MALFORMED,
    name: 'no WebSocket at its listener',
    request: get('/well'),
    isWebSocket: true,
    status: '426 Upgrade Required',
    message: 'Upgrade Required',
    description: 'this port takes WebSocket only (RFC 9110 15.5.22, RFC 6455 4.1)',
    fields: { upgrade: /^websocket$/ },
  },
  {
    name: 'no such API',
    code: 404,
    status: '404 Not Found',
    message: 'Not Found',
    description: 'The requested resource is not available',
    sequence: 'main',
    request: get('/none'),
  },
  {
    name: 'a known path with another verb',
    code: 405,
    status: '405 Method Not Allowed',
    message: 'Method not allowed',
    description: 'Method not allowed for given API resource',
    sequence: '_resource_mismatch_handler_',
    request: 'DELETE /pets/7 HTTP/1.1\r\nHost: a\r\n%\r\n',
    fields: { allow: /^GET, HEAD, OPTIONS$/ },
  },
  {
    name: 'a body that does not come in time',
    code: 408,
    status: '408 Request Timeout',
    message: 'Request Timeout',
    description: 'The request was not received in time',
    sequence: 'fault',
    request: 'POST /hangs HTTP/1.1\r\nHost: a\r\n%Content-Length: 5\r\n\r\n',
  },
  {
    name: 'a bug',
    code: 500,
    status: '500 Internal Server Error',
    message: 'Internal Server Error',
    description: 'The gateway failed to process the request',
    sequence: 'fault',
    request: get('/bug'),
  },
  {
    name: 'a blocked API',
    code: 700700,
    status: '503 Service Unavailable',
    message: 'API blocked',
    description: 'This API has been blocked temporarily',
    sequence: 'fault',
    request: get('/blocked'),
  },
  {
    name: 'a production key, and sandbox endpoints only',
    code: 900901,
    status: '403 Forbidden',
    message: 'Invalid credentials',
    description: 'The API has no endpoint for keys of this type',
    sequence: '_production_key_error_',
    request: get('/sandboxed'),
  },
  {
    name: 'a sandbox key, and production endpoints only',
    code: 900901,
    status: '403 Forbidden',
    message: 'Invalid credentials',
    description: 'The API has no endpoint for keys of this type',
    sequence: '_sandbox_key_error_',
    request: get('/produced'),
  },
  {
    name: 'no such resource',
    code: 900906,
    status: '403 Forbidden',
    message: 'No matching resource found',
    description: 'No matching resource found in the API for the given request',
    sequence: '_resource_mismatch_handler_',
    request: get('/pets/7/toys'),
  },
  {
    ...FAILED,
    name: 'the back end refuses',
    code: 101503,
    message: 'Error connecting to the back end',
    description: 'Connecting to the back end failed',
    request: get('/refused'),
  },
  {
    ...FAILED,
    name: 'the back end resets while a body is under way: 101500 + 2',
    code: 101502,
    description: 'The request could not be sent to the back end',
    request: 'POST /resets HTTP/1.1\r\nHost: a\r\n%Content-Length: 10\r\n\r\n',
  },
  {
    ...FAILED,
    name: 'the back end resets: 101501 + 3',
    code: 101504,
    description: 'The response could not be received from the back end',
    request: get('/resets'),
  },
  {
    ...FAILED,
    name: 'the back end closes: 101505 + 3',
    code: 101508,
    description: 'The back end closed the connection',
    request: get('/closes'),
  },
  {
    ...FAILED,
    name: 'the back end sends no HTTP: 101506 + 3',
    code: 101509,
    description: 'The back end violated the protocol',
    request: get('/babbles'),
  },
  {
    ...LATE,
    name: 'the back end is silent: 101504 + 3',
    code: 101507,
    message: 'Send timeout',
    description: 'The back end did not answer in time',
    request: get('/hangs'),
  },
  {
    ...LATE,
    name: 'the back end does not accept',
    code: 101508,
    message: 'Error connecting to the back end',
    description: 'Connecting to the back end took too long',
    request: get('/deaf'),
  },
  {
    name: 'a body that is too large',
    code: 102511,
    status: '400 Bad Request',
    message: 'Incomplete payload',
    description: 'The payload is too large or was not delivered whole',
    sequence: 'fault',
    request: 'POST /well HTTP/1.1\r\nHost: a\r\n%Content-Length: 100\r\n\r\n',
  },
  {
    ...UNREADY,
    name: 'no endpoint of a group is ready',
    code: 303000,
    message: 'No endpoint is ready',
    description: 'Every endpoint of the API is suspended or switched off',
    first: get('/group'),
    request: get('/group'),
  },
  {
    ...UNREADY,
    name: 'the endpoint is suspended',
    code: 303001,
    message: 'Endpoint suspended',
    description: 'The endpoint is suspended or switched off',
    first: get('/suspended'),
    request: get('/suspended'),
  },
]

const BUG: Handler = {
  name: 'bug',
  request: ({ apiName }) => {
    if (apiName === 'bug') throw new Error('a handler that throws')
    return undefined
  },
}

const SETTINGS = {
  'http.socket.timeout': TIMEOUT_MS,
  'http.connection.timeout': TIMEOUT_MS,
  'body.read_timeout': TIMEOUT_MS / 2,
  'body.max_bytes': 50,
  'header.max_bytes': 2048,
  'target.max_bytes': 512,
}

interface FaultGateway extends TestGateway {
  /** Backends are gone with it. */
  stop(): void
}

/** `faults`: how they are worded, where it is not by the default sequences. */
export async function startFaultGateway(faults: Partial<{ readonly faults: FaultPlan }> = {}): Promise<FaultGateway> {
  const backend = await ScriptedBackend.listen(peer => void fail(peer))
  const deaf = await deafListener()
  const refused = await freePort()
  const port = backend.port
  const failing = endpointsAt(refused, LONG_MS)
  const apis: readonly TestApi[] = [
    ...['/well', '/bug', '/resets', '/closes', '/babbles', '/hangs'].map(context => ({
      context,
      port,
      basePath: context,
    })),
    securedApi(port),
    { context: '/refused', port: refused },
    {
      context: '/protected',
      port,
      basePath: '/protected',
      unlike: { credentials: { production: { kind: 'basic', authorization: 'Basic wrong' }, sandbox: null } },
    },
    { context: '/deaf', port: deaf.port },
    { context: '/pets', port, unlike: { resources: [operation('GET /{id}')] } },
    { context: '/blocked', port, unlike: { lifecycle: { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 } } },
    { context: '/produced', port, unlike: { keyType: 'SANDBOX' } },
    { context: '/sandboxed', port, unlike: { endpoints: NONE, sandbox: endpointsAt(port, 0) } },
    { context: '/suspended', port, unlike: { endpoints: failing } },
    {
      context: '/group',
      port,
      unlike: { endpoints: { ...endpointsAt(refused, LONG_MS, 2), kind: 'failover', failsOver: true } },
    },
  ]
  const unlike = { cors: OPEN_CORS } as const satisfies Partial<ApiPlan>
  const open = apis.map(api => ({ ...api, unlike: { ...unlike, ...api.unlike } }))
  const more = { kinds: ['http', 'ws'], isChained: true, cors: OPEN_CORS, ...SECURED, ...faults } as const
  const gateway = await startGateway(open, SETTINGS, null, [BUG], more)
  tellCases(gateway.identity)
  return {
    ...gateway,
    stop: () => {
      gateway.stop()
      backend.close()
      deaf.close()
    },
  }
}

const NONE: EndpointsPlan = { ...NO_ENDPOINTS, endpoints: [] }
/** Rows behind those of the APIs that have none of their own. */
let row = 32

function endpointsAt(port: number, initialMs: number, count = 1): EndpointsPlan {
  const host = '127.0.0.1'
  const plain = { secured: false, tlsClient: '', proxy: null, connectsThroughProxy: false }
  const endpoint = (): EndpointPlan => {
    row = row === 60 ? 33 : row + 1
    const settings = { ...DEFAULT_SETTINGS, initialMs }
    return { row, url: `http://${host}:${port}`, basePath: '', settings, route: { ...plain, row, host, port } }
  }
  return {
    kind: 'single',
    algorithm: 'round_robin',
    failsOver: false,
    endpoints: Array.from({ length: count }, endpoint),
  }
}

const UNAUTHORISED = 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="b"\r\nContent-Length: 0\r\n\r\n'

/** Fails in the manner that its path says. */
async function fail(peer: Peer): Promise<void> {
  await peer.untilText('\r\n\r\n')
  const [, path = ''] = peer.text.split(' ')
  if (path.startsWith('/resets')) peer.reset()
  else if (path.startsWith('/closes')) peer.end()
  else if (path.startsWith('/protected')) peer.send(UNAUTHORISED)
  else if (path.startsWith('/babbles')) peer.send('SSH-2.0-OpenSSH_9.6\r\n')
  else if (!path.startsWith('/hangs')) peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
}

/** A port on which nobody listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
