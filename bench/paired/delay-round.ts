/**
 * A round that shows how long other requests of a proxy wait: a client at a low rate sends them without any other load,
 * then beside the main one. A gateway with `peers/loop-delay.js` also tells the delay of its event loop.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { drive, driveRecorded } from '../load/drive.ts'
import { LatencyHistogram } from '../load/latency-histogram.ts'
import type { LoadPlan, RecordingOutcome } from '../load/load-plan.ts'
import type { Sample } from '../metric.ts'
import type { Program } from '../program.ts'
import { median } from '../results.ts'
import { measureLoad, type RunningPeer } from '../rounds.ts'
import type { BesideClient } from './paired-scenarios.ts'

/** A line of `peers/loop-delay.js`: 99th percentile of half a second, in milliseconds. */
const LOOP_DELAY = /^loop delay (\S+)$/

export async function delayRound(
  peer: RunningPeer,
  { path, connections, ratePerSecond }: BesideClient,
  plan: LoadPlan,
  folder: string,
): Promise<Sample> {
  const { port, seconds } = plan
  const recording = { port, path, connections, ratePerSecond, seconds }
  const idle = await withLoopDelay(peer.program, () => driveRecorded(recording, () => sleep(seconds * 1000)))
  let beside = idle.result[0]
  const busy = await withLoopDelay(peer.program, () =>
    measureLoad(peer, async () => {
      const [recorded, load] = await driveRecorded(recording, () => drive(plan, folder))
      beside = recorded
      return load
    }),
  )
  const [idleP50Ms, idleP99Ms] = latencies(idle.result[0])
  const [p50Ms, p99Ms] = latencies(beside)
  return {
    ...busy.result,
    idleLoopP99Ms: idle.p99Ms,
    loopP99Ms: busy.p99Ms,
    idleBesideP50Ms: idleP50Ms,
    idleBesideP99Ms: idleP99Ms,
    besideP50Ms: p50Ms,
    besideP99Ms: p99Ms,
    besideErrors: beside.due - successes(beside).length,
  }
}

/** `p99Ms`: median of the periods; NaN for a peer that prints none. */
async function withLoopDelay<Result>(
  program: Program,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly p99Ms: number }> {
  const periods: number[] = []
  const removeListener = program.onLine(line => {
    const found = LOOP_DELAY.exec(line)
    if (found !== null) periods.push(Number(found[1]))
  })
  try {
    const result = await work()
    // The first one began before the work.
    return { result, p99Ms: median(periods.slice(1)) }
  } finally {
    removeListener()
  }
}

export function successes({ records }: RecordingOutcome): RecordingOutcome['records'] {
  return records.filter(({ status }) => status === 200)
}

/** Median and 99th percentile in milliseconds, each from the time at which each request was due. */
export function latencies(outcome: RecordingOutcome): readonly [p50Ms: number, p99Ms: number] {
  const histogram = new LatencyHistogram()
  for (const { intendedMs, answeredMs } of successes(outcome)) histogram.record(answeredMs - intendedMs)
  return [histogram.percentileMs(0.5), histogram.percentileMs(0.99)]
}
