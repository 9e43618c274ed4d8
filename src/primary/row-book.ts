/**
 * Who has which row of a table that reactors and primary share. Rows stay with their owners over reloads; what a
 * removed owner had rests before somebody else gets it: fresh rows go out first, then those freed longest ago, and only
 * those in which nothing is under way any more.
 */
export class RowBook {
  readonly #owners = new Map<string, number>()
  /** Longest free first. */
  readonly #free: number[] = []
  #fresh: number
  readonly #end: number
  readonly #isQuiet: (row: number) => boolean

  /** `first`: rows before it belong to nobody. `isQuiet`: nothing of a former owner is under way. */
  constructor(first: number, rows: number, isQuiet: (row: number) => boolean) {
    this.#fresh = first
    this.#end = rows
    this.#isQuiet = isQuiet
  }

  get owners(): Iterable<string> {
    return this.#owners.keys()
  }

  rowOf(owner: string): number | undefined {
    return this.#owners.get(owner)
  }

  /** For an owner that has none. Undefined: there is none left. */
  take(owner: string): number | undefined {
    const row = this.#fresh < this.#end ? this.#fresh++ : this.#rested()
    if (row !== undefined) this.#owners.set(owner, row)
    return row
  }

  #rested(): number | undefined {
    const at = this.#free.findIndex(row => this.#isQuiet(row))
    return at === -1 ? undefined : this.#free.splice(at, 1)[0]
  }

  /** Nobody uses it as this owner's from now on. */
  free(owner: string): void {
    const row = this.#owners.get(owner)
    if (row === undefined) return
    this.#owners.delete(owner)
    this.#free.push(row)
  }
}
