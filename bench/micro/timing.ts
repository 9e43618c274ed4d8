/**
 * Two timers for micro-benchmarks: `time` for one operation, `compare` for alternatives that take turns. Compare only
 * figures of one run; a difference smaller than the spread means nothing.
 */
import { getHeapStatistics } from 'node:v8'
import { MeasuredTable } from '../measured-table.ts'
import { median } from '../results.ts'

const ROUNDS = 15
const TIME_ROUND_MS = 40
const COMPARE_ROUND_MS = 12
/** Turns of a candidate are numbered from 0 to 4,095, repeatedly. */
const TURNS = 4096

function callsPerRound(operation: () => void): number {
  // By doubling, so that the operation is compiled long before the first round.
  for (let calls = 1; ; calls *= 2) {
    const start = performance.now()
    for (let i = 0; i < calls; i++) operation()
    if (performance.now() - start >= TIME_ROUND_MS) return calls
  }
}

const timings = new MeasuredTable('One operation', { ns: 0, least: 0, most: 0 })

/** Prints and records nanoseconds per call: the median and the range of the rounds. */
export function time(name: string, operation: () => void): void {
  const calls = callsPerRound(operation)
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    for (let i = 0; i < calls; i++) operation()
    rounds.push(((performance.now() - start) * 1e6) / calls)
  }
  timings.row(name, median(rounds), Math.min(...rounds), Math.max(...rounds))
}

interface Candidate {
  readonly name: string
  readonly run: (turn: number) => unknown
}

interface TimedCandidate extends Candidate {
  calls: number
  readonly nanoseconds: number[]
  readonly allocated: number[]
}

/** Holds results, so that the compiler cannot remove the calls. */
let sink: unknown = null

type CpuClock = 'cpuUsage' | 'threadCpuUsage'

function runTimed({ run }: Candidate, calls: number, clock: CpuClock): number {
  const started = process[clock]()
  for (let i = 0; i < calls; i++) sink = run(i & (TURNS - 1))
  const { user, system } = process[clock](started)
  return (user + system) / 1000
}

function turnsPerRound(candidate: Candidate, clock: CpuClock): number {
  for (let calls = 2 * TURNS; ; calls *= 2) {
    const took = runTimed(candidate, calls, clock)
    if (took >= COMPARE_ROUND_MS) return Math.ceil((calls * COMPARE_ROUND_MS) / took / TURNS) * TURNS
  }
}

function allocatedBytes(): number {
  return (getHeapStatistics() as unknown as { total_allocated_bytes: number }).total_allocated_bytes
}

/**
 * Prints and records CPU nanoseconds and allocated bytes per call of each candidate, as medians of rounds in which all
 * take turns. The first candidate is the common base; its time is subtracted from the others. CPU time is that of the
 * process, garbage collection included; `clock` selects that of the thread where another thread works too.
 */
export function compare(title: string, candidates: readonly Candidate[], clock: CpuClock = 'cpuUsage'): void {
  const timed: TimedCandidate[] = candidates.map(candidate => ({
    ...candidate,
    calls: 0,
    nanoseconds: [],
    allocated: [],
  }))
  for (const one of timed) one.calls = turnsPerRound(one, clock)
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of timed) {
      const before = allocatedBytes()
      one.nanoseconds.push((runTimed(one, one.calls, clock) * 1e6) / one.calls)
      one.allocated.push((allocatedBytes() - before) / one.calls)
    }
  }
  const base = timed[0]!.nanoseconds
  const table = new MeasuredTable(title, { ns: 0, from: 0, to: 0, 'bytes allocated': 0 })
  for (const { name, nanoseconds, allocated } of timed) {
    // Differences within a round, because a machine that slows down affects both.
    const own = nanoseconds === base ? nanoseconds : nanoseconds.map((value, round) => value - base[round]!)
    const sorted = [...own].sort((a, b) => a - b)
    table.row(name, median(own), sorted[2], sorted[sorted.length - 3], median(allocated))
  }
  if (sink === timed) console.log('never')
}
