/** When a delivery is tried again, and when it is given up. */
import type { AttemptResult } from './attempt.ts'

export interface RetrySchedule {
  /** Upper end of the first delay; doubled with each attempt up to `delayMsMax`. */
  readonly delayMs: number
  readonly delayMsMax: number
  readonly attemptsMax: number
  /** Milliseconds from the acceptance to the last attempt. */
  readonly ageMsMax: number
  /** Longest wait that a receiver may ask for. */
  readonly askedMsMax: number
}

export const DEFAULT_SCHEDULE: RetrySchedule = {
  delayMs: 2000,
  delayMsMax: 900_000,
  attemptsMax: 50,
  ageMsMax: 86_400_000,
  askedMsMax: 3_600_000,
}

interface TriedDelivery {
  /** Attempts before this one. */
  readonly attempts: number
  readonly sinceMs: number
}

/** The event of `delivery-states.ts` that a result is, with the time of the next attempt. */
export type Verdict =
  | { readonly event: 'succeed' | 'fail'; readonly cause: string }
  | { readonly event: 'postpone'; readonly cause: string; readonly atMs: number }

/** `random`: from 0 up to 1. `isAged`: ages can be judged. */
export function verdictOf(
  result: AttemptResult,
  { attempts, sinceMs }: TriedDelivery,
  nowMs: number,
  schedule: RetrySchedule,
  { random, isAged }: { readonly random: number; readonly isAged: boolean },
): Verdict {
  if (result.kind === 'delivered') return { event: 'succeed', cause: result.detail }
  if (result.kind === 'failed') return { event: 'fail', cause: result.cause }
  const { cause, afterMs } = result
  const made = attempts + 1
  if (made >= schedule.attemptsMax) return { event: 'fail', cause: `given up after ${made} attempts: ${cause}` }
  const delayMs = afterMs === null ? backoffMs(made, schedule, random) : askedMs(afterMs, schedule)
  if (isAged && nowMs + delayMs > sinceMs + schedule.ageMsMax) {
    return { event: 'fail', cause: `given up after ${schedule.ageMsMax / 1000} s: ${cause}` }
  }
  return { event: 'postpone', cause, atMs: Math.round(nowMs + delayMs) }
}

/** Exponential, with full jitter: attempts that failed together are not tried again together. */
function backoffMs(made: number, { delayMs, delayMsMax }: RetrySchedule, random: number): number {
  return random * Math.min(delayMsMax, delayMs * 2 ** Math.min(made - 1, 40))
}

/** The pause that the receiver asks for, within 0 and the limit. */
export function askedMs(afterMs: number, { askedMsMax }: Pick<RetrySchedule, 'askedMsMax'>): number {
  return Math.min(Math.max(afterMs, 0), askedMsMax)
}
