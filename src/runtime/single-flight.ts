/** Deduplicates calls: concurrent callers of one key share a call, later callers start a new one. */
export class SingleFlight<T> {
  readonly #underWay = new Map<string, Promise<T>>()

  get size(): number {
    return this.#underWay.size
  }

  has(key: string): boolean {
    return this.#underWay.has(key)
  }

  /** Calls `start` where no call of the key is under way. */
  run(key: string, start: () => Promise<T>): Promise<T> {
    const known = this.#underWay.get(key)
    if (known !== undefined) return known
    const call: Promise<T> = start().finally(() => {
      // After `clear` another call may stand under the key.
      if (this.#underWay.get(key) === call) this.#underWay.delete(key)
    })
    this.#underWay.set(key, call)
    return call
  }

  /** Lets no later caller join the calls that are under way. Their own callers still get the results. */
  clear(): void {
    this.#underWay.clear()
  }
}
