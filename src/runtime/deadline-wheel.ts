/**
 * Timer wheel for all deadlines of a thread. Moving a deadline back, which happens several times per request, is one
 * store: the entry stays in its slot and moves when that slot is due. Slots are linked lists through the entries, so
 * that removing an entry takes constant time and nothing is allocated.
 */

/** An object with a deadline. It belongs to one wheel at most. */
export abstract class Deadline {
  /** Tick at which it is due; 0 for never. */
  dueTick = 0
  /** Tick of the slot that holds the entry; 0 for none. */
  slotTick = 0
  previous: Deadline | null = null
  next: Deadline | null = null
  abstract onDeadline(): void
  /** Called when `onDeadline` throws; the wheel serves the other entries of the tick all the same. */
  abstract onError(error: unknown): void
}

/** Head of a slot's list. */
class Anchor extends Deadline {
  override onDeadline(): void {
    throw new Error('the head of a slot has no deadline')
  }

  override onError(error: unknown): void {
    throw error
  }
}

const SLOTS = 512

export class DeadlineWheel {
  readonly tickMs: number
  readonly #slots: Anchor[] = Array.from({ length: SLOTS }, () => new Anchor())
  #tick = 1

  /** `tickMs`: milliseconds between two calls of `advance`. Deadlines are up to two ticks late and never early. */
  constructor(tickMs: number) {
    this.tickMs = tickMs
  }

  /** Sets the deadline to `ms` milliseconds from now; replaces an earlier one. */
  set(entry: Deadline, ms: number): void {
    const due = this.#tick + Math.ceil(ms / this.tickMs) + 1
    entry.dueTick = due
    if (entry.slotTick !== 0) {
      if (entry.slotTick <= due) return
      this.#unlink(entry)
    }
    this.#link(entry, due)
  }

  /** Removes the deadline and leaves the entry in its slot: cheap where the next deadline follows soon. */
  suspend(entry: Deadline): void {
    entry.dueTick = 0
  }

  /** Removes the deadline and the entry. */
  clear(entry: Deadline): void {
    entry.dueTick = 0
    if (entry.slotTick !== 0) this.#unlink(entry)
  }

  /** Advances the clock by one tick and calls `onDeadline` of every entry that is due. */
  advance(): void {
    const tick = ++this.#tick
    const anchor = this.#slots[tick % SLOTS]!
    for (let entry = anchor.next; entry !== null; entry = anchor.next) {
      this.#unlink(entry)
      if (entry.dueTick > tick) this.#link(entry, entry.dueTick)
      else if (entry.dueTick !== 0) {
        entry.dueTick = 0
        try {
          entry.onDeadline()
        } catch (error) {
          entry.onError(error)
        }
      }
    }
  }

  /** Deadlines beyond one round wait in the farthest slot and are linked again from there. */
  #link(entry: Deadline, due: number): void {
    const tick = Math.min(due, this.#tick + SLOTS - 1)
    const anchor = this.#slots[tick % SLOTS]!
    entry.slotTick = tick
    entry.previous = anchor
    entry.next = anchor.next
    if (anchor.next !== null) anchor.next.previous = entry
    anchor.next = entry
  }

  #unlink(entry: Deadline): void {
    entry.previous!.next = entry.next
    if (entry.next !== null) entry.next.previous = entry.previous
    entry.previous = null
    entry.next = null
    entry.slotTick = 0
  }
}
