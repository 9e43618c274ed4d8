/**
 * The ratio of the costs of two programs, with its confidence interval, from rounds in which both took turns. Machines
 * drift by more than the few per cent in question, so each round gives a ratio, and the ratios are summarized.
 */
import { Random } from '../../test/harness/random.ts'
import { median } from '../results.ts'

export interface PairedRatio {
  readonly ratio: number
  /** Lower and upper bound of the 95 % confidence interval. */
  readonly low: number
  readonly high: number
  /** Number of rounds. */
  readonly pairs: number
  /** Number of times that both programs were started. */
  readonly starts: number
}

const RESAMPLES = 4000
const CONFIDENCE = 0.95
const SEED = 1

/**
 * The median of all ratios with its bootstrap confidence interval; `starts` holds the ratios of each start. A program
 * that happens to be compiled or laid out well stays so until it ends, so the rounds of one start are not independent.
 * The bootstrap therefore draws starts first, and rounds within them.
 */
export function pairedRatio(starts: readonly (readonly number[])[]): PairedRatio {
  const useful = starts.filter(ratios => ratios.length > 0)
  const all = useful.flat()
  // Seeded, so that the same rounds give the same bounds.
  const random = new Random(SEED)
  const medians = Array.from({ length: RESAMPLES }, () => {
    return median(useful.flatMap(() => resampled(random.pick(useful), random)))
  }).sort((a, b) => a - b)
  const tail = (1 - CONFIDENCE) / 2
  const at = (share: number): number => medians[Math.min(RESAMPLES - 1, Math.floor(share * RESAMPLES))] ?? Number.NaN
  return { ratio: median(all), low: at(tail), high: at(1 - tail), pairs: all.length, starts: useful.length }
}

function resampled(ratios: readonly number[], random: Random): number[] {
  return ratios.map(() => random.pick(ratios))
}

/** With fewer starts the variation between starts is unknown. */
const STARTS_MIN = 4

/** The verdict on a ratio: whether its confidence interval lies within the limit, beyond it, or around it. */
export function verdictOf({ low, high, starts }: PairedRatio, limit: number): string {
  if (starts < STARTS_MIN) return `not decided, needs ${STARTS_MIN} starts`
  if (high <= limit) return 'met'
  return low > limit ? 'missed' : 'not decided by this run'
}
