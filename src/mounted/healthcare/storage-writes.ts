/**
 * Runs changes in transactions. The embedded database has one writer: changes that arrive during a transaction share
 * the next one, each in a savepoint of its own. Several transactions share one wait for the disk, during which the next
 * ones run (D541). Servers do the same by themselves.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sql, type Transaction } from 'kysely'
import { ConnectionUnavailable } from '../../database/connection-pool.ts'
import type { MountedDatabase } from '../interface.ts'
import { ServiceChanged } from './storage-rows.ts'
import type { HealthcareTables } from './storage-schema.ts'

/** One change. It may run several times, awaits nothing but its statements, and leaves nothing when it throws. */
type Change<T> = (transaction: Transaction<HealthcareTables>) => Promise<T>

interface Waiting {
  readonly run: Change<unknown>
  readonly settle: (outcome: Outcome) => void
}

type Outcome = { readonly value: unknown } | { readonly error: unknown }

/** Changes that share one transaction, so that readers of the same thread do not wait long. */
const BATCH_MAX = 32
const WAITING_MAX = 1000
/** Name of the lock that threads of this process take turns by, and milliseconds to wait for it. */
const TURN = 'sluice healthcare changes'
const TURN_MS = 2000
/** Attempts of a change that meets another one. */
const ATTEMPTS = 5

export class WriteQueue {
  readonly #database: MountedDatabase<HealthcareTables>
  readonly #waiting: Waiting[] = []
  #isCommitting = false
  /** Changes whose transaction has ended, and which are not durable. */
  #unsynced = 0

  constructor(database: MountedDatabase<HealthcareTables>) {
    this.#database = database
  }

  /**
   * Resolves when the change is durable. Rejects with what `change` throws, ConnectionUnavailable, an error of the
   * driver, or one of the disk.
   */
  async run<T>(change: Change<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await (this.#database.dialect === 'sqlite' ? this.#enqueue(change) : this.#database.transaction(change))
      } catch (error) {
        const isRace = error instanceof ServiceChanged || this.#database.isDuplicate(error)
        if (!isRace || attempt === ATTEMPTS) throw error
      }
    }
  }

  #enqueue<T>(run: Change<T>): Promise<T> {
    if (this.#waiting.length + this.#unsynced >= WAITING_MAX)
      throw new ConnectionUnavailable(`${WAITING_MAX} changes already wait`)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const settle = (outcome: Outcome): void => {
      if ('error' in outcome) reject(outcome.error)
      else resolve(outcome.value as T)
    }
    this.#waiting.push({ run, settle })
    void this.#commitAll()
    return promise
  }

  async #commitAll(): Promise<void> {
    if (this.#isCommitting) return
    this.#isCommitting = true
    while (this.#waiting.length > 0) {
      // Requests that have arrived during the last commit get their turn first.
      await nextTurn()
      const batch = this.#waiting.splice(0, BATCH_MAX)
      const outcomes = await inTurn(() => this.#commit(batch)).catch(error => batch.map(() => ({ error })))
      void this.#settleAll(batch, outcomes)
    }
    this.#isCommitting = false
  }

  /** A refusal waits for the disk, too: it may tell of a change that is not durable. */
  async #settleAll(batch: readonly Waiting[], outcomes: readonly Outcome[]): Promise<void> {
    this.#unsynced += batch.length
    let failure: Outcome | null = null
    try {
      await this.#database.synced()
    } catch (error) {
      failure = { error }
    }
    this.#unsynced -= batch.length
    for (const [index, { settle }] of batch.entries()) settle(failure ?? outcomes[index]!)
  }

  #commit(batch: readonly Waiting[]): Promise<readonly Outcome[]> {
    return this.#database.unsyncedTransaction(async transaction => {
      const outcomes: Outcome[] = []
      for (const { run } of batch) outcomes.push(await inSavepoint(transaction, run))
      return outcomes
    })
  }
}

/**
 * Runs `work` when it is the turn of this thread. SQLite lets threads poll for its lock, so that one that has much to
 * write would keep the others out. A thread that was ended in its turn keeps it: after a while the next one takes it.
 */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const waiting = new AbortController()
  // A request for a lock does not keep the event loop alive; the timer does.
  const timer = setTimeout(() => waiting.abort(), TURN_MS)
  const run = (): Promise<void> => {
    clearTimeout(timer)
    return work().then(resolve, reject)
  }
  // Also rejected where another thread takes the turn of this one, whose work goes on.
  const requested = navigator.locks.request(TURN, { signal: waiting.signal }, run)
  requested
    .catch(() => (waiting.signal.aborted ? navigator.locks.request(TURN, { steal: true }, run) : null))
    .catch(() => {})
  return promise
}

/** Rejects where SQLite has ended the whole transaction, as after an error of the disk. */
async function inSavepoint(transaction: Transaction<HealthcareTables>, run: Change<unknown>): Promise<Outcome> {
  await sql`savepoint one_change`.execute(transaction)
  try {
    const value = await run(transaction)
    await sql`release one_change`.execute(transaction)
    return { value }
  } catch (error) {
    await sql`rollback to one_change`.execute(transaction)
    await sql`release one_change`.execute(transaction)
    return { error }
  }
}
