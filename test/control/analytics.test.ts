/** Analytics: events of exchanges, groups of nodes, what is kept on disk, and modules of the operator. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Configuration } from '../../src/config/catalogue.ts'
import { Analytics } from '../../src/control/analytics.ts'
import { AnalyticsSpool } from '../../src/control/analytics-spool.ts'
import { HttpClient } from '../../src/control/remote/http-client.ts'
import { allocateMetrics, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'
import { eventually } from '../harness/peers.ts'

/** Reaction of a receiver to a batch; `drop` ends the connection, `long` accepts with a body of 10 MB. */
type Answer = number | 'drop' | 'long' | 'never'

/** A node of analytics: logs in whoever has the password, and takes batches by its script. */
class Node {
  readonly batches: string[] = []
  logins = 0
  /** By batch, the last one for all others. */
  answers: Answer[] = [200]
  session = 's1'
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(t: TestContext, port = 0): Promise<Node> {
    const server = createServer()
    const node = new Node(server)
    server.on('request', (request, response) => void node.#serve(request, response))
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => node.close())
    return node
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get events(): readonly unknown[] {
    return this.batches.flatMap(batch => batch.trimEnd().split('\n')).map(line => JSON.parse(line).n)
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const { authorization } = request.headers
    if (request.url === '/login') {
      this.logins++
      const isKnown = authorization === `Basic ${Buffer.from('ann:s3cret').toString('base64')}`
      const type = { 'Content-Type': 'application/json' }
      response.writeHead(isKnown ? 200 : 401, type).end(JSON.stringify({ session: this.session }))
      return
    }
    assert.match(request.url!, /^\/events\?batch=[\w-]+$/)
    assert.equal(request.headers['content-type'], 'application/x-ndjson')
    if (authorization !== `Bearer ${this.session}`) {
      response.writeHead(401).end()
      return
    }
    const answer = this.answers.length > 1 ? this.answers.shift()! : this.answers[0]!
    if (answer === 'never') return
    if (answer === 'drop') {
      request.socket.destroy()
      return
    }
    if (answer === 'long' || answer < 300) this.batches.push(body)
    if (answer === 'long') response.end('x'.repeat(10_000_000))
    else response.writeHead(answer, answer === 302 ? { Location: '/elsewhere' } : {}).end()
  }
}

interface Opened {
  readonly analytics: Analytics
  readonly reports: string[]
  readonly dataDir: string
  count(name: keyof typeof METRIC & `analytics${string}`): number
  publish(...numbers: readonly number[]): void
}

interface Group {
  readonly nodes: readonly { readonly port: number }[]
  readonly type?: '' | 'loadbalance' | 'failover'
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-analytics-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function open(
  t: TestContext,
  groups: readonly Group[],
  { dataDir = temporaryFolder(t), module = '', bytesMax = 1_048_576, moduleMs = 10_000 } = {},
): Promise<Opened> {
  const reports: string[] = []
  const client = new HttpClient(
    { requestsMax: 10, perHostMax: 10, idleMax: 10, waitingMax: 100, trust: {}, ownCertificates: [] },
    { requestMs: 2000 },
  )
  const metrics = new MetricsColumn(allocateMetrics(1), 0)
  const addresses = ({ nodes }: Group): readonly string[] => nodes.map(({ port }) => `tcp://127.0.0.1:${port}`)
  const configuration = {
    'apim.analytics': {
      ...{ receiver_username: 'ann', receiver_password: 's3cret', spool_max_bytes: bytesMax },
      ...{ event_publisher_type: module === '' ? 'default' : 'custom', event_publisher_impl: module },
    },
    'apim.analytics.url_group': groups.map(group => ({
      ...{ analytics_url: addresses(group), analytics_auth_url: addresses(group), type: group.type ?? '' },
    })),
  } as unknown as Configuration
  const analytics = await Analytics.open({
    ...{ configuration, home: dataDir, dataDir, metrics, moduleMs, pausesMs: [20, 200] },
    send: request => client.send(request),
    report: (_level, event, fields) => void reports.push(`${event} ${JSON.stringify(fields)}`),
  })
  t.after(async () => {
    await analytics.close()
    await client.close()
  })
  const publish = (...numbers: readonly number[]): void =>
    analytics.publish(numbers.map(n => `${JSON.stringify({ n })}\n`).join(''), numbers.length)
  return { analytics, reports, dataDir, count: name => metrics.read(METRIC[name]), publish }
}

test('every group gets every event, after one login', async t => {
  const [one, other] = [await Node.listen(t), await Node.listen(t)]
  const { publish, count } = await open(t, [{ nodes: [one] }, { nodes: [other] }])
  publish(1, 2)
  publish(3)
  await eventually('all events', () => count('analyticsPublished') === 6)
  for (const node of [one, other]) {
    assert.deepEqual(node.events, [1, 2, 3])
    assert.equal(node.logins, 1)
  }
})

test('loadbalance spreads batches, failover stays with one node until it fails', async t => {
  const spread = [await Node.listen(t), await Node.listen(t)]
  const staying = [await Node.listen(t), await Node.listen(t)]
  const groups: readonly Group[] = [
    { nodes: spread, type: 'loadbalance' },
    { nodes: staying, type: 'failover' },
  ]
  const { publish, count } = await open(t, groups)
  for (let n = 1; n <= 4; n++) {
    publish(n)
    await eventually(`batch ${n}`, () => count('analyticsPublished') === 2 * n)
    if (n === 2) staying[0]!.answers = [503]
  }
  assert.deepEqual(
    spread.map(({ events }) => events),
    [
      [1, 3],
      [2, 4],
    ],
  )
  assert.deepEqual(
    staying.map(({ events }) => events),
    [
      [1, 2],
      [3, 4],
    ],
  )
})

test('an ended session logs in again', async t => {
  const node = await Node.listen(t)
  const { publish, count } = await open(t, [{ nodes: [node] }])
  publish(1)
  await eventually('the first batch', () => count('analyticsPublished') === 1)
  node.session = 's2'
  publish(2)
  await eventually('the second batch', () => count('analyticsPublished') === 2)
  assert.equal(node.logins, 2)
})

test('events wait on disk while the receiver is down, and arrive in order', async t => {
  const node = await Node.listen(t)
  const { port } = node
  node.answers = [500]
  const { publish, count, reports, dataDir } = await open(t, [{ nodes: [node] }])
  publish(1)
  await eventually('the spool', () => count('analyticsSpooled') > 0)
  assert.equal(count('analyticsDown'), 1)
  publish(2)
  publish(3, 4)
  const kept = spooled(dataDir).reduce((sum, name) => sum + Number(/-(\d+)\./.exec(name)![1]), 0)
  assert.equal(kept, 4)
  node.close()
  const again = await Node.listen(t, port)
  await eventually('all events', () => count('analyticsPublished') === 4)
  assert.deepEqual(again.events, [1, 2, 3, 4])
  assert.equal(count('analyticsSpooled'), 0)
  assert.equal(count('analyticsDropped'), 0)
  assert.equal(count('analyticsDown'), 0)
  assert.equal(reports.filter(line => line.startsWith('analytics events not published')).length, 1)
  assert.ok(!reports.join().includes('s3cret'))
})

test('what waits at the end of a process is published by the next one', async t => {
  const node = await Node.listen(t)
  node.answers = ['drop']
  const first = await open(t, [{ nodes: [node] }])
  first.publish(1)
  first.publish(2)
  await first.analytics.close()
  node.answers = [200]
  const second = await open(t, [{ nodes: [node] }], { dataDir: first.dataDir })
  await eventually('the events of before', () => second.count('analyticsPublished') === 2)
  assert.deepEqual(node.events, [1, 2])
})

test('a batch that the receiver refuses is dropped and counted, and the next one goes', async t => {
  const node = await Node.listen(t)
  node.answers = [413, 200]
  const { publish, count, reports } = await open(t, [{ nodes: [node] }])
  publish(1, 2)
  publish(3)
  await eventually('the third event', () => count('analyticsPublished') === 1)
  assert.equal(count('analyticsDropped'), 2)
  assert.match(reports.join('\n'), /analytics events refused by their receiver .*"EVENTS":2/)
})

test('the oldest batches on disk go first where the spool is full', t => {
  const folder = temporaryFolder(t)
  const spool = new AnalyticsSpool(folder, 20, unexpected)
  assert.equal(spool.add('{"n":1}\n', 1), 0)
  assert.equal(spool.add('{"n":2}\n', 1), 0)
  assert.equal(spool.add('{}\n{}\n{}\n', 3), 1)
  assert.equal(spool.add('x'.repeat(21), 4), 4)
  assert.equal(spool.oldest()?.lines, '{"n":2}\n')
  writeFileSync(join(folder, 'foreign'), 'x')
  const next = new AnalyticsSpool(folder, 20, unexpected)
  assert.deepEqual([next.isEmpty, next.bytes], [false, 17])
  next.remove(next.oldest()!.number)
  assert.equal(next.oldest()?.events, 3)
})

test('a module of the operator gets events as objects; a failure of it is tried again', async t => {
  const dataDir = temporaryFolder(t)
  const module = `let calls = 0
export const seen = []
export function publish(events) {
  if (++calls === 1) throw new Error('not yet')
  seen.push(...events)
}`
  writeFileSync(join(dataDir, 'publisher.mjs'), module)
  const { publish, count, reports } = await open(t, [], { dataDir, module: 'publisher.mjs' })
  publish(1, 2)
  await eventually('the second attempt', () => count('analyticsPublished') === 2)
  assert.match(reports[0]!, /not published .*not yet/)
})

function unexpected(): void {
  assert.fail('the spool has lost events')
}

function spooled(dataDir: string): readonly string[] {
  const [group] = readdirSync(join(dataDir, 'analytics'))
  return readdirSync(join(dataDir, 'analytics', group!)).sort()
}

test('what lies in a spool and is no batch is left alone, and an unreadable batch ends nothing', t => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, '000000000001-1.ndjson'))
  symlinkSync('nowhere', join(folder, '000000000002-1.ndjson'))
  writeFileSync(join(folder, '000000000003-1.ndjson'), '{"n":3}\n')
  const before = readdirSync(folder).toSorted()
  const losses: unknown[] = []
  const spool = new AnalyticsSpool(folder, 1_000_000, loss => losses.push(loss))
  assert.equal(spool.oldest()?.number, 3)
  const file = join(folder, '000000000003-1.ndjson')
  rmSync(file)
  mkdirSync(file)
  assert.equal(spool.oldest(), null)
  const cause = 'EISDIR: illegal operation on a directory, read'
  assert.deepEqual(losses, [{ file, cause, files: 1, events: 1 }])
  assert.deepEqual(readdirSync(folder).toSorted(), before)
})

test('a disk that takes no events is told until it takes some again', async t => {
  const node = await Node.listen(t)
  node.answers = [500]
  const { publish, count, dataDir } = await open(t, [{ nodes: [node] }])
  const [folder] = readdirSync(join(dataDir, 'analytics'))
  const spool = join(dataDir, 'analytics', folder!)
  rmSync(spool, { recursive: true })
  publish(1, 2)
  await eventually('the loss', () => count('analyticsDropped') === 2)
  publish(3)
  await eventually('one more loss', () => count('analyticsDropped') === 3)
  assert.equal(count('analyticsSpoolFailing'), 1)
  mkdirSync(spool)
  publish(4)
  await eventually('the end', () => count('analyticsSpoolFailing') === 0)
  assert.equal(count('analyticsDropped'), 3)
})

test('a batch that cannot be written leaves no part of it on disk', t => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, '000000000007-1.ndjson.new'), 'half')
  const spool = new AnalyticsSpool(folder, 1_000_000, unexpected)
  assert.deepEqual(readdirSync(folder), [], 'what a killed process has left is deleted')
  mkdirSync(join(folder, '000000000008-0.ndjson'))
  assert.throws(() => spool.add('{"n":1}\n', 1))
  assert.deepEqual(readdirSync(folder), ['000000000008-0.ndjson'])
})

test('a batch on disk that is not JSON does not stop those behind it on their way to a module', async t => {
  const dataDir = temporaryFolder(t)
  writeFileSync(join(dataDir, 'publisher.mjs'), 'export const publish = events => void events')
  const folder = join(dataDir, 'analytics', createHash('sha256').update('publisher.mjs').digest('hex').slice(0, 16))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, '000000000001-1.ndjson'), '\0\0garbage')
  const { publish, count } = await open(t, [], { dataDir, module: 'publisher.mjs' })
  await eventually('the refused batch', () => count('analyticsDropped') === 1)
  publish(1)
  await eventually('the batch behind', () => count('analyticsPublished') === 1)
})

for (const [answer, cause] of [
  [302, /redirect \(302\)/],
  [500, /status 500/],
  ['drop', /closed|ECONNRESET|socket/],
] as const) {
  test(`a receiver that answers ${answer} is told once with the cause, and gets the events later`, async t => {
    const node = await Node.listen(t)
    node.answers = [answer, answer, 200]
    const { publish, count, reports } = await open(t, [{ nodes: [node] }])
    for (let n = 0; n < 50; n++) publish(n)
    await eventually('the events', () => count('analyticsPublished') === 50)
    const received = (node.events as readonly number[]).toSorted((one, other) => one - other)
    const all = Array.from({ length: 50 }, (_, n) => n)
    assert.deepEqual(received, all)
    const [told, again, ...more] = reports
    assert.match(told!, cause)
    assert.match(again!, /^analytics events are published again/)
    assert.deepEqual(more, [])
  })
}

test('refusals are told once a minute with their status, and a long response accepts like a short one', async t => {
  const node = await Node.listen(t)
  node.answers = [...new Array(40).fill(400), 'long']
  const { publish, count, reports } = await open(t, [{ nodes: [node] }])
  for (let n = 0; n < 40; n++) {
    publish(n)
    await eventually('the refusal', () => count('analyticsDropped') === n + 1)
  }
  publish(40)
  await eventually('the event', () => count('analyticsPublished') === 1)
  assert.equal(node.batches.length, 1)
  assert.equal(reports.length, 1)
  assert.match(reports[0]!, /^analytics events refused by their receiver .*responds with status 400.*"EVENTS":1/)
})

/** [what, code of publish, cause]. */
const BAD_MODULES = [
  ['never answers', 'new Promise(() => {})', /no result within 500 ms/],
  ['loops', '(() => { for (;;); })()', /no result within 500 ms/],
  ['throws', '(() => { throw new Error("no room") })()', /no room/],
  ['crashes later', 'new Promise(() => setTimeout(() => { throw new Error("later") }))', /"Error"|ERR|exit code|later/],
  ['ends its thread', 'process.exit(3)', /exit code 3/],
] as const

for (const [what, code, cause] of BAD_MODULES) {
  test(`a module that ${what} costs its own thread: it is told once, and the events stay on disk`, async t => {
    const dataDir = temporaryFolder(t)
    const file = join(dataDir, 'bad.mjs')
    writeFileSync(file, `export const publish = events => ${code}`)
    const { publish, count, reports } = await open(t, [], { dataDir, module: 'bad.mjs', moduleMs: 500 })
    for (let n = 0; n < 1000; n++) publish(n)
    await eventually('the cause', () => reports.length > 0)
    await eventually('the spool', () => count('analyticsSpooled') > 4000)
    assert.equal(reports.length, 1)
    assert.match(reports[0]!, /^analytics events not published /)
    assert.match(reports[0]!, cause)
    assert.deepEqual([count('analyticsDropped'), count('analyticsPublished')], [0, 0])
  })
}

test('a module that cannot be loaded refuses the start', async t => {
  const dataDir = temporaryFolder(t)
  for (const [code, cause] of [
    ['export const other = 1', /exports no function publish/],
    ['no JavaScript', /cannot be loaded/],
  ] as const) {
    writeFileSync(join(dataDir, 'wrong.mjs'), code)
    await assert.rejects(open(t, [], { dataDir, module: 'wrong.mjs' }), cause)
  }
})

test('batches that wait for a slow receiver have a limit of bytes in memory; the disk takes the others', async t => {
  const node = await Node.listen(t)
  node.answers = ['never', 200]
  const { analytics, count } = await open(t, [{ nodes: [node] }], { bytesMax: 64 * 1024 * 1024 })
  const lines = `${JSON.stringify({ text: 'x'.repeat(1024 * 1024) })}\n`
  for (let n = 0; n < 12; n++) analytics.publish(lines, 1)
  const spooled = count('analyticsSpooled') / lines.length
  assert.ok(spooled >= 4 && spooled < 12, `${spooled} batches are on disk`)
  await eventually('all events', () => count('analyticsPublished') === 12)
})
