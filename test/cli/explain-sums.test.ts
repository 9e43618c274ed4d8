/** Issue 14, item 3: what `explain` calculates for a burst is what the pool does with the burst. */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { loadConfiguration } from '../harness/configuration.ts'
import { ConcurrencyLimit } from '../../src/control/remote/concurrency-limit.ts'
import { type Connection, ConnectionPool } from '../../src/database/connection-pool.ts'
import { databaseSettings } from '../../src/database/database-settings.ts'
import { remoteRequestLimits } from '../../src/plan/remote-requests.ts'
import { workerSettings } from '../../src/plan/worker-planning.ts'
import { Arena } from '../../src/runtime/arena.ts'
import { run } from '../config/explained.ts'
import { temporaryHome } from '../config/temporary-home.ts'

interface Counted {
  readonly runs: number
  readonly waits: number
  readonly refused: number
}

async function explained(home: string, key: string, burst: number): Promise<{ burst: Counted; lines: string[] }> {
  const { out } = await run(home, [key], { json: true }, { changed: false, burst: String(burst) })
  const { burst: all, lines } = JSON.parse(out).pool
  const { size: _, ...counts } = all
  return { burst: counts, lines }
}

/** Begins all calls of a burst, and ends none. */
async function outcome(burst: number, begin: () => Promise<unknown>): Promise<Counted> {
  const counts = { runs: 0, refused: 0 }
  for (let call = 0; call < burst; call++) {
    begin().then(
      () => counts.runs++,
      () => counts.refused++,
    )
  }
  for (let turns = 0; turns < 5; turns++) await turn()
  return { ...counts, waits: burst - counts.runs - counts.refused }
}

const IDLE: Connection = { query: async () => ({ rows: [] }), isDead: () => false, destroy: () => {} }
const SERVER = 'type = "mysql"\nhostname = "database.example"\nusername = "u"\n'
/** Both databases are one. */
const ONE = 'name = "one"\n'

/** [the databases, their keys, pools in the words of explain] */
const DATABASES: readonly (readonly [name: string, toml: string, said: RegExp])[] = [
  ['the embedded database', '', /^1 connection to database\.apim_db and database\.shared_db, which are one database/],
  [
    'the embedded database, and a size that only a server has',
    '[database.apim_db]\npool_options.maxActive = 25\n',
    /^1 connection to database\.apim_db and/,
  ],
  [
    'one server for both',
    `[database.apim_db]\n${SERVER}${ONE}pool_options.maxActive = 25\n[database.shared_db]\n${SERVER}${ONE}`,
    /^25 connections to database\.apim_db and database\.shared_db, which are one database with one pool/,
  ],
  [
    'two databases of a server',
    `[database.apim_db]\n${SERVER}pool_options.maxActive = 25\n[database.shared_db]\n${SERVER}`,
    /^25 connections to database\.apim_db, 25 connections to database\.shared_db$/,
  ],
  [
    'a server beside the embedded database',
    `[database.apim_db]\n${SERVER}`,
    /^50 connections to database\.apim_db, 1 connection to database\.shared_db$/,
  ],
]

function homeOf(t: TestContext, toml: string): string {
  return temporaryHome(t, { 'deployment.toml': toml })
}

for (const [name, toml, said] of DATABASES) {
  test(`the sum of maxActive is what the pool does: ${name}`, async t => {
    const home = homeOf(t, toml)
    const { configuration } = loadConfiguration(home, [])
    for (const burst of [1, 30, 3000]) {
      const pool = new ConnectionPool(async () => IDLE, databaseSettings(configuration, join(home, 'data')).apim.pool)
      const found = await explained(home, 'database.apim_db.pool_options.maxActive', burst)
      assert.deepEqual(found.burst, await outcome(burst, () => pool.acquire()))
      assert.match(found.lines[0]!, said)
      pool.close()
    }
  })
}

test('databases that are not configured correctly have no sum', async t => {
  const home = homeOf(t, '[database.apim_db]\ntype = "mysql"\n')
  const { out } = await run(home, ['database.apim_db.pool_options.maxActive'])
  assert.doesNotMatch(out, /burst/)
})

const REQUESTS = [
  'apim.http_client.max_total',
  'apim.http_client.default_max_per_route',
  'apim.key_manager.pool.max_idle',
]

for (const toml of ['', '[apim.http_client]\nmax_total = 7\n', '[apim.key_manager]\npool.max_idle = 3\n']) {
  test(`sums of requests to other servers are what the limits do: ${JSON.stringify(toml)}`, async t => {
    const home = homeOf(t, toml)
    const limits = remoteRequestLimits(loadConfiguration(home, []).configuration)
    for (const [key, burst] of REQUESTS.flatMap(key => [5, 1000, 2000].map(size => [key, size] as const))) {
      const limit = new ConcurrencyLimit(limits)
      const { signal } = new AbortController()
      const found = await explained(home, key, burst)
      assert.deepEqual(found.burst, await outcome(burst, () => limit.acquire('one', signal)), `${key} ${burst}`)
      assert.ok(
        found.lines.includes(
          `${Math.min(limits.perHostMax, limits.idleMax)} connections to one address are kept idle at most`,
        ),
      )
    }
  })
}

test('pool.init_idle_capacity, which is inert, has no sum', async t => {
  assert.doesNotMatch((await run(homeOf(t, ''), ['apim.key_manager.pool.init_idle_capacity'])).out, /\n {2}pool /)
})

test('keys of a section without a row have no sum', async t => {
  const { out } = await run(homeOf(t, ''), ['apim.throttling.url_group.publisher.max_idle'])
  assert.match(out, /none: there is no \[\[apim\.throttling\.url_group\]\]/)
  assert.doesNotMatch(out, /burst/)
})

for (const size of [4096, 16_384, 20_000]) {
  test(`the buffer of a connection with io_buffer_size ${size} is a chunk of the arena`, async t => {
    const home = homeOf(t, `[transport.passthru_http]\nio_buffer_size = ${size}\n`)
    const { lines } = await explained(home, 'transport.passthru_http.io_buffer_size', 1)
    const buffer = new ArrayBuffer(1024 * 1024)
    const chunk = new Arena(buffer, 0, buffer.byteLength).acquire(size)!
    assert.ok(lines[0]!.startsWith(`${chunk.size / 1024} KiB for a connection`), lines.join())
  })
}

test('both transports share the threads of the larger one, and each reactor has one at least', async t => {
  const home = homeOf(
    t,
    '[transport.passthru_http]\nworker_pool_size_core = 1\nworker_pool_size_max = 1\n[transport.passthru_https]\n' +
      'worker_pool_size_core = 40\nworker_pool_size_max = 40\n',
  )
  const { threads } = workerSettings(loadConfiguration(home, []).configuration)
  for (const transport of ['http', 'https']) {
    const { lines } = await explained(home, `transport.passthru_${transport}.worker_pool_size_core`, 1)
    const [, said] = /at once: (\d+) threads? x /.exec(lines[0]!)!
    assert.ok(Number(said) >= threads.mediation, lines[0]!)
    assert.equal(threads.mediation, Math.min(40, availableParallelism()))
  }
})
