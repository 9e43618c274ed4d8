/** Delivers what the outbox holds: says what is due on this node, and runs it. One node of a database delivers. */
import { isGoneProcess, processName } from '../runtime/process-name.ts'
import { busySenders, type BusySender, readSender, recoverClaims } from './claims.ts'
import { DEFAULT_LEASE, Lease, type LeaseTimes } from './lease.ts'
import type { SenderId } from './delivery.ts'
import type { Outbox } from './outbox.ts'
import { DEFAULT_SCHEDULE, type RetrySchedule } from './retry-schedule.ts'
import { countStored, senderKey, senderOf } from './sender-rows.ts'
import { CLAIM_MS, type RunContext, SenderRun, type SenderPace } from './sender-run.ts'

export interface DeliveryRunOptions extends Pick<RunContext, 'compose' | 'log'> {
  readonly outbox: Outbox
  readonly pace: (sender: SenderId) => SenderPace | Promise<SenderPace>
  readonly schedule?: Partial<RetrySchedule>
  readonly lease?: Partial<LeaseTimes>
  /** The same on all threads of a process, and different from other nodes; left out: that of the process. */
  readonly node?: string
  /** Tells whether the holder of a lease has certainly ended; left out: true for the ended process before this one. */
  readonly isGone?: (holder: string) => boolean
  readonly random?: () => number
  readonly runMs?: number
}

const RUN_MS = 5000
/** Milliseconds between two looks for claims without a result, and for what retention no longer keeps. */
const RECOVERY_MS = 5000
const EXPIRY_MS = 60_000
/** Milliseconds until a node looks again at a database that others write too. */
const SHARED_AGAIN_MS = 1000
const IDLE_AGAIN_MS = { shared: 5000, embedded: 60_000 }
/** Longest wait for the rate of a sender that is believed after the clock has jumped. */
const RESUME_MS_MAX = 3_600_000

interface DueDeliveries {
  /** Senders by their keys, the one that has waited longest first. */
  readonly jobs: readonly string[]
  readonly againMs: number
}

export class DeliveryRun {
  readonly #outbox: Outbox
  readonly #pace: DeliveryRunOptions['pace']
  readonly #context: RunContext
  readonly #lease: Lease
  #recoveredAt = Number.NEGATIVE_INFINITY
  #expiredAt = Number.NEGATIVE_INFINITY

  constructor({ outbox, pace, compose, log, schedule, lease, node, isGone, random, runMs }: DeliveryRunOptions) {
    this.#outbox = outbox
    this.#pace = pace
    const times = { ...DEFAULT_LEASE, ...lease }
    const holding = { node: node ?? processName(), times, isGone: isGone ?? isGoneProcess }
    this.#lease = new Lease(outbox.connection, outbox.clock, holding)
    this.#context = {
      outbox,
      lease: this.#lease,
      schedule: { ...DEFAULT_SCHEDULE, ...schedule },
      compose,
      random: random ?? Math.random,
      log,
      runMs: runMs ?? RUN_MS,
    }
  }

  /** Takes the lease where something waits. Rejects with errors of the driver. */
  async due(): Promise<DueDeliveries> {
    const isExpiring = await this.#expire()
    const idleMs = isExpiring ? 100 : IDLE_AGAIN_MS[this.#isShared ? 'shared' : 'embedded']
    await countStored(this.#outbox.connection)
    const senders = await busySenders(this.#outbox.connection)
    if (senders.length === 0) {
      await this.#lease.release()
      return { jobs: [], againMs: idleMs }
    }
    const lease = await this.#lease.hold()
    if (!lease.isHeld) return { jobs: [], againMs: Math.min(lease.againMs, SHARED_AGAIN_MS) }
    const isRecovered = await this.#recover(senders, lease.term, lease.isNew)
    const current = isRecovered ? await busySenders(this.#outbox.connection) : senders
    return dueOf(current, this.#outbox.clock.nowMs(), this.#isShared ? SHARED_AGAIN_MS : RECOVERY_MS)
  }

  /** Sends what is due of one sender. Ends within about `runMs` and the longest message; at once when aborted. */
  async run(job: string, signal: AbortSignal): Promise<void> {
    const sender = senderOf(job)
    if (sender === undefined || signal.aborted) return
    const row = await readSender(this.#outbox.connection, sender)
    if (row === undefined) return
    const lease = await this.#lease.hold()
    if (!lease.isHeld || isPaused(row.resumeMs, this.#outbox.clock.nowMs())) return
    const pace = await this.#pace(sender)
    await new SenderRun(this.#context, { sender, pk: row.pk, term: lease.term, pace }, signal).run()
  }

  get #isShared(): boolean {
    return this.#outbox.connection.dialect !== 'sqlite'
  }

  /** True where rows have changed. */
  async #recover(senders: readonly BusySender[], term: number, isNew: boolean): Promise<boolean> {
    if (!isNew && performance.now() - this.#recoveredAt < RECOVERY_MS) return false
    const { delayMsMax, askedMsMax } = this.#context.schedule
    const recovered = await recoverClaims(this.#outbox.connection, senders, {
      term,
      nowMs: this.#outbox.clock.nowMs(),
      claimMs: CLAIM_MS,
      delayMsMax: Math.max(delayMsMax, askedMsMax),
    })
    this.#recoveredAt = performance.now()
    if (recovered > 0) this.#context.log('info', 'deliveries without a result wait again', { COUNT: recovered })
    return true
  }

  /** True where there is more to remove. */
  async #expire(): Promise<boolean> {
    if (performance.now() - this.#expiredAt < EXPIRY_MS) return false
    const isMore = await this.#outbox.expire()
    if (!isMore) this.#expiredAt = performance.now()
    return isMore
  }
}

function dueOf(senders: readonly BusySender[], nowMs: number, againMsMax: number): DueDeliveries {
  const waiting = senders
    .filter(({ nextMs }) => nextMs !== null)
    .map(({ sender, nextMs, resumeMs }) => ({
      job: senderKey(sender),
      atMs: isPaused(resumeMs, nowMs) ? Math.max(nextMs!, resumeMs) : nextMs!,
    }))
    .sort((a, b) => a.atMs - b.atMs)
  const next = waiting.find(({ atMs }) => atMs > nowMs)
  const againMs = Math.max(10, Math.min(againMsMax, (next?.atMs ?? Number.POSITIVE_INFINITY) - nowMs))
  return { jobs: waiting.filter(({ atMs }) => atMs <= nowMs).map(({ job }) => job), againMs }
}

function isPaused(resumeMs: number, nowMs: number): boolean {
  return resumeMs > nowMs && resumeMs <= nowMs + RESUME_MS_MAX
}
