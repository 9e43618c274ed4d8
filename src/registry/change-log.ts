/**
 * What gateways have to be told, and the list by which nodes on one database server learn of each other's changes. A
 * row of it is written in the transaction that makes the change. The counter is taken last and held until the commit,
 * so that numbers appear in their order and a reader that has seen one has seen all before it.
 */
import { randomUUID } from 'node:crypto'
import type { RevokedFacts, SubscriptionNews } from '../identity/facts.ts'
import { keyName } from '../identity/facts.ts'
import type { Database, Refusals, Within } from './database.ts'
import { type RegistryListener, RegistryUnavailable } from './registry.ts'
import { applicationFacts, keyFacts, revokedFacts, subscriptionFacts } from './rows.ts'
import type { ChangeKind } from './tables.ts'

interface Change {
  readonly kind: ChangeKind
  readonly ref: string
  /** Of what is revoked; 0: it is read when it is told. */
  readonly expiresMs: number
}

/** Milliseconds between looks at what other nodes have done. */
const POLL_MS = 3000
/** Milliseconds that a change stays in the list; a node that was cut off for longer asks for everything. */
export const CHANGES_KEPT_MS = 3_600_000
/** Rows of one look; there may be several in turn. */
const ROWS_MAX = 1000
/** Values in one statement. */
const VALUES_MAX = 500
/** Changes that wait to be told, because the database went away between commit and telling. */
const PENDING_MAX = 10_000

export class ChangeLog {
  listener: RegistryListener | null = null
  readonly #database: Database
  readonly #issuer: string
  readonly #node = randomUUID()
  readonly #isListed: boolean
  readonly #nowMs: () => number
  readonly #pollMs: number
  #seen = 0
  #timer: NodeJS.Timeout | null = null
  #pending: Change[] = []
  #hasMissed = false
  #isClosed = false

  constructor(database: Database, issuer: string, nowMs: () => number, pollMs = POLL_MS) {
    this.#pollMs = pollMs
    this.#database = database
    this.#issuer = issuer
    this.#nowMs = nowMs
    // The embedded one has no other nodes.
    this.#isListed = database.flavour !== 'sqlite'
  }

  /** From now on changes of other nodes are told. `failed`: why a look has failed; the next one follows. */
  async begin(failed: (cause: string) => void): Promise<void> {
    this.#seen = await this.#last()
    const again = () => {
      if (this.#isClosed) return
      this.#timer = setTimeout(() => {
        this.look()
          .catch(error => failed((error as Error).message))
          .finally(again)
      }, this.#pollMs).unref()
    }
    again()
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  /** A transaction of the database of applications; what it notes is told once it is committed. */
  async transaction<T>(
    work: (within: Within, note: (kind: ChangeKind, ref: string, expiresMs?: number) => void) => Promise<T>,
    refusals: Refusals = {},
  ): Promise<T> {
    let noted: Change[] = []
    const result = await this.#database.transaction(async within => {
      noted = []
      const answer = await work(within, (kind, ref, expiresMs = 0) => noted.push({ kind, ref, expiresMs }))
      if (this.#isListed && noted.length > 0) await this.#list(within, noted)
      return answer
    }, refusals)
    await this.#tellOrKeep(noted)
    return result
  }

  /** After the commit: users may be in another database. Told here even where the list cannot be reached. */
  async usersChanged(ref: string): Promise<void> {
    this.listener?.users?.()
    if (!this.#isListed) return
    await this.#database.transaction(within => this.#list(within, [{ kind: 'user', ref, expiresMs: 0 }]))
  }

  /** What other nodes have done since the last look, and what could not be told before. */
  async look(): Promise<void> {
    await this.#tellOrKeep(this.#pending.splice(0))
    for (let more = this.#isListed; more && !this.#isClosed; ) more = await this.#page()
    if (this.#hasMissed) {
      this.#hasMissed = false
      this.listener?.missed?.()
    }
  }

  async #list(within: Within, noted: readonly Change[]): Promise<void> {
    const counter = within.updateTable('sluice_change_counter').where('id', '=', 1)
    await counter.set(it => ({ value: it('value', '+', noted.length) })).execute()
    const { value } = await within.selectFrom('sluice_change_counter').select('value').executeTakeFirstOrThrow()
    const first = Number(value) - noted.length + 1
    const made_ms = this.#nowMs()
    const rows = noted.map(({ kind, ref }, at) => ({ seq: first + at, node: this.#node, made_ms, kind, ref }))
    for (const some of inPieces(rows))
      await within
        .insertInto('sluice_changes')
        .values([...some])
        .execute()
  }

  async #last(): Promise<number> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_change_counter').select('value').executeTakeFirst(),
    )
    return Number(row?.value ?? 0)
  }

  /** Answers whether there may be more. */
  async #page(): Promise<boolean> {
    const rows = await this.#database.read(db =>
      db
        .selectFrom('sluice_changes')
        .selectAll()
        .where('seq', '>', this.#seen)
        .orderBy('seq')
        .limit(ROWS_MAX)
        .execute(),
    )
    const last = rows.length === 0 ? await this.#last() : Number(rows.at(-1)!.seq)
    // Numbers follow each other: where one is left out it was there, and is cleared away.
    if (rows.length === 0 ? last !== this.#seen && (await this.#isCleared()) : Number(rows[0]!.seq) !== this.#seen + 1)
      this.#hasMissed = true
    const others = rows.filter(({ node }) => node !== this.#node)
    await this.#tell(others.map(({ kind, ref }) => ({ kind, ref, expiresMs: 0 })))
    if (rows.length > 0 || this.#hasMissed) this.#seen = last
    return rows.length === ROWS_MAX
  }

  /** Nothing is left to read although the counter went on: a change committed between the two looks is no gap. */
  async #isCleared(): Promise<boolean> {
    const next = await this.#database.read(db =>
      db.selectFrom('sluice_changes').select('seq').where('seq', '>', this.#seen).limit(1).executeTakeFirst(),
    )
    return next === undefined
  }

  /** What is committed has happened: that it could not be told is no failure of the change. */
  async #tellOrKeep(changes: readonly Change[]): Promise<void> {
    try {
      await this.#tell(changes)
    } catch (error) {
      if (!(error instanceof RegistryUnavailable)) throw error
      if (this.#pending.length + changes.length > PENDING_MAX) this.#hasMissed = true
      else this.#pending.push(...changes)
    }
  }

  async #tell(changes: readonly Change[]): Promise<void> {
    if (this.listener === null || changes.length === 0) return
    const known = changes.filter(({ kind, expiresMs }) => kind === 'revoked' && expiresMs > 0)
    const revoked: RevokedFacts[] = known.map(({ ref, expiresMs }) => ({ key: ref, expiresMs }))
    const read = changes.filter(({ kind, expiresMs }) => kind === 'revoked' && expiresMs === 0)
    revoked.push(...(await this.#revocations(read.map(({ ref }) => ref))))
    const others = changes.filter(({ kind }) => kind !== 'revoked' && kind !== 'user')
    // First who must stay out, then who may come in.
    if (revoked.length > 0) this.listener.revoked(revoked)
    if (changes.some(({ kind }) => kind === 'user')) this.listener.users?.()
    if (others.length > 0) this.listener.subscriptions(await this.#news(others))
  }

  async #revocations(keys: readonly string[]): Promise<readonly RevokedFacts[]> {
    const rows = await this.#rows(keys, (db, some) =>
      db.selectFrom('sluice_revocations').selectAll().where('revocation_key', 'in', some).execute(),
    )
    return rows.map(revokedFacts)
  }

  async #news(changes: readonly Change[]): Promise<SubscriptionNews> {
    const of = (kind: ChangeKind) => [...new Set(changes.filter(change => change.kind === kind).map(({ ref }) => ref))]
    const [applicationIds, consumerKeys, subscriptionIds] = [of('application'), of('key'), of('subscription')]
    const applications = await this.#rows(applicationIds, (db, some) =>
      db.selectFrom('sluice_applications').selectAll().where('id', 'in', some).execute(),
    )
    const clients = await this.#rows(consumerKeys, (db, some) =>
      db.selectFrom('sluice_clients').selectAll().where('consumer_key', 'in', some).execute(),
    )
    const subscriptions = await this.#rows(subscriptionIds, (db, some) =>
      db.selectFrom('sluice_subscriptions').selectAll().where('id', 'in', some).execute(),
    )
    const keys = clients.flatMap(row => keyFacts(row, this.#issuer))
    const issuer = this.#issuer
    return {
      applications: applications.map(applicationFacts),
      keys,
      subscriptions: subscriptions.map(subscriptionFacts),
      removed: {
        applications: without(
          applicationIds,
          applications.map(({ id }) => id),
        ),
        keys: without(
          consumerKeys,
          keys.map(({ consumerKey }) => consumerKey),
        ).map(consumerKey => keyName({ issuer, consumerKey })),
        subscriptions: without(
          subscriptionIds,
          subscriptions.map(({ id }) => id),
        ),
      },
    }
  }

  async #rows<R>(
    names: readonly string[],
    select: (db: Database['kysely'], some: readonly string[]) => Promise<readonly R[]>,
  ): Promise<readonly R[]> {
    const rows: R[] = []
    for (const some of inPieces(names)) rows.push(...(await this.#database.read(db => select(db, some))))
    return rows
  }
}

/** No statement takes any number of values. */
export function inPieces<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / VALUES_MAX) }, (_, at) =>
    all.slice(at * VALUES_MAX, (at + 1) * VALUES_MAX),
  )
}

function without(asked: readonly string[], found: readonly string[]): readonly string[] {
  const there = new Set(found)
  return asked.filter(name => !there.has(name))
}
