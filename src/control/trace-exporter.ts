/**
 * Sends the spans of traces to one receiver: in batches, from a queue with a limit. A receiver that is down costs
 * the queue, and then the oldest spans.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { EventLog } from '../observe/events.ts'
import { Outage } from '../observe/outage.ts'
import { RareEvent } from '../observe/rare-event.ts'
import type { Span } from '../observe/spans.ts'

export interface SpanReceiver {
  /** For the log. */
  readonly name: string
  /** Resolves once the spans are accepted, or refused for good. Rejects where the receiver takes none now. */
  send(spans: readonly Span[]): Promise<SpanResult>
}

/** `refused`: spans. `cause`: for the log; '' where none is refused. */
export interface SpanResult {
  readonly refused: number
  readonly cause: string
}

interface ExporterOptions {
  readonly receiver: SpanReceiver
  /** Spans in memory. */
  readonly queueMax: number
  readonly batchMax: number
  readonly intervalMs: number
  readonly counts: SpanCounts
  readonly report: EventLog['report']
  /** Shortest and longest pause behind a failure; for tests. */
  readonly pausesMs?: readonly [shortest: number, longest: number]
  /** Longest time of the last attempts; for tests. */
  readonly closeMs?: number
}

/** Counts spans. */
export interface SpanCounts {
  exported(spans: number): void
  /** The receiver has refused them. */
  failed(spans: number): void
  /** There was no room for them. */
  dropped(spans: number): void
  /** Spans in queues, more or less than before. */
  waiting(by: number): void
}

const PAUSES_MS = [1000, 30_000] as const
const CLOSE_MS = 3000

export class TraceExporter {
  readonly #options: ExporterOptions
  readonly #timer: NodeJS.Timeout
  readonly #ending = new AbortController()
  readonly #refusals: RareEvent
  readonly #outage: Outage
  #queue: Span[] = []
  /** The batch under way. */
  #batch: readonly Span[] = []
  #sending: Promise<void> | null = null
  #isClosing = false

  constructor(options: ExporterOptions) {
    this.#options = options
    const { report, receiver } = options
    this.#refusals = new RareEvent(report, 'traces refused by their receiver')
    const events = { failed: 'traces not exported', works: 'traces are exported again' }
    this.#outage = new Outage({ ...events, report, fields: { RECEIVER: receiver.name } })
    this.#timer = setInterval(() => this.#send(), options.intervalMs)
    this.#timer.unref()
  }

  add(spans: readonly Span[]): void {
    const { queueMax, batchMax, counts } = this.#options
    this.#queue = this.#queue.concat(spans)
    counts.waiting(spans.length)
    const excess = this.#queue.length - queueMax
    if (excess > 0) this.#drop(excess)
    if (this.#queue.length >= batchMax) this.#send()
  }

  /** Makes a last attempt to send what waits. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#isClosing = true
    const late = setTimeout(() => this.#ending.abort(), this.#options.closeMs ?? CLOSE_MS)
    // A receiver that fails already gets no last attempt.
    if (this.#outage.isOn) this.#ending.abort()
    this.#send()
    await Promise.race([this.#sending, ended(this.#ending.signal)])
    clearTimeout(late)
    this.#ending.abort()
    this.#drop(this.#queue.length)
    const { length } = this.#batch
    this.#batch = []
    this.#leave(length)
    this.#options.counts.dropped(length)
  }

  /** The oldest spans make room. */
  #drop(count: number): void {
    this.#queue = this.#queue.slice(count)
    this.#leave(count)
    this.#options.counts.dropped(count)
  }

  #leave(count: number): void {
    this.#options.counts.waiting(-count)
  }

  #send(): void {
    if (this.#queue.length === 0 || this.#ending.signal.aborted) return
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = null))
  }

  async #sendAll(): Promise<void> {
    const { batchMax, counts, pausesMs = PAUSES_MS } = this.#options
    let [pauseMs] = pausesMs
    while (!this.#ending.signal.aborted) {
      if (this.#batch.length === 0) this.#batch = this.#queue.splice(0, batchMax)
      const { length } = this.#batch
      if (length === 0) return
      const refused = await this.#attempt(this.#batch)
      // The exporter was closed meanwhile, and has counted the batch.
      if (this.#batch.length === 0) return
      if (refused === null) {
        if (this.#isClosing) return
        await this.#pause(pauseMs)
        pauseMs = Math.min(pauseMs * 2, pausesMs[1])
        continue
      }
      ;[pauseMs] = pausesMs
      this.#batch = []
      this.#leave(length)
      const failed = Math.min(refused, length)
      counts.failed(failed)
      counts.exported(length - failed)
    }
  }

  /** With jitter: gateways that lost one receiver do not return to it together. */
  async #pause(mostMs: number): Promise<void> {
    const ms = mostMs * (0.5 + Math.random() / 2)
    await pause(ms, undefined, { signal: this.#ending.signal, ref: false }).catch(() => undefined)
  }

  /** Null: the receiver takes no spans now. */
  async #attempt(batch: readonly Span[]): Promise<number | null> {
    const { receiver } = this.#options
    try {
      const { refused, cause } = await receiver.send(batch)
      this.#outage.ended()
      if (refused > 0) this.#refusals.happened('SPANS', refused, { RECEIVER: receiver.name, CAUSE_OF_ERROR: cause })
      return refused
    } catch (error) {
      this.#outage.failed(error)
      return null
    }
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
