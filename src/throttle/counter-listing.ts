/**
 * The counters of a table as commands, metrics and the state file see them: for the primary and the traffic manager,
 * not for the threads that charge.
 */
import { shortened } from './counter-labels.ts'
import { type CounterMemory, GENERATION, REFUSED } from './counter-memory.ts'
import type { CounterTable } from './counter-table.ts'
import { COUNT_BITS, COUNT_MAX, COUNT_SHIFT, scaleOf, tagOf, wordOf } from './counting-word.ts'
import type { Quota } from './policy.ts'
import { windowAt, windowStartMs } from './window.ts'

/** A counter as commands and the state file see it. */
export interface CounterEntry {
  /** The key, or its two ends with `…` between where it has more than 95 bytes. */
  readonly label: string
  readonly policy: string
  readonly quota: Quota
  /** Four numbers that stand for key, type and window under the seed of the memory. */
  readonly hash: Int32Array
  /** Number of the current window; 0 used where the counter was not charged in it. */
  readonly window: number
  readonly used: number
  readonly usedBefore: number
  readonly endsMs: number
  readonly refused: number
}

interface CounterOccupancy {
  readonly live: number
  readonly capacity: number
  readonly full: number
  readonly busy: number
  readonly evicted: number
  readonly rebuilt: number
}

/** Cells of the two words of a slot; of what `changes` keeps of a slot: its generation and its words. */
const WORD_CELLS = 4
const SEEN_CELLS = 1 + WORD_CELLS

export class CounterListing {
  readonly #table: CounterTable
  readonly #memory: CounterMemory
  readonly #cells: Int32Array
  readonly #words: BigInt64Array

  constructor(table: CounterTable) {
    this.#table = table
    this.#memory = table.memory
    this.#cells = table.memory.cells
    this.#words = table.memory.words
  }

  /** Seed of the hashes, which restored counters need. */
  get seed(): Uint8Array {
    return this.#memory.seed
  }

  /** How full the table is, and how often it had no slot, no lock in time, evicted a key, repaired itself. */
  get occupancy(): CounterOccupancy {
    const { live, capacity, fullCount, busyCount, evictedCount, rebuiltCount } = this.#memory
    return { live, capacity, full: fullCount, busy: busyCount, evicted: evictedCount, rebuilt: rebuiltCount }
  }

  /** Refused requests by policy (`level:name`), of counters that were evicted too. */
  refusals(): ReadonlyMap<string, number> {
    return this.#memory.refusals()
  }

  /** Visits all counters, while other threads go on charging them. */
  entries(visit: (entry: CounterEntry) => void): void {
    const now = this.#table.wallMs()
    for (let slot = 0; slot < this.#memory.used; slot++) {
      const cell = this.#memory.cellOf(slot)
      const generation = Atomics.load(this.#cells, cell + GENERATION)
      if ((generation & 1) === 0) continue
      const entry = this.#entryOf(slot, generation, now)
      if (Atomics.load(this.#cells, cell + GENERATION) === generation) visit(entry)
    }
  }

  /** Argument of the first `changes`, which has seen no slot. */
  unseen(): Int32Array {
    return new Int32Array(this.#memory.capacity * SEEN_CELLS)
  }

  /** Slots that have ever been in use, from 0. */
  get slots(): number {
    return this.#memory.used
  }

  /**
   * Visits the counters in slots from `from` to `to - 1` that have changed since `seen`, and brings `seen` up to date.
   * Windows shorter than `leastMs` are left out. `isNew`: the slot has belonged to another counter, or to none, before.
   */
  changes(
    { seen, from, to }: { readonly seen: Int32Array; readonly from: number; readonly to: number },
    leastMs: number,
    visit: (slot: number, entry: CounterEntry, isNew: boolean) => void,
  ): void {
    const now = this.#table.wallMs()
    const cells = this.#cells
    for (let slot = from; slot < Math.min(to, this.#memory.used); slot++) {
      const cell = this.#memory.cellOf(slot)
      const generation = Atomics.load(cells, cell + GENERATION)
      const isNew = seen[slot * SEEN_CELLS] !== generation
      const word = this.#memory.wordIndexOf(slot) << 1
      let isSame = !isNew
      for (let at = 0; at < WORD_CELLS && isSame; at++) isSame = seen[slot * SEEN_CELLS + 1 + at] === cells[word + at]
      if (isSame || (generation & 1) === 0) continue
      const { unit, units } = this.#memory.shapeOf(slot)
      if (windowStartMs(1, unit, units) - windowStartMs(0, unit, units) < leastMs) continue
      for (let at = 0; at < WORD_CELLS; at++) seen[slot * SEEN_CELLS + 1 + at] = cells[word + at]!
      const entry = this.#entryOf(slot, generation, now)
      if (Atomics.load(cells, cell + GENERATION) !== generation) continue
      seen[slot * SEEN_CELLS] = generation
      visit(slot, entry, isNew)
    }
  }

  #entryOf(slot: number, generation: number, now: number): CounterEntry {
    const { unit, units, isSliding, type } = this.#memory.shapeOf(slot)
    const limit = this.#memory.limitOf(slot)
    const window = windowAt(now, unit, units)
    const word = this.#memory.wordIndexOf(slot)
    const bytes = 2 ** scaleOf({ type, limit })
    const usedIn = (number: number): number => {
      const value = Atomics.load(this.#words, word + (number & 1))
      const isSame = Number(value >> COUNT_SHIFT) === tagOf(number, generation)
      return isSame ? Number(BigInt.asUintN(COUNT_BITS, value)) * bytes : 0
    }
    return {
      label: this.#memory.labelOf(slot),
      policy: this.#memory.policyOf(slot),
      quota: { type, limit, unit, units, window: isSliding ? 'sliding' : 'tumbling' },
      hash: this.#memory.hashAt(slot),
      window,
      used: usedIn(window),
      usedBefore: usedIn(window - 1),
      endsMs: windowStartMs(window + 1, unit, units),
      refused: this.#cells[this.#memory.cellOf(slot) + REFUSED]!,
    }
  }

  /**
   * Restores a counter of a memory with the same seed, before others use the table. False: its windows are over, or the
   * table is full.
   */
  restore({ label, policy, quota, hash, window, used, usedBefore, refused }: CounterEntry): boolean {
    const now = this.#table.wallMs()
    const ago = windowAt(now, quota.unit, quota.units) - window
    if (ago < 0 || ago > (quota.window === 'sliding' ? 1 : 0)) return false
    const counter = this.#table.counter({ key: label, policy, quota, overruns: true, failMode: 'open' }, hash)
    if (counter.slot < 0) return false
    for (const [number, amount] of [
      [window - 1, usedBefore],
      [window, used],
    ] as const) {
      if (number < counter.number - 1) continue
      const count = Math.min(COUNT_MAX, Math.ceil(amount / 2 ** counter.scale))
      Atomics.store(this.#words, counter.word + (number & 1), wordOf(tagOf(number, counter.generation), count))
    }
    Atomics.store(this.#cells, counter.cell + REFUSED, refused)
    return true
  }

  /** Sets the counters of a key, or of a label, to 0. False: there is none. */
  reset(key: string): boolean {
    const label = shortened(key).toString()
    let found = false
    for (let slot = 0; slot < this.#memory.used; slot++) {
      if (!this.#memory.isLive(slot)) continue
      const own = this.#memory.labelOf(slot)
      if (own !== label && own !== key) continue
      found = true
      const word = this.#memory.wordIndexOf(slot)
      for (const at of [word, word + 1]) this.#clear(at)
    }
    return found
  }

  #clear(at: number): void {
    for (;;) {
      const word = Atomics.load(this.#words, at)
      if (Atomics.compareExchange(this.#words, at, word, wordOf(Number(word >> COUNT_SHIFT), 0)) === word) return
    }
  }
}
