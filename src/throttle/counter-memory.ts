/**
 * Memory of the counters of a machine: slots of 64 bytes that all threads share, found by the hash of their key.
 *
 * - A header, names of policies, heads of the hash chains, slots, labels. Slots are given out densely, so that memory
 *   that was never used costs nothing: each key costs 64 bytes and a label of 96 bytes.
 * - The hash is SHA-256 with a random seed, cut to 128 bits: clients cannot choose keys that collide.
 * - Finding a key takes no lock. A slot has a generation, odd while the slot is in use; what is read between two reads
 *   of the same odd generation belongs together.
 * - Inserting and evicting take the one lock. The lock names its owner. An owner that dies leaves the lock to whoever
 *   calls `release` for that owner, and to the thread that takes the owner's place. Both rebuild chains and free list
 *   from the slots, so a death between any two instructions leaves no damage.
 *
 * Offsets are those of little-endian machines.
 */
import { hash, randomFillSync } from 'node:crypto'
import type { Quota, TimeUnit } from './policy.ts'
import { CounterLabels, LABEL_BYTES, POLICIES_MAX } from './counter-labels.ts'
import { COUNT_SHIFT, GENERATION_MASK, scaleOf, tagOf, windowsAhead, wordOf } from './counting-word.ts'
import { OwnerLock } from '../runtime/owner-lock.ts'
import { windowAt, windowStartMs } from './window.ts'

/** Key of a slot, with the facts that the slot needs. */
interface SlotKey {
  readonly key: string
  readonly quota: Quota
  readonly policy: string
}

/** A place in the memory, with the generation in which it belongs to a key. */
interface SlotRef {
  /** -1: none. */
  slot: number
  generation: number
}

export const UNITS: readonly TimeUnit[] = ['sec', 'min', 'hour', 'day', 'month']
export const QUOTA_TYPES: readonly Quota['type'][] = ['requests', 'bandwidth', 'events']

const HEADER_BYTES = 256
const LOCK = 0
const CAPACITY = 1
const BUCKETS = 2
/** Slots that have ever been given out. */
const USED = 3
/** First of the free slots, plus 1. */
const FREE = 4
/** Slot that is being evicted, plus 1. */
const EVICTING = 5
/** Where the search for expired slots goes on. */
const HAND = 6
const LIVE = 7
const FULL_COUNT = 8
const BUSY_COUNT = 9
const EVICTED_COUNT = 10
const REBUILT_COUNT = 11
const SEED = 12
const POLICIES = 18
/** Counts acquisitions of the lock. */
const TENURE = 19
/** Slots seen since the last eviction: all of them make a lap in vain. */
const SEEN = 20
/** Indices in 64-bit floats, in milliseconds since 1970: before the first no slot expires; the earliest expiry seen. */
const FULL_UNTIL = 8
const EARLIEST = 11

/** Name of a policy, and refusals by those of its counters that were evicted. */
const POLICY_BYTES = LABEL_BYTES + 8
const SLOT_CELLS = 16
const SLOT_WORDS = 8
const WORDS = 2
/** Count bits in the upper half of a word. */
const HIGH_BITS = 4
export const GENERATION = 8
const NEXT = 9
const SHAPE = 10
const UNITS_CELL = 11
export const REFUSED = 12
const POLICY = 13
/** Index in 64-bit floats. */
const LIMIT = 7

/** Slots that one insertion looks at for expired ones: a few when the table fills, more when it is full. */
const SWEPT_AHEAD = 64
const SWEPT_AT_FULL = 4096
const EVICTED_AT_ONCE = 256
/** For so long a full table does not look for expired slots again, after a lap in vain. */
const FULL_MS_MAX = 1000
/** For so long after slots in vain: a flood of new keys must not keep threads busy with the look. */
const FULL_MS = 5

export const PLACED = 0
const FULL = 1
const BUSY = 2
type Placement = typeof PLACED | typeof FULL | typeof BUSY

export class CounterMemory {
  readonly cells: Int32Array
  readonly words: BigInt64Array
  readonly #floats: Float64Array
  readonly #bytes: Buffer
  readonly #lock: OwnerLock
  readonly #seed: string
  readonly #capacity: number
  readonly #bucketMask: number
  readonly #heads: number
  /** Index of the first policy's refusals by evicted counters, in 64-bit floats. */
  readonly #evictedRefusals: number
  /** Index of the first slot, in cells. */
  readonly firstCell: number
  readonly #labels: CounterLabels
  readonly #windows = new SeenWindows()

  /** `owner`: positive number that no other living thread has. */
  constructor(memory: SharedArrayBuffer, owner: number) {
    this.cells = new Int32Array(memory)
    this.words = new BigInt64Array(memory)
    this.#floats = new Float64Array(memory)
    this.#bytes = Buffer.from(memory)
    this.#lock = new OwnerLock(this.cells, LOCK, TENURE, owner)
    this.#capacity = this.cells[CAPACITY]!
    this.#bucketMask = this.cells[BUCKETS]! - 1
    this.#seed = this.#bytes.toString('hex', SEED * 4, SEED * 4 + 16)
    this.#evictedRefusals = (HEADER_BYTES + POLICIES_MAX * LABEL_BYTES) / 8
    this.#heads = (HEADER_BYTES + POLICIES_MAX * POLICY_BYTES) / 4
    this.firstCell = this.#heads + this.cells[BUCKETS]!
    const labels = (this.firstCell + this.#capacity * SLOT_CELLS) * 4
    this.#labels = new CounterLabels(this.cells, POLICIES, HEADER_BYTES, labels)
    this.release(owner)
  }

  /** `seed`: 16 bytes of a memory whose counters will be restored; random by default. */
  static allocate(counters: number, seed?: Uint8Array): SharedArrayBuffer {
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(16, counters)))
    const bytes = HEADER_BYTES + POLICIES_MAX * POLICY_BYTES + buckets * 4 + counters * (SLOT_CELLS * 4 + LABEL_BYTES)
    const memory = new SharedArrayBuffer(Math.ceil(bytes / 8) * 8)
    const cells = new Int32Array(memory)
    cells[CAPACITY] = counters
    cells[BUCKETS] = buckets
    const seeded = new Uint8Array(memory, SEED * 4, 16)
    seeded.set(seed ?? randomFillSync(new Uint8Array(16)))
    return memory
  }

  get seed(): Uint8Array {
    return Uint8Array.from(this.#bytes.subarray(SEED * 4, SEED * 4 + 16))
  }

  get live(): number {
    return Atomics.load(this.cells, LIVE)
  }

  get capacity(): number {
    return this.#capacity
  }

  /** Slots that have ever been in use: those from here on need not be read. */
  get used(): number {
    return Atomics.load(this.cells, USED)
  }

  get fullCount(): number {
    return Atomics.load(this.cells, FULL_COUNT)
  }

  get busyCount(): number {
    return Atomics.load(this.cells, BUSY_COUNT)
  }

  get evictedCount(): number {
    return Atomics.load(this.cells, EVICTED_COUNT)
  }

  get rebuiltCount(): number {
    return Atomics.load(this.cells, REBUILT_COUNT)
  }

  /** Hash of what tells counters apart: the key, what is counted in which unit, and the length of the window. */
  hashOf({ key, quota }: SlotKey): Int32Array {
    const scale = scaleOf(quota)
    const type = scale === 0 ? quota.type : `${quota.type}/${scale}`
    const digest = hash('sha256', `${this.#seed}${type} ${quota.units} ${quota.unit} ${key}`, 'buffer')
    const hashed = new Int32Array(4)
    for (let at = 0; at < 4; at++) hashed[at] = digest.readInt32LE(at * 4)
    return hashed
  }

  cellOf(slot: number): number {
    return this.firstCell + slot * SLOT_CELLS
  }

  /** Index of the word of even windows; that of odd ones is the next. */
  wordIndexOf(slot: number): number {
    return (this.firstCell >> 1) + slot * SLOT_WORDS + WORDS
  }

  // ---- finding ----------------------------------------------------------------------------------------------------

  /** Finds a key without the lock. It may miss a key whose chain changes meanwhile, and never finds a wrong one. */
  find(hashed: Int32Array, ref: SlotRef): boolean {
    let next = Atomics.load(this.cells, this.#heads + (hashed[0]! & this.#bucketMask))
    for (let steps = 0; next > 0 && steps < 64; steps++) {
      const cell = this.cellOf(next - 1)
      const generation = Atomics.load(this.cells, cell + GENERATION)
      const isSame = this.#hasHash(cell, hashed)
      if (isSame && (generation & 1) === 1 && Atomics.load(this.cells, cell + GENERATION) === generation) {
        ref.slot = next - 1
        ref.generation = generation
        return true
      }
      next = Atomics.load(this.cells, cell + NEXT)
    }
    return false
  }

  #hasHash(cell: number, hashed: Int32Array): boolean {
    for (let at = 0; at < 4; at++) if (this.cells[cell + at] !== hashed[at]) return false
    return true
  }

  /** Finds a key or inserts it, evicting expired ones where no slot is free. `ref.slot` is -1 unless PLACED. */
  place(key: SlotKey, hashed: Int32Array, ref: SlotRef, nowMs: number): Placement {
    if (this.find(hashed, ref)) {
      if (!this.#isDescribed(ref.slot, key)) this.#describeAgain(ref, key)
      return PLACED
    }
    ref.slot = -1
    if (this.#isFull(nowMs)) return this.#refuse(FULL_COUNT, FULL)
    if (!this.#lock.acquire()) return this.#refuse(BUSY_COUNT, BUSY)
    try {
      if (this.find(hashed, ref)) return PLACED
      const slot = this.#takeSlot(nowMs)
      if (slot < 0) return this.#refuse(FULL_COUNT, FULL)
      this.#insert(slot, key, hashed, nowMs)
      ref.slot = slot
      ref.generation = this.cells[this.cellOf(slot) + GENERATION]!
      return PLACED
    } finally {
      this.#lock.release()
    }
  }

  /** True if the slot tells policy and quota of this user of the key. */
  #isDescribed(slot: number, { quota, policy }: SlotKey): boolean {
    const cell = this.cellOf(slot)
    return (
      this.#floats[(cell >> 1) + LIMIT] === quota.limit &&
      this.cells[cell + SHAPE] === shapeOf(quota) &&
      this.#labels.isPolicy(this.cells[cell + POLICY]!, policy)
    )
  }

  /** Another policy, or another version of it, has taken over the key. Refusals so far are those of the one before. */
  #describeAgain({ slot, generation }: SlotRef, key: SlotKey): void {
    const { cells } = this
    const cell = this.cellOf(slot)
    if (!this.#lock.acquire()) return
    try {
      if (cells[cell + GENERATION] !== generation) return
      if (!this.#labels.isPolicy(cells[cell + POLICY]!, key.policy)) this.#fold(cell)
      this.#describe(cell, key)
    } finally {
      this.#lock.release()
    }
  }

  /** Moves the refusals of a slot to those of its policy, whose number has more bits. */
  foldRefusals({ slot, generation }: SlotRef): void {
    const cell = this.cellOf(slot)
    if (!this.#lock.acquire()) return
    try {
      if (this.cells[cell + GENERATION] === generation) this.#fold(cell)
    } finally {
      this.#lock.release()
    }
  }

  #fold(cell: number): void {
    const policy = this.cells[cell + POLICY]!
    const refused = Atomics.exchange(this.cells, cell + REFUSED, 0)
    if (policy >= 0) this.#floats[this.#evictedRefusals + policy]! += refused
  }

  #describe(cell: number, { quota, policy }: SlotKey): void {
    this.cells[cell + SHAPE] = shapeOf(quota)
    this.cells[cell + POLICY] = this.#labels.policyId(policy)
    this.#floats[(cell >> 1) + LIMIT] = quota.limit
  }

  #refuse(counter: number, placement: Placement): Placement {
    Atomics.add(this.cells, counter, 1)
    return placement
  }

  /** A clock that has jumped back is before all that was known. */
  #isFull(nowMs: number): boolean {
    const untilMs = this.#floats[FULL_UNTIL]!
    return (
      nowMs < untilMs &&
      nowMs >= untilMs - FULL_MS_MAX &&
      Atomics.load(this.cells, FREE) === 0 &&
      Atomics.load(this.cells, USED) >= this.#capacity
    )
  }

  // ---- inserting and evicting, under the lock ---------------------------------------------------------------------

  #insert(slot: number, of: SlotKey, hashed: Int32Array, nowMs: number): void {
    const { key, quota } = of
    const { cells } = this
    const cell = this.cellOf(slot)
    const generation = cells[cell + GENERATION]! + 1
    const number = windowAt(nowMs, quota.unit, quota.units)
    const word = this.wordIndexOf(slot)
    Atomics.store(this.words, word + (number & 1), wordOf(tagOf(number, generation), 0))
    Atomics.store(this.words, word + ((number - 1) & 1), wordOf(tagOf(number - 1, generation), 0))
    cells.set(hashed, cell)
    cells[cell + UNITS_CELL] = quota.units
    cells[cell + REFUSED] = 0
    this.#describe(cell, of)
    this.#labels.setLabel(slot, key)
    const head = this.#heads + (hashed[0]! & this.#bucketMask)
    cells[cell + NEXT] = cells[head]!
    Atomics.store(cells, cell + GENERATION, generation)
    Atomics.store(cells, head, slot + 1)
    Atomics.add(cells, LIVE, 1)
  }

  #takeSlot(nowMs: number): number {
    const { cells } = this
    const isFilling = cells[LIVE]! > this.#capacity * 0.75
    if (isFilling) this.#sweep(nowMs, SWEPT_AHEAD)
    if (cells[FREE] === 0 && cells[USED]! >= this.#capacity) this.#sweep(nowMs, SWEPT_AT_FULL)
    const free = cells[FREE]!
    if (free > 0) {
      Atomics.store(cells, FREE, cells[this.cellOf(free - 1) + NEXT]!)
      return free - 1
    }
    return cells[USED]! < this.#capacity ? Atomics.add(cells, USED, 1) : -1
  }

  /** Evicts expired slots among the next so many. After a lap without any, the table is full until the next expiry. */
  #sweep(nowMs: number, slots: number): void {
    const { cells } = this
    const floats = this.#floats
    const used = cells[USED]!
    let evicted = 0
    for (let seen = 0; seen < Math.min(slots, used) && evicted < EVICTED_AT_ONCE; seen++) {
      const slot = cells[HAND]! % used
      cells[HAND] = slot + 1
      const expiresMs = this.#expiryMs(slot, nowMs)
      if (expiresMs <= nowMs && this.#evict(slot, nowMs)) evicted++
      floats[EARLIEST] = cells[SEEN] === 0 ? expiresMs : Math.min(floats[EARLIEST]!, expiresMs)
      cells[SEEN] = evicted > 0 ? 0 : cells[SEEN]! + 1
    }
    if (cells[SEEN]! < used) {
      if (evicted === 0) floats[FULL_UNTIL] = nowMs + FULL_MS
      return
    }
    floats[FULL_UNTIL] = Math.min(floats[EARLIEST]!, nowMs + FULL_MS_MAX)
    cells[SEEN] = 0
  }

  /** Returns when a slot expires; 0: it has. Words of the future are left by a clock that has jumped back. */
  #expiryMs(slot: number, nowMs: number): number {
    const { cells } = this
    const cell = this.cellOf(slot)
    if ((cells[cell + GENERATION]! & 1) === 0) return Number.POSITIVE_INFINITY
    const windows = this.#windows
    windows.moveTo(cells[cell + SHAPE]!, cells[cell + UNITS_CELL]!, nowMs)
    const { number, least } = windows
    // The upper halves alone: whoever evicts the slot reads both words again.
    const high = (this.wordIndexOf(slot) << 1) + 1
    const even = windowsAhead(cells[high]! >> HIGH_BITS, 0, number)
    const odd = windowsAhead(cells[high + 2]! >> HIGH_BITS, 1, number)
    const last = Math.max(even <= 1 ? even : least - 1, odd <= 1 ? odd : least - 1)
    return last < least ? 0 : windows.startsMs[last - least]!
  }

  /**
   * The slot goes out of use first. Then its words take the bits of the next generation, by compare-and-exchange. That
   * fails where a thread has charged the key meanwhile, and the slot stays. A later charge fails.
   */
  #evict(slot: number, nowMs: number): boolean {
    const { cells, words } = this
    const cell = this.cellOf(slot)
    const generation = cells[cell + GENERATION]!
    Atomics.store(cells, EVICTING, slot + 1)
    Atomics.store(cells, cell + GENERATION, generation + 1)
    const word = this.wordIndexOf(slot)
    const seen = [Atomics.load(words, word), Atomics.load(words, word + 1)] as const
    // The words may have been charged since they were found expired.
    const isClaimed = this.#isExpired(slot, seen, nowMs) && this.#claim(word, seen, generation + 2)
    if (!isClaimed) {
      this.#revive(slot)
      return false
    }
    Atomics.store(cells, EVICTING, 0)
    const policy = cells[cell + POLICY]!
    if (policy >= 0) this.#floats[this.#evictedRefusals + policy]! += cells[cell + REFUSED]!
    this.#unlink(slot)
    cells[cell + NEXT] = cells[FREE]!
    Atomics.store(cells, FREE, slot + 1)
    Atomics.sub(cells, LIVE, 1)
    Atomics.add(cells, EVICTED_COUNT, 1)
    return true
  }

  #isExpired(slot: number, seen: readonly [bigint, bigint], nowMs: number): boolean {
    const { unit, units, isSliding } = this.shapeOf(slot)
    const number = windowAt(nowMs, unit, units)
    return seen.every((word, parity) => {
      const ahead = windowsAhead(Number(word >> COUNT_SHIFT), parity, number)
      return ahead < (isSliding ? -1 : 0) || ahead > 1
    })
  }

  #claim(word: number, seen: readonly [bigint, bigint], generation: number): boolean {
    const empty = wordOf(tagOf(0, generation), 0)
    return seen.every((value, parity) => Atomics.compareExchange(this.words, word + parity, value, empty) === value)
  }

  /** Puts a slot back into use whose eviction has not ended. A word that was claimed had expired: it restarts at 0. */
  #revive(slot: number): void {
    const generation = this.cells[this.cellOf(slot) + GENERATION]! - 1
    const word = this.wordIndexOf(slot)
    const own = tagOf(0, generation) & GENERATION_MASK
    for (const at of [word, word + 1]) {
      const tag = Number(Atomics.load(this.words, at) >> COUNT_SHIFT)
      if ((tag & GENERATION_MASK) !== own) Atomics.store(this.words, at, wordOf(tagOf(0, generation), 0))
    }
    Atomics.store(this.cells, this.cellOf(slot) + GENERATION, generation)
    Atomics.store(this.cells, EVICTING, 0)
  }

  #unlink(slot: number): void {
    const { cells } = this
    const cell = this.cellOf(slot)
    let at = this.#heads + (cells[cell]! & this.#bucketMask)
    while (cells[at]! > 0 && cells[at] !== slot + 1) at = this.cellOf(cells[at]! - 1) + NEXT
    if (cells[at] === slot + 1) Atomics.store(cells, at, cells[cell + NEXT]!)
  }

  // ---- lock -------------------------------------------------------------------------------------------------------

  /** Takes the lock from an owner that has died, if the owner held it, and repairs what it has left. */
  release(owner: number): boolean {
    if (!this.#lock.takeFrom(owner)) return false
    this.#rebuild()
    this.#lock.release()
    return true
  }

  /** Makes chains and free list anew from the slots. 10^6 slots take some 50 ms. */
  #rebuild(): void {
    const { cells } = this
    const evicting = cells[EVICTING]!
    if (evicting > 0) {
      if ((cells[this.cellOf(evicting - 1) + GENERATION]! & 1) === 0) this.#revive(evicting - 1)
      else Atomics.store(cells, EVICTING, 0)
    }
    cells.fill(0, this.#heads, this.firstCell)
    let free = 0
    let live = 0
    for (let slot = cells[USED]! - 1; slot >= 0; slot--) {
      const cell = this.cellOf(slot)
      const isLive = (cells[cell + GENERATION]! & 1) === 1
      const head = this.#heads + (cells[cell]! & this.#bucketMask)
      cells[cell + NEXT] = isLive ? cells[head]! : free
      if (isLive) {
        Atomics.store(cells, head, slot + 1)
        live++
      } else free = slot + 1
    }
    Atomics.store(cells, FREE, free)
    Atomics.store(cells, LIVE, live)
    Atomics.add(cells, REBUILT_COUNT, 1)
  }

  /** Refusals by policy, those by evicted counters included. */
  refusals(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>()
    const add = (policy: number, count: number): void => {
      const name = this.#labels.policyName(policy)
      if (count > 0) sums.set(name, (sums.get(name) ?? 0) + count)
    }
    for (let id = 0; id < POLICIES_MAX; id++) add(id, this.#floats[this.#evictedRefusals + id]!)
    for (let slot = 0; slot < this.used; slot++) {
      const cell = this.cellOf(slot)
      if ((this.cells[cell + GENERATION]! & 1) === 1) add(this.cells[cell + POLICY]!, this.cells[cell + REFUSED]!)
    }
    return sums
  }

  // ---- labels -----------------------------------------------------------------------------------------------------

  shapeOf(slot: number): { unit: TimeUnit; units: number; isSliding: boolean; type: Quota['type'] } {
    const cell = this.cellOf(slot)
    const shape = this.cells[cell + SHAPE]!
    return {
      unit: UNITS[shape & 7]!,
      units: this.cells[cell + UNITS_CELL]!,
      isSliding: (shape & 8) !== 0,
      type: QUOTA_TYPES[shape >> 4]!,
    }
  }

  /** False: the slot is free. */
  isLive(slot: number): boolean {
    return (Atomics.load(this.cells, this.cellOf(slot) + GENERATION) & 1) === 1
  }

  limitOf(slot: number): number {
    return this.#floats[(this.cellOf(slot) >> 1) + LIMIT]!
  }

  hashAt(slot: number): Int32Array {
    return this.cells.slice(this.cellOf(slot), this.cellOf(slot) + 4)
  }

  labelOf(slot: number): string {
    return this.#labels.labelOf(slot)
  }

  policyOf(slot: number): string {
    return this.#labels.policyName(this.cells[this.cellOf(slot) + POLICY]!)
  }
}

/** Windows of slots that are seen one after the other: nearly all of them have those of the slot before. */
class SeenWindows {
  number = 0
  /** Least number of windows by which the last charged one is ahead of now, while its slot is in use. */
  least = 0
  /** When a slot expires whose last charged window is `least`, or one or two more, ahead. */
  readonly startsMs = [0, 0, 0]
  #shape = -1
  #units = 0
  #nowMs = 0

  moveTo(shape: number, units: number, nowMs: number): void {
    if (shape === this.#shape && units === this.#units && nowMs === this.#nowMs) return
    this.#shape = shape
    this.#units = units
    this.#nowMs = nowMs
    const unit = UNITS[shape & 7]!
    this.number = windowAt(nowMs, unit, units)
    this.least = (shape & 8) === 0 ? 0 : -1
    for (let at = 0; at < 3; at++) this.startsMs[at] = windowStartMs(this.number + 1 + at, unit, units)
  }
}

/** Unit, kind of window and what is counted, in the bits of one cell. */
function shapeOf({ unit, window, type }: Quota): number {
  return UNITS.indexOf(unit) | (window === 'sliding' ? 8 : 0) | (QUOTA_TYPES.indexOf(type) << 4)
}
