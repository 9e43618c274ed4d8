/** Whether two places of the arena hold the same bytes, in a time that tells nothing of where they differ. */
import { arena, arenaMemory } from './llhttp.ts'

/**
 * `isSame(a, b, length)`, 16 bytes a step, from 16 bytes on: 5 times as quick as the same in JavaScript. The text that
 * it was assembled from:
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

const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(MODULE, 'base64')), {
  env: { memory: arenaMemory },
})
const { isSame: inSteps } = exports as { readonly isSame: InSteps }

export function isSame(a: number, b: number, length: number): boolean {
  if (length >= STEP_BYTES) return inSteps(a, b, length) !== 0
  const { bytes } = arena
  let difference = 0
  for (let i = 0; i < length; i++) difference |= bytes[a + i]! ^ bytes[b + i]!
  return difference === 0
}
