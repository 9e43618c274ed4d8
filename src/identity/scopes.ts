/** Scopes of an API as bits: whether a token has one of those that a resource takes is then a question of ANDs. */

/** Words of 32 bits. */
export type ScopeMask = readonly number[]

export class ScopeBits {
  readonly #bits = new Map<string, number>()

  /** Those that resources ask for; each is counted once. */
  constructor(scopes: Iterable<string>) {
    for (const scope of scopes) if (!this.#bits.has(scope)) this.#bits.set(scope, this.#bits.size)
  }

  /** Scopes that no resource asks for have no bit. */
  maskOf(held: Iterable<string>): ScopeMask {
    const mask: number[] = new Array(Math.ceil(this.#bits.size / 32)).fill(0)
    for (const scope of held) {
      const bit = this.#bits.get(scope)
      if (bit !== undefined) mask[bit >>> 5]! |= 1 << (bit & 31)
    }
    return mask
  }

  /** What somebody holds for whom `holds` is true of a scope. */
  maskWhere(holds: (scope: string) => boolean): ScopeMask {
    return this.maskOf([...this.#bits.keys()].filter(holds))
  }
}

/** Whether any scope stands in both. Masks are of the same API. */
export function sharesScope(one: ScopeMask, other: ScopeMask): boolean {
  for (let word = 0; word < one.length; word++) if ((one[word]! & other[word]!) !== 0) return true
  return false
}
