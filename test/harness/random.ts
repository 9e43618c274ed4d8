/** Seeded randomness: the same seed gives the same test. `SLUICE_SEED` repeats a failure. */

/** Long runs: `npm run test:long`. */
export const IS_LONG = process.env.SLUICE_LONG === '1'

/** The seed of this run: fixed in short runs, so that they are repeatable, and fresh in long ones. */
export const SEED = Number(process.env.SLUICE_SEED ?? (IS_LONG ? Date.now() % 1_000_000_000 : 20_260))

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** mulberry32: 32 bits. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** From 0 up to but not including `end`. */
  below(end: number): number {
    return end <= 1 ? 0 : this.next() % end
  }

  /** From `first` to `last`. */
  between(first: number, last: number): number {
    return first + this.below(last - first + 1)
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0
  }

  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!
  }

  /** So many characters of an alphabet. */
  text(length: number, alphabet: string): string {
    let text = ''
    for (let i = 0; i < length; i++) text += alphabet[this.below(alphabet.length)]
    return text
  }

  /** Positions at which to cut so many bytes: none, everywhere at the beginning, or anywhere. */
  cuts(length: number): number[] {
    switch (this.below(4)) {
      case 0:
        return []
      case 1: {
        const first = Math.min(length, 120)
        return Array.from({ length: first }, (_, i) => i + 1)
      }
      default: {
        const count = this.between(1, 12)
        return Array.from({ length: count }, () => this.below(length)).sort((a, b) => a - b)
      }
    }
  }
}
