/**
 * Metrics of a running gateway: they agree with what clients counted, both text formats are valid, and the dashboard
 * for Grafana names only metrics that exist. `--long` sends a million requests.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { home, leave, start } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { Random, SEED } from '../harness/random.ts'
import { openProject } from '../harness/open-project.ts'
import { put } from '../harness/reloading.ts'

const REQUESTS = process.env.SLUICE_LONG === '1' ? 1_000_000 : 4000
const CLIENTS = 16
/** Requests of a client that are under way at once. */
const PIPELINED = process.env.SLUICE_LONG === '1' ? 50 : 2
const BODY = 'x'.repeat(100)

/** Answers by the last segment of the path; `reset` and `cut` are injected failures. */
function serve(socket: Socket): void {
  let text = ''
  socket.on('error', () => socket.destroy())
  socket.on('data', bytes => {
    text += bytes.toString('latin1')
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      const length = Number(/content-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0)
      if (text.length < end + 4 + length) return
      const what = /\/(\w+) HTTP/.exec(text)![1]!
      text = text.slice(end + 4 + length)
      if (what === 'reset') socket.resetAndDestroy()
      else if (what === 'cut') socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${BODY}`)
      else socket.write(`HTTP/1.1 ${what} -\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`)
    }
  })
}

const backend = createServer(serve).listen(0, '127.0.0.1')
await once(backend, 'listening')
after(() => backend.close())
after(leave)

const PATHS = ['/good/1.0.0/200', '/good/1.0.0/404', '/bad/1.0.0/500', '/bad/1.0.0/reset', '/bad/1.0.0/cut']
const SAFE_METHODS = ['GET', 'DELETE'] as const
const SAFE_PATHS = ['/good/1.0.0/200', '/good/1.0.0/404', '/bad/1.0.0/500', '/nothing']
const ALL_PATHS = [...PATHS, '/good/1.0.0/200', '/good/1.0.0/200', '/gone/1.0.0/200', '/nothing']
const METHODS = { GET: 'read', POST: 'write', DELETE: 'write', OPTIONS: 'other' } as const

let gateway: RunningGateway
before(async () => {
  const at = home()
  const closed = await freePort()
  const { port } = backend.address() as { port: number }
  const settings = { suspendDuration: '0', actionDuration: '30000' }
  for (const [name, to] of [
    ['good', port],
    ['bad', port],
    ['gone', closed],
  ] as const) {
    const endpointConfig = {
      endpoint_type: 'http',
      production_endpoints: { url: `http://127.0.0.1:${to}`, config: settings },
    }
    put(at, `apis/${name}/api.yaml`, openProject({ name, context: `/${name}`, endpointConfig }))
  }
  gateway = await start(at, ['transport.passthru_http.max_open_connections=10000'])
})

/** Requests by API, class of methods and of statuses, as their clients saw them. */
type Counts = Map<string, number>

function keyOf(path: string, method: keyof typeof METHODS, status: number): string {
  const name = path.split('/')[1]!
  return `${name === 'nothing' ? 'none' : name} ${METHODS[method]} ${Math.floor(status / 100)}xx`
}

interface Asked {
  readonly method: keyof typeof METHODS
  readonly path: string
}

/** Sends requests that leave the connection open, then one that may fail; opens a connection that ended again. */
async function runClient(random: Random, requests: number, counts: Counts): Promise<void> {
  let peer = await connectPeer(gateway.port)
  const methods = Object.keys(METHODS) as (keyof typeof METHODS)[]
  for (let left = requests; left > 0; ) {
    const batch: Asked[] = Array.from({ length: Math.min(left, PIPELINED) }, (_, index) => {
      if (index + 1 === PIPELINED) return { method: random.pick(methods), path: random.pick(ALL_PATHS) }
      return { method: random.pick(SAFE_METHODS), path: random.pick(SAFE_PATHS) }
    })
    left -= batch.length
    peer.send(batch.map(requestOf).join(''))
    let isOver = false
    for (const { method, path } of batch) {
      const { status, isLast } = await responseOf(peer, path.endsWith('/cut'))
      const key = keyOf(path, method, status)
      counts.set(key, (counts.get(key) ?? 0) + 1)
      isOver = isLast
    }
    if (!isOver) continue
    peer.destroy()
    peer = await connectPeer(gateway.port)
  }
  peer.destroy()
}

function requestOf({ method, path }: Asked): string {
  const body = method === 'POST' ? 'hello' : ''
  return `${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

type Client = Awaited<ReturnType<typeof connectPeer>>

/** Reads the next response. `isCut`: its connection may end within the body. */
async function responseOf(
  peer: Client,
  isCut: boolean,
): Promise<{ readonly status: number; readonly isLast: boolean }> {
  await peer.untilText('\r\n\r\n')
  const { text } = peer
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
  const endsEarly = isCut && length === 1000
  if (endsEarly) await peer.untilEnd()
  else await peer.untilLength(text.indexOf('\r\n\r\n') + 4 + length)
  peer.take(endsEarly ? undefined : text.indexOf('\r\n\r\n') + 4 + length)
  return { status: Number(text.slice(9, 12)), isLast: endsEarly || /\r\nconnection: close\r\n/i.test(text) }
}

async function scrape(accept = ''): Promise<{ readonly type: string; readonly text: string }> {
  const response = await fetch(`http://127.0.0.1:${gateway.healthPort}/metrics`, { headers: { accept } })
  return { type: response.headers.get('content-type')!, text: await response.text() }
}

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function samplesOf(text: string): readonly Sample[] {
  return text
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => {
      const [, name = '', labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line)
      const pairs = Array.from(labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g), ([, label, of]) => [label!, of!])
      return { name, labels: Object.fromEntries(pairs), value: Number(value) }
    })
}

function sumOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  const isWanted = (sample: Sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
  return samples.filter(sample => sample.name === name && isWanted(sample)).reduce((sum, { value }) => sum + value, 0)
}

test(`the metrics of ${REQUESTS} requests with injected failures are what the clients counted`, async () => {
  const counts: Counts = new Map()
  const random = new Random(SEED)
  const clients = Array.from({ length: CLIENTS }, () => runClient(random, REQUESTS / CLIENTS, counts))
  await Promise.all(clients)
  const samples = samplesOf((await scrape()).text)
  const counted = samples
    .filter(({ name }) => name === 'sluice_api_requests_total')
    .map(({ labels, value }) => [`${labels.api} ${labels.method} ${labels.status}`, value] as const)
  assert.deepEqual(Object.fromEntries(counted.toSorted()), Object.fromEntries([...counts].toSorted()))
  assert.equal(sumOf(samples, 'sluice_requests_total'), REQUESTS)
  assert.equal(sumOf(samples, 'sluice_responses_total'), REQUESTS)
  assert.equal(sumOf(samples, 'sluice_request_duration_seconds_count'), REQUESTS)
  assert.equal(sumOf(samples, 'sluice_response_size_bytes_count'), REQUESTS)
  const received = samples.filter(({ name, labels }) => name === 'sluice_backend_duration_seconds_count' && labels.api)
  const ofGood = received.filter(({ labels }) => labels.api === 'good').reduce((sum, { value }) => sum + value, 0)
  const good = [...counts].filter(([key]) => key.startsWith('good ')).reduce((sum, [, count]) => sum + count, 0)
  assert.equal(ofGood, good, 'each exchange of a good backend has a duration of the backend')
  assert.equal(sumOf(samples, 'sluice_api_response_bytes_total', { api: 'good' }), good * BODY.length)
  assert.equal(sumOf(samples, 'sluice_api_faults_total', { api: 'gone' }), countOf(counts, 'gone '))
  assert.equal(sumOf(samples, 'sluice_api_faults_total', { api: 'good' }), 0)
})

function countOf(counts: Counts, prefix: string): number {
  return [...counts].filter(([key]) => key.startsWith(prefix)).reduce((sum, [, count]) => sum + count, 0)
}

test('connections by state, threads and process are there', async () => {
  const idle = await connectPeer(gateway.port)
  const samples = samplesOf((await scrape()).text)
  assert.ok(sumOf(samples, 'sluice_connections', { side: 'source', state: 'REQUEST_READY' }) >= 1)
  idle.destroy()
  for (const thread of ['reactor-0', 'primary', 'control']) {
    assert.ok(sumOf(samples, 'sluice_thread_heap_used_bytes', { thread }) > 1e6, thread)
  }
  assert.ok(sumOf(samples, 'process_cpu_seconds_total') > 0)
  assert.ok(sumOf(samples, 'process_heap_bytes') > 1e7)
  assert.ok(sumOf(samples, 'process_open_fds') > 10)
  assert.ok(sumOf(samples, 'process_max_fds') >= sumOf(samples, 'process_open_fds'))
  assert.ok(Math.abs(sumOf(samples, 'process_start_time_seconds') - Date.now() / 1000) < 3600)
  assert.equal(sumOf(samples, 'sluice_build_info', { version: readVersion() }), 1)
  assert.ok(sumOf(samples, 'sluice_client_pool_connections_highest', { transport: 'http' }) >= 1)
  assert.ok(sumOf(samples, 'sluice_database_connections_highest', { section: 'apim_db' }) >= 1)
  const limit = sumOf(samples, 'sluice_database_connections_limit', { section: 'apim_db' })
  assert.ok(sumOf(samples, 'sluice_database_connections_in_use', { section: 'apim_db' }) <= limit)
})

function readVersion(): string {
  return JSON.parse(readFileSync('package.json', 'utf8')).version
}

/** The family of a sample, by the kinds of the families. */
function familyOf(name: string, kinds: ReadonlyMap<string, string>): string {
  const of = (suffix: RegExp, kind: string) => {
    const family = name.replace(suffix, '')
    return family !== name && kinds.get(family) === kind ? family : undefined
  }
  return of(/_(?:bucket|sum|count)$/, 'histogram') ?? of(/_total$/, 'counter') ?? of(/_info$/, 'info') ?? name
}

for (const [format, accept] of [
  ['text', ''],
  ['openmetrics', 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'],
] as const) {
  test(`the format ${format} has one heading per family, families in one piece, and no sample twice`, async () => {
    const { type, text } = await scrape(accept)
    const isOpen = format === 'openmetrics'
    assert.match(type, isOpen ? /^application\/openmetrics-text; version=1\.0\.0/ : /^text\/plain; version=0\.0\.4/)
    assert.equal(text.endsWith('\n# EOF\n'), isOpen)
    const kinds = new Map<string, string>()
    const seen = new Set<string>()
    const highest = new Map<string, number>()
    let current = ''
    for (const line of text.trimEnd().split('\n')) {
      if (line === '# EOF') continue
      const head = /^# (HELP|TYPE|UNIT) (\w+) (\S.*)$/.exec(line)
      if (head !== null) {
        const [, what, family = '', value = ''] = head
        if (what === 'TYPE') {
          assert.ok(!kinds.has(family), `${family} has two headings`)
          kinds.set(family, value)
          current = family
        } else if (what === 'UNIT') assert.ok(family.endsWith(`_${value}`), line)
        continue
      }
      const [{ name, labels, value } = assert.fail(line)] = samplesOf(line)
      const family = familyOf(name, kinds)
      assert.equal(kinds.has(name) || kinds.has(family) ? current : '', kinds.has(name) ? name : family, line)
      const key = line.slice(0, line.lastIndexOf(' '))
      assert.ok(!seen.has(key), `${key} twice`)
      seen.add(key)
      if (kinds.get(family) === 'counter') assert.ok(name.endsWith('_total'), line)
      assert.ok(Number.isFinite(value), line)
      if (!name.endsWith('_bucket')) continue
      const { le, ...rest } = labels
      if (isOpen && le !== '+Inf') assert.match(le!, /\./)
      const series = `${name}${JSON.stringify(rest)}`
      assert.ok(value >= (highest.get(series) ?? 0), `buckets are cumulative: ${line}`)
      highest.set(series, value)
    }
    assert.ok(kinds.size > 50)
  })
}

test('promtool finds nothing to say about the metrics', async t => {
  const { text } = await scrape()
  const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text })
  if (error !== undefined) return t.skip('promtool is not installed (package prometheus of Debian)')
  assert.deepEqual([status, String(stdout), String(stderr)], [0, '', ''])
})

test('the dashboard for Grafana names only metrics that exist', async () => {
  const { text } = await scrape()
  const names = new Set(Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name]) => name!))
  // Only mediated exchanges have these, and only failures that have occurred.
  for (const rare of ['sluice_mediation_queue_duration_seconds', 'sluice_mediation_duration_seconds']) names.add(rare)
  const dashboard = JSON.parse(readFileSync('conf/grafana-dashboard.json', 'utf8'))
  const queries: string[] = dashboard.panels.flatMap((panel: { targets?: { expr: string }[] }) =>
    (panel.targets ?? []).map(({ expr }) => expr),
  )
  assert.ok(queries.length > 40)
  for (const query of queries) {
    const found = query.match(/\b(?:sluice|process)_\w+/g) ?? assert.fail(query)
    for (const name of found) {
      assert.ok(names.has(name) || names.has(name.replace(/_(?:bucket|sum|count)$/, '')), `${name} in ${query}`)
    }
  }
})

const JSON_TYPE = 'application/json'
test('readiness tells its parts in text and in JSON; /services/Version names the version', async () => {
  const at = `http://127.0.0.1:${gateway.healthPort}`
  const verbose = await (await fetch(`${at}/readyz?verbose`)).text()
  assert.match(verbose, /^\[\+\]node ok\n/)
  assert.match(verbose, /^\[\+\]key manager ok$/m)
  assert.match(verbose, /^\[\+\]database ok$/m)
  assert.match(verbose, /^\[.\]endpoints /m)
  assert.match(verbose, /\nready\n$/)
  const response = await fetch(`${at}/readyz`, { headers: { accept: JSON_TYPE } })
  assert.equal(response.headers.get('content-type'), JSON_TYPE)
  const { status, parts } = (await response.json()) as { status: string; parts: { name: string }[] }
  assert.equal(status, 'ready')
  assert.deepEqual(
    parts.map(({ name }) => name),
    // No other part is configured, and one database serves both sections.
    ['node', 'key manager', 'database', 'endpoints'],
  )
  const version = await (await fetch(`${at}/services/Version`)).text()
  assert.ok(version.includes(`<return>Sluice-${readVersion()}</return>`), version)
})
