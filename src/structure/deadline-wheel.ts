/**
 * One coarse timer wheel for all deadlines of a thread. Owns which entry is due when. Pushing a deadline back, which
 * happens several times per request, is one store: the entry stays in its slot and is moved when that slot comes up.
 * Slots are linked lists through the entries, so that a closed connection leaves at once and nothing is allocated.
 */

/** Something with a deadline. An entry belongs to one wheel at most. */
export abstract class Deadline {
  /** Tick at which it is due; 0: never. */
  dueTick = 0
  /** Tick of the slot it stands in; 0: in none. */
  slotTick = 0
  before: Deadline | null = null
  after: Deadline | null = null
  abstract onDeadline(): void
  /** `onDeadline` threw. The other deadlines of the tick are served all the same. */
  abstract onBug(error: unknown): void
}

/** The fixed end of a slot's list. */
class Anchor extends Deadline {
  override onDeadline(): void {
    throw new Error('the end of a slot has no deadline')
  }

  override onBug(error: unknown): void {
    throw error
  }
}

const SLOTS = 512

export class DeadlineWheel {
  readonly tickMs: number
  readonly #slots: Anchor[] = Array.from({ length: SLOTS }, () => new Anchor())
  #tick = 1

  /** `tickMs`: milliseconds between two calls of `turn`; deadlines are late by up to two of them, never early. */
  constructor(tickMs: number) {
    this.tickMs = tickMs
  }

  /** Due in `ms` milliseconds from now, replacing what was set before. */
  set(entry: Deadline, ms: number): void {
    const due = this.#tick + Math.ceil(ms / this.tickMs) + 1
    entry.dueTick = due
    if (entry.slotTick !== 0) {
      if (entry.slotTick <= due) return
      this.#take(entry)
    }
    this.#place(entry, due)
  }

  /** No deadline for now: the entry keeps its place in the wheel, for one that sets the next soon. */
  suspend(entry: Deadline): void {
    entry.dueTick = 0
  }

  /** No deadline any more; the entry leaves the wheel. */
  clear(entry: Deadline): void {
    entry.dueTick = 0
    if (entry.slotTick !== 0) this.#take(entry)
  }

  /** One tick later: every entry that is due gets `onDeadline`. */
  turn(): void {
    const tick = ++this.#tick
    const anchor = this.#slots[tick % SLOTS]!
    for (let entry = anchor.after; entry !== null; entry = anchor.after) {
      this.#take(entry)
      if (entry.dueTick > tick) this.#place(entry, entry.dueTick)
      else if (entry.dueTick !== 0) {
        entry.dueTick = 0
        try {
          entry.onDeadline()
        } catch (error) {
          entry.onBug(error)
        }
      }
    }
  }

  /** Far deadlines wait in the farthest slot of this round and are placed again from there. */
  #place(entry: Deadline, due: number): void {
    const tick = Math.min(due, this.#tick + SLOTS - 1)
    const anchor = this.#slots[tick % SLOTS]!
    entry.slotTick = tick
    entry.before = anchor
    entry.after = anchor.after
    if (anchor.after !== null) anchor.after.before = entry
    anchor.after = entry
  }

  #take(entry: Deadline): void {
    entry.before!.after = entry.after
    if (entry.after !== null) entry.after.before = entry.before
    entry.before = null
    entry.after = null
    entry.slotTick = 0
  }
}
