/**
 * A lock in shared memory that names its owner, so that whoever knows that the owner has died can take it over. It is
 * held for microseconds; others wait a limited time.
 */

/** A dead owner is known within milliseconds; a live one holds the lock for microseconds, but may be descheduled. */
const LOCK_WAIT_MS = 100
const LOCK_SPINS = 200

export class OwnerLock {
  readonly #cells: Int32Array
  readonly #at: number
  readonly #tenures: number
  readonly #owner: number
  /** The tenure that this thread has waited for in vain. */
  #vainTenure = -1

  /** `at`: cell of the lock. `tenures`: cell that counts its acquisitions. `owner`: positive, of one living thread. */
  constructor(cells: Int32Array, at: number, tenures: number, owner: number) {
    this.#cells = cells
    this.#at = at
    this.#tenures = tenures
    this.#owner = owner
  }

  /** False: the lock was not free in time. */
  acquire(): boolean {
    const cells = this.#cells
    let deadline = 0
    for (let spins = 0; Atomics.compareExchange(cells, this.#at, 0, this.#owner) !== 0; spins++) {
      if (spins < LOCK_SPINS) continue
      // A tenure that was waited for in vain is that of a dead thread: nobody waits for it twice.
      const tenure = Atomics.load(cells, this.#tenures)
      if (tenure === this.#vainTenure) return false
      const now = performance.now()
      deadline ||= now + LOCK_WAIT_MS
      if (now >= deadline) {
        this.#vainTenure = tenure
        return false
      }
      const owner = Atomics.load(cells, this.#at)
      if (owner !== 0) Atomics.wait(cells, this.#at, owner, 1)
    }
    Atomics.add(cells, this.#tenures, 1)
    return true
  }

  release(): void {
    Atomics.store(this.#cells, this.#at, 0)
    Atomics.notify(this.#cells, this.#at, 1)
  }

  /** Takes the lock from an owner that has died, whose own repair may have died too. False: the owner had it not. */
  takeFrom(owner: number): boolean {
    const taken = -this.#owner
    const isTaken = [owner, -owner].some(held => Atomics.compareExchange(this.#cells, this.#at, held, taken) === held)
    // Others wait for this tenure, though they have waited for that of the dead owner in vain.
    if (isTaken) Atomics.add(this.#cells, this.#tenures, 1)
    return isTaken
  }
}
