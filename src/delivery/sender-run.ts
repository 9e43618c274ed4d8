/** One run of one sender: claims what is due, sends it with concurrency and rate, and records results in batches. */
import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { messageOf } from '../database/driver-errors.ts'
import { runTransaction } from '../database/transaction.ts'
import type { AttemptResult } from './attempt.ts'
import { type ClaimedDelivery, claimDue, releaseClaims, type Settlement, settle } from './claims.ts'
import type { Delivery, SenderId } from './delivery.ts'
import { openedEvent } from './event-cipher.ts'
import type { Lease } from './lease.ts'
import type { Outbox } from './outbox.ts'
import { askedMs, type RetrySchedule, verdictOf } from './retry-schedule.ts'
import { countEvents, senderKey } from './sender-rows.ts'
import { TokenBucket } from './token-bucket.ts'

export interface SenderPace {
  /** Messages on the way at once. */
  readonly concurrency: number
  /** Messages per second; null for no limit. What is beyond waits. */
  readonly perSecond: number | null
}

type DeliveryLog = (
  level: 'info' | 'warn' | 'error',
  event: string,
  fields: Readonly<Record<string, string | number>>,
) => void

export interface RunContext {
  readonly outbox: Outbox
  readonly lease: Lease
  readonly schedule: RetrySchedule
  /**
   * `claimedAt` (`performance.now()`): a moment after the claim was committed. What is read from now on is as new as
   * any event that was stored or replayed before the claim.
   */
  readonly compose: (delivery: Delivery, signal: AbortSignal, claimedAt: number) => Promise<AttemptResult>
  readonly random: () => number
  readonly log: DeliveryLog
  /** Milliseconds after which a run starts no further message. */
  readonly runMs: number
}

/** A claim lasts so long; a run interrupts its messages `CLAIM_MARGIN_MS` earlier. */
export const CLAIM_MS = 60_000
const CLAIM_MARGIN_MS = 5000
/** Deliveries that a run has claimed and not begun. */
const CLAIMED_MAX = 200
/** Results that are not recorded; no message is begun beyond it. With the concurrency: most duplicates of a kill. */
export const UNRECORDED_MAX = 100
/** Results are recorded from this number on, or after this time. */
const RECORDED_TOGETHER = 50
const RECORDED_MS = 50
/** Milliseconds until a sender without anything due is asked again, while its messages are on the way. */
const CLAIM_AGAIN_MS = 200
/** Milliseconds for messages that are interrupted, and for their results. */
const ABORT_MS = 1000
/** Milliseconds until statements that failed are tried again: first and longest pause, doubled in between. */
const DATABASE_PAUSE_MS = 20
const DATABASE_PAUSE_MS_MAX = 1000
/** A run ends rather than to wait so long for the rate. */
const RATE_WAIT_MS = 1000
/** Longest wait of a whole sender that a receiver asks for; the delivery itself waits as long as it is asked to. */
const SENDER_PAUSE_MS_MAX = 60_000

/**
 * `running`: claims and sends. `draining`: begins nothing more and waits for results. `aborting`: the messages on the
 * way are interrupted.
 */
type RunPhase = 'running' | 'draining' | 'aborting'

interface QueuedDelivery extends ClaimedDelivery {
  readonly claim: string
  /** As of `RunContext.compose`. */
  readonly claimedAt: number
}

export class SenderRun {
  readonly #context: RunContext
  readonly #sender: SenderId
  readonly #pk: number
  readonly #term: number
  readonly #concurrency: number
  readonly #claimedMax: number
  readonly #bucket: TokenBucket
  readonly #signal: AbortSignal
  readonly #interrupt = new AbortController()
  readonly #token = randomBytes(12).toString('hex')
  readonly #begunAt = performance.now()
  #phase: RunPhase = 'running'
  #abortedAt = 0
  #batches = 0
  #queue: QueuedDelivery[] = []
  #onTheWay = 0
  #settlements: Settlement[] = []
  #oldestAt = 0
  /** Results that are being recorded. */
  #recording = 0
  #isWriting = false
  #claimAt = 0
  /** Statements that failed in a row; before `#writeAt` none is tried again. */
  #failures = 0
  #writeAt = 0
  #isClaimLost = false
  #tokenAt = 0
  #resumeMs = 0
  #dead = 0
  #lastCause = ''
  #wake: () => void = () => {}

  constructor(
    context: RunContext,
    { sender, pk, term, pace }: { sender: SenderId; pk: number; term: number; pace: SenderPace },
    signal: AbortSignal,
  ) {
    this.#context = context
    this.#sender = sender
    this.#pk = pk
    this.#term = term
    this.#signal = signal
    this.#concurrency = pace.concurrency
    this.#claimedMax = Math.min(CLAIMED_MAX, pace.perSecond === null ? CLAIMED_MAX : Math.ceil(pace.perSecond) + 1)
    this.#bucket = new TokenBucket(pace.perSecond, performance.now())
    // Every message on the way listens.
    setMaxListeners(0, this.#interrupt.signal)
  }

  /** Rejects where results could not be recorded; their deliveries are sent again when the claim has ended. */
  async run(): Promise<void> {
    const wake = (): void => this.#wake()
    this.#signal.addEventListener('abort', wake)
    try {
      while (!this.#isDone()) {
        this.#advancePhase()
        this.#begin()
        if (this.#isWriteDue()) void this.#write()
        await this.#pause()
      }
    } finally {
      this.#signal.removeEventListener('abort', wake)
      this.#interrupt.abort()
    }
    if (this.#isClaimLost) await releaseClaims(this.#connection, this.#pk, this.#token, this.#nowMs())
    const { log, lease } = this.#context
    if (this.#dead > 0) {
      log('warn', 'deliveries became dead letters', {
        SENDER: senderKey(this.#sender),
        COUNT: this.#dead,
        CAUSE: this.#lastCause,
      })
    }
    if (this.#signal.aborted) await lease.release()
  }

  get #connection() {
    return this.#context.outbox.connection
  }

  #nowMs(): number {
    return this.#context.outbox.clock.nowMs()
  }

  #isDone(): boolean {
    if (this.#isWriting) return false
    const isInterrupted = this.#phase === 'aborting' && performance.now() > this.#abortedAt + ABORT_MS
    if (isInterrupted && this.#settlements.length > 0) {
      throw new Error(`${this.#settlements.length} results of ${senderKey(this.#sender)} could not be recorded`)
    }
    if (isInterrupted) return true
    const isIdle = this.#queue.length === 0 && this.#onTheWay === 0 && this.#settlements.length === 0
    return isIdle && (this.#phase !== 'running' || this.#claimAt > performance.now())
  }

  #advancePhase(): void {
    const ranMs = performance.now() - this.#begunAt
    const { lease, runMs } = this.#context
    if (this.#signal.aborted) this.#abort('')
    else if (lease.remainingMs <= 0) this.#abort('its lease was not renewed in time')
    else if (ranMs > CLAIM_MS - CLAIM_MARGIN_MS) this.#abort('its claims end')
    const waitsForRate = this.#onTheWay === 0 && this.#tokenAt > performance.now() + RATE_WAIT_MS
    if (this.#phase === 'running' && (ranMs > runMs || waitsForRate)) this.#phase = 'draining'
    if (this.#phase === 'running') return
    for (const { id, claim } of this.#queue.splice(0)) this.#settled(id, claim, { event: 'release' })
  }

  #begin(): void {
    const { schedule, outbox } = this.#context
    while (
      this.#phase === 'running' &&
      this.#queue.length > 0 &&
      this.#onTheWay < this.#concurrency &&
      this.#onTheWay + this.#settlements.length + this.#recording < this.#concurrency + UNRECORDED_MAX
    ) {
      const next = this.#queue[0]!
      if (outbox.clock.isTrusted() && this.#nowMs() > next.sinceMs + schedule.ageMsMax) {
        this.#queue.shift()
        const cause = `not sent within ${schedule.ageMsMax / 1000} s${next.cause === '' ? '' : `: ${next.cause}`}`
        this.#settled(next.id, next.claim, { event: 'fail', cause })
        continue
      }
      const waitMs = this.#bucket.take(performance.now())
      this.#tokenAt = performance.now() + waitMs
      if (waitMs > 0) return
      this.#queue.shift()
      void this.#send(next)
    }
  }

  async #send(claimed: QueuedDelivery): Promise<void> {
    this.#onTheWay++
    const begunAt = performance.now()
    const result = await this.#attempt(claimed)
    this.#onTheWay--
    const { counts } = this.#connection
    const { channel } = this.#sender
    counts.countDuration(channel, 'attempt', (performance.now() - begunAt) / 1000)
    const { schedule, random, outbox } = this.#context
    if (result.kind === 'retry' && this.#interrupt.signal.aborted) {
      this.#settled(claimed.id, claimed.claim, { event: 'release' })
    } else {
      const nowMs = this.#nowMs()
      if (result.kind === 'delivered') counts.countDuration(channel, 'delivery', (nowMs - claimed.acceptedMs) / 1000)
      const chance = { random: random(), isAged: outbox.clock.isTrusted() }
      this.#settled(claimed.id, claimed.claim, verdictOf(result, claimed, nowMs, schedule, chance))
      if (result.kind === 'retry' && result.afterMs !== null) this.#pauseSender(nowMs, result.afterMs)
    }
    this.#wake()
  }

  async #attempt(claimed: QueuedDelivery): Promise<AttemptResult> {
    const { compose, log } = this.#context
    const { id, attempts, acceptedMs, cause } = claimed
    const event = openedEvent(this.#connection, claimed.event, this.#sender)
    // The operator mends the key.
    if (event === '') return { kind: 'retry', cause: 'the event is encrypted with another key', afterMs: null }
    const atMs = this.#nowMs()
    try {
      const delivery: Delivery = {
        ...{ id, sender: this.#sender, state: 'sending', attempts, acceptedMs, atMs, event, cause },
      }
      return await compose(delivery, this.#interrupt.signal, claimed.claimedAt)
    } catch (error) {
      log('error', 'a sender has failed', { SENDER: senderKey(this.#sender), ID: id, CAUSE: messageOf(error) })
      return { kind: 'retry', cause: 'internal error', afterMs: null }
    }
  }

  #settled(id: string, claim: string, verdict: Settlement['verdict']): void {
    if (this.#settlements.length === 0) this.#oldestAt = performance.now()
    this.#settlements.push({ id, claim, verdict })
    if (verdict.event !== 'fail') return
    this.#dead++
    this.#lastCause = verdict.cause
  }

  /** The provider asks for a pause: other messages of the sender would be refused as well. */
  #pauseSender(nowMs: number, afterMs: number): void {
    const pauseMs = Math.min(askedMs(afterMs, this.#context.schedule), SENDER_PAUSE_MS_MAX)
    this.#resumeMs = Math.max(this.#resumeMs, nowMs + pauseMs)
    if (this.#phase === 'running') this.#phase = 'draining'
  }

  #isWriteDue(): boolean {
    const now = performance.now()
    if (this.#isWriting || now < this.#writeAt) return false
    if (this.#isClaimDue(now) || this.#context.lease.isRenewalDue) return true
    const results = this.#settlements.length
    if (results === 0) return false
    const isBlocked = this.#onTheWay === 0 && (this.#queue.length === 0 || this.#tokenAt > now)
    return isBlocked || this.#phase !== 'running' || results >= RECORDED_TOGETHER || now >= this.#oldestAt + RECORDED_MS
  }

  #isClaimDue(now: number): boolean {
    return this.#phase === 'running' && this.#queue.length <= this.#claimedMax / 2 && now >= this.#claimAt
  }

  /** Records results and claims, in one transaction. After an error, results are recorded with the next ones. */
  async #write(): Promise<void> {
    this.#isWriting = true
    const settlements = this.#settlements
    this.#settlements = []
    this.#recording = settlements.length
    const isClaiming = this.#isClaimDue(performance.now())
    const count = this.#claimedMax - this.#queue.length
    try {
      if (this.#context.lease.isRenewalDue) await this.#renew()
      const claimed = await this.#exchange(settlements, isClaiming ? count : 0)
      this.#failures = 0
      this.#queue.push(...claimed)
      if (isClaiming) this.#claimAt = claimed.length < count ? performance.now() + CLAIM_AGAIN_MS : 0
    } catch (error) {
      this.#isClaimLost ||= isClaiming
      this.#settlements = [...settlements, ...this.#settlements]
      if (this.#writeAt === 0) this.#logDatabaseError(error)
      const pauseMs = Math.min(DATABASE_PAUSE_MS_MAX, DATABASE_PAUSE_MS * 2 ** this.#failures++)
      this.#writeAt = performance.now() + pauseMs
    }
    this.#recording = 0
    this.#isWriting = false
    this.#wake()
  }

  /** Once per run. */
  #logDatabaseError(error: unknown): void {
    this.#context.log('warn', 'a run of deliveries waits for the database', {
      SENDER: senderKey(this.#sender),
      COUNT: this.#settlements.length,
      CAUSE: messageOf(error),
    })
  }

  async #exchange(settlements: readonly Settlement[], count: number): Promise<QueuedDelivery[]> {
    const nowMs = this.#nowMs()
    const claim = `${this.#token}-${this.#batches++}`
    const terms = { claim, term: this.#term, count, nowMs, untilMs: nowMs + CLAIM_MS }
    const debtMs = this.#bucket.debtMs(performance.now())
    const resumeMs = Math.ceil(Math.max(this.#resumeMs, debtMs > 0 ? nowMs + debtMs : 0))
    const { claimed, moves } = await runTransaction(this.#connection.db, async db => {
      const inTransaction = { ...this.#connection, db }
      const moves =
        settlements.length > 0 ? await settle(inTransaction, this.#pk, settlements, { nowMs, resumeMs }) : []
      return { claimed: count > 0 ? await claimDue(inTransaction, this.#pk, terms) : [], moves }
    })
    countEvents(this.#connection, this.#sender.channel, moves)
    const claimedAt = performance.now()
    return claimed.map(each => ({ ...each, claim, claimedAt }))
  }

  /** A lease that cannot be renewed ends the run, before the lease ends. */
  async #renew(): Promise<void> {
    const result = await this.#context.lease.hold()
    if (!result.isHeld || result.term !== this.#term) this.#abort('its lease was taken again')
  }

  /**
   * Interrupts the messages on the way. `cause`: for the log; '': whoever runs it knows. Nothing is logged where no
   * message is sent again: the lease is given back when nothing waits.
   */
  #abort(cause: string): void {
    if (this.#phase === 'aborting') return
    this.#phase = 'aborting'
    this.#abortedAt = performance.now()
    this.#interrupt.abort()
    const unrecorded = this.#onTheWay + this.#settlements.length + this.#recording
    if (cause === '' || unrecorded === 0) return
    const fields = { SENDER: senderKey(this.#sender), COUNT: unrecorded, CAUSE: cause }
    this.#context.log('warn', 'a run of deliveries is interrupted', fields)
  }

  /** Until a result, the end of a statement, an abort, or the next moment at which something is due. */
  async #pause(): Promise<void> {
    if (this.#isDone()) return
    const now = performance.now()
    const { lease, runMs } = this.#context
    const moments = [this.#begunAt + runMs, now + Math.max(0, lease.remainingMs), now + 1000]
    if (this.#settlements.length > 0) moments.push(Math.max(this.#oldestAt + RECORDED_MS, this.#writeAt))
    if (this.#queue.length > 0 && this.#tokenAt > now) moments.push(this.#tokenAt)
    if (this.#phase === 'running') moments.push(Math.max(this.#claimAt, this.#writeAt))
    if (this.#phase === 'aborting') moments.push(this.#abortedAt + ABORT_MS)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const later = moments.filter(moment => moment > now)
    const timer = setTimeout(resolve, Math.max(1, Math.min(...later) - now))
    await promise
    clearTimeout(timer)
  }
}
