/** Which application may use which API. */
import { randomUUID } from 'node:crypto'
import type { ChangeLog } from './change-log.ts'
import type { Database } from './database.ts'
import type { Subscription } from './entities.ts'
import { missing, mustBeName, taken } from './field-rules.ts'
import type { Page, SubscriptionQuery, SubscriptionStore } from './registry.ts'
import { subscriptionOf } from './rows.ts'
import type { SubscriptionRow } from './tables.ts'

export class DatabaseSubscriptionStore implements SubscriptionStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #nowMs: () => number

  constructor(database: Database, changes: ChangeLog, nowMs: () => number) {
    this.#database = database
    this.#changes = changes
    this.#nowMs = nowMs
  }

  async get(id: string): Promise<Subscription | null> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_subscriptions').selectAll().where('id', '=', id).executeTakeFirst(),
    )
    return row === undefined ? null : subscriptionOf(row)
  }

  async list(
    of: SubscriptionQuery,
    { offset, limit }: Page,
  ): Promise<{ readonly total: number; readonly subscriptions: readonly Subscription[] }> {
    return this.#database.read(async db => {
      let found = db.selectFrom('sluice_subscriptions')
      if (of.applicationId !== undefined) found = found.where('application_id', '=', of.applicationId)
      if (of.apiName !== undefined) found = found.where('api_name', '=', of.apiName)
      if (of.apiVersion !== undefined) found = found.where('api_version', '=', of.apiVersion)
      if (of.tenant !== undefined || of.owner !== undefined) {
        let theirs = db.selectFrom('sluice_applications').select('id')
        if (of.tenant !== undefined) theirs = theirs.where('tenant', '=', of.tenant)
        if (of.owner !== undefined) theirs = theirs.where('owner', '=', of.owner)
        found = found.where('application_id', 'in', theirs)
      }
      const { total } = await found.select(it => it.fn.countAll().as('total')).executeTakeFirstOrThrow()
      const ordered = found.selectAll().orderBy('created_ms').orderBy('id')
      const rows = await ordered.limit(limit).offset(offset).execute()
      return { total: Number(total), subscriptions: rows.map(subscriptionOf) }
    })
  }

  async create(given: Omit<Subscription, 'id' | 'createdMs'>): Promise<Subscription> {
    mustBeName('apiId', given.apiName)
    mustBeName('apiId', given.apiVersion)
    mustBeName('throttlingPolicy', given.tier)
    const row: SubscriptionRow = {
      id: randomUUID(),
      application_id: given.applicationId,
      api_name: given.apiName,
      api_version: given.apiVersion,
      tier: given.tier,
      status: given.status,
      created_ms: this.#nowMs(),
    }
    await this.#changes.transaction(
      async (within, note) => {
        await within.insertInto('sluice_subscriptions').values(row).execute()
        note('subscription', row.id)
      },
      {
        unique: () => taken('a subscription of this application to this API', 'apiId'),
        reference: () => missing('application', 'applicationId'),
      },
    )
    return subscriptionOf(row)
  }

  async update(id: string, change: Partial<Pick<Subscription, 'tier' | 'status'>>): Promise<Subscription> {
    if (change.tier !== undefined) mustBeName('throttlingPolicy', change.tier)
    return this.#changes.transaction(async (within, note) => {
      const row = await within.selectFrom('sluice_subscriptions').selectAll().where('id', '=', id).executeTakeFirst()
      if (row === undefined) throw missing('subscription')
      const changed = { tier: change.tier ?? row.tier, status: change.status ?? row.status }
      await within.updateTable('sluice_subscriptions').set(changed).where('id', '=', id).execute()
      note('subscription', id)
      return subscriptionOf({ ...row, ...changed })
    })
  }

  async remove(id: string): Promise<void> {
    await this.#changes.transaction(async (within, note) => {
      const removal = within.deleteFrom('sluice_subscriptions').where('id', '=', id)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missing('subscription')
      note('subscription', id)
    })
  }
}
