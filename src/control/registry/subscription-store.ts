/** Stores the subscriptions of applications to APIs. */
import { randomUUID } from 'node:crypto'
import type { ChangeLog } from './change-log.ts'
import type { Database } from './database.ts'
import type { Page, Subscription } from './entities.ts'
import { missingRefusal, requireName, existsRefusal } from './field-validation.ts'
import { RegistryRefusal } from './registry-errors.ts'
import { subscriptionOf, type SubscriptionRow } from './tables.ts'
import { insertWorkflow, type WorkflowRequest } from './workflow-store.ts'

interface SubscriptionStoreOptions {
  readonly changes: ChangeLog
  readonly nowMs: () => number
}

/** Members left out match any value. */
interface SubscriptionQuery {
  readonly applicationId?: string
  readonly apiName?: string
  readonly apiVersion?: string
  /** Tenant and owner of the application. */
  readonly tenant?: string
  readonly owner?: string
}

export class SubscriptionStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #nowMs: () => number

  constructor(database: Database, { changes, nowMs }: SubscriptionStoreOptions) {
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
        let applications = db.selectFrom('sluice_applications').select('id')
        if (of.tenant !== undefined) applications = applications.where('tenant', '=', of.tenant)
        if (of.owner !== undefined) applications = applications.where('owner', '=', of.owner)
        found = found.where('application_id', 'in', applications)
      }
      const { total } = await found.select(it => it.fn.countAll().as('total')).executeTakeFirstOrThrow()
      const ordered = found.selectAll().orderBy('created_ms').orderBy('id')
      const rows = await ordered.limit(limit).offset(offset).execute()
      return { total: Number(total), subscriptions: rows.map(subscriptionOf) }
    })
  }

  /** Owners of applications that are subscribed to the API in other versions and not in this one. */
  async subscribersBeside(
    apiName: string,
    apiVersion: string,
    limit: number,
  ): Promise<readonly { readonly name: string; readonly tenant: string }[]> {
    return this.#database.read(db => {
      const all = db.selectFrom('sluice_subscriptions').select('application_id').where('api_name', '=', apiName)
      const others = all.where('api_version', '!=', apiVersion).where('status', 'not in', ['ON_HOLD', 'REJECTED'])
      return db
        .selectFrom('sluice_applications')
        .select(['owner as name', 'tenant'])
        .distinct()
        .where('id', 'in', others)
        .where('id', 'not in', all.where('api_version', '=', apiVersion))
        .orderBy('tenant')
        .orderBy('owner')
        .limit(limit)
        .execute()
    })
  }

  /** `approval`: the request with which the subscription waits, ON_HOLD; null: none. */
  async create(
    subscription: Omit<Subscription, 'id' | 'createdMs'>,
    approval: WorkflowRequest | null = null,
  ): Promise<Subscription> {
    requireName('apiId', subscription.apiName)
    requireName('apiId', subscription.apiVersion)
    requireName('throttlingPolicy', subscription.tier)
    const row: SubscriptionRow = {
      id: randomUUID(),
      application_id: subscription.applicationId,
      api_name: subscription.apiName,
      api_version: subscription.apiVersion,
      tier: subscription.tier,
      status: subscription.status,
      created_ms: this.#nowMs(),
    }
    await this.#changes.transaction(
      async (transaction, logChange) => {
        await transaction.insertInto('sluice_subscriptions').values(row).execute()
        if (approval !== null) await insertWorkflow(transaction, row.application_id, row.id, approval, row.created_ms)
        logChange('subscription', row.id)
      },
      {
        unique: () => existsRefusal('a subscription of this application to this API', 'apiId'),
        reference: () => missingRefusal('application', 'applicationId'),
      },
    )
    return subscriptionOf(row)
  }

  /** `from`: the statuses in which the change is allowed; refused in any other. */
  async update(
    id: string,
    change: Partial<Pick<Subscription, 'tier' | 'status'>>,
    from: readonly Subscription['status'][],
  ): Promise<Subscription> {
    if (change.tier !== undefined) requireName('throttlingPolicy', change.tier)
    return this.#changes.transaction(async (transaction, logChange) => {
      const row = await transaction
        .selectFrom('sluice_subscriptions')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst()
      if (row === undefined) throw missingRefusal('subscription')
      if (!from.includes(row.status)) throw new RegistryRefusal('in use', '', `the subscription is ${row.status}`)
      const changed = { tier: change.tier ?? row.tier, status: change.status ?? row.status }
      const update = transaction.updateTable('sluice_subscriptions').set(changed).where('id', '=', id)
      const { numUpdatedRows } = await update.where('status', '=', row.status).executeTakeFirstOrThrow()
      // Somebody has decided about it meanwhile.
      if (numUpdatedRows === 0n) throw new RegistryRefusal('in use', '', 'the subscription has just changed')
      logChange('subscription', id)
      return subscriptionOf({ ...row, ...changed })
    })
  }

  async remove(id: string): Promise<void> {
    await this.#changes.transaction(async (transaction, logChange) => {
      await transaction.deleteFrom('sluice_workflows').where('subject', '=', id).execute()
      const removal = transaction.deleteFrom('sluice_subscriptions').where('id', '=', id)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missingRefusal('subscription')
      logChange('subscription', id)
    })
  }
}
