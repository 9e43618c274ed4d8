/**
 * Permits in shared memory, with the queue for them, as of one pool for all threads of the process: `core` tasks run at
 * once, further ones wait; where the queue is full, up to `max` run; one more is refused. A permit that becomes free
 * goes to the task that has waited longest, whatever its thread. A task that is suspended has no permit; it waits for
 * one again before it goes on. On each thread such tasks and those that have had none take turns.
 *
 * Each thread has a column that only it writes, under a lock that names its owner. `SharedPermits.clear` clears the
 * permits of a dead thread, and the lock where that thread held it.
 */
import { OwnerLock } from './owner-lock.ts'

export interface PermitLimits {
  readonly core: number
  readonly max: number
  /** Tasks that wait for their first permit; -1: any number. */
  readonly queueLength: number
  /** Bytes that the waiting tasks of all rows may hold together. */
  readonly queueBytes: number
}

/** Tasks that run at once when the queue is full. A pool whose queue is unbounded never grows. */
export function mostAtOnce({ core, max, queueLength }: Omit<PermitLimits, 'queueBytes'>): number {
  return queueLength < 0 ? core : Math.max(core, max)
}

/** Permits of tasks that wait for the one that arrives. */
export interface HeldPermits {
  /** Numbers by row; a further row has none. */
  readonly permits: readonly number[]
  /** No other task is waited for by the same tasks. */
  readonly isAlone: boolean
}

const NOTHING_HELD: HeldPermits = { permits: [], isAlone: true }

/**
 * `queue-full`, `memory`: refused, because of `queueLength` or of `queueBytes`. `loop`: refused, because all permits
 * are held by tasks that wait for this one, or for others in the queue: nobody could go on. `busy`: refused, because
 * the lock was not free in time.
 */
type PermitDecision = 'runs' | 'waits' | 'queue-full' | 'memory' | 'loop' | 'busy'

/** Permits of one row now, over all threads. */
export interface PermitCounts {
  readonly running: number
  readonly waiting: number
  readonly waitingBytes: number
  /** Tasks that have begun, and have no permit until they are resumed. */
  readonly suspended: number
  /** Most that ever ran at once. */
  readonly highest: number
}

/**
 * Cells of the header, which is Int32: the lock, its tenures, the number of times that waiters were woken, and the
 * number of rows.
 */
const LOCK = 0
const TENURES = 1
const WAKES = 2
const ROWS = 3
const HEADER_BYTES = 16
/** Cells per row that belong to no thread: permits that waiting tasks may take, and the most that ever ran. */
const OFFERED = 0
const HIGHEST = 1
const SHARED_CELLS = 2
/**
 * Cells per row and thread. `OLDEST`: when its first waiting task came, in milliseconds of the monotonic clock.
 * `RETURNING`: waiting tasks that have begun. From `HELD` on, by row: permits that tasks hold which wait for its
 * waiting tasks, each permit once.
 */
const RUNNING = 0
const WAITING = 1
const BYTES = 2
const OLDEST = 3
const SUSPENDED = 4
const RETURNING = 5
const HELD = 6
/** A thread whose wake-up was lost looks again. */
const WAIT_MS = 1000

/** A task that waits. */
interface Waiting {
  readonly bytes: number
  readonly sinceMs: number
}

/** Cells of all threads, for whoever holds the lock. */
class Cells {
  readonly header: Int32Array
  readonly rows: number
  readonly #cells: Float64Array
  readonly #threads: number

  constructor(shared: SharedArrayBuffer, threads: number) {
    this.header = new Int32Array(shared, 0, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT)
    this.rows = this.header[ROWS]!
    this.#cells = new Float64Array(shared, HEADER_BYTES)
    this.#threads = threads
  }

  shared(row: number, cell: number): number {
    return this.#cells[row * SHARED_CELLS + cell]!
  }

  setShared(row: number, cell: number, value: number): void {
    this.#cells[row * SHARED_CELLS + cell] = value
  }

  own(thread: number, row: number, cell: number): number {
    return this.#cells[this.#ownAt(thread, row, cell)]!
  }

  setOwn(thread: number, row: number, cell: number, value: number): void {
    this.#cells[this.#ownAt(thread, row, cell)] = value
  }

  sum(row: number, cell: number): number {
    let sum = 0
    for (let thread = 0; thread < this.#threads; thread++) sum += this.own(thread, row, cell)
    return sum
  }

  waitingBytes(): number {
    let sum = 0
    for (let row = 0; row < this.rows; row++) sum += this.sum(row, BYTES)
    return sum
  }

  /** Tasks that wait for their first permit. */
  queued(row: number): number {
    return this.sum(row, WAITING) - this.sum(row, RETURNING)
  }

  /** Permits that tasks have, or that waiting tasks are about to take. */
  taken(row: number): number {
    return this.sum(row, RUNNING) + this.shared(row, OFFERED)
  }

  /** The thread whose first waiting task came first; -1: no task waits. */
  longestWaiting(row: number): number {
    let found = -1
    for (let thread = 0; thread < this.#threads; thread++) {
      if (this.own(thread, row, WAITING) === 0) continue
      if (found === -1 || this.own(thread, row, OLDEST) < this.own(found, row, OLDEST)) found = thread
    }
    return found
  }

  /** A permit that nobody waits for any more is on offer no longer. */
  trimOffers(row: number): void {
    this.setShared(row, OFFERED, Math.min(this.shared(row, OFFERED), this.sum(row, WAITING)))
  }

  wake(): void {
    Atomics.add(this.header, WAKES, 1)
    Atomics.notify(this.header, WAKES)
  }

  #ownAt(thread: number, row: number, cell: number): number {
    return this.rows * SHARED_CELLS + (thread * this.rows + row) * ownCells(this.rows) + cell
  }
}

/** Cells of one row of a thread. */
function ownCells(rows: number): number {
  return HELD + rows
}

export class SharedPermits {
  readonly #cells: Cells
  readonly #lock: OwnerLock
  readonly #thread: number
  /** The state of this thread. Its column says the same, but for changes while the lock was not free. */
  readonly #running: number[]
  /** In the order of their arrival. */
  readonly #waiting: Set<Waiting>[]
  /** Tasks that wait to end: ahead of all others, and each begins but once. */
  readonly #ending: Set<Waiting>[]
  /** Tasks that wait to go on. */
  readonly #resumed: Set<Waiting>[]
  /** Which of them has the next turn, by row: one queue alone could be filled anew for ever. */
  readonly #turns: ('resumed' | 'waiting')[]
  readonly #suspended: number[]
  readonly #waitingBytes: number[]
  /** Permits by row of tasks that wait for a waiting task alone; left out: none. */
  readonly #held = new WeakMap<Waiting, readonly number[]>()
  /** Their sums, by the row of the waiting tasks. */
  readonly #heldSums: number[][]
  /** Rows that have changed while the lock was not free: others do not know of it. */
  readonly #stale = new Set<number>()

  /** `thread`: index of the column that this object writes, from 0. */
  constructor(shared: SharedArrayBuffer, threads: number, thread: number) {
    this.#cells = new Cells(shared, threads)
    this.#lock = new OwnerLock(this.#cells.header, LOCK, TENURES, thread + 1)
    this.#thread = thread
    this.#running = new Array<number>(this.#cells.rows).fill(0)
    this.#waiting = Array.from(this.#running, () => new Set())
    this.#ending = Array.from(this.#running, () => new Set())
    this.#resumed = Array.from(this.#running, () => new Set())
    this.#turns = Array.from(this.#running, () => 'resumed')
    this.#suspended = [...this.#running]
    this.#waitingBytes = new Array<number>(this.#cells.rows).fill(0)
    this.#heldSums = this.#running.map(() => [...this.#waitingBytes])
  }

  static allocate(threads: number, rows: number): SharedArrayBuffer {
    const cells = rows * (SHARED_CELLS + threads * ownCells(rows))
    const shared = new SharedArrayBuffer(HEADER_BYTES + cells * Float64Array.BYTES_PER_ELEMENT)
    new Int32Array(shared)[ROWS] = rows
    return shared
  }

  static counts(shared: SharedArrayBuffer, threads: number, row: number): PermitCounts {
    const cells = new Cells(shared, threads)
    return {
      running: cells.sum(row, RUNNING),
      waiting: cells.sum(row, WAITING),
      waitingBytes: cells.sum(row, BYTES),
      suspended: cells.sum(row, SUSPENDED),
      highest: cells.shared(row, HIGHEST),
    }
  }

  /** Returns the permits of a dead thread, and takes its tasks off the queue. */
  static clear(shared: SharedArrayBuffer, threads: number, thread: number): void {
    const cells = new Cells(shared, threads)
    // Behind the last thread: the supervisor.
    const lock = new OwnerLock(cells.header, LOCK, TENURES, threads + 1)
    const isHeld = lock.takeFrom(thread + 1) || lock.acquire()
    for (let row = 0; row < cells.rows; row++) {
      const freed = cells.own(thread, row, RUNNING)
      for (let cell = 0; cell < ownCells(cells.rows); cell++) cells.setOwn(thread, row, cell, 0)
      cells.setShared(row, OFFERED, cells.shared(row, OFFERED) + freed)
      cells.trimOffers(row)
    }
    if (isHeld) lock.release()
    cells.wake()
  }

  /** Number of waiting tasks of this thread. */
  waiting(row: number): number {
    return this.#waiting[row]!.size + this.#resumed[row]!.size + this.#ending[row]!.size
  }

  /** Number of tasks of this thread that have begun, have no permit, and are not to end. */
  interrupted(row: number): number {
    return this.#suspended[row]! + this.#resumed[row]!.size
  }

  /**
   * A task arrives. `waits`: it is in the queue, and `takeWaiting` says when it runs.
   */
  enter(row: number, limits: PermitLimits, task: Waiting, held = NOTHING_HELD): PermitDecision {
    const { core, max, queueLength, queueBytes } = limits
    if (!this.#lock.acquire()) return 'busy'
    const cells = this.#cells
    const taken = cells.taken(row)
    const waiting = cells.sum(row, WAITING)
    const hasPlace = queueLength < 0 || cells.queued(row) < queueLength
    let decision: PermitDecision = hasPlace ? 'memory' : 'queue-full'
    if (taken < core && waiting === 0) decision = 'runs'
    else if (hasPlace && cells.waitingBytes() + task.bytes <= queueBytes) decision = 'waits'
    else if (queueLength >= 0 && taken < max) decision = 'runs'
    const { permits, isAlone } = held
    const hasCallers = permits.some(count => count > 0)
    if (decision !== 'runs' && hasCallers && this.#isStuck(row, permits, decision === 'waits' && isAlone)) {
      decision = 'loop'
    }
    if (decision === 'runs') this.#running[row]!++
    else if (decision === 'waits') this.#add(this.#waiting, row, task, isAlone && hasCallers ? permits : null)
    this.#publish(row)
    this.#lock.release()
    return decision
  }

  /** Takes the permit of a running task until `resume`. Returns as `release` does. */
  suspend(row: number, limits: PermitLimits): boolean {
    this.#suspended[row]!++
    return this.release(row, limits)
  }

  /**
   * A suspended task needs a permit again. It is refused for no length of the queue, because it has begun; it takes
   * turns with those that wait to begin. `task.sinceMs`: since when it waits. Refused, it stays suspended. `way`: a
   * task that is to `end` waits for no turn.
   */
  resume(
    row: number,
    limits: PermitLimits,
    task: Waiting,
    held = NOTHING_HELD,
    way: 'go on' | 'end' = 'go on',
  ): 'runs' | 'waits' | 'loop' | 'busy' {
    const { core, max, queueLength } = limits
    if (!this.#lock.acquire()) return 'busy'
    const isFull = queueLength >= 0 && this.#cells.queued(row) >= queueLength
    const { permits, isAlone } = held
    const hasCallers = permits.some(count => count > 0)
    const isFree = this.#cells.taken(row) < (isFull ? Math.max(core, max) : core)
    let decision: 'runs' | 'waits' | 'loop' = isFree ? 'runs' : 'waits'
    if (decision === 'waits' && hasCallers && this.#isStuck(row, permits, isAlone)) decision = 'loop'
    if (decision !== 'loop') this.#suspended[row]!--
    if (decision === 'runs') this.#running[row]!++
    else if (decision === 'waits') {
      const queues = way === 'end' ? this.#ending : this.#resumed
      this.#add(queues, row, task, isAlone && hasCallers ? permits : null)
    }
    this.#publish(row)
    this.#lock.release()
    return decision
  }

  /** Forgets a suspended task that is over. Returns as `release` does. */
  endSuspended(row: number, limits: PermitLimits): boolean {
    this.#suspended[row]!--
    this.#stale.add(row)
    return this.republish(row, limits)
  }

  /**
   * The task of this thread whose turn it is now has a permit; null: there is none. While a task of another
   * thread has waited longer, that one comes first, unless `isImpatient`: its thread may hang.
   */
  takeWaiting(row: number, { core }: PermitLimits, isImpatient: boolean): Waiting | null {
    const first = this.#first(row)
    if (first === undefined || !this.#lock.acquire()) return null
    const cells = this.#cells
    // Without an offer: the limit was raised.
    const isFree = (): boolean => cells.shared(row, OFFERED) > 0 || cells.sum(row, RUNNING) < core
    if (this.#stale.has(row)) this.#publish(row)
    const isTaken = isFree() && (isImpatient || cells.longestWaiting(row) === this.#thread)
    if (isTaken) {
      cells.setShared(row, OFFERED, Math.max(0, cells.shared(row, OFFERED) - 1))
      if (!this.#ending[row]!.has(first)) this.#turns[row] = this.#resumed[row]!.has(first) ? 'waiting' : 'resumed'
      this.#remove(row, first)
      this.#running[row]!++
      this.#publish(row)
    }
    const next = isTaken && isFree() ? cells.longestWaiting(row) : -1
    this.#lock.release()
    if (next !== -1 && next !== this.#thread) cells.wake()
    return isTaken ? first : null
  }

  /** A task waits no longer, and gets no permit. False: it has not waited. */
  leave(row: number, task: Waiting): boolean {
    if (!this.#remove(row, task)) return false
    if (!this.#lock.acquire()) {
      this.#stale.add(row)
      return true
    }
    const cells = this.#cells
    this.#publish(row)
    cells.trimOffers(row)
    const isOffered = cells.shared(row, OFFERED) > 0
    this.#lock.release()
    // The offer may have been that of this task.
    if (isOffered) cells.wake()
    return true
  }

  /** A task is over. True: its permit is on offer, and this thread is to take it, by `takeWaiting`. */
  release(row: number, limits: PermitLimits): boolean {
    this.#running[row]!--
    this.#stale.add(row)
    return this.republish(row, limits)
  }

  /** Tells whether `republish` has to tell others of changes, made while the lock was not free. */
  isStale(row: number): boolean {
    return this.#stale.has(row)
  }

  /** Tells others what has changed while the lock was not free. True: as of `release`. */
  republish(row: number, limits: PermitLimits): boolean {
    if (!this.#stale.has(row) || !this.#lock.acquire()) return false
    const cells = this.#cells
    this.#publish(row)
    const offered = cells.shared(row, OFFERED)
    const isOffered = cells.sum(row, WAITING) > offered && cells.sum(row, RUNNING) + offered < mostAtOnce(limits)
    if (isOffered) cells.setShared(row, OFFERED, offered + 1)
    const next = isOffered ? cells.longestWaiting(row) : -1
    this.#lock.release()
    if (isOffered && next !== this.#thread) cells.wake()
    return next === this.#thread
  }

  /** Count of wake-ups, for `woken`: it is read before the waiting tasks are looked at. */
  get wakes(): number {
    return Atomics.load(this.#cells.header, WAKES)
  }

  /** Waiting tasks of all threads are to be looked at: a limit has changed. */
  wake(): void {
    this.#cells.wake()
  }

  /** Resolves when waiting tasks are to be looked at. False: nothing has happened since `wakes` for long. */
  async woken(wakes: number): Promise<boolean> {
    const { async: isPending, value } = Atomics.waitAsync(this.#cells.header, WAKES, wakes, WAIT_MS)
    return !isPending || (await value) !== 'timed-out'
  }

  /**
   * Tells whether no permit of the row can become free: all tasks that hold one wait for the one that arrives, or for
   * others in the queue; permits of other rows may be between. Leaves out, one by one, each row of which a permit can
   * become free. The lock is held. `permits`: those of the callers of the one that arrives. `isBesideOthers`: permits
   * of tasks that wait for others in a queue count too.
   */
  #isStuck(row: number, permits: readonly number[], isBesideOthers: boolean): boolean {
    const cells = this.#cells
    const stuck = new Set(this.#running.keys())
    const heldOf = (each: number): number => {
      const beside = isBesideOthers ? [...stuck].reduce((sum, queue) => sum + cells.sum(queue, HELD + each), 0) : 0
      return (permits[each] ?? 0) + beside
    }
    for (;;) {
      const free = [...stuck].find(each => cells.taken(each) === 0 || heldOf(each) < cells.taken(each))
      if (free === undefined) return true
      if (free === row) return false
      stuck.delete(free)
    }
  }

  #first(row: number): Waiting | undefined {
    const [ending] = this.#ending[row]!
    if (ending !== undefined) return ending
    const [resumed] = this.#resumed[row]!
    const [waiting] = this.#waiting[row]!
    return this.#turns[row] === 'resumed' ? (resumed ?? waiting) : (waiting ?? resumed)
  }

  #add(queues: readonly Set<Waiting>[], row: number, task: Waiting, held: readonly number[] | null): void {
    queues[row]!.add(task)
    this.#waitingBytes[row]! += task.bytes
    if (held === null) return
    this.#held.set(task, held)
    this.#addHeld(row, held, 1)
  }

  #addHeld(row: number, held: readonly number[], factor: 1 | -1): void {
    const sums = this.#heldSums[row]!
    for (const [holder, count] of held.entries()) sums[holder]! += factor * count
  }

  #remove(row: number, task: Waiting): boolean {
    const queues = [this.#waiting, this.#resumed, this.#ending]
    if (!queues.some(queue => queue[row]!.delete(task))) return false
    this.#waitingBytes[row]! -= task.bytes
    this.#addHeld(row, this.#held.get(task) ?? [], -1)
    return true
  }

  /** Writes the column of this thread; the lock is held. */
  #publish(row: number): void {
    this.#stale.delete(row)
    const cells = this.#cells
    const first = this.#first(row)
    cells.setOwn(this.#thread, row, RUNNING, this.#running[row]!)
    cells.setOwn(this.#thread, row, WAITING, this.waiting(row))
    cells.setOwn(this.#thread, row, SUSPENDED, this.#suspended[row]!)
    cells.setOwn(this.#thread, row, RETURNING, this.#resumed[row]!.size + this.#ending[row]!.size)
    cells.setOwn(this.#thread, row, BYTES, this.#waitingBytes[row]!)
    cells.setOwn(this.#thread, row, OLDEST, first?.sinceMs ?? 0)
    for (const [holder, sum] of this.#heldSums[row]!.entries()) cells.setOwn(this.#thread, row, HELD + holder, sum)
    cells.setShared(row, HIGHEST, Math.max(cells.shared(row, HIGHEST), cells.sum(row, RUNNING)))
  }
}
