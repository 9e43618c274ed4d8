/**
 * Counters of a machine, exact over all its threads. A counter has two words of 64 bits, for even and for odd windows:
 * window (25 bits), generation of the slot (3), count (36). Words change by compare-and-exchange only, and carry their
 * window, so nothing is ever reset and no lock is taken.
 *
 * N is never exceeded: a charge exchanges a word that it has read, of the caller's window, with a count that is within
 * the limit. A request of several counters is checked against all of them first, which writes nothing. Then it is
 * charged, and charges are taken back where a later counter has been used up meanwhile. Until then another request may
 * be refused in its place: exactly N pass as long as demand continues. A thread that dies in between leaves one request
 * counted.
 *
 * A slot in use, whose window is not over, is never given to another key. A handle whose slot has gone to another key
 * charges nothing there. A charge reads the word first and then the slot's generation, so the word is of the handle's
 * key. An eviction exchanges both words, and gives them the bits of the next generation. It fails where a charge came
 * first, and the key stays. A charge that comes later fails, and finds its key again. A word with the old bits could
 * only return after eight more evictions of that slot, each at least a window after the one before, while the charging
 * thread stands between two instructions, and only with the same window and count.
 *
 * Clocks: all threads read the same clock. Where a word is of a later window than the caller's time, the caller reads
 * the clock again. If the time is still earlier, by more than one window, the clock has jumped back: the word is
 * replaced. After a jump back by one window or less the counts go on; after a longer one they begin anew.
 */
import { CounterMemory, GENERATION, PLACED, REFUSED as REFUSED_CELL } from './counter-memory.ts'
import { COUNT_BITS, COUNT_MAX, COUNT_SHIFT, scaleOf, tagOf, WINDOW_MASK, wordOf } from './counting-word.ts'
import type { Quota, Sharing } from './policy.ts'
import { windowAt, windowStartMs } from './window.ts'

export interface CounterSpec {
  /** Subject of the limit; counters with the same key, type and length of window are the same counter. */
  readonly key: string
  readonly quota: Quota
  /** True: requests beyond the quota pass and are counted. */
  readonly overruns: boolean
  /** `level:name` for metrics and commands. */
  readonly policy: string
  /** Where no slot is free: `closed` refuses the request, `open` and `local` let it pass uncounted. */
  readonly failMode: Sharing['failMode']
}

/** The upper half of a word: the tag above the highest bits of the count. */
const HIGH_BITS = 4
const HIGH_MASK = 15
const HIGH_UNIT = 2 ** 32
/** Counters of one request: one bit each says what was charged. */
const COUNTERS_MAX = 31

/** Refusals that a slot counts at most: 2^31 are reached in hours by a flood. */
const REFUSED_MAX = 2 ** 30

const CHARGED = 0
const REFUSED = 1
/** The window has changed since the clock was read. */
const STALE = 2
const UNCOUNTED = 3

/** A handle for one key, for the thread that has made it. */
export class Counter {
  readonly spec: CounterSpec
  readonly hashed: Int32Array
  /** In counting units. */
  readonly limit: number
  /** Bytes per counting unit, as a power of two; 0 for all quotas but those of 32 GiB and more. */
  readonly scale: number
  readonly isSliding: boolean
  /** The amount that `admit` charges: one request, and no bytes or messages, which come later. */
  readonly perRequest: number
  /** Bytes that are less than a counting unit. */
  rest = 0
  slot = -1
  generation = 0
  cell = 0
  word = 0
  /** When the handle has found its slot: requests before that time were not charged. */
  placedMs = 0
  number = -1
  tag = 0
  /** Tag of the window before. */
  tagBefore = 0
  startMs = 0
  endMs = -1

  constructor(spec: CounterSpec, hashed: Int32Array) {
    const { type, limit, window } = spec.quota
    this.spec = spec
    this.hashed = hashed
    this.scale = scaleOf({ type, limit })
    this.limit = Math.min(COUNT_MAX - 1, Math.max(1, Math.floor(limit / 2 ** this.scale)))
    this.isSliding = window === 'sliding'
    this.perRequest = type === 'requests' ? 1 : 0
  }

  moveTo(ms: number): void {
    const { unit, units } = this.spec.quota
    this.number = windowAt(ms, unit, units)
    this.startMs = windowStartMs(this.number, unit, units)
    this.endMs = windowStartMs(this.number + 1, unit, units)
    this.tag = tagOf(this.number, this.generation)
    this.tagBefore = tagOf(this.number - 1, this.generation)
  }
}

export class CounterTable {
  readonly memory: CounterMemory
  readonly #cells: Int32Array
  readonly #words: BigInt64Array
  readonly wallMs: () => number
  /** A word in halves. Bit operations on a BigInt would allocate. */
  readonly #whole = new BigInt64Array(1)
  readonly #halves = new Int32Array(this.#whole.buffer)
  #admittedMs = 0

  /**
   * `wallMs`: milliseconds since 1970 (`Date.now`). `owner`: positive number that no other living thread has, such as
   * the reactor's index + 1; a thread that takes the place of a dead one takes its number too.
   */
  constructor(memory: SharedArrayBuffer, wallMs: () => number, owner: number) {
    this.memory = new CounterMemory(memory, owner)
    this.#cells = this.memory.cells
    this.#words = this.memory.words
    this.wallMs = wallMs
  }

  /** Memory for so many counters. `seed`: that of a memory whose counters will be restored. */
  static allocate(counters: number, seed?: Uint8Array): SharedArrayBuffer {
    return CounterMemory.allocate(counters, seed)
  }

  /** `hashed`: of a counter whose key is known by its hash alone. */
  counter(spec: CounterSpec, hashed = this.memory.hashOf(spec)): Counter {
    const counter = new Counter(spec, hashed)
    // A counter that has its slot from the beginning was charged by every request that it admits.
    if (this.#place(counter, this.wallMs())) counter.placedMs = Number.NEGATIVE_INFINITY
    return counter
  }

  // ---- charging ---------------------------------------------------------------------------------------------------

  /**
   * Charges one request to all counters or to none; counters of bytes and of messages are only checked. Returns -1 for
   * an admitted request, else the index of the first counter that refuses it. At most 31 counters.
   */
  admit(counters: readonly Counter[]): number {
    if (counters.length === 0) return -1
    if (counters.length > COUNTERS_MAX) throw new RangeError(`a request has at most ${COUNTERS_MAX} counters`)
    for (;;) {
      const now = this.wallMs()
      this.#admittedMs = now
      const refusedBy = this.#admitAt(counters, now)
      if (refusedBy !== counters.length) return refusedBy
    }
  }

  /** Time of the last `admit`, for `refund`. */
  get admittedMs(): number {
    return this.#admittedMs
  }

  /** Takes an admitted request back, because something else refuses it. `admittedMs`: the time of its `admit`. */
  refund(counters: readonly Counter[], admittedMs: number): void {
    for (const counter of counters) {
      if (counter.perRequest === 0 || counter.slot < 0 || counter.placedMs > admittedMs) continue
      if (admittedMs < counter.startMs || admittedMs >= counter.endMs) counter.moveTo(admittedMs)
      this.#takeBack(counter)
    }
  }

  /** Returns the number of counters where the clock has to be read again. */
  #admitAt(counters: readonly Counter[], now: number): number {
    const count = counters.length
    // Reads only. What it lets pass is checked exactly when it is charged.
    if (count > 1) {
      for (let at = 0; at < count; at++) {
        const counter = counters[at]!
        if (now < counter.startMs || now >= counter.endMs) counter.moveTo(now)
        if (!this.#mayFit(counter) && this.#charge(counter, 0, now, counter.perRequest) === REFUSED) {
          return this.#refuse(counter, at)
        }
      }
    }
    let charged = 0
    for (let at = 0; at < count; at++) {
      const counter = counters[at]!
      if (now < counter.startMs || now >= counter.endMs) counter.moveTo(now)
      const verdict = this.#charge(counter, counter.perRequest, now, counter.perRequest)
      if (verdict === CHARGED) charged |= 1 << at
      else if (verdict !== UNCOUNTED) {
        for (let before = 0; before < at; before++) {
          if ((charged & (1 << before)) !== 0 && counters[before]!.perRequest > 0) this.#takeBack(counters[before]!)
        }
        return verdict === STALE ? count : this.#refuse(counter, at)
      }
    }
    return -1
  }

  /** Counts a refusal that was decided elsewhere: by Redis, by a traffic manager, or by `remaining`. */
  countRefusal(counter: Counter): void {
    const isPlaced = counter.slot >= 0 && this.#cells[counter.cell + GENERATION] === counter.generation
    if (isPlaced || this.#place(counter, this.wallMs())) this.#refuse(counter, 0)
  }

  #refuse(counter: Counter, at: number): number {
    if (counter.slot >= 0 && Atomics.add(this.#cells, counter.cell + REFUSED_CELL, 1) >= REFUSED_MAX) {
      this.memory.foldRefusals(counter)
    }
    return at
  }

  /**
   * A cheap look without atomic operations: the halves of the word may be of different moments. True: the request seems
   * to fit. False: look again.
   */
  #mayFit(counter: Counter): boolean {
    if (counter.slot < 0 || counter.isSliding) return false
    const at = (counter.word + (counter.number & 1)) << 1
    const high = this.#cells[at + 1]!
    if (high >> HIGH_BITS !== counter.tag) return true
    return (high & HIGH_MASK) * HIGH_UNIT + (this.#cells[at]! >>> 0) < counter.limit
  }

  /**
   * Adds `amount` where `needed` more fit into the limit. An amount of 0 writes nothing. The counter stands at the
   * window of `now`.
   */
  #charge(counter: Counter, amount: number, now: number, needed: number): number {
    for (;;) {
      if (counter.slot < 0 && !this.#place(counter, now)) {
        return counter.spec.failMode === 'closed' ? REFUSED : UNCOUNTED
      }
      const at = counter.word + (counter.number & 1)
      const word = Atomics.load(this.#words, at)
      if (this.#cells[counter.cell + GENERATION] !== counter.generation) {
        counter.slot = -1
        continue
      }
      this.#whole[0] = word
      const tag = this.#halves[1]! >> HIGH_BITS
      if (tag === counter.tag) {
        const used = this.#halvesCount()
        if (!this.#fits(counter, used, needed, now)) return REFUSED
        if (amount === 0) return CHARGED
        const sum = Math.min(COUNT_MAX, used + amount)
        this.#halves[0] = sum
        this.#halves[1] = (tag << HIGH_BITS) | (sum / HIGH_UNIT)
        if (Atomics.compareExchange(this.#words, at, word, this.#whole[0]!) === word) return CHARGED
        continue
      }
      if (((tag ^ counter.tag) & 7) !== 0) {
        counter.slot = -1
        continue
      }
      // The word is of a later window; windows of one word are two apart.
      if (((((tag >> 3) & WINDOW_MASK) - ((counter.tag >> 3) & WINDOW_MASK)) << 7) >> 7 > 0) {
        const again = this.wallMs()
        if (again < counter.startMs || again >= counter.endMs) return STALE
      }
      if (!this.#fits(counter, 0, needed, now)) return REFUSED
      if (amount === 0) return CHARGED
      const next = wordOf(counter.tag, Math.min(COUNT_MAX, amount))
      if (Atomics.compareExchange(this.#words, at, word, next) === word) return CHARGED
    }
  }

  /** A counter without a cost per request refuses where nothing is left. */
  #fits(counter: Counter, used: number, needed: number, now: number): boolean {
    if (counter.spec.overruns) return true
    const before = counter.isSliding ? this.#usedBefore(counter, now) : 0
    return used + before + (needed === 0 ? 1 : needed) <= counter.limit
  }

  /** Use that a sliding window takes over from the window before: the part that is within the last window length. */
  #usedBefore(counter: Counter, now: number): number {
    this.#whole[0] = Atomics.load(this.#words, counter.word + ((counter.number - 1) & 1))
    if (this.#halves[1]! >> HIGH_BITS !== counter.tagBefore) return 0
    const part = (counter.endMs - now) / (counter.endMs - counter.startMs)
    return this.#halvesCount() * Math.min(1, Math.max(0, part))
  }

  #halvesCount(): number {
    return (this.#halves[1]! & HIGH_MASK) * HIGH_UNIT + (this.#halves[0]! >>> 0)
  }

  /** Takes back a message that `charge` has just counted, because another counter refuses it. */
  takeBackMessage(counter: Counter): void {
    if (counter.slot >= 0) this.#takeBack(counter)
  }

  #takeBack(counter: Counter): void {
    const at = counter.word + (counter.number & 1)
    for (;;) {
      const word = Atomics.load(this.#words, at)
      if (Number(word >> COUNT_SHIFT) !== counter.tag || BigInt.asUintN(COUNT_BITS, word) === 0n) return
      if (Atomics.compareExchange(this.#words, at, word, word - 1n) === word) return
    }
  }

  /**
   * Charges messages, or bytes that are known late. Messages are charged where they fit. Bytes have passed already, so
   * they are always charged. Returns false where the messages do not fit, or no byte is left.
   */
  charge(counter: Counter, amount: number): boolean {
    const isLate = counter.spec.quota.type === 'bandwidth'
    const bytes = amount + counter.rest
    const units = Math.floor(bytes / 2 ** counter.scale)
    for (;;) {
      const now = this.wallMs()
      if (now < counter.startMs || now >= counter.endMs) counter.moveTo(now)
      const verdict = this.#charge(counter, units, now, isLate ? Number.NEGATIVE_INFINITY : units)
      if (verdict === STALE) continue
      if (verdict === REFUSED) {
        this.#refuse(counter, 0)
        return false
      }
      counter.rest = bytes - units * 2 ** counter.scale
      return verdict === UNCOUNTED || !isLate || this.#charge(counter, 0, now, 0) !== REFUSED
    }
  }

  /** False: the counter has no slot (the table is full), or its key has been evicted; the next use looks again. */
  #place(counter: Counter, now: number): boolean {
    const isPlaced = this.memory.place(counter.spec, counter.hashed, counter, now) === PLACED
    if (!isPlaced) return false
    counter.cell = this.memory.cellOf(counter.slot)
    counter.word = this.memory.wordIndexOf(counter.slot)
    counter.placedMs = now
    counter.moveTo(now)
    return true
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  /** Left in the current window, at least 0; the whole limit where the counter has no slot. */
  remaining(counter: Counter): number {
    const used = this.#used(counter)
    return used >= counter.limit ? 0 : Math.floor(counter.limit - used) * 2 ** counter.scale
  }

  /** More than the limit has been used in the current window, which only counters that overrun allow. */
  isOverrun(counter: Counter): boolean {
    return this.#used(counter) > counter.limit
  }

  /** In counting units. */
  #used(counter: Counter): number {
    const now = this.wallMs()
    if (now < counter.startMs || now >= counter.endMs) counter.moveTo(now)
    if (counter.slot < 0) return 0
    this.#whole[0] = Atomics.load(this.#words, counter.word + (counter.number & 1))
    const used = this.#halves[1]! >> HIGH_BITS === counter.tag ? this.#halvesCount() : 0
    return counter.isSliding ? used + this.#usedBefore(counter, now) : used
  }

  /** When the current window ends, in milliseconds since 1970. */
  endsMs(counter: Counter): number {
    const now = this.wallMs()
    if (now < counter.startMs || now >= counter.endMs) counter.moveTo(now)
    return counter.endMs
  }

  /**
   * Releases the lock of a thread that has died, and repairs what it has left. `owner`: the number of that thread. For
   * the primary, before another thread gets that number. False: that thread did not hold the lock.
   */
  release(owner: number): boolean {
    return this.memory.release(owner)
  }
}
