/**
 * The speed probe: a fixed computation on the proxy's core, timed between rounds. Virtual machines drift by a factor of
 * two within an hour without visible cause; rounds with different probe times do not compare.
 *
 * Its own process (`node bench/probe.ts --serve`) prints the milliseconds of one computation for each line of input.
 */
import { fileURLToPath } from 'node:url'
import { PROXY_CORE, Program, pinned } from './program.ts'

const STEPS = 20_000_000
const ATTEMPTS = 3

function compute(): number {
  let word = 1
  for (let step = 0; step < STEPS; step++) word = (Math.imul(word ^ (word >>> 15), 0x2c1b3c6d) + step) | 0
  return word
}

/** The best of a few attempts, so that short disturbances by other programs do not count. */
function probeOnce(): number {
  let best = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const start = performance.now()
    if (compute() === 0.5) throw new Error('unreachable: the compiler must not remove the computation')
    best = Math.min(best, performance.now() - start)
  }
  return best
}

export class SpeedProbe {
  readonly #program = new Program(
    'the speed probe',
    pinned(PROXY_CORE, [process.execPath, fileURLToPath(import.meta.url), '--serve']),
  )

  async measure(): Promise<number> {
    const answer = this.#program.waitForLine(/^probe /)
    this.#program.child.stdin?.write('\n')
    return Number((await answer).line.slice(6))
  }

  stop(): Promise<void> {
    return this.#program.stop()
  }
}

if (process.argv[2] === '--serve') {
  compute() // The first measurement needs compiled code too.
  process.stdin.on('data', () => console.log(`probe ${probeOnce().toFixed(2)}`))
  process.stdin.on('end', () => process.exit(0))
}
