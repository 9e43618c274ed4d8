/**
 * Reports committed changes to the `RegistryListener`, and exchanges them with other nodes through a change table
 * (outbox). A row is written in the transaction of its change; the counter is locked last and until the commit, so that
 * numbers appear in order and without gaps.
 */
import { randomUUID } from 'node:crypto'
import { consumerKeyId, type RevocationRecord, type SubscriptionUpdate } from '../../auth/records.ts'
import { SerialQueue } from '../../runtime/serial-queue.ts'
import type { PolicySet } from '../../throttle/policy.ts'
import type { Database, ConstraintRefusals, DatabaseTransaction } from './database.ts'
import type { RegistryListener } from './registry.ts'
import { RegistryUnavailable } from './registry-errors.ts'
import { applicationRecord, type ChangeKind, keyRecords, revocationRecord, subscriptionRecord } from './tables.ts'

interface Change {
  readonly kind: ChangeKind
  readonly ref: string
  /** Expiry of a revocation; 0 to read it from the database. */
  readonly expiresMs: number
}

/** Milliseconds between polls for changes of other nodes. */
const POLL_MS = 3000
/** Milliseconds that a change is kept; a node that was cut off for longer needs a new snapshot. */
export const CHANGES_KEPT_MS = 3_600_000
/** Rows of one page of a poll. */
const ROWS_MAX = 1000
/** Values of one statement. */
const VALUES_MAX = 500
/** Changes that gateways hear of as records. */
const RECORD_KINDS: readonly ChangeKind[] = ['application', 'key', 'subscription']
/** Committed changes that wait for the database before the listener can hear of them. */
const PENDING_MAX = 10_000

export class ChangeLog {
  listener: RegistryListener | null = null
  /** Reads all policies; set by the registry, which has the store. */
  readPolicies: () => Promise<PolicySet> = () => Promise.resolve({ policies: [], denied: [] })
  /** One at a time: of two reads, the older one could be reported last. */
  readonly #policies = new SerialQueue(async () => {
    const set = await this.readPolicies()
    this.listener?.policiesChanged?.(set)
  })
  readonly #database: Database
  readonly #issuer: string
  readonly #node = randomUUID()
  readonly #isShared: boolean
  readonly #nowMs: () => number
  readonly #pollMs: number
  #lastSeq = 0
  #timer: NodeJS.Timeout | null = null
  #pending: Change[] = []
  #hasGap = false
  #isClosed = false

  constructor(database: Database, issuer: string, nowMs: () => number, pollMs = POLL_MS) {
    this.#pollMs = pollMs
    this.#database = database
    this.#issuer = issuer
    this.#nowMs = nowMs
    // The embedded database has one node.
    this.#isShared = database.dialect !== 'sqlite'
  }

  /**
   * Starts polling for changes of other nodes. `failed`: called with why a poll failed; the next one follows.
   */
  async start(failed: (error: Error) => void): Promise<void> {
    this.#lastSeq = await this.#readCounter()
    const schedule = () => {
      if (this.#isClosed) return
      this.#timer = setTimeout(() => {
        this.poll()
          .catch(error => failed(error as Error))
          .finally(schedule)
      }, this.#pollMs).unref()
    }
    schedule()
  }

  /** Locks the counter until the transaction ends, as every change does: work that only one node at a time may do. */
  async lock(transaction: DatabaseTransaction): Promise<void> {
    const counter = transaction.updateTable('sluice_change_counter').where('id', '=', 1)
    await counter.set(it => ({ value: it.ref('value') })).execute()
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  /** Runs a transaction of the apim database. Changes that `work` logs are reported after the commit. */
  async transaction<T>(
    work: (
      transaction: DatabaseTransaction,
      logChange: (kind: ChangeKind, ref: string, expiresMs?: number) => void,
    ) => Promise<T>,
    refusals: ConstraintRefusals = {},
  ): Promise<T> {
    let logged: Change[] = []
    const result = await this.#database.transaction(async transaction => {
      logged = []
      const value = await work(transaction, (kind, ref, expiresMs = 0) => logged.push({ kind, ref, expiresMs }))
      if (this.#isShared && logged.length > 0) await this.#insertChanges(transaction, logged)
      return value
    }, refusals)
    await this.#notifyOrDefer(logged)
    return result
  }

  /**
   * Reports a change of users after its commit, because users may be in another database. The local listener hears of
   * it even where the table is unreachable.
   */
  async usersChanged(ref: string): Promise<void> {
    this.listener?.usersChanged?.()
    if (!this.#isShared) return
    await this.#database.transaction(transaction =>
      this.#insertChanges(transaction, [{ kind: 'user', ref, expiresMs: 0 }]),
    )
  }

  /** Reports changes of other nodes since the last poll, and deferred changes. */
  async poll(): Promise<void> {
    await this.#notifyOrDefer(this.#pending.splice(0))
    for (let more = this.#isShared; more && !this.#isClosed; ) more = await this.#pollPage()
    if (this.#hasGap) {
      this.#hasGap = false
      this.listener?.changesMissed?.()
    }
  }

  async #insertChanges(transaction: DatabaseTransaction, logged: readonly Change[]): Promise<void> {
    const counter = transaction.updateTable('sluice_change_counter').where('id', '=', 1)
    await counter.set(it => ({ value: it('value', '+', logged.length) })).execute()
    const { value } = await transaction.selectFrom('sluice_change_counter').select('value').executeTakeFirstOrThrow()
    const first = Number(value) - logged.length + 1
    const made_ms = this.#nowMs()
    const rows = logged.map(({ kind, ref }, at) => ({ seq: first + at, node: this.#node, made_ms, kind, ref }))
    for (const chunk of inChunks(rows))
      await transaction
        .insertInto('sluice_changes')
        .values([...chunk])
        .execute()
  }

  async #readCounter(): Promise<number> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_change_counter').select('value').executeTakeFirst(),
    )
    return Number(row?.value ?? 0)
  }

  /** True where more rows may exist. */
  async #pollPage(): Promise<boolean> {
    const rows = await this.#database.read(db =>
      db
        .selectFrom('sluice_changes')
        .selectAll()
        .where('seq', '>', this.#lastSeq)
        .orderBy('seq')
        .limit(ROWS_MAX)
        .execute(),
    )
    const last = rows.length === 0 ? await this.#readCounter() : Number(rows.at(-1)!.seq)
    // Sequence numbers have no gaps: a missing one was cleared away.
    if (
      rows.length === 0
        ? last !== this.#lastSeq && (await this.#isCleared())
        : Number(rows[0]!.seq) !== this.#lastSeq + 1
    )
      this.#hasGap = true
    const foreign = rows.filter(({ node }) => node !== this.#node)
    await this.#notify(foreign.map(({ kind, ref }) => ({ kind, ref, expiresMs: 0 })))
    if (rows.length > 0 || this.#hasGap) this.#lastSeq = last
    return rows.length === ROWS_MAX
  }

  /** Checks that rows were cleared away: a change that committed between the two reads is no gap. */
  async #isCleared(): Promise<boolean> {
    const next = await this.#database.read(db =>
      db.selectFrom('sluice_changes').select('seq').where('seq', '>', this.#lastSeq).limit(1).executeTakeFirst(),
    )
    return next === undefined
  }

  /** A committed change succeeds even if its report fails now: the report is deferred. */
  async #notifyOrDefer(changes: readonly Change[]): Promise<void> {
    try {
      await this.#notify(changes)
    } catch (error) {
      if (!(error instanceof RegistryUnavailable)) throw error
      if (this.#pending.length + changes.length > PENDING_MAX) this.#hasGap = true
      else this.#pending.push(...changes)
    }
  }

  async #notify(changes: readonly Change[]): Promise<void> {
    if (this.listener === null || changes.length === 0) return
    const direct = changes.filter(({ kind, expiresMs }) => kind === 'revoked' && expiresMs > 0)
    const revoked: RevocationRecord[] = direct.map(({ ref, expiresMs }) => ({ key: ref, expiresMs }))
    const read = changes.filter(({ kind, expiresMs }) => kind === 'revoked' && expiresMs === 0)
    revoked.push(...(await this.#revocationRecords(read.map(({ ref }) => ref))))
    const updates = changes.filter(({ kind }) => RECORD_KINDS.includes(kind))
    // Revocations before grants.
    if (revoked.length > 0) this.listener.tokensRevoked(revoked)
    if (changes.some(({ kind }) => kind === 'user')) this.listener.usersChanged?.()
    if (changes.some(({ kind }) => kind === 'signing_key')) this.listener.signingKeysChanged?.()
    if (changes.some(({ kind }) => kind === 'policy')) await this.#policies.run()
    if (updates.length > 0) this.listener.subscriptionsChanged(await this.#subscriptionUpdate(updates))
  }

  async #revocationRecords(keys: readonly string[]): Promise<readonly RevocationRecord[]> {
    const rows = await this.#selectIn(keys, (db, chunk) =>
      db.selectFrom('sluice_revocations').selectAll().where('revocation_key', 'in', chunk).execute(),
    )
    return rows.map(revocationRecord)
  }

  async #subscriptionUpdate(changes: readonly Change[]): Promise<SubscriptionUpdate> {
    const refsOf = (kind: ChangeKind) => [
      ...new Set(changes.filter(change => change.kind === kind).map(({ ref }) => ref)),
    ]
    const [applicationIds, consumerKeys, subscriptionIds] = [
      refsOf('application'),
      refsOf('key'),
      refsOf('subscription'),
    ]
    const applications = await this.#selectIn(applicationIds, (db, chunk) =>
      db.selectFrom('sluice_applications').selectAll().where('id', 'in', chunk).execute(),
    )
    const clients = await this.#selectIn(consumerKeys, (db, chunk) =>
      db.selectFrom('sluice_clients').selectAll().where('consumer_key', 'in', chunk).execute(),
    )
    const subscriptions = await this.#selectIn(subscriptionIds, (db, chunk) =>
      db.selectFrom('sluice_subscriptions').selectAll().where('id', 'in', chunk).execute(),
    )
    const issuer = this.#issuer
    const keys = clients.flatMap(row => keyRecords(row, issuer))
    return {
      applications: applications.map(applicationRecord),
      keys,
      subscriptions: subscriptions.map(subscriptionRecord),
      removed: {
        applications: difference(
          applicationIds,
          applications.map(({ id }) => id),
        ),
        keys: difference(
          consumerKeys,
          keys.map(({ consumerKey }) => consumerKey),
        ).map(consumerKey => consumerKeyId({ issuer, consumerKey })),
        subscriptions: difference(
          subscriptionIds,
          subscriptions.map(({ id }) => id),
        ),
      },
    }
  }

  async #selectIn<R>(
    names: readonly string[],
    select: (db: Database['kysely'], values: readonly string[]) => Promise<readonly R[]>,
  ): Promise<readonly R[]> {
    const rows: R[] = []
    for (const chunk of inChunks(names)) rows.push(...(await this.#database.read(db => select(db, chunk))))
    return rows
  }
}

/** Splits values, because a statement takes a limited number. */
export function inChunks<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / VALUES_MAX) }, (_, at) =>
    all.slice(at * VALUES_MAX, (at + 1) * VALUES_MAX),
  )
}

function difference(ids: readonly string[], found: readonly string[]): readonly string[] {
  return [...new Set(ids).difference(new Set(found))]
}
