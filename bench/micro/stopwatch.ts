/**
 * Times one operation: rounds of many calls, nanoseconds per call, the median of the rounds and how far they spread.
 * Compare only what was timed in one run, and read a difference smaller than the spread as none.
 */
import { median } from '../results.ts'

const ROUNDS = 15
const ROUND_MS = 40

function callsPerRound(operation: () => void): number {
  let calls = 1
  for (;;) {
    const start = performance.now()
    for (let i = 0; i < calls; i++) operation()
    const took = performance.now() - start
    // By doubling, so that the operation is compiled long before the first round that counts.
    if (took >= ROUND_MS) return calls
    calls *= 2
  }
}

export function time(name: string, operation: () => void): void {
  const calls = callsPerRound(operation)
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    for (let i = 0; i < calls; i++) operation()
    rounds.push(((performance.now() - start) * 1e6) / calls)
  }
  const spread = `${Math.min(...rounds).toFixed(0)}–${Math.max(...rounds).toFixed(0)}`
  console.log(`${name.padEnd(52)} ${median(rounds).toFixed(0).padStart(7)} ns   (${spread})`)
}
