/** The flight recorder of a reactor: each kind of failure is kept with its timeline, and the rings have limits. */
import assert from 'node:assert/strict'
import { after, afterEach, suite, test } from 'node:test'
import type { FailureQuery, RecordedFailure } from '../../src/observe/flight-recorder.ts'
import type { Trace } from '../../src/observe/exchange-trace.ts'
import { openTimelines } from '../../src/protocol/timelines.ts'
import type { FilterResult } from '../../src/proxy/exchange/contract.ts'
import { refusal } from '../../src/proxy/exchange/outcome.ts'
import { WorkerFailure } from '../../src/mediation/worker-service.ts'
import { deafListener } from '../harness/deaf-listener.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, refusingPort, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { raising, ScriptedWorker, unchanged, workerFlows } from '../harness/scripted-worker.ts'
import { switchingProtocols, takeHead } from '../harness/tunnels.ts'

const ID = 'fedcba9876543210fedcba9876543210'
const ID_LINE = `activityid: ${ID}`
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const backend = await ScriptedBackend.listen()
const refusing = await refusingPort()
const deaf = await deafListener()
const worker = new ScriptedWorker()
let verdict: () => FilterResult = () => undefined
const gateway = await startGateway(
  [
    { context: '/echo', port: backend.port },
    { context: '/refused', port: refusing.port },
    { context: '/deaf', port: deaf.port },
    { context: '/flow', port: backend.port, overrides: workerFlows('request') },
  ],
  {
    worker,
    filters: [{ name: 'scripted', request: () => verdict() }],
    http: { 'http.connection.timeout': 200, 'http.socket.timeout': 300 },
  },
)
const { inspector } = gateway.reactor
const clients: Peer[] = []
after(() => {
  gateway.stop()
  backend.close()
  refusing.close()
  deaf.close()
})
afterEach(async () => {
  inspector.serve({ kind: 'unwatch', correlationId: ID })
  for (const client of clients.splice(0)) client.destroy()
  verdict = () => undefined
  worker.script = unchanged
  // No test reuses a connection of another one.
  for (const peer of backend.peers) peer.destroy()
  await eventually('the end of all backend connections', () => gateway.metrics().counts.targetsOpen === 0)
  backend.skip()
  await gateway.deploy({ recorder: { size: 0, slowMs: 0 } })
  await gateway.deploy({ recorder: { size: 256, slowMs: 0 } })
  await eventually('the end of all client connections', () => gateway.metrics().counts.connectionsOpen === 0)
})

function list(query: Partial<FailureQuery> = {}): readonly RecordedFailure[] {
  const result = inspector.serve({ kind: 'failures', query: { limit: 1000, ...query } })
  return (result as { readonly rows: readonly RecordedFailure[] }).rows
}

async function connect(): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  clients.push(client)
  return client
}

function get(path: string, ...lines: readonly string[]): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
}

/** Takes the request on the next backend connection. */
async function nextRequest(): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  return peer
}

interface FailureCase {
  readonly title: string
  readonly path: string
  readonly lines?: readonly string[]
  /** In place of a request with `path` and `lines`. */
  readonly request?: string
  /** What happens behind the request of `client`. */
  readonly happens?: (client: Peer) => Promise<void>
  readonly prepare?: () => void
  readonly expected: Partial<RecordedFailure>
  /** State of the last step of each side. */
  readonly last: readonly [source: string, target: string]
  readonly cause: RegExp
}

const CASES: readonly FailureCase[] = [
  {
    title: 'a refused connection',
    path: '/refused/x',
    expected: { kind: 'fault', side: 'target', status: 502, code: 101503, errorBase: 101503 },
    last: ['RESPONSE_DONE', 'CLOSED'],
    cause: /ECONNREFUSED/,
  },
  {
    title: 'a connection that nobody accepts in time',
    path: '/deaf/x',
    expected: { kind: 'fault', side: 'target', status: 504, errorBase: 101508 },
    last: ['RESPONSE_DONE', 'CLOSED'],
    cause: /no connection within 200 ms/,
  },
  {
    title: 'a backend that does not respond in time',
    path: '/echo/x',
    happens: async () => void (await nextRequest()),
    expected: { kind: 'fault', side: 'target', status: 504, errorBase: 101504, errorState: 3, code: 101507 },
    last: ['RESPONSE_DONE', 'CLOSED'],
    cause: /no input within 300 ms/,
  },
  {
    title: 'a backend that resets before its head',
    path: '/echo/x',
    happens: async () => (await nextRequest()).reset(),
    expected: { kind: 'fault', side: 'target', errorBase: 101501, errorState: 3 },
    last: ['RESPONSE_DONE', 'CLOSED'],
    cause: /ECONNRESET/,
  },
  {
    title: 'a backend that resets within its body',
    path: '/echo/x',
    happens: async client => {
      const peer = await nextRequest()
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nfirst')
      await client.untilText('first')
      peer.reset()
    },
    expected: { kind: 'reset', side: 'target', status: 200, errorBase: 101501, errorState: 5, responseBodyBytes: 5 },
    last: ['CLOSED', 'CLOSED'],
    cause: /ECONNRESET/,
  },
  {
    title: 'a client that leaves',
    path: '/echo/x',
    happens: async client => {
      await nextRequest()
      client.reset()
    },
    expected: { kind: 'reset', side: 'source', status: 0, errorBase: 101001, errorState: 3 },
    last: ['CLOSED', 'CLOSED'],
    cause: /ECONNRESET/,
  },
  {
    title: 'a backend that responds with an error',
    path: '/echo/x',
    happens: async () => (await nextRequest()).send('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n'),
    expected: { kind: 'error', side: 'target', status: 503, code: 0 },
    last: ['RESPONSE_DONE', 'RESPONSE_HEAD'],
    cause: /^$/,
  },
  {
    title: 'a request that a limit refuses',
    path: '/echo/x',
    prepare: () => {
      verdict = () => refusal(900800)
    },
    expected: { kind: 'fault', side: 'gateway', status: 429, code: 900800, target: '' },
    last: ['RESPONSE_DONE', ''],
    cause: /^$/,
  },
  {
    title: 'a malformed request',
    path: '/echo/x',
    request: `GET /echo/x HTTP/1.1\r\n${ID_LINE}\r\n\r\n`,
    expected: { kind: 'fault', side: 'gateway', status: 400, code: 400 },
    last: ['CLOSING', ''],
    cause: /./,
  },
  {
    title: 'a worker that died',
    path: '/flow/x',
    prepare: () => {
      worker.script = () => Promise.reject(new WorkerFailure('died', 'the thread has ended'))
    },
    expected: { kind: 'fault', side: 'gateway', status: 500, code: 102543, target: '' },
    last: ['RESPONSE_DONE', ''],
    cause: /./,
  },
  {
    title: 'a fault that a sequence raises',
    path: '/flow/x',
    prepare: () => {
      worker.script = task => raising(task, 102544, 'no stock')
    },
    expected: { kind: 'fault', side: 'gateway', status: 500, code: 102544, target: '' },
    last: ['RESPONSE_DONE', ''],
    cause: /./,
  },
  {
    title: 'a tunnel that its backend resets',
    path: '/echo/x',
    lines: ['Connection: Upgrade', 'Upgrade: websocket'],
    happens: async client => {
      const peer = await nextRequest()
      peer.send(switchingProtocols())
      await takeHead(client)
      peer.reset()
    },
    expected: { kind: 'reset', side: 'target', status: 101, errorBase: 101501 },
    last: ['CLOSED', 'CLOSED'],
    cause: /ECONNRESET/,
  },
]

suite('each kind of failure is kept, with the timeline that a trace of it shows', () => {
  for (const { title, path, lines = [], request, happens, prepare, expected, last, cause } of CASES) {
    test(title, async () => {
      prepare?.()
      inspector.serve({ kind: 'watch', correlationId: ID, waitMs: 60_000 })
      const traced = inspector.serve({ kind: 'trace', correlationId: ID }) as Promise<Trace | null>
      const client = await connect()
      client.send(request ?? get(path, ID_LINE, ...lines))
      await happens?.(client)
      await eventually('a kept exchange', () => list().length > 0)
      const [failure, ...others] = list()
      assert.deepEqual(others, [])
      assert.deepEqual({ ...failure, ...expected }, failure)
      assert.match(failure!.cause, cause)
      const lastOf = (side: string) => failure!.steps.findLast(step => step.side === side)?.state ?? ''
      assert.deepEqual([lastOf('source'), lastOf('target')], last)
      const trace = (await traced)!
      assert.deepEqual(stepsOf(failure!), statesOf(trace, stepsOf(failure!).length))
      assert.equal(failure!.correlationId, ID)
    })
  }
})

function stepsOf({ steps }: RecordedFailure): readonly string[] {
  return steps.filter(({ event }) => event !== 'ASSIGNED').map(({ side, event, state }) => `${side} ${event} ${state}`)
}

/** The first steps of a trace that change a state. */
function statesOf({ steps }: Trace, count: number): readonly string[] {
  const before = { source: '', target: '' }
  const changes = steps.flatMap(({ where, what, detail }) => {
    if (where === 'gateway' || (before[where] === detail && what !== 'PEER_END')) return []
    before[where] = detail
    return [`${where} ${what} ${detail}`]
  })
  return changes.slice(0, count)
}

test('an exchange is slow from the threshold on, and its longest state is that of the backend', async () => {
  await gateway.deploy({ recorder: { size: 8, slowMs: 2 } })
  const client = await connect()
  client.send(get('/echo/x'))
  const peer = await nextRequest()
  const fromMs = performance.now()
  await eventually('two milliseconds', () => performance.now() - fromMs > 2)
  peer.send(OK)
  assert.equal((await takeResponse(client)).status, 200)
  const [slow] = list()
  assert.deepEqual([slow?.kind, slow?.side, slow?.code], ['slow', 'target', 0])
  assert.ok(slow!.durationUs >= 2000)
  const times = slow!.steps.map(({ us }) => us)
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
  )
})

test('an exchange that succeeds is not kept, and leaves no timeline open', async () => {
  const open = openTimelines()
  const client = await connect()
  client.send(get('/echo/x'))
  const peer = await nextRequest()
  peer.send(OK)
  await takeResponse(client)
  assert.deepEqual(list(), [])
  assert.equal(openTimelines(), open)
})

test('each ring keeps the newest, and refused requests displace no failure of a backend', async () => {
  await gateway.deploy({ recorder: { size: 3, slowMs: 0 } })
  const client = await connect()
  client.send(get('/echo/failed'))
  ;(await nextRequest()).send('HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n')
  await takeResponse(client)
  verdict = () => refusal(900800)
  for (let request = 0; request < 10; request++) {
    client.send(get(`/echo/${request}`))
    assert.equal((await takeResponse(client)).status, 429)
  }
  const { rows, skipped } = inspector.serve({ kind: 'failures', query: { limit: 10 } }) as {
    rows: readonly RecordedFailure[]
    skipped: number
  }
  assert.equal(rows.length, 4)
  assert.ok(rows.some(({ path }) => path === '/echo/failed'))
  // A second may have ended meanwhile, and then newer ones are kept.
  assert.ok(skipped > 0 && skipped <= 7)
})

test('filters select by API, code, status, class, side, id and time', async () => {
  const client = await connect()
  client.send(get('/refused/x'))
  await takeResponse(client)
  verdict = () => refusal(900800)
  client.send(get('/echo/x'))
  await takeResponse(client)
  const rows = list()
  assert.equal(rows.length, 2)
  const [limited, refused] = rows
  const cases: readonly (readonly [Partial<FailureQuery>, readonly RecordedFailure[]])[] = [
    [{ code: 101503 }, [refused!]],
    [{ code: 900800 }, [limited!]],
    [{ status: 502 }, [refused!]],
    [{ status: 4 }, [limited!]],
    [{ side: 'target' }, [refused!]],
    [{ id: limited!.id }, [limited!]],
    [{ id: refused!.correlationId }, [refused!]],
    [{ since: refused!.endedMs }, [limited!]],
    [{ since: limited!.endedMs }, []],
    // An exchange with the same end may have been recorded later.
    [{ sinceOf: [limited!.endedMs] }, [limited!]],
    [{ sinceOf: [limited!.endedMs + 0.001] }, []],
    [{ api: 'nobody' }, []],
    [{ api: `${refused!.api}:${refused!.apiVersion}`, code: 101503 }, [refused!]],
    [{ limit: 1 }, [limited!]],
  ]
  for (const [query, expected] of cases) assert.deepEqual(list(query), expected, JSON.stringify(query))
})

test('of each sort the newest are listed, so that refused requests hide no failed backend', async () => {
  const client = await connect()
  client.send(get('/refused/x'))
  await takeResponse(client)
  verdict = () => refusal(900800)
  for (let request = 0; request < 5; request++) {
    client.send(get(`/echo/${request}`))
    await takeResponse(client)
  }
  const rows = list({ limit: 3, perSort: 2 })
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['/echo/4', '/echo/3', '/refused/x'],
  )
})

test('hostile targets are kept without secrets, control characters, and beyond a length', async () => {
  verdict = () => refusal(405)
  const client = await connect()
  for (const target of ['/echo/x?access_token=SECRET1&a=1', `/echo/${'y'.repeat(3000)}`, '/echo/%1b[31m\x9b31m']) {
    client.send(get(target, 'X: y'))
    await takeResponse(client)
    if (client.isClosed || client.ending !== '') clients.push(await connect())
  }
  for (const { path } of list()) {
    assert.ok(path.length <= 2200, path)
    assert.doesNotMatch(path, /SECRET|[\x00-\x1f\x7f-\x9f]/)
  }
  assert.ok(list().length > 0)
})

test('an exchange with more steps than a timeline holds ends with its last step', async () => {
  const client = await connect()
  client.send(get('/echo/x'))
  const peer = await nextRequest()
  peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  await client.untilText('\r\n\r\n')
  for (let piece = 0; piece < 50; piece++) {
    peer.send('1\r\nx\r\n')
    const length = client.length
    await client.until('a piece', ({ length: now }) => now > length || now > 0)
  }
  peer.reset()
  await eventually('a kept exchange', () => list().length > 0)
  const [failure] = list()
  assert.equal(failure!.dropped, 0)
  assert.equal(failure!.steps.at(-1)!.event, 'SOCKET_CLOSED')
  assert.ok(failure!.responseBytesUs > 0)
})

test('a recorder of size 0 keeps nothing and starts no timeline', async () => {
  await gateway.deploy({ recorder: { size: 0, slowMs: 0 } })
  const open = openTimelines()
  const client = await connect()
  client.send(get('/refused/x'))
  await takeResponse(client)
  assert.deepEqual(list(), [])
  assert.equal(openTimelines(), open)
})
