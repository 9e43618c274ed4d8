/**
 * Failures of the backend before its response has begun: while connecting, and in the states REQUEST_READY,
 * REQUEST_BODY and REQUEST_DONE of the failure table. For each: fault, log event, counter, and the state of the client
 * connection.
 */
import assert from 'node:assert/strict'
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { after, test } from 'node:test'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { deafListener } from '../harness/deaf-listener.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, refusingPort, ScriptedBackend } from '../harness/peers.ts'

const TIMEOUT_MS = 500
const BIG_BYTES = 32 * 1024 * 1024

async function respondToAll(peer: Peer): Promise<void> {
  while (peer.ending === '' && !peer.isClosed) {
    await peer.untilRequest()
    if (peer.take() !== '') peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  }
}

/** Addresses that the resolver of this process gives. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'second.example': ['127.0.0.2', '127.0.0.1'],
  'nowhere.example': ['127.0.0.2', '127.0.0.3'],
}
const { lookup } = dns
dns.lookup = ((host: string, options: dns.LookupOptions, callback: (error: Error | null, found?: unknown) => void) => {
  const addresses = NAMES[host]
  if (addresses !== undefined) {
    callback(
      null,
      addresses.map(address => ({ address, family: 4 })),
    )
  } else if (host.endsWith('.example')) callback(Object.assign(new Error(host), { code: 'ENOTFOUND' }))
  else lookup(host, options as dns.LookupAllOptions, callback)
}) as typeof dns.lookup
syncBuiltinESMExports()

const backend = await ScriptedBackend.listen()
const healthy = await ScriptedBackend.listen(peer => void respondToAll(peer))
const nobody = await refusingPort()
const refusing = nobody.port

const apis = [
  { context: '/t', port: backend.port },
  { context: '/refused', port: refusing },
  { context: '/unknown', host: 'unknown.example', port: backend.port },
  { context: '/nowhere', host: 'nowhere.example', port: backend.port },
  { context: '/second', host: 'second.example', port: backend.port },
  { context: '/healthy', port: healthy.port },
]
const patient = await startGateway(apis)
const impatient = await startGateway(apis, { http: { 'http.socket.timeout': TIMEOUT_MS } })

after(() => {
  nobody.close()
  patient.stop()
  impatient.stop()
  backend.close()
  healthy.close()
})

const GET = 'GET /t/it?a=b HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST /t/it?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'
const POST_CHUNKED = 'POST /t/it?a=b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'
const POST_BIG = `POST /t/it?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: ${BIG_BYTES}\r\n\r\n`

interface Case {
  readonly name: string
  readonly request: string
  /** What the backend does once it has the request head; absent: no connection is established. */
  readonly script?: (peer: Peer, client: Peer) => void | Promise<void>
  readonly timesOut?: true
  readonly status: number
  readonly base: number
  readonly state: number
  readonly cause: RegExp
}

const CUT_HEAD = 'HTTP/1.1 200 OK\r\nContent-Le'
const PROTOCOL = /RFC (9110|9112|6585)/

const CASES: readonly Case[] = [
  {
    name: 'a connection that is refused',
    request: GET.replace('/t/', '/refused/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ECONNREFUSED$/,
  },
  {
    name: 'a connection that is refused during an upload',
    request: POST.replace('/t/', '/refused/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ECONNREFUSED$/,
  },
  {
    name: 'a host name that does not resolve',
    request: GET.replace('/t/', '/unknown/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ENOTFOUND$/,
  },
  {
    name: 'a host name whose addresses all refuse',
    request: GET.replace('/t/', '/nowhere/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ECONNREFUSED$/,
  },
  {
    name: 'a backend that does not respond in time',
    request: GET,
    timesOut: true,
    script: () => {},
    status: 504,
    base: 101504,
    state: 3,
    cause: /^no input within 500 ms$/,
  },
  {
    name: 'a response head that is not completed in time',
    request: GET,
    timesOut: true,
    script: peer => peer.send(CUT_HEAD),
    status: 504,
    base: 101504,
    state: 3,
    cause: /^no input/,
  },
  {
    name: 'an interim response without a final response in time',
    request: GET,
    timesOut: true,
    script: peer => peer.send('HTTP/1.1 102 Processing\r\n\r\n'),
    status: 504,
    base: 101504,
    state: 3,
    cause: /^no input/,
  },
  {
    name: 'a backend that does not read the body',
    request: POST_BIG,
    timesOut: true,
    script: (peer, client) => {
      peer.pause()
      client.send(Buffer.alloc(BIG_BYTES - 1))
    },
    status: 504,
    base: 101504,
    state: 2,
    cause: /^no input/,
  },
  {
    name: 'a backend that closes without a response',
    request: GET,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 3,
    cause: /closed/,
  },
  {
    name: 'a backend that closes within the response head',
    request: GET,
    script: peer => {
      peer.send(CUT_HEAD)
      peer.end()
    },
    status: 502,
    base: 101505,
    state: 3,
    cause: /closed/,
  },
  {
    name: 'a backend that closes during an upload with Content-Length',
    request: POST,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 2,
    cause: /closed/,
  },
  {
    name: 'a backend that closes during an upload in chunks',
    request: POST_CHUNKED,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 2,
    cause: /closed/,
  },
  {
    name: 'a backend that closes after the body of a POST, which is not retried,',
    request: `${POST}0123456789`,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 3,
    cause: /closed/,
  },
  {
    name: 'a backend that resets without a response',
    request: GET,
    script: peer => peer.reset(),
    status: 502,
    base: 101501,
    state: 3,
    cause: /^ECONNRESET$/,
  },
  {
    name: 'a backend that resets during an upload',
    request: POST,
    script: peer => peer.reset(),
    status: 502,
    base: 101500,
    state: 2,
    cause: /^(ECONNRESET|EPIPE)$/,
  },
  {
    name: 'a backend that resets while a large body is written',
    request: POST_BIG,
    script: async (peer, client) => {
      client.send(Buffer.alloc(BIG_BYTES - 1))
      await peer.untilLength(1024 * 1024)
      peer.reset()
    },
    status: 502,
    base: 101500,
    state: 2,
    cause: /^(ECONNRESET|EPIPE)$/,
  },
  ...(
    [
      ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
      ['zero bytes', '\0\0\0\0\0\0\0\0'],
      ['a status that is not a number', 'HTTP/1.1 2x0 OK\r\n\r\n'],
      ['version HTTP/2.0', 'HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
      ['two Content-Length fields', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
      [
        'Content-Length beside Transfer-Encoding',
        'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ],
      [
        '101 without an upgrade request',
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
      ],
      ['NUL in a field value', 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n'],
      ['a head over the limit', `HTTP/1.1 200 OK\r\n${'X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(500)}`],
    ] as const
  ).map(
    ([name, bytes]): Case => ({
      name: `a malformed response (${name})`,
      request: GET,
      script: peer => peer.send(bytes),
      status: 502,
      base: 101506,
      state: 3,
      cause: PROTOCOL,
    }),
  ),
  {
    name: 'a malformed response during an upload',
    request: POST,
    script: peer => peer.send('garbage\r\n\r\n'),
    status: 502,
    base: 101506,
    state: 2,
    cause: PROTOCOL,
  },
]

/** Checks that the connection is closed, or that it serves another request. */
async function assertEnd(client: Peer, closes: boolean): Promise<void> {
  if (closes) {
    assert.equal(await client.untilEnd(), 'FIN')
    assert.equal(client.text, '')
    return
  }
  client.send('GET /healthy/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).body, 'ok')
}

/** The address of the last connection attempt; '' if the name does not resolve. */
function remoteOf(request: string, port: number): string {
  if (request.includes(' /unknown/')) return ''
  return request.includes(' /nowhere/') ? `127.0.0.3:${port}` : `127.0.0.1:${port}`
}

for (const { name, request, script, timesOut, status, base, state, cause } of CASES) {
  const method = request.slice(0, request.indexOf(' '))
  const isComplete = method === 'GET' || request.endsWith('0123456789')
  const end = isComplete ? 'stays open' : 'is closed'
  test(`${name} gets ${status} with ${base + state}, and the client connection ${end}`, async () => {
    const gateway = timesOut ? impatient : patient
    const from = gateway.reports.length
    const before = countedFailures(gateway, base, state)
    backend.skip()
    const client = await connectPeer(gateway.port)
    client.send(request)
    if (script !== undefined) {
      const peer = await backend.next()
      await peer.untilText('\r\n\r\n')
      await script(peer, client)
    }
    const interim = name.startsWith('an interim') ? await takeResponse(client) : null
    if (interim !== null) assert.equal(interim.status, 102)
    const response = await takeResponse(client)
    assertFault(response, status, base, state, !isComplete)
    await assertEnd(client, !isComplete)

    const { level, fields } = failureLine(gateway, from)
    assert.equal(level, 'warn')
    const {
      STATE_DESCRIPTION: description,
      REMOTE_ADDRESS: remote,
      CAUSE_OF_ERROR: loggedCause,
      CONNECTION: connection,
      ...others
    } = fields
    assert.match(String(description), /^target connection in [A-Z_]+$/)
    assert.match(String(loggedCause), cause)
    assert.match(String(connection), /^http-outgoing-\d+$/)
    const api = apis.find(({ context }) => request.includes(` ${context}/`))!
    assert.equal(remote, remoteOf(request, api.port))
    assert.deepEqual(others, {
      INTERNAL_STATE: state,
      DIRECTION: 'REQUEST',
      ERROR_CODE: base + state,
      BASE_ERROR_CODE: base,
      TARGET_HOST: api.host ?? '127.0.0.1',
      TARGET_PORT: api.port,
      HTTP_URL: `${api.context}/it?a=b`,
      HTTP_METHOD: method,
      SOCKET_TIMEOUT: timesOut ? TIMEOUT_MS : 180_000,
      CLIENT_ADDRESS: '127.0.0.1',
      CORRELATION_ID: response.fields.get('activityid')![0]!,
    })
    assert.equal(countedFailures(gateway, base, state), before + 1)
    client.destroy()
  })
}

const DEAF_GET = 'GET /deaf/ HTTP/1.1\r\nHost: a\r\n\r\n'

test('a backend that does not accept the connection in time gets 504 with 101508', async t => {
  const deaf = await deafListener()
  const http = { 'http.connection.timeout': TIMEOUT_MS }
  const gateway = await startGateway([{ context: '/deaf', port: deaf.port }], { http })
  t.after(() => {
    gateway.stop()
    deaf.close()
  })
  const client = await connectPeer(gateway.port)
  client.send(DEAF_GET)
  assertFault(await takeResponse(client), 504, 101508, 0, false)
  const { fields } = failureLine(gateway, 0)
  assert.equal(fields.ERROR_CODE, 101508)
  assert.equal(fields.INTERNAL_STATE, 0)
  assert.equal(gateway.metrics().counts.timeoutConnect, 1)
  client.destroy()
})

test('a client that leaves while the backend is connecting is logged as 101507 with level debug', async t => {
  const deaf = await deafListener()
  const gateway = await startGateway([{ context: '/deaf', port: deaf.port }])
  t.after(() => {
    gateway.stop()
    deaf.close()
  })
  const client = await connectPeer(gateway.port)
  client.send(DEAF_GET)
  await eventually('the connection attempt', () => gateway.metrics().counts.targetsOpen === 1)
  client.reset()
  await eventually('the end of the attempt', () => gateway.metrics().counts.targetsOpen === 0)
  const { level, fields } = failureLine(gateway, 0)
  assert.equal(level, 'debug')
  assert.equal(fields.ERROR_CODE, 101507)
  assert.equal(countedFailures(gateway, 101507, 0), 1)
})

test('a host name with an address that refuses is reached by its next address, twice in a row', async () => {
  for (const attempt of [1, 2]) {
    backend.skip()
    const client = await connectPeer(patient.port)
    client.send('GET /second/ HTTP/1.1\r\nHost: a\r\n\r\n')
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx')
    assert.equal((await takeResponse(client)).body, 'x', `attempt ${attempt}`)
    client.destroy()
  }
})
