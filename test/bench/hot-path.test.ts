/** The scenarios of the hot path: every row is replayed and printed, and the ceiling forwards what the bench sends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createHttpBackend } from '../../bench/backends/http-backend.ts'
import { REPLAY_ROWS, replayComparisons, replayRounds } from '../../bench/hot-path.ts'
import type { LoadPlan } from '../../bench/load/load-plan.ts'
import { METRIC, type MetricName } from '../../bench/metric.ts'
import { readOptions } from '../../bench/options.ts'
import { PAIRED_SCENARIOS } from '../../bench/paired/paired-scenarios.ts'
import { CEILING } from '../../bench/peers/npm-proxy.ts'
import { HAPROXY } from '../../bench/peers/haproxy.ts'
import { NGINX } from '../../bench/peers/nginx.ts'
import { SLUICE_VARIANTS } from '../../bench/peers/sluice-variants.ts'
import { Program } from '../../bench/program.ts'
import { scenarioTable } from '../../bench/report/markdown.ts'
import { RoundRecorder, summarize } from '../../bench/results.ts'
import { SCENARIOS } from '../../bench/scenarios.ts'
import { sendRequest, verify } from '../../bench/verify.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const EXCHANGES = 256
const ROWS = Object.keys(REPLAY_ROWS)

test('hot-path selects the replay and the scenarios over a network', () => {
  const names = ['hot-path-replay', 'hot-path-network', 'hot-path-tokens']
  assert.deepEqual(readOptions(['--scenario', 'hot-path'])?.scenarios, names)
})

test('the replay runs each variant; its table has a row for each, with time by phase and allocations', async () => {
  const recorder = new RoundRecorder()
  const visited: string[] = []
  await replayRounds(recorder, {
    rounds: 1,
    exchanges: EXCHANGES,
    root: ROOT,
    beforeRoot: undefined,
    reportProgress: (_, row) => visited.push(row),
    probe: async () => void recorder.probeMs.push(1),
  })
  assert.deepEqual(recorder.skipped, {})
  assert.deepEqual(visited, ROWS)
  const peers = recorder.summaries()
  const table = scenarioTable('hot-path-replay', {
    title: SCENARIOS['hot-path-replay']!.title,
    command: 'npm run bench -- --scenario hot-path-replay',
    startedAt: '2026-01-02T03:04:05.678Z',
    secondsPerRound: 1,
    loadGenerator: 'none',
    backend: 'none',
    environment: { processor: 'p', processors: 2, kernel: 'k', node: 'v26', commit: 'c', versions: {} },
    probeMs: [1],
    peers,
    comparisons: replayComparisons(peers),
    skipped: recorder.skipped,
  })
  for (const row of ROWS) {
    const { columns } = SCENARIOS['hot-path-replay']!
    const withoutLine = columns.filter(name => name !== 'lineNs' || row.startsWith('access log'))
    for (const name of withoutLine) assert.ok(Number.isFinite(peers[row]!.median[name]), `${row}: ${name}`)
    assert.match(table, new RegExp(`^\\| ${row}(?: †)? \\|(?: [^|]+ \\|){${columns.length}}$`, 'm'))
  }
  assert.equal(peers['open API']!.median.lineNs, undefined)
  assert.match(table, /\| least \| ns\/req \| user ns \| decode \| .* \| access line \| allocated bytes \|/)
})

test('another checkout has rows of its own, and a ratio for each row', () => {
  const rows = {
    'open API': summarize([{ exchangeNs: 1800 }, { exchangeNs: 1700 }]),
    'open API, before': summarize([{ exchangeNs: 2000 }, { exchangeNs: 2000 }]),
    JWT: summarize([{ exchangeNs: 1 }]),
  }
  const [comparison, ...others] = replayComparisons(rows)
  assert.deepEqual(others, [])
  const { candidate, baseline, metric, ratio, starts } = comparison!
  assert.deepEqual([candidate, baseline, metric, starts], ['open API', 'open API, before', 'exchangeNs', 2])
  assert.ok(Math.abs(ratio - 0.875) < 1e-9)
})

test('a checkout without the replay is skipped with a reason', async () => {
  const recorder = new RoundRecorder()
  const run = { rounds: 1, exchanges: 1, beforeRoot: undefined, reportProgress: () => {}, probe: async () => {} }
  await replayRounds(recorder, { ...run, root: '/nowhere' })
  assert.deepEqual(Object.keys(recorder.skipped), ROWS)
  assert.equal(recorder.skipped.JWT, 'there is no /nowhere/bench/micro/exchange.ts')
})

test('a least metric is the least round of its metric', () => {
  const rounds = [3, 1, 2].map(value => ({ userMicrosPerRequest: value, exchangeNs: 10 * value }))
  const { leastUserMicros, userMicrosPerRequest, leastExchangeNs } = summarize(rounds).median
  assert.deepEqual([leastUserMicros, userMicrosPerRequest, leastExchangeNs], [1, 2, 10])
})

test('every least metric names a metric', () => {
  const sources = Object.values(METRIC).flatMap(metric => ('leastOf' in metric ? [metric.leastOf] : []))
  assert.equal(sources.length, 4)
  for (const source of sources) assert.ok(METRIC[source as MetricName] !== undefined, source)
})

test('every peer of the hot path over a network can be started for it', () => {
  const peers = [CEILING, ...NGINX, ...HAPROXY, ...SLUICE_VARIANTS]
  const able = peers.filter(({ capabilities }) => capabilities.includes('hot-path')).map(({ name }) => name)
  assert.deepEqual(new Set(able), new Set(PAIRED_SCENARIOS['hot-path-network']!.peers))
})

// ---- the ceiling ----------------------------------------------------------------------------------------------------

const LIMIT = { timeout: 60_000 }

/** Listens until the test ends; returns the port. */
async function listening(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Starts the ceiling in front of a backend; returns its port. */
async function startCeiling(t: TestContext, backendPort: number): Promise<number> {
  const words = ['0', String(backendPort), String(backendPort)]
  const program = new Program('ceiling', [process.execPath, `${ROOT}bench/peers/ceiling-server.ts`, ...words])
  t.after(() => program.stop())
  const { line } = await program.waitForLine(/^listening on /)
  return Number(line.slice('listening on '.length))
}

test('the ceiling passes the verification of the bench, large bodies and Connection: close', LIMIT, async t => {
  const port = await startCeiling(t, await listening(t, createHttpBackend()))
  const sizes = { uploadBytes: 0, downloadBytes: 1024, connectionPerRequest: false }
  const load = { connections: 1, seconds: 0, ratePerSecond: 0, warmUpSeconds: 0, certificate: undefined }
  const plan: LoadPlan = { port, path: '/bench/1k', ...load, ...sizes }
  await verify(plan)
  await verify({ ...plan, path: '/bench/1m', downloadBytes: 1_048_576 })
  await verify({ ...plan, path: '/upload/1m', uploadBytes: 1_048_576, downloadBytes: 0 })
  const closing = Buffer.from('GET /bench/1k HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const { status, closed } = await sendRequest(port, closing, true)
  assert.deepEqual([status, closed], [200, true])
})

const RESPONSE = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\nA: b\r\n\r\nok'

/** Sends requests in turn, each in pieces; returns what each backend connection got, and what the client got. */
async function forwarded(t: TestContext, requests: readonly (readonly string[])[]) {
  const received: string[] = []
  const recorder = createServer(socket => {
    const own = received.push('') - 1
    socket.on('data', bytes => {
      received[own] += bytes.toString('latin1')
      const text = received[own]!
      if (text.endsWith(text.includes('chunked') ? '\r\n0\r\n\r\n' : '\r\n\r\n')) socket.write(RESPONSE)
    })
  })
  const client = connect(await startCeiling(t, await listening(t, recorder)), '127.0.0.1')
  t.after(() => client.destroy())
  let answer = ''
  client.on('data', bytes => (answer += bytes.toString('latin1')))
  await once(client, 'connect')
  for (const [index, pieces] of requests.entries()) {
    for (const piece of pieces) {
      client.write(piece)
      await sleep(20)
    }
    while (answer.split('\r\n\r\nok').length < index + 2) await once(client, 'data')
  }
  return { received, answer }
}

test('the ceiling removes hop-by-hop fields, adds X-Forwarded-For, and joins a head in pieces', LIMIT, async t => {
  const pieces = ['GET /a HTTP/1.1\r\nHos', 't: x\r\nTE: trailers\r\nConn', 'ection: TE\r\nB: c\r\n\r\n']
  const { received, answer } = await forwarded(t, [pieces])
  assert.deepEqual(received, ['GET /a HTTP/1.1\r\nHost: x\r\nB: c\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n'])
  assert.equal(answer, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\nok')
})

test('the ceiling passes a chunked body as it is framed', LIMIT, async t => {
  const head = 'POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const { received } = await forwarded(t, [[`${head}3\r\nab`, 'c\r\n', '0\r\n\r\n']])
  assert.deepEqual(received, [`${head.slice(0, -2)}X-Forwarded-For: 127.0.0.1\r\n\r\n3\r\nabc\r\n0\r\n\r\n`])
})

test('requests in turn on one connection share one backend connection of the ceiling', LIMIT, async t => {
  const { received } = await forwarded(t, [
    ['GET /1 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['GET /2 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])
  assert.equal(received.length, 1)
  assert.deepEqual(received[0]!.match(/GET \/./g), ['GET /1', 'GET /2'])
})
