/** Stores events before they are acknowledged: concurrent orders share transactions. */
import { randomUUIDv7 } from 'node:crypto'
import type { Insertable } from 'kysely'
import { hasCode, UNIQUE_CODES } from '../database/driver-errors.ts'
import { runTransaction } from '../database/transaction.ts'
import type { Acceptance, AcceptOrder, AcceptRefusal, SenderId } from './delivery.ts'
import type { OutboxClock } from './database-clock.ts'
import { eventDigest, sealedEvent } from './event-cipher.ts'
import type { OutboxConnection, OutboxTables } from './outbox-schema.ts'
import { type LockedSender, lockSenders, senderKey, waitingByTenant, waitingInAll } from './sender-rows.ts'

export interface AcceptLimits {
  /** Bytes of the JSON text of one event. */
  readonly eventBytesMax: number
  /** Deliveries of one order. */
  readonly orderDeliveriesMax: number
  /** Events of one sender that wait. */
  readonly senderWaitingMax: number
  /**
   * Events of one tenant that wait, and of all tenants; nodes that accept at the same moment may exceed them by what
   * they are storing.
   */
  readonly tenantWaitingMax: number
  readonly allWaitingMax: number
}

/** Orders of one thread that wait for a transaction. */
const QUEUE_MAX = 1000
/** Deliveries and characters of one transaction; one order may exceed them. */
const BATCH_DELIVERIES = 500
const BATCH_CHARS = 2_000_000
/** Rows and characters of one insert: below the 32,766 parameters of SQLite and the packet size of MariaDB. */
const INSERT_ROWS = 500
const INSERT_CHARS = 1_000_000
/** Attempts of a transaction in which another thread or node stores the same key or sender first. */
const ATTEMPTS = 5

interface WaitingOrder {
  readonly order: AcceptOrder
  readonly digest: string
  readonly chars: number
  readonly resolve: (acceptance: Acceptance) => void
  readonly reject: (error: unknown) => void
}

export class Acceptor {
  readonly #connection: OutboxConnection
  readonly #clock: OutboxClock
  readonly #limits: AcceptLimits
  #waiting: WaitingOrder[] = []
  /** Orders that were refused as `busy` and are not yet counted, by the key of the sender. */
  #busy = new Map<string, number>()
  #isRunning = false

  constructor(connection: OutboxConnection, clock: OutboxClock, limits: AcceptLimits) {
    this.#connection = connection
    this.#clock = clock
    this.#limits = limits
  }

  /** Resolves when the deliveries are durable, or nothing is stored. Rejects with errors of the driver. */
  accept(order: AcceptOrder): Promise<Acceptance> {
    if (order.deliveries.some(({ sender }) => sender.tenant !== order.tenant)) {
      throw new TypeError('a delivery belongs to another tenant than its order')
    }
    if (this.#waiting.length >= QUEUE_MAX) {
      this.#countBusy(order)
      const refusal = refused('busy', QUEUE_MAX)
      this.#count(order, refusal)
      return Promise.resolve(refusal)
    }
    const { promise, resolve, reject } = Promise.withResolvers<Acceptance>()
    const chars = order.deliveries.reduce((sum, { event }) => sum + event.length, 0)
    this.#waiting.push({ order, digest: digestOf(this.#connection, order), chars, resolve, reject })
    if (!this.#isRunning) void this.#run()
    return promise
  }

  #count({ deliveries }: AcceptOrder, acceptance: Acceptance): void {
    const { counts } = this.#connection
    for (const [channel, some] of Map.groupBy(deliveries, ({ sender }) => sender.channel)) {
      if (acceptance.kind === 'refused') counts.countRefused(channel, acceptance.reason, 1)
      else if (!acceptance.isRepeated) counts.count(channel, 'accepted', some.length)
    }
  }

  /** Counted with the next order of the sender, because the database is what cannot follow. */
  #countBusy({ deliveries }: AcceptOrder): void {
    for (const key of new Set(deliveries.map(({ sender }) => senderKey(sender)))) {
      if (this.#busy.size < QUEUE_MAX || this.#busy.has(key)) this.#busy.set(key, (this.#busy.get(key) ?? 0) + 1)
    }
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch()
      try {
        const acceptances = await this.#store(batch)
        for (const [index, { order, resolve }] of batch.entries()) {
          this.#count(order, acceptances[index]!)
          resolve(acceptances[index]!)
        }
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isRunning = false
  }

  #counted(key: string, count: number): void {
    const left = (this.#busy.get(key) ?? 0) - count
    if (left > 0) this.#busy.set(key, left)
    else this.#busy.delete(key)
  }

  #nextBatch(): readonly WaitingOrder[] {
    let [count, deliveries, chars] = [0, 0, 0]
    for (const next of this.#waiting) {
      deliveries += next.order.deliveries.length
      chars += next.chars
      if (count > 0 && (deliveries > BATCH_DELIVERIES || chars > BATCH_CHARS)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  /** After another thread or node has stored the same key first, the next attempt finds it. */
  async #store(batch: readonly WaitingOrder[]): Promise<readonly Acceptance[]> {
    const nowMs = await this.#clock.read()
    for (let attempt = 1; ; attempt++) {
      try {
        const keys = new Set(batch.flatMap(({ order }) => order.deliveries.map(({ sender }) => senderKey(sender))))
        const busy = new Map([...this.#busy].filter(([key]) => keys.has(key)))
        const acceptances = await runTransaction(this.#connection.db, db =>
          new AcceptTransaction({ ...this.#connection, db }, this.#limits, nowMs).run(batch, busy),
        )
        for (const [key, count] of busy) this.#counted(key, count)
        return acceptances
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof Error) || !hasCode(error, UNIQUE_CODES)) throw error
      }
    }
  }
}

interface StoredDelivery {
  readonly id: string
  readonly sender: SenderId
}

/** An order whose deliveries are stored, or stand in this transaction. */
interface KnownOrder {
  readonly digest: string
  readonly stored: readonly StoredDelivery[]
}

class AcceptTransaction {
  readonly #connection: OutboxConnection
  readonly #limits: AcceptLimits
  readonly #nowMs: number
  readonly #messages: Insertable<OutboxTables['delivery_messages']>[] = []
  readonly #keys: Insertable<OutboxTables['delivery_keys']>[] = []
  readonly #known = new Map<string, KnownOrder>()
  readonly #accepted = new Map<LockedSender, number>()
  readonly #refused = new Map<LockedSender, number>()
  /** Deliveries that wait, by tenant of the batch. */
  #tenantWaiting: Map<string, number> = new Map()
  #allWaiting = 0

  constructor(connection: OutboxConnection, limits: AcceptLimits, nowMs: number) {
    this.#connection = connection
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** `busy`: refusals of senders that are not yet counted. */
  async run(batch: readonly WaitingOrder[], busy: ReadonlyMap<string, number>): Promise<readonly Acceptance[]> {
    const senders = new Map<string, SenderId>()
    for (const { order } of batch) for (const { sender } of order.deliveries) senders.set(senderKey(sender), sender)
    const locked = await lockSenders(this.#connection, [...senders.values()], this.#nowMs)
    for (const [key, count] of busy) this.#refused.set(locked.get(key)!, count)
    await this.#findKeys(batch)
    this.#tenantWaiting = await waitingByTenant(this.#connection, [...new Set(batch.map(({ order }) => order.tenant))])
    this.#allWaiting = await waitingInAll(this.#connection)
    const acceptances = batch.map(each => this.#decide(each, locked))
    await this.#write()
    return acceptances
  }

  async #findKeys(batch: readonly WaitingOrder[]): Promise<void> {
    const keyed = batch.flatMap(({ order: { tenant, key } }) => (key === null ? [] : [{ tenant, key }]))
    if (keyed.length === 0) return
    const { db, area } = this.#connection
    const rows = await db
      .selectFrom('delivery_keys')
      .select(['tenant', 'order_key', 'digest', 'ids'])
      .where('area', '=', area)
      .where('tenant', 'in', [...new Set(keyed.map(({ tenant }) => tenant))])
      .where('order_key', 'in', [...new Set(keyed.map(({ key }) => key))])
      .execute()
    for (const { tenant, order_key, digest, ids } of rows) {
      const stored = (JSON.parse(ids) as readonly (readonly [string, string, string])[]).map(([id, channel, name]) => ({
        id,
        sender: { tenant, channel, name },
      }))
      this.#known.set(knownKey(tenant, order_key), { digest, stored })
    }
  }

  #decide({ order, digest }: WaitingOrder, locked: ReadonlyMap<string, LockedSender>): Acceptance {
    const { tenant, key, deliveries } = order
    const known = key === null ? undefined : this.#known.get(knownKey(tenant, key))
    if (known !== undefined) {
      if (known.digest !== digest) return refused('key-reused', 0)
      return accepted(known.stored, true)
    }
    const senders = deliveries.map(({ sender }) => locked.get(senderKey(sender))!)
    const refusal = this.#refusal(order, senders)
    if (refusal !== null) {
      for (const sender of new Set(senders)) this.#refused.set(sender, (this.#refused.get(sender) ?? 0) + 1)
      return refusal
    }
    const nowMs = this.#nowMs
    const times = { at_ms: nowMs, accepted_ms: nowMs, since_ms: nowMs }
    const stored = deliveries.map(({ event: text, sender: { channel, name } }, index) => {
      const sender = senders[index]!
      const event = sealedEvent(this.#connection, text, sender.sender)
      const id = randomUUIDv7()
      const rest = { attempts: 0, event, cause: '', claim: '', term: 0 }
      this.#messages.push({ id, sender: sender.pk, state: 'waiting', ...times, ...rest })
      this.#accepted.set(sender, (this.#accepted.get(sender) ?? 0) + 1)
      return { id, sender: { tenant, channel, name } }
    })
    this.#allWaiting += stored.length
    this.#tenantWaiting.set(tenant, this.#waitingOf(tenant) + stored.length)
    if (key !== null) {
      this.#known.set(knownKey(tenant, key), { digest, stored })
      const { area } = this.#connection
      const ids = JSON.stringify(stored.map(({ id, sender: { channel, name } }) => [id, channel, name]))
      this.#keys.push({ area, tenant, order_key: key, digest, ids, accepted_ms: nowMs })
    }
    return accepted(stored, false)
  }

  #waitingOf(tenant: string): number {
    return this.#tenantWaiting.get(tenant) ?? 0
  }

  #refusal({ tenant, deliveries }: AcceptOrder, senders: readonly LockedSender[]): Acceptance | null {
    const { eventBytesMax, orderDeliveriesMax, senderWaitingMax, tenantWaitingMax, allWaitingMax } = this.#limits
    if (deliveries.length > orderDeliveriesMax) return refused('order-deliveries', orderDeliveriesMax)
    if (deliveries.some(({ event }) => Buffer.byteLength(event) > eventBytesMax)) {
      return refused('event-bytes', eventBytesMax)
    }
    if (this.#allWaiting + deliveries.length > allWaitingMax) return refused('all-waiting', allWaitingMax)
    if (this.#waitingOf(tenant) + deliveries.length > tenantWaitingMax) {
      return refused('tenant-waiting', tenantWaitingMax)
    }
    const wanted = Map.groupBy(senders, sender => sender)
    const isFull = [...wanted].some(
      ([sender, some]) => sender.waiting + (this.#accepted.get(sender) ?? 0) + some.length > senderWaitingMax,
    )
    return isFull ? refused('sender-waiting', senderWaitingMax) : null
  }

  async #write(): Promise<void> {
    const { db } = this.#connection
    const nowMs = this.#nowMs
    for (const sender of new Set([...this.#accepted.keys(), ...this.#refused.keys()])) {
      const [accepted, refusals] = [this.#accepted.get(sender) ?? 0, this.#refused.get(sender) ?? 0]
      await db
        .updateTable('delivery_senders')
        .set(row => ({
          waiting: row('waiting', '+', accepted),
          accepted_total: row('accepted_total', '+', accepted),
          refused_total: row('refused_total', '+', refusals),
          used_ms: nowMs,
        }))
        .where('pk', '=', sender.pk)
        .execute()
    }
    if (this.#keys.length > 0) await db.insertInto('delivery_keys').values(this.#keys).execute()
    for (const rows of insertsOf(this.#messages)) await db.insertInto('delivery_messages').values(rows).execute()
  }
}

function* insertsOf<Row extends { readonly event: string }>(rows: readonly Row[]): Generator<Row[]> {
  let some: Row[] = []
  let chars = 0
  for (const row of rows) {
    if (some.length > 0 && (some.length === INSERT_ROWS || chars + row.event.length > INSERT_CHARS)) {
      yield some
      some = []
      chars = 0
    }
    some.push(row)
    chars += row.event.length
  }
  if (some.length > 0) yield some
}

function refused(reason: AcceptRefusal, limit: number): Acceptance {
  return { kind: 'refused', reason, limit }
}

function accepted(stored: readonly StoredDelivery[], isRepeated: boolean): Acceptance {
  return { kind: 'accepted', ids: stored.map(({ id }) => id), senders: stored.map(({ sender }) => sender), isRepeated }
}

/** '' without a key, which alone needs it. */
function digestOf(connection: OutboxConnection, { key, content, deliveries }: AcceptOrder): string {
  if (key === null) return ''
  const parts = deliveries.flatMap(({ sender: { channel, name }, event }) => [channel, name, event])
  return eventDigest(connection, content ?? JSON.stringify(parts))
}

/** No tenant contains a line break. */
function knownKey(tenant: string, key: string): string {
  return `${tenant}\n${key}`
}
