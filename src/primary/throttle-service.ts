/**
 * The counters of the throttling engine as the primary serves them: keeps them in a file, lists and resets them for the
 * command line, and renders their metrics. The counters are in memory that the primary shares with the reactors.
 */
import { join } from 'node:path'
import type { Configuration } from '../config/catalogue.ts'
import { renderCounterMetrics } from '../observe/counter-metrics.ts'
import type { Log } from '../observe/log.ts'
import { CounterFile, restoreCounters } from '../throttle/counter-file.ts'
import { type CounterEntry, CounterListing } from '../throttle/counter-listing.ts'
import { CounterTable } from '../throttle/counter-table.ts'
import { windowStartMs } from '../throttle/window.ts'

/** A counter as `sluice throttle top` lists it. */
export interface ListedCounter {
  /** The key; of a long one both ends. */
  readonly key: string
  /** `level:name`. */
  readonly policy: string
  readonly counts: CounterEntry['quota']['type']
  /** In the current window; of a sliding one with the part that it takes over. */
  readonly used: number
  readonly limit: number
  /** Per second, since the window began. */
  readonly rate: number
  /** Refused requests since the counter was made. */
  readonly refused: number
  /** Milliseconds since 1970. */
  readonly resetsAtMs: number
}

export interface CountersReport {
  readonly counters: readonly ListedCounter[]
  /** Counters in use, and how many there may be. */
  readonly live: number
  readonly capacity: number
}

type CounterOrder = 'rate' | 'limit'

const FILE = 'throttle-counters'
/** Counters that are found before the first ones are sorted out. */
const SORTED_AT = 10_000
/** Owner number of the primary in the table; reactors have their index + 1. */
const PRIMARY = 1_000_000

/** Memory for the counters of a node; those of the file are restored where `enable_persistence` is set. */
export function allocateCounters(configuration: Configuration, dataDir: string, log: Log): SharedArrayBuffer {
  const throttling = configuration['apim.throttling']
  const capacity = throttling['counters.max']
  if (!throttling.enable_persistence) return CounterTable.allocate(capacity)
  const path = join(dataDir, FILE)
  const { memory, damage } = restoreCounters(path, capacity, PRIMARY)
  if (damage !== '') log.warn({ FILE: path, CAUSE_OF_ERROR: damage }, 'counters of the last run are lost in part')
  return memory
}

export class ThrottleService {
  readonly #table: CounterTable
  readonly #counters: CounterListing
  readonly #file: CounterFile | null

  constructor(memory: SharedArrayBuffer, configuration: Configuration, dataDir: string, log: Log) {
    this.#table = new CounterTable(memory, Date.now, PRIMARY)
    this.#counters = new CounterListing(this.#table)
    const path = join(dataDir, FILE)
    const reported = (cause: string): void => {
      if (cause === '') log.info({ FILE: path }, 'counters are written again')
      else log.error({ FILE: path, CAUSE_OF_ERROR: cause }, 'counters cannot be written; a restart would lose them')
    }
    const { enable_persistence: isPersistent } = configuration['apim.throttling']
    this.#file = isPersistent ? new CounterFile(path, this.#counters, reported) : null
  }

  /** Keeps the file up to date from now on. */
  open(): void {
    this.#file?.open()
  }

  /** Writes what the file lacks. */
  async close(): Promise<void> {
    await this.#file?.close()
  }

  /** A reactor has died, which may have held the lock of the table. */
  reactorDied(reactor: number): void {
    this.#table.release(reactor + 1)
  }

  /** The first `count` counters by rate or by nearness to their limit. */
  top(order: CounterOrder, count: number): CountersReport {
    const nowMs = Date.now()
    const found: ListedCounter[] = []
    const rank = order === 'rate' ? (one: ListedCounter) => one.rate : (one: ListedCounter) => one.used / one.limit
    const sort = (): void => {
      found.sort((one, other) => rank(other) - rank(one) || (one.key < other.key ? -1 : 1))
      found.length = Math.min(found.length, count)
    }
    this.#counters.entries(entry => {
      const counter = listed(entry, nowMs)
      if (counter.used === 0) return
      found.push(counter)
      if (found.length >= 2 * count + SORTED_AT) sort()
    })
    sort()
    const { live, capacity } = this.#counters.occupancy
    return { counters: found, live, capacity }
  }

  /** Sets the counters of a key to 0. False: there is none. */
  reset(key: string): boolean {
    return this.#counters.reset(key)
  }

  /** Metrics in the text format of Prometheus. */
  metrics(): string {
    return renderCounterMetrics(this.#counters.occupancy, this.#counters.refusals())
  }
}

function listed(entry: CounterEntry, nowMs: number): ListedCounter {
  const { label, policy, quota, window, used, usedBefore, endsMs, refused } = entry
  const startMs = windowStartMs(window, quota.unit, quota.units)
  const part = quota.window === 'sliding' ? Math.max(0, (endsMs - nowMs) / (endsMs - startMs)) : 0
  const seconds = Math.max(1, (nowMs - startMs) / 1000)
  return {
    key: label,
    policy,
    counts: quota.type,
    used: Math.floor(used + usedBefore * part),
    limit: quota.limit,
    rate: Math.round((used / seconds) * 10) / 10,
    refused,
    resetsAtMs: endsMs,
  }
}
