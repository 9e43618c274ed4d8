/** Common parts of the sinks of an access log: they count lost lines, and tell when they fail and work again. */
import type { EventLog } from './events.ts'
import { METRIC, type MetricsColumn } from './metrics.ts'
import { Outage } from './outage.ts'

/** Bytes that wait for a sink; further lines are dropped. */
export const WAITING_BYTES_MAX = 8 * 1024 * 1024
/** From here down a sink that was too slow works again. */
const WAITING_BYTES_FEW = WAITING_BYTES_MAX / 2
const LINE_FEED = 0x0a

export interface AccessLogSinkCallbacks {
  /** Called with the number of lines that will never be written. */
  onDropped(lines: number): void
  /** Called for the first failure after a success; further failures in a row only count their lines. */
  onFailed(cause: Error): void
  /** Called for the first success after a failure. */
  onRecovered(): void
}

/** State of a sink: it works or fails. */
export class SinkFailures {
  readonly #callbacks: Pick<AccessLogSinkCallbacks, 'onFailed' | 'onRecovered'>
  #isFailing = false

  constructor(callbacks: Pick<AccessLogSinkCallbacks, 'onFailed' | 'onRecovered'>) {
    this.#callbacks = callbacks
  }

  failed(cause: Error): void {
    if (this.#isFailing) return
    this.#isFailing = true
    this.#callbacks.onFailed(cause)
  }

  /** `waitingBytes`: what the sink still has to write. */
  succeeded(waitingBytes: number): void {
    if (!this.#isFailing || waitingBytes > WAITING_BYTES_FEW) return
    this.#isFailing = false
    this.#callbacks.onRecovered()
  }
}

/** Failure of a sink that drops lines because it is too slow. */
export function tooSlow(sink: string): Error {
  return new Error(`${sink} is too slow: ${WAITING_BYTES_MAX} bytes wait, and further lines are dropped`)
}

/** Callbacks that count in the column of a thread, and tell the log. */
export function sinkCallbacks(
  sink: string,
  metrics: Pick<MetricsColumn, 'add' | 'set'>,
  report: EventLog['report'],
  nowMs?: () => number,
): AccessLogSinkCallbacks {
  const changed = (isOn: boolean) => metrics.set(METRIC.accessLogFailing, isOn ? 1 : 0)
  const events = { failed: `${sink} failed`, works: `${sink} works again` }
  const outage = new Outage({ ...events, fields: {}, changed, report, nowMs })
  let last = new Error()
  return {
    onDropped: lines => {
      metrics.add(METRIC.accessLogDrops, lines)
      if (outage.isOn) outage.failed(last)
    },
    onFailed: cause => {
      last = cause
      outage.failed(cause)
    },
    onRecovered: () => outage.ended(),
  }
}

export function countLines(batch: Uint8Array): number {
  let lines = 0
  for (let at = batch.indexOf(LINE_FEED); at !== -1; at = batch.indexOf(LINE_FEED, at + 1)) lines++
  return lines
}
