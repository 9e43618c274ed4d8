/** Publishes batches of one group: from memory, and from disk while nobody takes them. */
import { setTimeout as pause } from 'node:timers/promises'
import type { EventLog } from '../observe/events.ts'
import { Outage } from '../observe/outage.ts'
import { RareEvent } from '../observe/rare-event.ts'
import type { AnalyticsSpool } from './analytics-spool.ts'
import type { BatchSink } from './analytics-receiver.ts'

/** Batches in memory, and their characters; further ones go to the disk. */
const WAITING_MAX = 32
const WAITING_CHARS_MAX = 8 * 1024 * 1024
const PAUSES_MS = [500, 30_000] as const

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
  /** Shortest and longest pause behind a failure; for tests. */
  readonly pausesMs?: readonly [shortest: number, longest: number] | undefined
}

interface WaitingBatch {
  /** Number of a batch on disk. */
  readonly number?: number
  readonly lines: string
  readonly events: number
}

export class AnalyticsGroup {
  readonly #options: GroupOptions
  readonly #waiting: WaitingBatch[] = []
  readonly #ending = new AbortController()
  #publishing: Promise<void> | null = null
  /** Outage in which no receiver of the group takes events. */
  readonly #outage: Outage
  /** Outage in which the disk takes no events. */
  readonly #diskOutage: Outage
  readonly #refusals: RareEvent
  readonly #undeleted: RareEvent
  #batches = 0

  constructor(options: GroupOptions) {
    const { name, report, counts, spool } = options
    this.#options = options
    const fields = { GROUP: name }
    this.#outage = new Outage({
      ...{ failed: 'analytics events not published', works: 'analytics events are published again', fields, report },
      changed: isOn => counts.down(isOn ? 1 : -1),
    })
    this.#diskOutage = new Outage({
      ...{ failed: 'analytics events not kept', works: 'analytics events are kept again', fields, report },
      changed: isOn => counts.spoolFailing(isOn ? 1 : -1),
    })
    this.#refusals = new RareEvent(report, 'analytics events refused by their receiver')
    this.#undeleted = new RareEvent(report, 'analytics events not deleted')
    if (!spool.isEmpty) this.#publish()
  }

  add(batch: WaitingBatch): void {
    // Order is kept: what comes behind a batch on disk goes there too.
    const chars = this.#waiting.reduce((sum, { lines }) => sum + lines.length, batch.lines.length)
    const isFull = this.#waiting.length >= WAITING_MAX || chars > WAITING_CHARS_MAX
    if (isFull || !this.#options.spool.isEmpty) this.#spool(batch)
    else this.#waiting.push(batch)
    this.#publish()
  }

  /** Ends the attempts, and keeps what waits on disk. */
  async close(): Promise<void> {
    this.#ending.abort()
    await this.#publishing
    this.#options.sink.close?.()
    for (const batch of this.#waiting.splice(0)) this.#spool(batch)
  }

  #publish(): void {
    this.#publishing ??= this.#publishAll().finally(() => (this.#publishing = null))
  }

  async #publishAll(): Promise<void> {
    const { pausesMs = PAUSES_MS } = this.#options
    let [pauseMs] = pausesMs
    while (!this.#ending.signal.aborted) {
      const result = await this.#publishOldest()
      if (result === 'none') return
      if (result === 'published') {
        ;[pauseMs] = pausesMs
        continue
      }
      // Memory is for a receiver that works.
      for (const waiting of this.#waiting.splice(0)) this.#spool(waiting)
      await this.#pause(pauseMs)
      pauseMs = Math.min(pauseMs * 2, pausesMs[1])
    }
  }

  async #publishOldest(): Promise<'none' | 'published' | 'failed'> {
    const { sink, spool, counts, name } = this.#options
    try {
      // Events in memory are older than those on disk.
      const batch: WaitingBatch | null = this.#waiting[0] ?? spool.oldest()
      if (batch === null) return 'none'
      const { lines, events } = batch
      const result = await sink.send({ id: `${process.pid}-${Date.now().toString(36)}-${this.#batches++}`, lines })
      this.#outage.ended()
      if (batch.number === undefined) this.#waiting.shift()
      else this.#delete(batch.number)
      if (result === 'accepted') counts.published(events)
      else {
        counts.dropped(events)
        this.#refusals.happened('EVENTS', events, { GROUP: name, CAUSE_OF_ERROR: result.refused })
      }
      return 'published'
    } catch (error) {
      this.#outage.failed(error)
      return 'failed'
    }
  }

  /** On a disk that has become read-only the batch stays, and the next process sends it a second time. */
  #delete(batch: number): void {
    const { spool, name, counts } = this.#options
    try {
      spool.remove(batch)
    } catch (error) {
      this.#undeleted.happened('BATCHES', 1, { GROUP: name, CAUSE_OF_ERROR: (error as Error).message })
    }
    counts.spooled()
  }

  #spool({ lines, events }: WaitingBatch): void {
    const { spool, counts } = this.#options
    try {
      const dropped = spool.add(lines, events)
      if (dropped > 0) counts.dropped(dropped)
      this.#diskOutage.ended()
    } catch (error) {
      counts.dropped(events)
      this.#diskOutage.failed(error)
    }
    counts.spooled()
  }

  /** Full jitter: gateways that lost one receiver do not return to it together. */
  async #pause(mostMs: number): Promise<void> {
    await pause(mostMs * (0.5 + Math.random() / 2), undefined, { signal: this.#ending.signal }).catch(() => undefined)
  }
}
