/**
 * Counting words: 64 bits with, from the lowest, a count (36), the generation of the slot (3), and the number of the
 * window (25). Words of even and of odd windows stand apart, so that 25 bits tell windows apart for 2^26 of them.
 */
import type { Quota } from './policy.ts'

export const COUNT_BITS = 36
export const COUNT_MAX = 2 ** COUNT_BITS - 1
/** Quotas of bytes from here on are counted in larger units, so that twice the quota fits into a word. */
const UNSCALED_MAX = 2 ** (COUNT_BITS - 1)
export const COUNT_SHIFT = 36n
export const GENERATION_MASK = 7
export const WINDOW_MASK = 0x1ff_ffff
/** Windows are numbered modulo 2^26, because each of the two words has every other one. */
const NUMBER_SHIFT = 32 - 26

/** Upper 28 bits of a word: window and generation, as a signed number. */
export function tagOf(number: number, generation: number): number {
  return ((((number / 2) & WINDOW_MASK) << 7) | (((generation >> 1) & GENERATION_MASK) << 4)) >> 4
}

export function wordOf(tag: number, count: number): bigint {
  return (BigInt(tag) << COUNT_SHIFT) | BigInt(count)
}

/** How many windows a tag of the word of `parity` is ahead of window `number`; negative: behind. */
export function windowsAhead(tag: number, parity: number, number: number): number {
  return ((((tag >> 3) & WINDOW_MASK) * 2 + parity - (number % 2 ** 26)) << NUMBER_SHIFT) >> NUMBER_SHIFT
}

/** Bits by which bytes are divided before they are counted. */
export function scaleOf({ type, limit }: Pick<Quota, 'type' | 'limit'>): number {
  return type === 'bandwidth' ? Math.max(0, Math.ceil(Math.log2(limit / UNSCALED_MAX))) : 0
}
