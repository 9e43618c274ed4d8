/** Every fault that a client can get: the request that causes it, at a gateway with an API for each kind of failure. */
import { DEFAULT_ENDPOINT_SETTINGS, NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import type { ApiPlan, EndpointPlan, EndpointsPlan, FaultPlan } from '../../src/plan/reactor-plan.ts'
import { AUTHENTICATION_CASES, SECURED, securedApi, prepareCases } from './authentication-cases.ts'
import { OPEN_CORS, operation } from './filter-chain.ts'
import { deafListener } from './deaf-listener.ts'
import { startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { MEDIATION_CASES, mediationApis } from './mediation-cases.ts'
import { type Peer, refusingPort, ScriptedBackend } from './peers.ts'

export interface FaultCase {
  readonly name: string
  readonly code: number
  readonly status: string
  readonly message: string
  readonly description: string
  /** Name of the sequence that words the fault. */
  readonly sequence: string
  /** The request; `%` marks where further field lines go. */
  readonly request: string
  /** A request sent before, whose effect the fault needs. */
  readonly first?: string
  /** The request is refused before its head is parsed, so its Accept is not known. */
  readonly isHeadless?: true
  /** The request goes to the WebSocket listener. */
  readonly isWebSocket?: true
  /** Fields of the fault beside those of every fault. */
  readonly fields?: Readonly<Record<string, RegExp>>
}

const TIMEOUT_MS = 500
const LONG_MS = 3_600_000

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n%\r\n`
}

const MALFORMED = { code: 400, sequence: 'fault', message: 'Bad Request' } as const
const FAILED = { status: '502 Bad Gateway', message: 'Error in Sender', sequence: 'fault' } as const
const TIMED_OUT = { status: '504 Gateway Timeout', sequence: 'fault' } as const
const NOT_READY = { status: '503 Service Unavailable', sequence: 'fault', fields: { 'retry-after': /^\d+$/ } } as const
const METHODS = /^GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS$/

export const FAULT_CASES: readonly FaultCase[] = [
  ...AUTHENTICATION_CASES,
  ...MEDIATION_CASES,
  {
    name: 'a backend that refuses the credentials of the gateway',
    code: 900424,
    request: get('/protected/a'),
    status: '503 Service Unavailable',
    message: 'Temporary server error',
    description: 'The gateway has no credentials that the backend accepts',
    sequence: 'fault',
  },
  {
    ...MALFORMED,
    name: 'an invalid Host',
    request: 'GET /healthy HTTP/1.1\r\nHost: a b\r\n%\r\n',
    status: '400 Bad Request',
    description: 'Host is not a valid authority (RFC 9112 3.2)',
  },
  {
    ...MALFORMED,
    name: 'a request that is not HTTP',
    request: 'GET /healthy\x01 HTTP/1.1\r\nHost: a\r\n%\r\n',
    status: '400 Bad Request',
    description: 'Invalid char in url path (RFC 9112)',
    isHeadless: true,
  },
  {
    ...MALFORMED,
    name: 'a target over the limit',
    request: `GET /${'x'.repeat(600)} HTTP/1.1\r\nHost: a\r\n%\r\n`,
    status: '414 URI Too Long',
    message: 'URI Too Long',
    description: 'request target is longer than target.max_bytes (RFC 9110 15.5.15)',
  },
  {
    ...MALFORMED,
    name: 'a head over the limit',
    request: `GET /healthy HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3000)}\r\n%\r\n`,
    status: '431 Request Header Fields Too Large',
    message: 'Request Header Fields Too Large',
    description: 'head is longer than the limit (RFC 6585 5)',
    isHeadless: true,
  },
  {
    ...MALFORMED,
    name: 'the method TRACE',
    request: 'TRACE /healthy HTTP/1.1\r\nHost: a\r\n%\r\n',
    status: '405 Method Not Allowed',
    message: 'Method Not Allowed',
    description: 'CONNECT and TRACE are not offered (RFC 9110 9.3.6, 9.3.8)',
    fields: { allow: METHODS },
  },
  {
    ...MALFORMED,
    name: 'a plain request at the WebSocket listener',
    request: get('/healthy'),
    isWebSocket: true,
    status: '426 Upgrade Required',
    message: 'Upgrade Required',
    description: 'this port takes WebSocket only (RFC 9110 15.5.22, RFC 6455 4.1)',
    fields: { upgrade: /^websocket$/ },
  },
  {
    name: 'an unknown API',
    code: 404,
    status: '404 Not Found',
    message: 'Not Found',
    description: 'The requested resource is not available',
    sequence: 'main',
    request: get('/none'),
  },
  {
    name: 'a method that the resource does not have',
    code: 405,
    status: '405 Method Not Allowed',
    message: 'Method not allowed',
    description: 'Method not allowed for given API resource',
    sequence: '_resource_mismatch_handler_',
    request: 'DELETE /pets/7 HTTP/1.1\r\nHost: a\r\n%\r\n',
    fields: { allow: /^GET, HEAD, OPTIONS$/ },
  },
  {
    name: 'a body that does not arrive in time',
    code: 408,
    status: '408 Request Timeout',
    message: 'Request Timeout',
    description: 'The request was not received in time',
    sequence: 'fault',
    request: 'POST /hangs HTTP/1.1\r\nHost: a\r\n%Content-Length: 5\r\n\r\n',
  },
  {
    name: 'a filter that throws',
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
    name: 'a production key for an API with sandbox endpoints only',
    code: 900901,
    status: '401 Unauthorized',
    message: 'Invalid credentials',
    description: 'The API has no endpoint for keys of this type',
    sequence: '_production_key_error_',
    request: get('/sandboxed'),
  },
  {
    name: 'a sandbox key for an API with production endpoints only',
    code: 900901,
    status: '401 Unauthorized',
    message: 'Invalid credentials',
    description: 'The API has no endpoint for keys of this type',
    sequence: '_sandbox_key_error_',
    request: get('/produced'),
  },
  {
    name: 'an unknown resource',
    code: 900906,
    status: '403 Forbidden',
    message: 'No matching resource found',
    description: 'No matching resource found in the API for the given request',
    sequence: '_resource_mismatch_handler_',
    request: get('/pets/7/toys'),
  },
  {
    ...FAILED,
    name: 'a backend that refuses the connection',
    code: 101503,
    message: 'Error connecting to the backend',
    description: 'Connecting to the backend failed',
    request: get('/refused'),
  },
  {
    ...FAILED,
    name: 'a backend that resets during an upload (101500 + 2)',
    code: 101502,
    description: 'The request could not be sent to the backend',
    request: 'POST /resets HTTP/1.1\r\nHost: a\r\n%Content-Length: 10\r\n\r\n',
  },
  {
    ...FAILED,
    name: 'a backend that resets (101501 + 3)',
    code: 101504,
    description: 'The response could not be received from the backend',
    request: get('/resets'),
  },
  {
    ...FAILED,
    name: 'a backend that closes (101505 + 3)',
    code: 101508,
    description: 'The backend closed the connection',
    request: get('/closes'),
  },
  {
    ...FAILED,
    name: 'a backend that does not send HTTP (101506 + 3)',
    code: 101509,
    description: 'The backend violated the protocol',
    request: get('/babbles'),
  },
  {
    ...TIMED_OUT,
    name: 'a backend that does not respond (101504 + 3)',
    code: 101507,
    message: 'Send timeout',
    description: 'The backend did not answer in time',
    request: get('/hangs'),
  },
  {
    ...TIMED_OUT,
    name: 'a backend that does not accept the connection',
    code: 101508,
    message: 'Error connecting to the backend',
    description: 'Connecting to the backend took too long',
    request: get('/deaf'),
  },
  {
    name: 'a body over the limit',
    code: 102511,
    status: '400 Bad Request',
    message: 'Incomplete payload',
    description: 'The payload is too large or was not delivered whole',
    sequence: 'fault',
    request: 'POST /healthy HTTP/1.1\r\nHost: a\r\n%Content-Length: 100\r\n\r\n',
  },
  {
    ...NOT_READY,
    name: 'a group without a ready endpoint',
    code: 303000,
    message: 'No endpoint is ready',
    description: 'Every endpoint of the API is suspended or switched off',
    first: get('/group'),
    request: get('/group'),
  },
  {
    ...NOT_READY,
    name: 'a suspended endpoint',
    code: 303001,
    message: 'Endpoint suspended',
    description: 'The endpoint is suspended or switched off',
    first: get('/suspended'),
    request: get('/suspended'),
  },
]

const BUG: Filter = {
  name: 'bug',
  request: ({ apiName }) => {
    if (apiName === 'bug') throw new Error('a filter that throws')
    return undefined
  },
}

const SETTINGS = {
  'http.socket.timeout': TIMEOUT_MS,
  'http.connection.timeout': TIMEOUT_MS,
  'body.read_timeout': TIMEOUT_MS - 100,
  'body.max_bytes': 50,
  'header.max_bytes': 2048,
  'target.max_bytes': 512,
}

interface FaultGateway extends TestGateway {
  /** Stops the gateway and its backends. */
  stop(): void
}

/** `faults`: the sequences that word the faults; the default sequences if absent. */
export async function startFaultGateway(faults: Partial<{ readonly faults: FaultPlan }> = {}): Promise<FaultGateway> {
  const backend = await ScriptedBackend.listen(peer => void fail(peer))
  const deaf = await deafListener()
  const refusing = await refusingPort()
  const refused = refusing.port
  const port = backend.port
  const failing = endpointsAt(refused, LONG_MS)
  const mediated = await mediationApis(port)
  const apis: readonly TestApi[] = [
    ...['/healthy', '/bug', '/resets', '/closes', '/babbles', '/hangs'].map(context => ({
      context,
      port,
      basePath: context,
    })),
    securedApi(port),
    ...mediated.apis,
    { context: '/refused', port: refused },
    {
      context: '/protected',
      port,
      basePath: '/protected',
      overrides: { credentials: { production: { kind: 'basic', authorization: 'Basic wrong' }, sandbox: null } },
    },
    { context: '/deaf', port: deaf.port },
    { context: '/pets', port, overrides: { resources: [operation('GET /{id}')] } },
    { context: '/blocked', port, overrides: { lifecycle: { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 } } },
    { context: '/produced', port, overrides: { keyType: 'SANDBOX' } },
    { context: '/sandboxed', port, overrides: { endpoints: NONE, sandbox: endpointsAt(port, 0) } },
    { context: '/suspended', port, overrides: { endpoints: failing } },
    {
      context: '/group',
      port,
      overrides: { endpoints: { ...endpointsAt(refused, LONG_MS, 2), kind: 'failover', failsOver: true } },
    },
  ]
  const overrides = { cors: OPEN_CORS } as const satisfies Partial<ApiPlan>
  const open = apis.map(api => ({ ...api, overrides: { ...overrides, ...api.overrides } }))
  const more = {
    kinds: ['http', 'ws'],
    hasFilterChain: true,
    cors: OPEN_CORS,
    ...SECURED,
    ...mediated.options,
    ...faults,
  } as const
  const gateway = await startGateway(open, { http: SETTINGS, filters: [BUG], ...more })
  prepareCases(gateway.authState)
  return {
    ...gateway,
    stop: () => {
      gateway.stop()
      backend.close()
      deaf.close()
      refusing.close()
    },
  }
}

const NONE: EndpointsPlan = { ...NO_ENDPOINTS, endpoints: [] }
/** The last used slot; those below belong to the planned APIs. */
let slot = 32

export function endpointsAt(port: number, suspensionMs: number, count = 1): EndpointsPlan {
  const host = '127.0.0.1'
  const plain = { secured: false, tlsClient: '', proxy: null, connectsThroughProxy: false }
  const endpoint = (): EndpointPlan => {
    slot = slot === 60 ? 33 : slot + 1
    const settings = { ...DEFAULT_ENDPOINT_SETTINGS, suspensionMs }
    return { slot, url: `http://${host}:${port}`, basePath: '', settings, route: { ...plain, slot, host, port } }
  }
  return {
    kind: 'single',
    algorithm: 'round_robin',
    failsOver: false,
    endpoints: Array.from({ length: count }, endpoint),
  }
}

const UNAUTHORISED = 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="b"\r\nContent-Length: 0\r\n\r\n'

/** Fails as the path says. */
async function fail(peer: Peer): Promise<void> {
  await peer.untilText('\r\n\r\n')
  const [, path = ''] = peer.text.split(' ')
  if (path.startsWith('/resets')) peer.reset()
  else if (path.startsWith('/closes')) peer.end()
  else if (path.startsWith('/protected')) peer.send(UNAUTHORISED)
  else if (path.startsWith('/babbles')) peer.send('SSH-2.0-OpenSSH_9.6\r\n')
  else if (path.startsWith('/refuses')) peer.send(jsonResponse('{"result":false}'))
  else if (path.startsWith('/long')) peer.send(jsonResponse(JSON.stringify('x'.repeat(100))))
  else if (!path.startsWith('/hangs')) peer.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok')
}

function jsonResponse(text: string): string {
  const lines = ['HTTP/1.1 200 OK', 'Connection: close', 'Content-Type: application/json']
  return [...lines, `Content-Length: ${text.length}`, '', text].join('\r\n')
}
