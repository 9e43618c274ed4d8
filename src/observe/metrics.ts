/**
 * Metrics in shared memory: one column per thread, which only that thread writes, summed by the primary without a
 * message. With one writer plain stores are enough: float64 counts exactly up to 2^53, 64-bit machines store it whole,
 * and a reader sees a value that is at most one event old.
 */
import { FAULT } from '../faults/error-codes.ts'
import { METRIC_ROWS, type MetricKind, type MetricRow } from './metric-rows.ts'

type MetricName = keyof typeof METRIC_ROWS
const NAMES = Object.keys(METRIC_ROWS) as readonly MetricName[]

/** Cell of each metric in a column. */
export const METRIC = Object.freeze(Object.fromEntries(NAMES.map((name, cell) => [name, cell]))) as {
  readonly [N in MetricName]: number
}

const STATUS_MIN = 100
const STATUS_MAX = 599
const STATUSES = STATUS_MAX - STATUS_MIN + 2
const STATUS_CELLS = NAMES.length

export const SIDES = ['source', 'target'] as const
type MetricSide = (typeof SIDES)[number]

/** Base codes of the transport; other codes count as base 0. */
const BASES = [0, ...Object.keys(FAULT).map(Number)].filter(code => code === 0 || (code >= 101_000 && code < 103_000))
const BASE_INDEX = new Map(BASES.map((base, index) => [base, index]))
const STATES = 9
const FAULT_CELLS = STATUS_CELLS + STATUSES

const MESSAGES = ['request', 'response'] as const
/** Upper bounds of the size buckets, exclusive; one more bucket holds larger sizes. */
const SIZE_BOUNDS = [1024, 10 * 1024, 100 * 1024, 1024 * 1024, 10 * 1024 * 1024] as const
const SIZES = SIZE_BOUNDS.length + 1
const SIZE_CELLS = FAULT_CELLS + SIDES.length * BASES.length * STATES

/** Behind the counts: what each thread says of itself (thread-metrics.ts). */
export const THREAD_CELLS = SIZE_CELLS + MESSAGES.length * SIZES
/** Room for thread-metrics.ts. */
const THREAD_CELL_COUNT = 24

/** Times of operations (operation-times.ts). */
export const OPERATION_CELLS = THREAD_CELLS + THREAD_CELL_COUNT
/** Room for operation-times.ts. */
const OPERATION_CELL_COUNT = 128

/** Threads that a reactor has started (child-threads.ts): 64 rows. */
export const CHILD_CELLS = OPERATION_CELLS + OPERATION_CELL_COUNT
export const CHILD_CELL_COUNT = 1216

const CELLS = CHILD_CELLS + CHILD_CELL_COUNT
/** Columns start on cache lines of their own, against false sharing (128 bytes: CPUs prefetch pairs of lines). */
const COLUMN_CELLS = Math.ceil(CELLS / 16) * 16

/** Cell of a response status; invalid statuses share one. */
export function statusCell(status: number): number {
  return STATUS_CELLS + (status >= STATUS_MIN && status <= STATUS_MAX ? status - STATUS_MIN : STATUSES - 1)
}

/** Cell of a failure, by base code and documented state number, never by their sum. */
export function faultCell(side: MetricSide, base: number, state: number): number {
  const row = (side === 'source' ? 0 : BASES.length) + (BASE_INDEX.get(base) ?? 0)
  return FAULT_CELLS + row * STATES + (state >= 0 && state < STATES ? state : STATES - 1)
}

/** Cell of a message by the size of its body. Callers also add the size to `requestBytes` or `responseBytes`. */
export function sizeCell(message: (typeof MESSAGES)[number], bytes: number): number {
  let bucket = 0
  while (bucket < SIZE_BOUNDS.length && bytes >= SIZE_BOUNDS[bucket]!) bucket++
  return SIZE_CELLS + (message === 'request' ? 0 : SIZES) + bucket
}

/** Allocates zeroed memory for `columns` threads. */
export function allocateMetrics(columns: number): SharedArrayBuffer {
  return new SharedArrayBuffer(columns * COLUMN_CELLS * Float64Array.BYTES_PER_ELEMENT)
}

/** Column of one thread. */
export class MetricsColumn {
  readonly #cells: Float64Array

  constructor(shared: SharedArrayBuffer, reactor: number) {
    this.#cells = columnOf(shared, reactor)
  }

  add(cell: number, by: number): void {
    this.#cells[cell]! += by
  }

  set(cell: number, value: number): void {
    this.#cells[cell] = value
  }

  /** The value of a cell in this column alone. */
  read(cell: number): number {
    return this.#cells[cell]!
  }
}

function columnOf(shared: SharedArrayBuffer, reactor: number): Float64Array {
  return new Float64Array(shared, reactor * COLUMN_CELLS * Float64Array.BYTES_PER_ELEMENT, COLUMN_CELLS)
}

/** Sums of all columns. Statuses and faults that never occurred are left out. */
interface MetricsSnapshot {
  readonly counts: { readonly [N in MetricName]: number }
  /** By status code; 0 for invalid statuses. */
  readonly statuses: ReadonlyMap<number, number>
  readonly faults: readonly { side: MetricSide; base: number; state: number; count: number }[]
  /** Messages per bucket, not cumulative. */
  readonly sizes: { readonly request: readonly number[]; readonly response: readonly number[] }
}

export function snapshotMetrics(shared: SharedArrayBuffer): MetricsSnapshot {
  const sums = new Float64Array(COLUMN_CELLS)
  const all = new Float64Array(shared)
  for (let at = 0; at < all.length; at++) sums[at % COLUMN_CELLS]! += all[at]!
  const counts = Object.fromEntries(NAMES.map((name, cell) => [name, sums[cell]!])) as Record<MetricName, number>
  const statuses = new Map<number, number>()
  for (let index = 0; index < STATUSES; index++) {
    const count = sums[STATUS_CELLS + index]!
    if (count > 0) statuses.set(index === STATUSES - 1 ? 0 : STATUS_MIN + index, count)
  }
  const faults = SIDES.flatMap(side =>
    BASES.flatMap(base =>
      Array.from({ length: STATES }, (_, state) => ({ side, base, state, count: sums[faultCell(side, base, state)]! })),
    ),
  ).filter(fault => fault.count > 0)
  const sizesFrom = (cell: number) => Array.from(sums.subarray(cell, cell + SIZES))
  return {
    counts,
    statuses,
    faults,
    sizes: { request: sizesFrom(SIZE_CELLS), response: sizesFrom(SIZE_CELLS + SIZES) },
  }
}

/** Clears the gauges of a dead reactor. Its counters stay, and its successor gets the column. */
export function clearGauges(shared: SharedArrayBuffer, reactor: number): void {
  const cells = columnOf(shared, reactor)
  for (const name of NAMES) {
    if (METRIC_ROWS[name][0] === 'gauge') cells[METRIC[name]] = 0
  }
  cells.fill(0, CHILD_CELLS, CHILD_CELLS + CHILD_CELL_COUNT)
}

/** Content type of the output of `renderMetrics`. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Renders the text format of Prometheus. */
export function renderMetrics(snapshot: MetricsSnapshot): string {
  const lines: string[] = []
  let family = ''
  for (const name of NAMES) {
    const [kind, series, labels, help]: MetricRow = METRIC_ROWS[name]
    if (series.endsWith('_sum')) continue
    if (series !== family) lines.push(...heading(series, kind, help))
    family = series
    lines.push(`sluice_${series}${labels === '' ? '' : `{${labels}}`} ${snapshot.counts[name]}`)
  }
  lines.push(...heading('responses_total', 'counter', 'Responses sent to clients, by status.'))
  for (const [status, count] of snapshot.statuses) {
    const labels =
      status === 0 ? 'class="other",status="other"' : `class="${Math.floor(status / 100)}xx",status="${status}"`
    lines.push(`sluice_responses_total{${labels}} ${count}`)
  }
  lines.push(...heading('faults_total', 'counter', 'Failures, by base code and protocol state.'))
  for (const { side, base, state, count } of snapshot.faults) {
    lines.push(`sluice_faults_total{side="${side}",base="${base}",state="${state}"} ${count}`)
  }
  lines.push(
    ...histogram('request_size_bytes', 'Size of request bodies.', snapshot.sizes.request, snapshot.counts.requestBytes),
  )
  lines.push(
    ...histogram(
      'response_size_bytes',
      'Size of response bodies.',
      snapshot.sizes.response,
      snapshot.counts.responseBytes,
    ),
  )
  return `${lines.join('\n')}\n`
}

export function heading(series: string, kind: MetricKind | 'histogram', help: string): string[] {
  return [`# HELP sluice_${series} ${help}`, `# TYPE sluice_${series} ${kind}`]
}

/** `le` is inclusive and SIZE_BOUNDS are not, so `le` is one byte less. */
function histogram(series: string, help: string, buckets: readonly number[], sum: number): string[] {
  const lines = heading(series, 'histogram', help)
  let count = 0
  buckets.forEach((inBucket, index) => {
    count += inBucket
    const bound = SIZE_BOUNDS[index]
    lines.push(`sluice_${series}_bucket{le="${bound === undefined ? '+Inf' : bound - 1}"} ${count}`)
  })
  return [...lines, `sluice_${series}_sum ${sum}`, `sluice_${series}_count ${count}`]
}
