/** Compares two stretches of the arena in a time that does not depend on where they differ. */
import { arenaFunctions } from './arena-module.ts'
import { arena } from './llhttp.ts'

/**
 * WebAssembly module with `isSame(a, b, length)` for 16 bytes and more, 16 bytes per step: five times faster than
 * JavaScript. Assembled from this text:
 *
 *     last = a + length - 16
 *     do { sum |= *a ^ *b; a += 16; b += 16 } while (a < last)
 *     return !any_true(sum | *last ^ *(b + last - a))
 */
const MODULE =
  'AGFzbQEAAAABCAFgA39/fwF/Ag8BA2VudgZtZW1vcnkCAAEDAgEABwoBBmlzU2FtZQAACl0BWwIBfwF7IAAgAkEQa2ohAwNAIAQgAP0AAAAgAf0A' +
  'AAD9Uf1QIQQgAEEQaiEAIAFBEGohASAAIANIDQALIAEgAyAAa2ohASAEIAP9AAAAIAH9AAAA/VH9UP1TRQs='
const STEP_BYTES = 16

type InSteps = (a: number, b: number, length: number) => number

const { isSame: inSteps } = arenaFunctions<{ readonly isSame: InSteps }>(MODULE)

/** Offsets into the arena, length in bytes. */
export function isEqual(a: number, b: number, length: number): boolean {
  if (length >= STEP_BYTES) return inSteps(a, b, length) !== 0
  const { bytes } = arena
  let difference = 0
  for (let i = 0; i < length; i++) difference |= bytes[a + i]! ^ bytes[b + i]!
  return difference === 0
}
