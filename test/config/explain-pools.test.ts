/** What pool sizes mean for a burst of requests: the pass-through transport and the worker pool. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolCalculation } from '../../src/cli/explain-pools.ts'
import { allKeys } from '../../src/config/catalogue.ts'

const MACHINE = {
  ...{ processors: 4, reactors: 2, workers: 8, openFiles: 1024 },
  threads: { mediation: 4, background: 4 },
  queueBytes: 67_108_864,
  requests: { requestsMax: 100, perHostMax: 50, idleMax: 20, waitingMax: 1024 },
  databases: [
    { sections: ['database.apim_db'] as const, connections: 50, waitingMax: 1000, waitMs: 60_000 },
    { sections: ['database.shared_db'] as const, connections: 1, waitingMax: 1000, waitMs: 60_000 },
  ],
}
const HTTP = 'transport.passthru_http'

type Values = Readonly<Record<string, number>>

/** [core, max, queue, burst, running, waiting, refused, threads and tasks of each] */
const POOLS: readonly (readonly [number, number, number, number, number, number, number, string])[] = [
  // Behind an unbounded queue the pool never grows beyond its core size.
  [400, 400, -1, 1000, 400, 600, 0, '4 threads x about 100 tasks'],
  [400, 800, -1, 1000, 400, 600, 0, '4 threads x about 100 tasks'],
  [400, 800, -1, 100, 100, 0, 0, '4 threads x about 100 tasks'],
  // Behind a bounded queue: core, then the queue, then up to the maximum, then 503.
  [400, 800, 100, 400, 400, 0, 0, '4 threads x about 200 tasks'],
  [400, 800, 100, 450, 400, 50, 0, '4 threads x about 200 tasks'],
  [400, 800, 100, 600, 500, 100, 0, '4 threads x about 200 tasks'],
  [400, 800, 100, 1000, 800, 100, 100, '4 threads x about 200 tasks'],
  [400, 400, 0, 1000, 400, 0, 600, '4 threads x about 100 tasks'],
  // The threads are those of both transports: a size of one transport does not lower their number.
  [1, 2, 10, 20, 2, 10, 8, '4 threads x about 1 task'],
  // 64 MiB hold 65,536 messages without a body, whatever the length of the queue.
  [400, 400, -1, 100_000, 400, 65_536, 34_064, 'x about 100 tasks'],
  [400, 800, 80_000, 100_000, 800, 65_536, 33_664, 'x about 200 tasks'],
  [10, 10, -1, 20, 10, 10, 0, '4 threads x about 3 tasks'],
]

const QUEUED = [
  [HTTP, 'worker_pool_size_core', 'worker_pool_size_max', 'worker_pool_queue_length'],
  ['transport.passthru_https', 'worker_pool_size_core', 'worker_pool_size_max', 'worker_pool_queue_length'],
  ['mediation', 'synapse.core_threads', 'synapse.max_threads', 'synapse.threads_queue_length'],
] as const

for (const [section, core, most, queue] of QUEUED) {
  for (const [coreSize, mostSize, length, size, runs, waits, refused, threads] of POOLS) {
    test(`${section}: ${coreSize} to ${mostSize}, queue ${length}, burst ${size}`, () => {
      const values: Values = { [core]: coreSize, [most]: mostSize, [queue]: length }
      for (const key of [core, most, queue]) {
        const { burst, lines } = poolCalculation(section, key)!(name => values[name]!, MACHINE, size)!
        assert.deepEqual(burst, { size, runs, waits, refused })
        assert.ok(lines[0]?.includes(threads), lines.join('; '))
        const isUnbounded = lines[1]!.includes('has no effect')
        assert.equal(isUnbounded, length === -1)
        const isBoundByBytes = lines[2]!.startsWith('worker_pool_queue_bytes (64 MiB) holds 65536 that wait')
        assert.equal(isBoundByBytes, length === -1 || length > 65_536)
      }
    })
  }
}

const INBOUND = { 'inbound.core_threads': 20, 'inbound.max_threads': 100 }
const SCRIPTS = 'synapse.script_mediator_pool_size'
const HANDLERS = 'handlers.pool_size'
const POOL = 'pool_options.maxActive'

/** [section, key, values of the section, burst, running, waiting, refused, words] */
const OTHERS: readonly (readonly [string, string, Values, number, number, number, number, RegExp])[] = [
  [HTTP, 'io_buffer_size', { io_buffer_size: 16384 }, 1000, 1000, 0, 0, /16 KiB .*1000 .* 15\.6 MiB on 2 reactors/],
  // The arena lends powers of two.
  [HTTP, 'io_buffer_size', { io_buffer_size: 20000 }, 1000, 1000, 0, 0, /^32 KiB /],
  [HTTP, 'io_buffer_size', { io_buffer_size: 65536 }, 20_000, 16_384, 0, 3616, /used up by 8192 of them/],
  [HTTP, 'http.max.connection.per.host.port', { 'http.max.connection.per.host.port': 50 }, 60, 50, 0, 10, /101600/],
  [
    HTTP,
    'max_open_connections',
    { max_open_connections: -1 },
    60,
    60,
    0,
    0,
    /no limit of this transport.*ulimit -n 1024 allows 352 clients/,
  ],
  [HTTP, 'max_open_connections', { max_open_connections: 50 }, 60, 50, 0, 10, /reset at once/],
  // 352 connections to backends are what ulimit -n leaves; see descriptor-planning.ts.
  [
    HTTP,
    'http.max.connection.per.host.port',
    { 'http.max.connection.per.host.port': 32_767 },
    1000,
    352,
    0,
    648,
    /ulimit -n 1024 allows 352 connections to all backends/,
  ],
  [HTTP, 'max_connections_per_client', { max_connections_per_client: -1 }, 1000, 352, 0, 648, /ulimit -n 1024/],
  [HTTP, 'max_connections_per_client', { max_connections_per_client: 5 }, 6, 5, 0, 1, /5 connections of one address/],
  [HTTP, 'reactors', { reactors: 0 }, 1001, 1001, 0, 0, /2 threads on 4 processors.*about 501 .*1 GiB in all/],
  ['database.apim_db', POOL, {}, 1000, 50, 950, 0, /50 connections to database.apim_db, 1 connection to .*shared_db/],
  ['database.apim_db', POOL, {}, 2000, 50, 1000, 950, /1000 statements may wait, each 60000 ms at most/],
  ['apim.http_client', 'max_total', {}, 1000, 50, 950, 0, /50 requests to one address at once, 100 to all/],
  ['apim.http_client', 'default_max_per_route', {}, 2000, 50, 1024, 926, /50 requests to one address/],
  ['apim.key_manager', 'pool.max_idle', {}, 1000, 50, 950, 0, /20 connections to one address are kept idle/],
  [
    'mediation',
    'inbound.max_threads',
    INBOUND,
    1000,
    100,
    900,
    0,
    /^100 tasks at once: 4 threads x about 25 .*; the rest waits/,
  ],
  ['mediation', 'inbound.core_threads', INBOUND, 10, 10, 0, 0, /20 at once, then up to 100 at once/],
  ['mediation', HANDLERS, { [HANDLERS]: 4 }, 1000, 8, 800, 192, /^8 at once: one on each thread, on 2 reactors/],
  // Each worker thread has whole threads of its own.
  ['mediation', SCRIPTS, { [SCRIPTS]: 15 }, 1000, 8, 800, 192, /^8 at once: .*8 worker threads .* a fault with 102583/],
  ['mediation', SCRIPTS, { [SCRIPTS]: 64 }, 1000, 64, 936, 0, /^64 at once: one on each thread/],
  ['mediation', SCRIPTS, { [SCRIPTS]: 1 }, 1000, 8, 800, 192, /has its share, one at least/],
]

for (const [section, key, values, size, runs, waits, refused, words] of OTHERS) {
  test(`${section}.${key} = ${values[key]}, burst ${size}`, () => {
    const { burst, lines } = poolCalculation(section, key)!(name => values[name]!, MACHINE, size)!
    assert.deepEqual(burst, { size, runs, waits, refused })
    assert.match(lines.join(' '), words)
  })
}

test('the keys of every pool calculation are in the catalogue', () => {
  const summed = allKeys().filter(({ section, key }) => poolCalculation(section, key) !== undefined)
  assert.equal(summed.length, 8 + 7 + 3 + 2 + 1 + 1 + 2 + 2 + 5 + 5)
})

test('every pool size that is built, or will be, has a calculation', () => {
  const sizes = allKeys().filter(({ definition: { unit, inertReason } }) => {
    const isComing = inertReason === '' || inertReason.startsWith('not built yet')
    return isComing && ['threads', 'connections', 'scripts', 'publishers'].includes(unit)
  })
  assert.ok(sizes.length > 10)
  const without = sizes.filter(({ section, key }) => poolCalculation(section, key) === undefined)
  assert.deepEqual(
    without.map(({ path }) => path),
    [],
  )
})

test('tasks that no client waits for get no response', () => {
  const values: Values = { 'synapse.core_threads': 20, 'synapse.max_threads': 100, 'synapse.threads_queue_length': 10 }
  const { lines } = poolCalculation('mediation', 'synapse.max_threads')!(name => values[name]!, MACHINE, 1000)!
  assert.equal(lines[1], '20 at once, then 10 wait, then up to 100 at once; one more is refused')
})
