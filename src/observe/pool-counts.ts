/**
 * Counts of the pools of single threads, in memory of the process: threads of scripts, which each worker has, those of
 * handlers, which each reactor has, and connections of mounted APIs to their databases, which each worker has. What is
 * in use now is a gauge of the reactor.
 */
import { processMemory, shareMemory } from '../runtime/process-memory.ts'
import { heading } from './metrics.ts'

const MEMORY = 'counts of pools'

const THREAD_POOLS = ['script', 'handler'] as const
const POOLS = [...THREAD_POOLS, 'database'] as const
type Pool = (typeof POOLS)[number]

const REASONS = ['late', 'memory', 'died', 'queue-full'] as const
/** As `ThreadFailure` of the threads; a database that does not answer `died`. */
type PoolFailure = (typeof REASONS)[number]

const CELLS = { highest: 0, limit: 1, waits: 2, waitUs: 3, failures: 4 } as const
const POOL_CELLS = CELLS.failures + REASONS.length
const BYTES = POOLS.length * POOL_CELLS * BigInt64Array.BYTES_PER_ELEMENT

/** In the main thread, before it starts others: all threads of the process count in the same memory. */
export function sharePoolCounts(): void {
  shareMemory(MEMORY, BYTES)
}

/** The pools of one kind. */
export class PoolCounts {
  readonly #cells: BigInt64Array
  readonly #first: number

  constructor(pool: Pool, shared = processMemory(MEMORY, BYTES)) {
    this.#cells = new BigInt64Array(shared)
    this.#first = POOLS.indexOf(pool) * POOL_CELLS
  }

  /** Sets the limit of one pool; all of a kind have the same. */
  setLimit(limit: number): void {
    Atomics.store(this.#cells, this.#first + CELLS.limit, BigInt(limit))
  }

  /** Raises the high-water mark where one pool has never used so many. */
  used(count: number): void {
    const at = this.#first + CELLS.highest
    let known = Atomics.load(this.#cells, at)
    while (known < count) {
      const found = Atomics.compareExchange(this.#cells, at, known, BigInt(count))
      if (found === known) return
      known = found
    }
  }

  waits(): void {
    Atomics.add(this.#cells, this.#first + CELLS.waits, 1n)
  }

  waited(ms: number): void {
    Atomics.add(this.#cells, this.#first + CELLS.waitUs, BigInt(Math.round(ms * 1000)))
  }

  failed(reason: PoolFailure): void {
    Atomics.add(this.#cells, this.#first + CELLS.failures + REASONS.indexOf(reason), 1n)
  }

  read(cell: Exclude<keyof typeof CELLS, 'failures'>): number {
    return Number(Atomics.load(this.#cells, this.#first + CELLS[cell]))
  }

  failures(reason: PoolFailure): number {
    return Number(Atomics.load(this.#cells, this.#first + CELLS.failures + REASONS.indexOf(reason)))
  }
}

/** Text format of Prometheus. `shared`: for tests. */
export function renderPoolCounts(shared?: SharedArrayBuffer): string {
  const pools = THREAD_POOLS.map(pool => ({ labels: `{pool="${pool}"}`, pool, counts: new PoolCounts(pool, shared) }))
  const lines: string[] = []
  const each = (series: string, kind: 'counter' | 'gauge', help: string, countOf: (counts: PoolCounts) => number) => {
    lines.push(...heading(series, kind, help))
    for (const { labels, counts } of pools) lines.push(`sluice_${series}${labels} ${countOf(counts)}`)
  }
  const whose = 'of one worker (script) or reactor (handler)'
  each('thread_pool_highest', 'gauge', `Most threads ${whose} that were used at once since the start.`, counts =>
    counts.read('highest'),
  )
  each('thread_pool_limit', 'gauge', `Most threads ${whose}; 0 before the first use.`, counts => counts.read('limit'))
  each('thread_pool_waits_total', 'counter', 'Tasks that waited for a thread, its start included.', counts =>
    counts.read('waits'),
  )
  each(
    'thread_pool_wait_seconds_total',
    'counter',
    'Time that tasks waited until they had a thread.',
    counts => counts.read('waitUs') / 1e6,
  )
  lines.push(...heading('thread_pool_failures_total', 'counter', 'Tasks without a result, by reason.'))
  for (const { pool, counts } of pools) {
    for (const reason of REASONS) {
      const labels = `pool="${pool}",reason="${reason.replace('-', '_')}"`
      lines.push(`sluice_thread_pool_failures_total{${labels}} ${counts.failures(reason)}`)
    }
  }
  return `${[...lines, ...databaseLines(new PoolCounts('database', shared))].join('\n')}\n`
}

function databaseLines(counts: PoolCounts): readonly string[] {
  const series = 'mounted_database'
  const most = 'Most connections of one worker to a database of mounted APIs that'
  const rows = [
    [`${series}_connections_highest`, 'gauge', `${most} were used at once since the start.`, counts.read('highest')],
    [`${series}_connections_limit`, 'gauge', `${most} may be open; 0 before the first use.`, counts.read('limit')],
    [
      `${series}_waits_total`,
      'counter',
      'Requests of mounted APIs that waited for a connection.',
      counts.read('waits'),
    ],
    [
      `${series}_failures_total`,
      'counter',
      'Connections of mounted APIs that did not open, and statements without an answer.',
      counts.failures('died'),
    ],
  ] as const
  return rows.flatMap(([name, kind, help, value]) => [...heading(name, kind, help), `sluice_${name} ${value}`])
}
