/**
 * Failures of the backend that can still be answered: states REQUEST_READY, REQUEST_BODY and REQUEST_DONE of the
 * failure table. For each: code, status, body, log line, counter, and what becomes of the client's connection.
 */
import assert from 'node:assert/strict'
import dns from 'node:dns'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { createServer } from 'node:net'
import { after, test } from 'node:test'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'

const TIMEOUT_MS = 200
const BIG_BYTES = 32 * 1024 * 1024

/** A port on which nobody listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

async function answerAll(peer: Peer): Promise<void> {
  while (peer.ending === '' && !peer.isClosed) {
    await peer.untilAsked()
    if (peer.take() !== '') peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  }
}

/** Names that the resolver of this process knows. */
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
const fine = await ScriptedBackend.listen(peer => void answerAll(peer))
const refusing = await freePort()

const apis = [
  { context: '/t', port: backend.port },
  { context: '/refused', port: refusing },
  { context: '/unknown', host: 'unknown.example', port: backend.port },
  { context: '/nowhere', host: 'nowhere.example', port: backend.port },
  { context: '/second', host: 'second.example', port: backend.port },
  { context: '/fine', port: fine.port },
]
const patient = await startGateway(apis)
const hasty = await startGateway(apis, { 'http.socket.timeout': TIMEOUT_MS })

after(() => {
  patient.stop()
  hasty.stop()
  backend.close()
  fine.close()
})

const GET = 'GET /t/it?a=b HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST /t/it?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'
const POST_CHUNKED = 'POST /t/it?a=b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'
const POST_BIG = `POST /t/it?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: ${BIG_BYTES}\r\n\r\n`

interface Case {
  readonly name: string
  readonly request: string
  /** The backend's part, from its first byte on; absent where it never gets one. */
  readonly script?: (peer: Peer, client: Peer) => void | Promise<void>
  readonly hasty?: true
  readonly status: number
  readonly base: number
  readonly state: number
  readonly cause: RegExp
}

const CUT_HEAD = 'HTTP/1.1 200 OK\r\nContent-Le'
const PROTOCOL = /RFC (9110|9112|6585)/

const CASES: readonly Case[] = [
  {
    name: 'refused',
    request: GET.replace('/t/', '/refused/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ECONNREFUSED$/,
  },
  {
    name: 'refused, with a body under way',
    request: POST.replace('/t/', '/refused/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ECONNREFUSED$/,
  },
  {
    name: 'a name that does not resolve',
    request: GET.replace('/t/', '/unknown/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ENOTFOUND$/,
  },
  {
    name: 'every address refuses',
    request: GET.replace('/t/', '/nowhere/'),
    status: 502,
    base: 101503,
    state: 0,
    cause: /^ECONNREFUSED$/,
  },
  {
    name: 'no answer in time',
    request: GET,
    hasty: true,
    script: () => {},
    status: 504,
    base: 101504,
    state: 3,
    cause: /^no input within 200 ms$/,
  },
  {
    name: 'a head that is never finished',
    request: GET,
    hasty: true,
    script: peer => peer.send(CUT_HEAD),
    status: 504,
    base: 101504,
    state: 3,
    cause: /^no input/,
  },
  {
    name: 'an interim response and no final one',
    request: GET,
    hasty: true,
    script: peer => peer.send('HTTP/1.1 102 Processing\r\n\r\n'),
    status: 504,
    base: 101504,
    state: 3,
    cause: /^no input/,
  },
  {
    name: 'takes no bytes of the body',
    request: POST_BIG,
    hasty: true,
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
    name: 'closes without an answer',
    request: GET,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 3,
    cause: /closed/,
  },
  {
    name: 'closes within its head',
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
    name: 'closes while a body is under way',
    request: POST,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 2,
    cause: /closed/,
  },
  {
    name: 'closes while a chunked body is under way',
    request: POST_CHUNKED,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 2,
    cause: /closed/,
  },
  {
    name: 'closes after the body of a request that must not be repeated',
    request: `${POST}0123456789`,
    script: peer => peer.end(),
    status: 502,
    base: 101505,
    state: 3,
    cause: /closed/,
  },
  {
    name: 'resets without an answer',
    request: GET,
    script: peer => peer.reset(),
    status: 502,
    base: 101501,
    state: 3,
    cause: /^ECONNRESET$/,
  },
  {
    name: 'resets while a body is under way',
    request: POST,
    script: peer => peer.reset(),
    status: 502,
    base: 101500,
    state: 2,
    cause: /^(ECONNRESET|EPIPE)$/,
  },
  {
    name: 'resets while a large body is being written',
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
      ['no HTTP at all', 'SSH-2.0-OpenSSH_9.6\r\n'],
      ['zeros', '\0\0\0\0\0\0\0\0'],
      ['a status that is no number', 'HTTP/1.1 2x0 OK\r\n\r\n'],
      ['HTTP/2', 'HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
      ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
      ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
      ['101 that nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
      ['a bare NUL in a value', 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n'],
      ['a head without end', `HTTP/1.1 200 OK\r\n${'X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(500)}`],
    ] as const
  ).map(
    ([name, bytes]): Case => ({
      name: `garbage: ${name}`,
      request: GET,
      script: peer => peer.send(bytes),
      status: 502,
      base: 101506,
      state: 3,
      cause: PROTOCOL,
    }),
  ),
  {
    name: 'garbage while a body is under way',
    request: POST,
    script: peer => peer.send('garbage\r\n\r\n'),
    status: 502,
    base: 101506,
    state: 2,
    cause: PROTOCOL,
  },
]

/** On the same connection another request is answered, or there is nothing but the end. */
async function assertFate(client: Peer, closes: boolean): Promise<void> {
  if (closes) {
    assert.equal(await client.untilEnd(), 'FIN')
    assert.equal(client.text, '')
    return
  }
  client.send('GET /fine/ HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeAnswer(client)).body, 'ok')
}

/** What was dialled last, which is nothing when the name does not resolve. */
function remoteOf(request: string, port: number): string {
  if (request.includes(' /unknown/')) return ''
  return request.includes(' /nowhere/') ? `127.0.0.3:${port}` : `127.0.0.1:${port}`
}

for (const { name, request, script, hasty: isHasty, status, base, state, cause } of CASES) {
  const method = request.slice(0, request.indexOf(' '))
  const isWhole = method === 'GET' || request.endsWith('0123456789')
  const fate = isWhole ? 'goes on' : 'ends'
  test(`${name}: ${status} with ${base + state}, and the client's connection ${fate}`, async () => {
    const gateway = isHasty ? hasty : patient
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
    const interim = name.startsWith('an interim') ? await takeAnswer(client) : null
    if (interim !== null) assert.equal(interim.status, 102)
    const answer = await takeAnswer(client)
    assertFault(answer, status, base, state, !isWhole)
    await assertFate(client, !isWhole)

    const { level, fields } = failureLine(gateway, from)
    assert.equal(level, 'warn')
    const {
      STATE_DESCRIPTION: described,
      REMOTE_ADDRESS: remote,
      CAUSE_OF_ERROR: why,
      CONNECTION: connection,
      ...others
    } = fields
    assert.match(String(described), /^target connection in [A-Z_]+$/)
    assert.match(String(why), cause)
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
      SOCKET_TIMEOUT: isHasty ? TIMEOUT_MS : 180_000,
      CLIENT_ADDRESS: '127.0.0.1',
      CORRELATION_ID: answer.fields.get('activityid')![0]!,
    })
    assert.equal(countedFailures(gateway, base, state), before + 1)
    client.destroy()
  })
}

test('the next address of a name is tried when one refuses, and the other one first the next time', async () => {
  for (const turn of [1, 2]) {
    backend.skip()
    const client = await connectPeer(patient.port)
    client.send('GET /second/ HTTP/1.1\r\nHost: a\r\n\r\n')
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx')
    assert.equal((await takeAnswer(client)).body, 'x', `turn ${turn}`)
    client.destroy()
  }
})
