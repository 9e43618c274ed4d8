/**
 * Whether one program costs more than another, from rounds in which both took their turn. Machines drift by more than
 * the few per cent in question, so that medians of both do not answer it: each round gives a ratio of neighbours, and
 * how much those ratios vary says how far their median can be believed.
 */
import { Random } from '../../test/harness/random.ts'
import { median } from '../results.ts'

export interface PairedRatio {
  readonly ratio: number
  /** Between these it lies with a confidence of 95 %. */
  readonly low: number
  readonly high: number
  readonly pairs: number
  /** How often both programs were started anew. */
  readonly starts: number
}

const RESAMPLES = 4000
const CONFIDENCE = 0.95
const SEED = 1

/**
 * The ratios of each start of both programs. A program that was compiled or laid out a little better at its start stays
 * so until its end: rounds of one start agree with each other more than with those of another. The bootstrap therefore
 * draws starts first, and rounds within them.
 */
export function pairedRatio(starts: readonly (readonly number[])[]): PairedRatio {
  const useful = starts.filter(ratios => ratios.length > 0)
  const all = useful.flat()
  // Seeded: the same rounds give the same bounds.
  const random = new Random(SEED)
  const middles = Array.from({ length: RESAMPLES }, () => {
    return median(useful.flatMap(() => drawn(random.pick(useful), random)))
  }).sort((a, b) => a - b)
  const tail = (1 - CONFIDENCE) / 2
  const at = (share: number): number => middles[Math.min(RESAMPLES - 1, Math.floor(share * RESAMPLES))] ?? Number.NaN
  return { ratio: median(all), low: at(tail), high: at(1 - tail), pairs: all.length, starts: useful.length }
}

function drawn(ratios: readonly number[], random: Random): number[] {
  return ratios.map(() => random.pick(ratios))
}

/** With fewer, how much starts differ is not known. */
const STARTS_MIN = 4

/** What such bounds say of a limit. */
export function verdictOf({ low, high, starts }: PairedRatio, limit: number): string {
  if (starts < STARTS_MIN) return `not decided: that takes ${STARTS_MIN} starts`
  if (high <= limit) return 'met'
  return low > limit ? 'missed' : 'not decided by this run'
}
