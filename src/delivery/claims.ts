/** Statements of runs: what is due, claims in batches, results in batches, and recovery of claims without a result. */
import { type RawBuilder, sql } from 'kysely'
import type { DialectName } from '../database/pooled-dialect.ts'
import { runTransaction } from '../database/transaction.ts'
import type { SenderId } from './delivery.ts'
import { CAUSE_CHARS_MAX, channelsOf, type OutboxConnection } from './outbox-schema.ts'
import type { Verdict } from './retry-schedule.ts'
import { type CountedMove, countEvents, countMoves, lockSender } from './sender-rows.ts'
import { stateAfter } from './delivery-states.ts'

/** A sender with deliveries that wait or are being sent. */
export interface BusySender {
  readonly pk: number
  readonly sender: SenderId
  /** Earliest next attempt; null where none waits. */
  readonly nextMs: number | null
  readonly resumeMs: number
}

export interface ClaimedDelivery {
  readonly id: string
  readonly attempts: number
  readonly acceptedMs: number
  readonly sinceMs: number
  readonly event: string
  readonly cause: string
}

/** `claim`: token of the batch in which the delivery was claimed. */
export interface Settlement {
  readonly id: string
  readonly claim: string
  readonly verdict: Verdict | { readonly event: 'release' }
}

interface ClaimTerms {
  readonly claim: string
  readonly term: number
  readonly count: number
  readonly nowMs: number
  readonly untilMs: number
}

/** Rows of one statement: times of next attempts are searched for in a list. */
const POSTPONED_ROWS = 100
/** Senders of one statement. */
const SENDERS_PER_STATEMENT = 500

/** Busy senders in the area of the connection. */
export async function busySenders({ db, area }: OutboxConnection): Promise<readonly BusySender[]> {
  const rows = await db
    .selectFrom('delivery_senders as s')
    .select(['s.pk', 's.tenant', 's.channel', 's.name', 's.resume_ms'])
    .select(({ selectFrom }) =>
      selectFrom('delivery_messages as m')
        .select(({ fn }) => fn.min('m.at_ms').as('first'))
        .whereRef('m.sender', '=', 's.pk')
        .where('m.state', '=', 'waiting')
        .as('next_ms'),
    )
    .where('s.waiting', '>', 0)
    .where('s.channel', ...channelsOf(area))
    .execute()
  return rows.map(({ pk, tenant, channel, name, next_ms, resume_ms }) => ({
    pk: Number(pk),
    sender: { tenant, channel, name },
    nextMs: next_ms === null ? null : Number(next_ms),
    resumeMs: Number(resume_ms),
  }))
}

/** The sender of a run; undefined where it has nothing. */
export async function readSender(
  { db }: OutboxConnection,
  { tenant, channel, name }: SenderId,
): Promise<{ readonly pk: number; readonly resumeMs: number } | undefined> {
  const row = await db
    .selectFrom('delivery_senders')
    .select(['pk', 'resume_ms'])
    .where('tenant', '=', tenant)
    .where('channel', '=', channel)
    .where('name', '=', name)
    .executeTakeFirst()
  return row === undefined ? undefined : { pk: Number(row.pk), resumeMs: Number(row.resume_ms) }
}

/** Takes what is due, the longest first; nothing where the lease has another term. */
export async function claimDue(
  { db, dialect, area }: OutboxConnection,
  pk: number,
  { claim, term, count, nowMs, untilMs }: ClaimTerms,
): Promise<readonly ClaimedDelivery[]> {
  const set = sql`state = ${stateAfter('waiting', 'claim')}, at_ms = ${untilMs}, claim = ${claim}, term = ${term}`
  const own = sql`name = ${area} and term = ${term} and until_ms > ${nowMs}`
  const holds = sql`exists (select 1 from delivery_lease where ${own})`
  const due = sql`sender = ${pk} and state = 'waiting' and at_ms <= ${nowMs} and ${holds} order by at_ms limit ${count}`
  const columns = sql`id, attempts, accepted_ms, since_ms, event, cause`
  if (dialect === 'mysql') {
    // Neither MariaDB nor MySQL returns rows of an update.
    await sql`update delivery_messages set ${set} where ${due}`.execute(db)
    const taken = sql`sender = ${pk} and state = 'sending' and at_ms = ${untilMs} and claim = ${claim}`
    return (await sql<ClaimedRow>`select ${columns} from delivery_messages where ${taken}`.execute(db)).rows.map(
      claimed,
    )
  }
  const free = dialect === 'postgresql' ? sql`for update skip locked` : sql``
  const ids = sql`select id from delivery_messages where ${due} ${free}`
  const update = sql<ClaimedRow>`update delivery_messages set ${set} where id in (${ids}) returning ${columns}`
  return (await update.execute(db)).rows.map(claimed)
}

interface ClaimedRow {
  readonly id: string
  readonly attempts: number
  readonly accepted_ms: number | string
  readonly since_ms: number | string
  readonly event: string
  readonly cause: string
}

function claimed({ id, attempts, accepted_ms, since_ms, event, cause }: ClaimedRow): ClaimedDelivery {
  return { id, attempts, acceptedMs: Number(accepted_ms), sinceMs: Number(since_ms), event, cause }
}

interface SettleTerms {
  readonly nowMs: number
  /** Time before which no delivery of the sender is claimed; 0 leaves it as it is. */
  readonly resumeMs: number
}

/**
 * Records results, each once, in a transaction: a delivery whose claim was recovered meanwhile stays as it is. Resolves
 * with what was recorded, for `countEvents`.
 */
export async function settle(
  connection: OutboxConnection,
  pk: number,
  settlements: readonly Settlement[],
  { nowMs, resumeMs }: SettleTerms,
): Promise<readonly CountedMove[]> {
  const moves: CountedMove[] = []
  for (const group of groupsOf(settlements)) {
    const { event } = group[0]!.verdict
    moves.push({ from: 'sending', event, deliveries: await settleGroup(connection, pk, group, nowMs) })
  }
  await countMoves(connection, pk, moves)
  if (resumeMs > 0) {
    await connection.db.updateTable('delivery_senders').set({ resume_ms: resumeMs }).where('pk', '=', pk).execute()
  }
  return moves
}

/** Results that one statement can record: the same event and cause. */
function groupsOf(settlements: readonly Settlement[]): readonly (readonly Settlement[])[] {
  const groups = Map.groupBy(
    settlements,
    ({ verdict }) => `${verdict.event} ${'cause' in verdict ? verdict.cause : ''}`,
  )
  return [...groups.values()].flatMap(group => {
    if (group[0]!.verdict.event !== 'postpone') return [group]
    const count = Math.ceil(group.length / POSTPONED_ROWS)
    return Array.from({ length: count }, (_, i) => group.slice(i * POSTPONED_ROWS, (i + 1) * POSTPONED_ROWS))
  })
}

/** Resolves with the number of rows that have changed. */
async function settleGroup(
  { db, dialect }: OutboxConnection,
  pk: number,
  group: readonly Settlement[],
  nowMs: number,
): Promise<number> {
  const { verdict } = group[0]!
  const { event } = verdict
  const result = await db
    .updateTable('delivery_messages')
    .set(row => ({
      state: keptState(stateAfter('sending', event)),
      at_ms: event === 'postpone' ? nextAttempts(group, dialect) : nowMs,
      claim: '',
      ...('cause' in verdict ? { attempts: row('attempts', '+', 1), cause: cut(verdict.cause) } : {}),
    }))
    .where('sender', '=', pk)
    .where('state', '=', 'sending')
    .where('id', 'in', idsOf(group))
    .where('claim', 'in', [...new Set(group.map(({ claim }) => claim))])
    .executeTakeFirstOrThrow()
  return Number(result.numUpdatedRows)
}

/** The time of each delivery, in one expression. */
function nextAttempts(group: readonly Settlement[], dialect: DialectName): RawBuilder<number> {
  const cases = group.map(({ id, verdict }) => sql`when ${id} then ${'atMs' in verdict ? verdict.atMs : 0}`)
  const type = sql.raw(dialect === 'mysql' ? 'signed' : 'bigint')
  return sql<number>`cast(case id ${sql.join(cases, sql` `)} end as ${type})`
}

function idsOf(group: readonly Settlement[]): readonly string[] {
  return group.map(({ id }) => id)
}

/** Everything that a run has claimed and not settled waits again, at once. */
export async function releaseClaims({ db }: OutboxConnection, pk: number, run: string, nowMs: number): Promise<void> {
  await db
    .updateTable('delivery_messages')
    .set({ state: keptState(stateAfter('sending', 'release')), at_ms: nowMs, claim: '' })
    .where('sender', '=', pk)
    .where('state', '=', 'sending')
    .where('claim', 'like', `${run}-%`)
    .execute()
}

interface RecoveryTerms {
  readonly term: number
  readonly nowMs: number
  readonly claimMs: number
  /** Longest wait for a next attempt. */
  readonly delayMsMax: number
}

/**
 * Lets wait again, at once: claims of earlier terms, and claims that have ended. Their number. Next attempts that are
 * farther ahead than any delay are due too, because the clock went back.
 */
export async function recoverClaims(
  connection: OutboxConnection,
  senders: readonly BusySender[],
  terms: RecoveryTerms,
): Promise<number> {
  let recovered = 0
  for (const [channel, some] of Map.groupBy(senders, ({ sender }) => sender.channel)) {
    for (let i = 0; i < some.length; i += SENDERS_PER_STATEMENT) {
      const pks = some.slice(i, i + SENDERS_PER_STATEMENT).map(({ pk }) => pk)
      const deliveries = await recoverSome(connection, pks, terms)
      countEvents(connection, channel, [{ event: 'recover', deliveries }])
      recovered += deliveries
    }
  }
  return recovered
}

async function recoverSome(
  { db }: OutboxConnection,
  pks: readonly number[],
  { term, nowMs, claimMs, delayMsMax }: RecoveryTerms,
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('delivery_messages')
    .set({ state: keptState(stateAfter('sending', 'recover')), at_ms: nowMs, claim: '' })
    .where('sender', 'in', pks)
    .where('state', '=', 'sending')
    // A claim that ends later than one of now would was made before the clock went back.
    .where(row => row.or([row('term', '!=', term), row('at_ms', '<', nowMs), row('at_ms', '>', nowMs + 2 * claimMs)]))
    .executeTakeFirstOrThrow()
  await db
    .updateTable('delivery_messages')
    .set({ at_ms: nowMs })
    .where('sender', 'in', pks)
    .where('state', '=', 'waiting')
    .where('at_ms', '>', nowMs + delayMsMax)
    .execute()
  return Number(numUpdatedRows)
}

/** Makes dead letters of the deliveries that wait for a deleted sender. Resolves with their number. */
export async function orphan(connection: OutboxConnection, sender: SenderId, nowMs: number): Promise<number> {
  const event = 'orphan'
  const deliveries = await runTransaction(connection.db, async db => {
    const inTransaction = { ...connection, db }
    const locked = await lockSender(inTransaction, sender)
    if (locked === undefined) return 0
    const { numUpdatedRows } = await db
      .updateTable('delivery_messages')
      .set({ state: keptState(stateAfter('waiting', event)), at_ms: nowMs, cause: 'the sender was deleted' })
      .where('sender', '=', locked.pk)
      .where('state', '=', 'waiting')
      .executeTakeFirstOrThrow()
    const changed = Number(numUpdatedRows)
    await countMoves(inTransaction, locked.pk, [{ from: 'waiting', event, deliveries: changed }])
    return changed
  })
  countEvents(connection, sender.channel, [{ event, deliveries }])
  return deliveries
}

function cut(cause: string): string {
  return cause.slice(0, CAUSE_CHARS_MAX).toWellFormed()
}

function keptState<State>(state: State | 'gone'): State {
  if (state === 'gone') throw new Error('the row of a delivery is deleted, not changed')
  return state
}
