/**
 * Metrics of APIs in shared memory: each reactor has a column with one row per API, which only that reactor writes, and
 * counts an exchange there once it is over. A row has one block per class of methods and of statuses. Only blocks in
 * use cost memory, because the system commits what is written. The primary sums the columns.
 */
import type { Exchange } from '../proxy/exchange/exchange.ts'

/** Rows of requests to no API, and of APIs beyond `NAMED_API_ROWS`. */
export const NO_API_ROW = 0
export const OTHER_APIS_ROW = 1
export const FIRST_API_ROW = 2
const NAMED_API_ROWS = 1024
export const API_ROWS_END = FIRST_API_ROW + NAMED_API_ROWS

/** `read`: GET and HEAD. `write`: POST, PUT, PATCH and DELETE. */
const METHOD_CLASSES = ['read', 'write', 'other'] as const
type MethodClass = (typeof METHOD_CLASSES)[number]
/** `none`: the client had gone, or its connection was reset. */
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const
type StatusClass = (typeof STATUS_CLASSES)[number]

/** `total`: first byte of the request to the last of the response. `backend`: request sent to first byte. */
export const DURATIONS = ['total', 'backend', 'queue', 'mediation'] as const
type Duration = (typeof DURATIONS)[number]

/** Upper bounds of the buckets in milliseconds, inclusive; one more bucket holds longer times. */
const BOUNDS_MS = Float64Array.of(0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 60_000)
export const DURATION_BOUNDS_SECONDS: readonly number[] = Array.from(BOUNDS_MS, ms => ms / 1000)
const BUCKETS = BOUNDS_MS.length + 1

/** Cells of a block: requests, bytes of both bodies, faults, and for each duration its buckets and its sum. */
const REQUESTS = 0
const REQUEST_BYTES = 1
const RESPONSE_BYTES = 2
const FAULTS = 3
const FIRST_DURATION = 4
const DURATION_CELLS = BUCKETS + 1
const TOTAL = FIRST_DURATION
const BACKEND = TOTAL + DURATION_CELLS
const QUEUE = BACKEND + DURATION_CELLS
const MEDIATION = QUEUE + DURATION_CELLS
/** Whole cache lines. */
const BLOCK_CELLS = Math.ceil((FIRST_DURATION + DURATIONS.length * DURATION_CELLS) / 8) * 8
const BLOCKS = METHOD_CLASSES.length * STATUS_CLASSES.length
const ROW_CELLS = BLOCKS * BLOCK_CELLS
const COLUMN_CELLS = API_ROWS_END * ROW_CELLS

/** Memory for `reactors` threads: 12 MB of addresses each. */
export function allocateApiMetrics(reactors: number): SharedArrayBuffer {
  return new SharedArrayBuffer(reactors * COLUMN_CELLS * Float64Array.BYTES_PER_ELEMENT)
}

function columnOf(shared: SharedArrayBuffer, reactor: number): Float64Array {
  return new Float64Array(shared, reactor * COLUMN_CELLS * Float64Array.BYTES_PER_ELEMENT, COLUMN_CELLS)
}

/** Clears a row that is given to another API. Cells at 0 are not written, because that would commit their memory. */
export function clearApiRow(shared: SharedArrayBuffer, row: number): void {
  const all = new Float64Array(shared)
  for (let at = row * ROW_CELLS; at < all.length; at += COLUMN_CELLS) {
    for (let cell = at; cell < at + ROW_CELLS; cell++) if (all[cell] !== 0) all[cell] = 0
  }
}

type Counted = Pick<Exchange, 'method' | 'status' | 'requestBodyBytes' | 'responseBodyBytes' | 'errorBase'> &
  Pick<Exchange, 'startedMs' | 'sentMs' | 'requestSentMs' | 'firstByteMs' | 'doneMs' | 'queueMs' | 'mediationMs'> & {
    readonly api: { readonly metricsRow: number } | null
  }

/** The column of one reactor. */
export class ApiMetrics {
  readonly #cells: Float64Array

  constructor(shared: SharedArrayBuffer, reactor: number) {
    this.#cells = columnOf(shared, reactor)
  }

  /** Counts an exchange that is over. Nothing here may allocate. */
  count(exchange: Counted): void {
    const cells = this.#cells
    const { api } = exchange
    const row = api === null ? NO_API_ROW : api.metricsRow
    const at = row * ROW_CELLS + blockOf(exchange.method, exchange.status) * BLOCK_CELLS
    const { startedMs, sentMs, firstByteMs } = exchange
    cells[at + REQUESTS]!++
    cells[at + REQUEST_BYTES]! += exchange.requestBodyBytes
    cells[at + RESPONSE_BYTES]! += exchange.responseBodyBytes
    if (exchange.errorBase !== 0) cells[at + FAULTS]!++
    add(cells, at + TOTAL, exchange.doneMs - startedMs)
    // An early response comes before the request is complete.
    if (firstByteMs > 0 && sentMs > 0) {
      const { requestSentMs } = exchange
      add(
        cells,
        at + BACKEND,
        firstByteMs - (requestSentMs > 0 && requestSentMs < firstByteMs ? requestSentMs : sentMs),
      )
    }
    if (exchange.mediationMs > 0) {
      add(cells, at + QUEUE, exchange.queueMs)
      add(cells, at + MEDIATION, exchange.mediationMs)
    }
  }
}

function add(cells: Float64Array, at: number, ms: number): void {
  let bucket = 0
  while (bucket < BOUNDS_MS.length && ms > BOUNDS_MS[bucket]!) bucket++
  cells[at + bucket]!++
  cells[at + BUCKETS]! += ms
}

function blockOf(method: string, status: number): number {
  const kind = method === 'GET' || method === 'HEAD' ? 0 : isWrite(method) ? 1 : 2
  const hundreds = status < 100 || status >= 600 ? 0 : (status / 100) | 0
  return kind * STATUS_CLASSES.length + hundreds
}

function isWrite(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH' || method === 'DELETE'
}

// ---- readers --------------------------------------------------------------------------------------------------------

/** Times of one kind. */
interface DurationSample {
  /** Exchanges per bucket, not cumulative; the last one holds times beyond all bounds. */
  readonly buckets: readonly number[]
  readonly count: number
  readonly sumSeconds: number
}

/** Exchanges of an API with one class of methods and of statuses. */
export interface ApiSample {
  readonly method: MethodClass
  readonly status: StatusClass
  readonly requests: number
  readonly faults: number
  readonly requestBytes: number
  readonly responseBytes: number
  /** The durations that occurred. */
  readonly durations: Readonly<Partial<Record<Duration, DurationSample>>>
}

/** Sums a row over all reactors; classes that never occurred are left out. */
export function readApiRow(shared: SharedArrayBuffer, row: number): readonly ApiSample[] {
  const all = new Float64Array(shared)
  const samples: ApiSample[] = []
  for (let block = 0; block < BLOCKS; block++) {
    const sums = new Float64Array(BLOCK_CELLS)
    for (let at = row * ROW_CELLS + block * BLOCK_CELLS; at < all.length; at += COLUMN_CELLS) {
      if (all[at + REQUESTS]! === 0) continue
      for (let cell = 0; cell < BLOCK_CELLS; cell++) sums[cell]! += all[at + cell]!
    }
    if (sums[REQUESTS]! > 0) samples.push(sampleOf(sums, block))
  }
  return samples
}

function sampleOf(sums: Float64Array, block: number): ApiSample {
  const durations: Partial<Record<Duration, DurationSample>> = {}
  DURATIONS.forEach((duration, index) => {
    const at = FIRST_DURATION + index * DURATION_CELLS
    const buckets = Array.from(sums.subarray(at, at + BUCKETS))
    const count = buckets.reduce((sum, each) => sum + each, 0)
    if (count > 0) durations[duration] = { buckets, count, sumSeconds: sums[at + BUCKETS]! / 1000 }
  })
  return {
    method: METHOD_CLASSES[Math.floor(block / STATUS_CLASSES.length)]!,
    status: STATUS_CLASSES[block % STATUS_CLASSES.length]!,
    requests: sums[REQUESTS]!,
    faults: sums[FAULTS]!,
    requestBytes: sums[REQUEST_BYTES]!,
    responseBytes: sums[RESPONSE_BYTES]!,
    durations,
  }
}
