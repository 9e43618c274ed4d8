/** One answer for all who ask the same at the same time; whoever asks once it is there begins anew. */
export class SharedAnswers<T> {
  readonly #underWay = new Map<string, Promise<T>>()

  get size(): number {
    return this.#underWay.size
  }

  has(name: string): boolean {
    return this.#underWay.has(name)
  }

  /** `begin` is called where nobody has asked under this name. */
  ask(name: string, begin: () => Promise<T>): Promise<T> {
    const known = this.#underWay.get(name)
    if (known !== undefined) return known
    const answer: Promise<T> = begin().finally(() => {
      // Everything may have been forgotten, and asked for anew.
      if (this.#underWay.get(name) === answer) this.#underWay.delete(name)
    })
    this.#underWay.set(name, answer)
    return answer
  }

  /** Those who wait get their answers; nobody joins them any more. */
  forget(): void {
    this.#underWay.clear()
  }
}
