/** Publishes batches of one group in order: from memory, and from disk while nobody takes them. */
import { setTimeout as pause } from 'node:timers/promises'
import type { EventLog } from '../observe/events.ts'
import type { AnalyticsSpool } from './analytics-spool.ts'
import type { BatchResult, BatchSink } from './analytics-receiver.ts'

/** Batches in memory; further ones go to the disk. */
const WAITING_MAX = 32
const PAUSE_MIN_MS = 500
const PAUSE_MAX_MS = 30_000

interface AnalyticsCounts {
  published(events: number): void
  dropped(events: number): void
  /** The spool has changed. */
  spooled(): void
  /** Groups that nobody takes events from, or that cannot keep them: one more, or one fewer. */
  down(by: 1 | -1): void
  spoolFailing(by: 1 | -1): void
}

interface GroupOptions {
  /** For the log. */
  readonly name: string
  readonly sink: BatchSink
  readonly spool: AnalyticsSpool
  readonly counts: AnalyticsCounts
  readonly report: EventLog['report']
  /** From 0 up to 1. */
  readonly random?: () => number
}

interface WaitingBatch {
  readonly lines: string
  readonly events: number
}

export class AnalyticsGroup {
  readonly #options: GroupOptions
  readonly #waiting: WaitingBatch[] = []
  readonly #ending = new AbortController()
  #publishing: Promise<void> | null = null
  #isFailing = false
  #isSpoolFailing = false
  #batches = 0

  constructor(options: GroupOptions) {
    this.#options = options
    if (options.spool.batches > 0) this.#publish()
  }

  add(batch: WaitingBatch): void {
    // Order is kept: what comes behind a batch on disk goes there too.
    if (this.#options.spool.batches > 0 || this.#waiting.length >= WAITING_MAX) this.#spool(batch)
    else this.#waiting.push(batch)
    this.#publish()
  }

  /** Ends the attempts, and keeps what waits on disk. */
  async close(): Promise<void> {
    this.#ending.abort()
    await this.#publishing
    for (const batch of this.#waiting.splice(0)) this.#spool(batch)
  }

  #publish(): void {
    this.#publishing ??= this.#publishAll().finally(() => (this.#publishing = null))
  }

  async #publishAll(): Promise<void> {
    const { spool, counts } = this.#options
    let pauseMs = PAUSE_MIN_MS
    while (!this.#ending.signal.aborted) {
      const spooled = spool.oldest()
      const batch = spooled ?? this.#waiting[0]
      if (batch === undefined) return
      const result = await this.#attempt(batch)
      if (result === null) {
        // Memory is for a receiver that works.
        for (const waiting of this.#waiting.splice(0)) this.#spool(waiting)
        await this.#pause(pauseMs)
        pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)
        continue
      }
      pauseMs = PAUSE_MIN_MS
      if (spooled === null) this.#waiting.shift()
      else {
        this.#delete(spooled.name)
        counts.spooled()
      }
      if (result === 'accepted') counts.published(batch.events)
      else this.#refused(batch.events)
    }
  }

  /** Null: nobody takes batches now. */
  async #attempt({ lines }: WaitingBatch): Promise<BatchResult | null> {
    const { name, sink, counts, report } = this.#options
    try {
      const result = await sink.send({ id: `${process.pid}-${Date.now().toString(36)}-${this.#batches++}`, lines })
      if (this.#isFailing) {
        report('info', 'analytics events are published again', { GROUP: name })
        counts.down(-1)
      }
      this.#isFailing = false
      return result
    } catch (error) {
      const cause = error instanceof Error ? error.message : 'it threw no error'
      if (!this.#isFailing) {
        report('error', 'analytics events not published', { GROUP: name, CAUSE_OF_ERROR: cause })
        counts.down(1)
      }
      this.#isFailing = true
      return null
    }
  }

  #refused(events: number): void {
    const { name, counts, report } = this.#options
    report('error', 'analytics events refused by their receiver', { GROUP: name, EVENTS: events })
    counts.dropped(events)
  }

  /** On a disk that has become read-only the batch stays, and the next process sends it a second time. */
  #delete(batch: string): void {
    const { spool, name, report } = this.#options
    try {
      spool.remove(batch)
    } catch (error) {
      report('error', 'analytics events not deleted', { GROUP: name, CAUSE_OF_ERROR: (error as Error).message })
    }
  }

  #spool({ lines, events }: WaitingBatch): void {
    const { spool, counts, name, report } = this.#options
    try {
      const dropped = spool.add(lines, events)
      if (dropped > 0) counts.dropped(dropped)
      if (this.#isSpoolFailing) counts.spoolFailing(-1)
      this.#isSpoolFailing = false
    } catch (error) {
      counts.dropped(events)
      if (!this.#isSpoolFailing) counts.spoolFailing(1)
      this.#isSpoolFailing = true
      report('error', 'analytics events not kept', { GROUP: name, CAUSE_OF_ERROR: (error as Error).message })
    }
    counts.spooled()
  }

  /** Full jitter: gateways that lost one receiver do not return to it together. */
  async #pause(mostMs: number): Promise<void> {
    const { random = Math.random } = this.#options
    await pause(mostMs * (0.5 + random() / 2), undefined, { signal: this.#ending.signal }).catch(() => undefined)
  }
}
