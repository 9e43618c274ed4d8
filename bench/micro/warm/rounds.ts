/**
 * Times alternatives against each other: a round takes each of them once, the first of a group being what all of them
 * have to do anyway. Printed are medians of the rounds without that of the first, and the bytes that a call allocates.
 * It is processor time of the whole process: that of collecting what was allocated is in it, that of neighbours is not.
 */
import { getHeapStatistics } from 'node:v8'
import { median } from '../../results.ts'

const ROUNDS = 15
const ROUND_MS = 12
const LANES = 4096

interface Candidate {
  readonly name: string
  /** `turn`: from 0 to 4,095, again and again. */
  readonly run: (turn: number) => unknown
}

interface Timed extends Candidate {
  calls: number
  readonly nanoseconds: number[]
  readonly allocated: number[]
}

/** What was found, so that nothing is left out because nobody looks at it. */
let sink: unknown = null

type Clock = 'cpuUsage' | 'threadCpuUsage'

function call({ run }: Candidate, calls: number, clock: Clock): number {
  const started = process[clock]()
  for (let i = 0; i < calls; i++) sink = run(i & (LANES - 1))
  const { user, system } = process[clock](started)
  return (user + system) / 1000
}

function callsOf(candidate: Candidate, clock: Clock): number {
  for (let calls = 2 * LANES; ; calls *= 2) {
    const took = call(candidate, calls, clock)
    if (took >= ROUND_MS) return Math.ceil((calls * ROUND_MS) / took / LANES) * LANES
  }
}

function allocatedBytes(): number {
  return (getHeapStatistics() as unknown as { total_allocated_bytes: number }).total_allocated_bytes
}

/** `clock`: of this thread alone where another one works beside it. */
export function compare(title: string, candidates: readonly Candidate[], clock: Clock = 'cpuUsage'): void {
  const timed: Timed[] = candidates.map(candidate => ({ ...candidate, calls: 0, nanoseconds: [], allocated: [] }))
  for (const one of timed) one.calls = callsOf(one, clock)
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of timed) {
      const before = allocatedBytes()
      one.nanoseconds.push((call(one, one.calls, clock) * 1e6) / one.calls)
      one.allocated.push((allocatedBytes() - before) / one.calls)
    }
  }
  const base = timed[0]!.nanoseconds
  console.log(`\n${title.padEnd(72)}    ns  (spread)      bytes`)
  for (const { name, nanoseconds, allocated } of timed) {
    // Differences within a round: a machine that slows down slows both.
    const own = nanoseconds === base ? nanoseconds : nanoseconds.map((value, round) => value - base[round]!)
    const sorted = [...own].sort((a, b) => a - b)
    const spread = `(${sorted[2]!.toFixed(0)}–${sorted[sorted.length - 3]!.toFixed(0)})`
    const time = median(own).toFixed(0).padStart(6)
    const size = median(allocated).toFixed(0).padStart(5)
    console.log(`  ${name.padEnd(70)}${time}  ${spread.padEnd(13)} ${size}`)
  }
  if (sink === timed) console.log('never')
}
