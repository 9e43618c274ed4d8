/** Stored deliveries as callers read and change them: pages, dead letters that are replayed or dropped, retention. */
import { type RawBuilder, sql } from 'kysely'
import { runTransaction } from '../database/transaction.ts'
import type { AcceptLimits } from './acceptance.ts'
import type { DeadLetters, Delivery, DeliveryFilter, DeliveryPage, DeliveryState } from './delivery.ts'
import { stateAfter } from './delivery-states.ts'
import { openedEvent } from './event-cipher.ts'
import { channelsOf, type MessageRow, type OutboxConnection } from './outbox-schema.ts'
import { countEvents, countMoves, waitingByTenant, waitingInAll } from './sender-rows.ts'

/** Dead letters of one call. */
const DEAD_LETTERS_MAX = 1000

/** `before`: `next` of the page before; null for the first one. */
export interface PageRange {
  readonly before: string | null
  readonly limit: number
}

const STATES: readonly DeliveryState[] = ['waiting', 'sending', 'delivered', 'dead']
/** Parts of one statement; SQLite takes 500. */
const PIECES_MAX = 100

type ListedRow = Omit<MessageRow, 'sender' | 'since_ms' | 'claim' | 'term'> & {
  readonly tenant: string
  readonly channel: string
  readonly name: string
}

function listed({ db }: OutboxConnection, { tenant, channel, name, state }: DeliveryFilter) {
  let select = db
    .selectFrom('delivery_messages as m')
    .innerJoin('delivery_senders as s', 's.pk', 'm.sender')
    .where('s.tenant', '=', tenant)
  if (channel !== undefined) select = select.where('s.channel', '=', channel)
  if (name !== undefined) select = select.where('s.name', '=', name)
  return state === undefined ? select : select.where('m.state', '=', state)
}

const COLUMNS = [
  ...(['m.id', 'm.state', 'm.at_ms', 'm.accepted_ms', 'm.attempts', 'm.event', 'm.cause'] as const),
  ...(['s.tenant', 's.channel', 's.name'] as const),
] as const

/** Newest first, so that a page neither repeats nor loses what is accepted meanwhile. */
export async function listPage(
  connection: OutboxConnection,
  { tenant, channel, name, state }: DeliveryFilter,
  { before, limit }: PageRange,
): Promise<DeliveryPage> {
  let select = connection.db
    .selectFrom('delivery_senders')
    .select(['pk', 'channel', 'name'])
    .where('tenant', '=', tenant)
  if (channel !== undefined) select = select.where('channel', '=', channel)
  if (name !== undefined) select = select.where('name', '=', name)
  const senders = await select.execute()
  const pieces = senders.flatMap(sender => (state === undefined ? STATES : [state]).map(of => ({ sender, state: of })))
  const deliveries: Delivery[] = []
  for (let i = 0; i < pieces.length; i += PIECES_MAX) {
    const some = pieces.slice(i, i + PIECES_MAX)
    const newest = some.map(piece => newestOf(Number(piece.sender.pk), piece.state, { before, limit: limit + 1 }))
    const { rows } = await sql<NewestRow>`${sql.join(newest, sql` union all `)}`.execute(connection.db)
    const byPk = new Map(some.map(piece => [Number(piece.sender.pk), piece.sender]))
    for (const row of rows)
      deliveries.push(deliveryOf(connection, { ...row, tenant, ...byPk.get(Number(row.sender))! }))
  }
  deliveries.sort((a, b) => (a.id < b.id ? 1 : -1))
  const page = deliveries.slice(0, limit)
  return { deliveries: page, next: deliveries.length > limit ? page.at(-1)!.id : null }
}

/** Deliveries of one sender in one state: each database finds them in order by the index. */
function newestOf(pk: number, state: DeliveryState, { before, limit }: PageRange): RawBuilder<unknown> {
  const older = before === null ? sql`` : sql`and id < ${before}`
  const own = sql`sender = ${pk} and state = ${state} ${older} order by id desc limit ${limit}`
  const columns = sql`id, sender, state, at_ms, accepted_ms, attempts, event, cause`
  return sql`select * from (select ${columns} from delivery_messages where ${own}) as newest`
}

type NewestRow = Omit<MessageRow, 'since_ms' | 'claim' | 'term'>

export async function readDelivery(
  connection: OutboxConnection,
  tenant: string,
  id: string,
): Promise<Delivery | undefined> {
  const row = await listed(connection, { tenant }).select(COLUMNS).where('m.id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : deliveryOf(connection, row)
}

function deliveryOf(connection: OutboxConnection, row: ListedRow): Delivery {
  const sender = { tenant: row.tenant, channel: row.channel, name: row.name }
  return {
    id: row.id,
    sender,
    state: row.state,
    attempts: row.attempts,
    acceptedMs: Number(row.accepted_ms),
    atMs: Number(row.at_ms),
    event: openedEvent(connection, row.event, sender),
    cause: row.cause,
  }
}

type WaitingLimits = Pick<AcceptLimits, 'senderWaitingMax' | 'tenantWaitingMax' | 'allWaitingMax'>

/** Dead letters wait again without attempts, as many as the limits of waiting events allow. Their number. */
export async function replayDeadLetters(
  connection: OutboxConnection,
  letters: DeadLetters,
  nowMs: number,
  { senderWaitingMax, tenantWaitingMax, allWaitingMax }: WaitingLimits,
): Promise<number> {
  const { tenant } = letters
  return changeDeadLetters(connection, letters, 'replay', async (inTransaction, pk, ids, waiting) => {
    const ofTenant = (await waitingByTenant(inTransaction, [tenant])).get(tenant) ?? 0
    const ofAll = await waitingInAll(inTransaction)
    const room = Math.min(senderWaitingMax - waiting, tenantWaitingMax - ofTenant, allWaitingMax - ofAll)
    const some = ids.slice(0, Math.max(0, room))
    if (some.length === 0) return 0
    const state = stateAfter('dead', 'replay')
    if (state === 'gone') throw new Error('a replay removes nothing')
    const { numUpdatedRows } = await inTransaction.db
      .updateTable('delivery_messages')
      .set({ state, at_ms: nowMs, since_ms: nowMs, attempts: 0 })
      .where('id', 'in', some)
      .where('state', '=', 'dead')
      .executeTakeFirstOrThrow()
    const deliveries = Number(numUpdatedRows)
    await countMoves(inTransaction, pk, [{ from: 'dead', event: 'replay', deliveries }])
    return deliveries
  })
}

export async function dropDeadLetters(connection: OutboxConnection, letters: DeadLetters): Promise<number> {
  return changeDeadLetters(connection, letters, 'drop', (inTransaction, pk, ids) =>
    remove(inTransaction, pk, ids, 'dead', 'drop'),
  )
}

type DeadLetterChange = (
  connection: OutboxConnection,
  pk: number,
  ids: readonly string[],
  waiting: number,
) => Promise<number>

/** Changes dead letters sender by sender, with the row of the sender locked. */
async function changeDeadLetters(
  connection: OutboxConnection,
  letters: DeadLetters,
  event: 'replay' | 'drop',
  change: DeadLetterChange,
): Promise<number> {
  if ('ids' in letters && letters.ids.length === 0) return 0
  const { tenant, ...rest } = letters
  const filter: DeliveryFilter = 'ids' in rest ? { tenant, state: 'dead' } : { tenant, state: 'dead', ...rest }
  let select = listed(connection, filter).select(['m.id', 'm.sender', 's.channel']).orderBy('m.id')
  if ('ids' in rest) select = select.where('m.id', 'in', rest.ids.slice(0, DEAD_LETTERS_MAX))
  const found = await select.limit(DEAD_LETTERS_MAX).execute()
  let changed = 0
  for (const [pk, rows] of Map.groupBy(found, ({ sender }) => Number(sender))) {
    const deliveries = await runTransaction(connection.db, async db => {
      const inTransaction = { ...connection, db }
      const waiting = await lockCounts(inTransaction, pk)
      const ids = rows.map(({ id }) => id)
      return waiting === undefined ? 0 : change(inTransaction, pk, ids, waiting)
    })
    countEvents(connection, rows[0]!.channel, [{ event, deliveries }])
    changed += deliveries
  }
  return changed
}

/** Locks the row of a sender; the number of its deliveries that wait. */
async function lockCounts({ db, dialect }: OutboxConnection, pk: number): Promise<number | undefined> {
  const lock = db.selectFrom('delivery_senders').select('waiting').where('pk', '=', pk)
  const row = await (dialect === 'sqlite' ? lock : lock.forUpdate()).executeTakeFirst()
  return row === undefined ? undefined : Number(row.waiting)
}

async function remove(
  connection: OutboxConnection,
  pk: number,
  ids: readonly string[],
  from: DeliveryState,
  event: 'drop' | 'expire',
): Promise<number> {
  if (stateAfter(from, event) !== 'gone') throw new Error(`${event} keeps the row`)
  const { numDeletedRows } = await connection.db
    .deleteFrom('delivery_messages')
    .where('id', 'in', ids)
    .where('sender', '=', pk)
    .where('state', '=', from)
    .executeTakeFirstOrThrow()
  const deliveries = Number(numDeletedRows)
  await countMoves(connection, pk, [{ from, event, deliveries }])
  return deliveries
}

export interface Retention {
  /** Delivered rows stay so many milliseconds, and so many of each sender. Their idempotency keys stay as long. */
  readonly deliveredMs: number
  readonly deliveredMax: number
  /** Dead letters. */
  readonly deadMs: number
  readonly deadMax: number
}

/** Rows of one transaction. */
const EXPIRED_ROWS = 500

/**
 * Removes the oldest of what is delivered or dead in the area of the connection, beyond the limits; with `isAged` by
 * time too. Their number; there may be more of them where it is at least `most`.
 */
export async function expire(
  connection: OutboxConnection,
  { deliveredMs, deliveredMax, deadMs, deadMax }: Retention,
  { nowMs, isAged, most }: { readonly nowMs: number; readonly isAged: boolean; readonly most: number },
): Promise<number> {
  const { db, area } = connection
  const senders = await db
    .selectFrom('delivery_senders')
    .select(['pk', 'channel', 'delivered', 'dead'])
    .where('channel', ...channelsOf(area))
    .where(row => row.or([row('delivered', '>', 0), row('dead', '>', 0)]))
    .execute()
  let removed = 0
  for (const { pk, channel, delivered, dead } of senders) {
    const own = async (state: 'delivered' | 'dead', keepMs: number, excess: number): Promise<void> => {
      const limits = { beforeMs: isAged ? nowMs - keepMs : 0, excess, most: most - removed }
      const deliveries = await expireState(connection, Number(pk), state, limits)
      countEvents(connection, channel, [{ event: 'expire', deliveries }])
      removed += deliveries
    }
    await own('delivered', deliveredMs, Number(delivered) - deliveredMax)
    await own('dead', deadMs, Number(dead) - deadMax)
  }
  if (isAged) await expireUnused(connection, nowMs - deliveredMs, nowMs - deadMs)
  return removed
}

async function expireState(
  connection: OutboxConnection,
  pk: number,
  from: 'delivered' | 'dead',
  limits: { readonly beforeMs: number; readonly excess: number; readonly most: number },
): Promise<number> {
  let removed = 0
  while (removed < limits.most) {
    const excess = limits.excess - removed
    const oldest = await connection.db
      .selectFrom('delivery_messages')
      .select(['id', 'at_ms'])
      .where('sender', '=', pk)
      .where('state', '=', from)
      .orderBy('at_ms')
      .limit(EXPIRED_ROWS)
      .execute()
    const ids = oldest.filter(({ at_ms }, i) => i < excess || Number(at_ms) < limits.beforeMs).map(({ id }) => id)
    if (ids.length === 0) break
    removed += await runTransaction(connection.db, async db => {
      const inTransaction = { ...connection, db }
      await lockCounts(inTransaction, pk)
      return remove(inTransaction, pk, ids, from, 'expire')
    })
  }
  return removed
}

/** Idempotency keys, and senders without deliveries. */
async function expireUnused({ db, area }: OutboxConnection, keysMs: number, sendersMs: number): Promise<void> {
  await db.deleteFrom('delivery_keys').where('area', '=', area).where('accepted_ms', '<', keysMs).execute()
  await db
    .deleteFrom('delivery_senders')
    .where('channel', ...channelsOf(area))
    .where('waiting', '=', 0)
    .where('delivered', '=', 0)
    .where('dead', '=', 0)
    .where('used_ms', '<', sendersMs)
    .execute()
}
