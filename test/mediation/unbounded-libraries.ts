/** The libraries of expressions without bounds, what random tests of bounds need, and their work in steps. */
import { createRequire } from 'node:module'
import { beginTurn } from '../../src/mediation/flow-limits.ts'

/** A second copy of a library, without bounds. */
export function unboundedLibrary<T>(name: 'xpath' | 'json-p3'): T {
  const require = createRequire(import.meta.url)
  const path = require.resolve(name)
  const { [path]: cached } = require.cache
  delete require.cache[path]
  const library = require(path)
  require.cache[path] = cached
  return library
}

/** Pseudo-random numbers from a seed, so that a failure can be repeated. */
export function dice(seed: number): (sides: number) => number {
  let state = seed
  return sides => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

/** Looks at the clock in one evaluation: one for each 4,096 steps. */
export function looksOf(evaluate: () => unknown): number {
  const { now } = performance
  let looks = 0
  performance.now = () => {
    looks++
    return now.call(performance)
  }
  try {
    beginTurn()
    evaluate()
  } finally {
    performance.now = now
  }
  return looks
}
