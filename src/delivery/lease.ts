/**
 * The lease of the node that delivers: a row of the database, renewed by each thread of its holder. The database judges
 * its end by its own clock, the holder by its monotonic clock and earlier: clocks that jump make no two holders.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sql } from 'kysely'
import type { OutboxClock } from './database-clock.ts'
import type { OutboxConnection } from './outbox-schema.ts'

export interface LeaseTimes {
  readonly leaseMs: number
  /** The holder stops sending so many milliseconds before the lease ends. */
  readonly marginMs: number
}

export const DEFAULT_LEASE: LeaseTimes = { leaseMs: 10_000, marginMs: 2000 }

interface LeaseOptions {
  readonly node: string
  readonly times: LeaseTimes
  /** Tells whether the process of that name has certainly ended. */
  readonly isGone: (holder: string) => boolean
}

/** The lock of a data folder: it begins with the id of the process that holds it. */
const LOCK_FILE = 'lock'

/** Tenures of the lease are numbered: what was claimed in an earlier one is recovered. */
type LeaseResult =
  | { readonly isHeld: true; readonly term: number; readonly isNew: boolean }
  /** `againMs`: when the lease of the other node ends. */
  | { readonly isHeld: false; readonly againMs: number }

export class Lease {
  readonly #connection: OutboxConnection
  readonly #clock: OutboxClock
  readonly #node: string
  readonly #times: LeaseTimes
  readonly #isGone: (holder: string) => boolean
  /** By the monotonic clock. */
  #renewedAt = Number.NEGATIVE_INFINITY
  #term = 0

  constructor(connection: OutboxConnection, clock: OutboxClock, { node, times, isGone }: LeaseOptions) {
    this.#connection = connection
    this.#clock = clock
    this.#node = node
    this.#times = times
    this.#isGone = isGone
  }

  /** Milliseconds in which this thread may send; 0 or less: none. */
  get remainingMs(): number {
    const { leaseMs, marginMs } = this.#times
    return this.#renewedAt + leaseMs - marginMs - performance.now()
  }

  get isRenewalDue(): boolean {
    return performance.now() - this.#renewedAt > this.#times.leaseMs / 3
  }

  /** Takes the lease, or renews that of this node where a third of it is over. Rejects with errors of the driver. */
  async hold(): Promise<LeaseResult> {
    const at = performance.now()
    const nowMs = await this.#clock.read(true)
    const { holder, until_ms, term } = await this.#connection.db
      .selectFrom('delivery_lease')
      .select(['holder', 'until_ms', 'term'])
      .where('name', '=', this.#connection.area)
      .executeTakeFirstOrThrow()
    const leftMs = Number(until_ms) - nowMs
    const { leaseMs } = this.#times
    // A lease that ends later than one of now would was taken before the clock went back.
    const isOver = leftMs <= 0 || leftMs > 2 * leaseMs || (holder !== this.#node && (await this.#isLost(holder)))
    if (!isOver && holder !== this.#node) return this.#lose(leftMs)
    const next = Number(term) + (isOver ? 1 : 0)
    if (isOver || leftMs < (leaseMs * 2) / 3) {
      const renewed = await this.#write(holder, Number(term), { until_ms: nowMs + leaseMs, term: next })
      // Another thread or node was faster.
      if (!renewed) return this.#lose(1)
      this.#renewedAt = at
    } else {
      // Another thread of this node may have renewed it.
      this.#renewedAt = at - Math.max(0, leaseMs - leftMs)
    }
    const isNew = next !== this.#term
    this.#term = next
    return { isHeld: true, term: next, isNew }
  }

  /** The process that holds the lease is certainly gone. */
  async #isLost(holder: string): Promise<boolean> {
    return this.#isGone(holder) || (await this.#isAlone())
  }

  /** The data folder of an embedded database belongs to this process: the process that held the lease is gone. */
  async #isAlone(): Promise<boolean> {
    const { db, dialect } = this.#connection
    if (dialect !== 'sqlite') return false
    const { rows } = await sql<{ readonly name: string; readonly file: string }>`pragma database_list`.execute(db)
    const { file } = rows.find(({ name }) => name === 'main')!
    try {
      return Number.parseInt(readFileSync(join(dirname(file), LOCK_FILE), 'latin1'), 10) === process.pid
    } catch {
      return false
    }
  }

  async #write(holder: string, term: number, row: { readonly until_ms: number; readonly term: number }) {
    const { numUpdatedRows } = await this.#connection.db
      .updateTable('delivery_lease')
      .set({ holder: this.#node, ...row })
      .where('name', '=', this.#connection.area)
      .where('term', '=', term)
      .where('holder', '=', holder)
      .executeTakeFirstOrThrow()
    return numUpdatedRows > 0n
  }

  /** Gives the lease back where no thread of this node sends, so that another node need not wait for its end. */
  async release(): Promise<void> {
    if (this.#renewedAt === Number.NEGATIVE_INFINITY) return
    this.#renewedAt = Number.NEGATIVE_INFINITY
    const busy = this.#connection.db.selectFrom('delivery_senders').select('pk').where('waiting', '>', 0)
    const sending = this.#connection.db
      .selectFrom('delivery_messages')
      .select('id')
      .where('sender', 'in', busy)
      .where('state', '=', 'sending')
      .where('term', '=', this.#term)
    await this.#connection.db
      .updateTable('delivery_lease')
      .set({ until_ms: 0 })
      .where('name', '=', this.#connection.area)
      .where('holder', '=', this.#node)
      .where('term', '=', this.#term)
      .where(({ not, exists }) => not(exists(sending)))
      .execute()
  }

  #lose(againMs: number): LeaseResult {
    this.#renewedAt = Number.NEGATIVE_INFINITY
    return { isHeld: false, againMs }
  }
}
