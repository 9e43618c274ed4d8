/**
 * Assigns slots of a table in shared memory to owners, which are texts. An owner keeps its slot across reloads. New
 * owners get fresh slots first, then the slots freed longest ago, and only those without activity of the former owner.
 */
export class SlotAllocator {
  readonly #slots = new Map<string, number>()
  /** Longest free first. */
  readonly #free: number[] = []
  #fresh: number
  readonly #end: number
  readonly #isIdle: (slot: number) => boolean

  /** Slots from `first` to `end - 1`. `isIdle`: nothing of a former owner is under way in the slot. */
  constructor(first: number, end: number, isIdle: (slot: number) => boolean) {
    this.#fresh = first
    this.#end = end
    this.#isIdle = isIdle
  }

  slotOf(owner: string): number | undefined {
    return this.#slots.get(owner)
  }

  /** A slot for an owner without one; undefined if none is left. */
  allocate(owner: string): number | undefined {
    const slot = this.#fresh < this.#end ? this.#fresh++ : this.#reused()
    if (slot !== undefined) this.#slots.set(owner, slot)
    return slot
  }

  #reused(): number | undefined {
    const at = this.#free.findIndex(slot => this.#isIdle(slot))
    return at === -1 ? undefined : this.#free.splice(at, 1)[0]
  }

  /** Frees the slots of all other owners. */
  retain(owners: ReadonlySet<string>): void {
    for (const [owner, slot] of this.#slots) {
      if (owners.has(owner)) continue
      this.#slots.delete(owner)
      this.#free.push(slot)
    }
  }
}
