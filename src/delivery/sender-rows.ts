/** Rows of senders: their lock and their counts. */
import { sql } from 'kysely'
import type { DeliveryState, SenderCounts, SenderId } from './delivery.ts'
import type { DeliveryEvent as CountedEvent } from '../observe/delivery-counts.ts'
import { countChanges, type DeliveryEvent } from './delivery-states.ts'
import { channelsOf, type OutboxConnection } from './outbox-schema.ts'

/** The row of a sender, locked until the transaction ends. */
export interface LockedSender {
  readonly pk: number
  readonly sender: SenderId
  /** Deliveries that wait or are being sent. */
  readonly waiting: number
}

/** `acme.com/sms/SMSPublisher`: name of a sender in jobs and maps. */
export function senderKey({ tenant, channel, name }: SenderId): string {
  return [tenant, channel, name].map(encodeURIComponent).join('/')
}

/** Undefined for what is no key. */
export function senderOf(key: string): SenderId | undefined {
  const [tenant, channel, name, ...rest] = key.split('/').map(decodeURIComponent)
  if (tenant === undefined || channel === undefined || name === undefined || rest.length > 0) return undefined
  return { tenant, channel, name }
}

/** Rows of senders by their keys, in one order for all transactions; made where they are missing. */
export async function lockSenders(
  connection: OutboxConnection,
  senders: readonly SenderId[],
  nowMs: number,
): Promise<ReadonlyMap<string, LockedSender>> {
  const locked = new Map<string, LockedSender>()
  for (const sender of senders.toSorted((a, b) => (senderKey(a) < senderKey(b) ? -1 : 1))) {
    const known = await lockSender(connection, sender)
    if (known === undefined) await insertSender(connection, sender, nowMs)
    locked.set(senderKey(sender), known ?? (await lockSender(connection, sender))!)
  }
  return locked
}

/** Undefined where the sender never had an event, or was unused for long. */
export async function lockSender(
  { db, dialect }: OutboxConnection,
  sender: SenderId,
): Promise<LockedSender | undefined> {
  const lock = db
    .selectFrom('delivery_senders')
    .select(['pk', 'waiting'])
    .where('tenant', '=', sender.tenant)
    .where('channel', '=', sender.channel)
    .where('name', '=', sender.name)
  // SQLite runs one transaction at a time.
  const row = await (dialect === 'sqlite' ? lock : lock.forUpdate()).executeTakeFirst()
  return row === undefined ? undefined : { pk: Number(row.pk), sender, waiting: Number(row.waiting) }
}

/** Rejects with a duplicate key where another transaction makes the row at the same time. */
async function insertSender({ db }: OutboxConnection, sender: SenderId, nowMs: number): Promise<void> {
  const counts = { waiting: 0, delivered: 0, dead: 0, accepted_total: 0, refused_total: 0 }
  const totals = { delivered_total: 0, retried_total: 0, dead_total: 0, replayed_total: 0 }
  const row = { ...sender, ...counts, ...totals, dropped_total: 0, expired_total: 0, resume_ms: 0, used_ms: nowMs }
  await db.insertInto('delivery_senders').values(row).execute()
}

/** Number of events that wait in the area of the connection. */
export async function waitingInAll({ db, area }: OutboxConnection): Promise<number> {
  const { waiting } = await db
    .selectFrom('delivery_senders')
    .select(({ fn }) => fn.sum<number | string | null>('waiting').as('waiting'))
    .where('channel', ...channelsOf(area))
    .executeTakeFirstOrThrow()
  return Number(waiting)
}

/** Counts what waits in the area of the connection, by tenant; tenants for which nothing waits are left out. */
export async function waitingByTenant(
  { db, area }: OutboxConnection,
  tenants: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('delivery_senders')
    .select(['tenant', ({ fn }) => fn.sum<number | string>('waiting').as('waiting')])
    .where('tenant', 'in', tenants)
    .where('channel', ...channelsOf(area))
    .groupBy('tenant')
    .execute()
  return new Map(rows.map(({ tenant, waiting }) => [tenant, Number(waiting)]))
}

/** Deliveries to which an event has happened, by the state that they were in. */
export interface CountedMove {
  readonly from: DeliveryState
  readonly event: DeliveryEvent
  readonly deliveries: number
}

export async function countMoves({ db }: OutboxConnection, pk: number, moves: readonly CountedMove[]): Promise<void> {
  const sums = new Map<string, number>()
  for (const { from, event, deliveries } of moves) {
    for (const [count, by] of countChanges(from, event)) sums.set(count, (sums.get(count) ?? 0) + by * deliveries)
  }
  const changes = [...sums].filter(([, by]) => by !== 0)
  if (changes.length === 0) return
  const assignments = changes.map(([count, by]) => sql`${sql.ref(count)} = ${sql.ref(count)} + ${by}`)
  await sql`update delivery_senders set ${sql.join(assignments)} where pk = ${pk}`.execute(db)
}

const COUNTED_AS: Readonly<Record<DeliveryEvent, CountedEvent | null>> = {
  ...{ claim: null, release: null, recover: 'recovered', succeed: 'delivered', postpone: 'retried', fail: 'dead' },
  ...{ orphan: 'dead', replay: 'replayed', drop: 'dropped', expire: 'expired' },
}

/** For metrics, once the transaction of the moves is committed. */
export function countEvents(
  { counts }: OutboxConnection,
  channel: string,
  moves: readonly Pick<CountedMove, 'event' | 'deliveries'>[],
): void {
  for (const { event, deliveries } of moves) {
    const name = COUNTED_AS[event]
    if (name !== null) counts.count(channel, name, deliveries)
  }
}

/** Deliveries of the connection's area by channel, for metrics. */
export async function countStored({ db, area, counts }: OutboxConnection): Promise<void> {
  const rows = await db
    .selectFrom('delivery_senders')
    .select('channel')
    .select(({ fn }) => [
      fn.sum<number | string>('waiting').as('waiting'),
      fn.sum<number | string>('delivered').as('delivered'),
      fn.sum<number | string>('dead').as('dead'),
    ])
    .where('channel', ...channelsOf(area))
    .groupBy('channel')
    .execute()
  const stored = rows.map(({ channel, waiting, delivered, dead }) => {
    return [channel, { waiting: Number(waiting), delivered: Number(delivered), dead: Number(dead) }] as const
  })
  counts.setStored(area === 'platform' ? ['platform'] : ['sms', 'email', 'other'], new Map(stored))
}

/** `tenant`: null for all. */
export async function readCounts({ db }: OutboxConnection, tenant: string | null): Promise<readonly SenderCounts[]> {
  const select = db.selectFrom('delivery_senders').selectAll().orderBy('tenant').orderBy('channel').orderBy('name')
  const rows = await (tenant === null ? select : select.where('tenant', '=', tenant)).execute()
  return rows.map(row => ({
    sender: { tenant: row.tenant, channel: row.channel, name: row.name },
    waiting: Number(row.waiting),
    delivered: Number(row.delivered),
    dead: Number(row.dead),
    acceptedTotal: Number(row.accepted_total),
    deliveredTotal: Number(row.delivered_total),
    deadTotal: Number(row.dead_total),
    retriedTotal: Number(row.retried_total),
    replayedTotal: Number(row.replayed_total),
    droppedTotal: Number(row.dropped_total),
    expiredTotal: Number(row.expired_total),
    refusedTotal: Number(row.refused_total),
  }))
}
