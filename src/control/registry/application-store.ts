/** Stores applications. Removing one removes its keys and subscriptions, and revokes its tokens. */
import { randomUUID } from 'node:crypto'
import type { ChangeLog } from './change-log.ts'
import type { TokenStore } from './token-store.ts'
import type { Database } from './database.ts'
import type { Application, Page } from './entities.ts'
import { missingRefusal, requireName, requireText, existsRefusal, jsonText } from './field-validation.ts'
import { applicationOf, type ApplicationRow } from './tables.ts'
import { insertWorkflow, type WorkflowRequest } from './workflow-store.ts'

interface ApplicationStoreOptions {
  readonly changes: ChangeLog
  readonly tokens: TokenStore
  readonly nowMs: () => number
}

export class ApplicationStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #tokens: TokenStore
  readonly #nowMs: () => number

  constructor(database: Database, { changes, tokens, nowMs }: ApplicationStoreOptions) {
    this.#database = database
    this.#changes = changes
    this.#tokens = tokens
    this.#nowMs = nowMs
  }

  async get(id: string): Promise<Application | null> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_applications').selectAll().where('id', '=', id).executeTakeFirst(),
    )
    return row === undefined ? null : applicationOf(row)
  }

  async list(
    { tenant, owner, name }: { readonly tenant: string; readonly owner?: string; readonly name?: string },
    { offset, limit }: Page,
  ): Promise<{ readonly total: number; readonly applications: readonly Application[] }> {
    return this.#database.read(async db => {
      let found = db.selectFrom('sluice_applications').where('tenant', '=', tenant)
      if (owner !== undefined) found = found.where('owner', '=', owner)
      if (name !== undefined) found = found.where('name', '=', name)
      const { total } = await found.select(it => it.fn.countAll().as('total')).executeTakeFirstOrThrow()
      const ordered = found.selectAll().orderBy('name').orderBy('id')
      const rows = await ordered.limit(limit).offset(offset).execute()
      return { total: Number(total), applications: rows.map(applicationOf) }
    })
  }

  /** `approval`: the request with which the application waits; null: it is approved. */
  async create(
    application: Omit<Application, 'id' | 'createdMs'>,
    approval: WorkflowRequest | null = null,
  ): Promise<Application> {
    requireName('owner', application.owner)
    const row: ApplicationRow = {
      id: randomUUID(),
      tenant: application.tenant,
      owner: application.owner,
      token_type: application.tokenType,
      created_ms: this.#nowMs(),
      ...columnsOf(application),
    }
    await this.#changes.transaction(
      async (transaction, logChange) => {
        await transaction.insertInto('sluice_applications').values(row).execute()
        if (approval !== null) await insertWorkflow(transaction, row.id, row.id, approval, row.created_ms)
        logChange('application', row.id)
      },
      { unique: nameExists },
    )
    return applicationOf(row)
  }

  async update(
    id: string,
    change: Partial<Pick<Application, 'name' | 'description' | 'tier' | 'attributes'>>,
  ): Promise<Application> {
    return this.#changes.transaction(
      async (transaction, logChange) => {
        const row = await transaction
          .selectFrom('sluice_applications')
          .selectAll()
          .where('id', '=', id)
          .executeTakeFirst()
        if (row === undefined) throw missingRefusal('application')
        const columns = columnsOf({ ...applicationOf(row), ...change })
        await transaction.updateTable('sluice_applications').set(columns).where('id', '=', id).execute()
        logChange('application', id)
        return applicationOf({ ...row, ...columns })
      },
      { unique: nameExists },
    )
  }

  /** Removes the application with its keys and subscriptions, and revokes its tokens. */
  async remove(id: string): Promise<void> {
    const keys = await this.#changes.transaction(async (transaction, logChange) => {
      const clients = await transaction
        .selectFrom('sluice_clients')
        .select('consumer_key')
        .where('application_id', '=', id)
        .execute()
      const subscriptions = await transaction
        .selectFrom('sluice_subscriptions')
        .select('id')
        .where('application_id', '=', id)
        .execute()
      await transaction.deleteFrom('sluice_clients').where('application_id', '=', id).execute()
      await transaction.deleteFrom('sluice_subscriptions').where('application_id', '=', id).execute()
      const removal = transaction.deleteFrom('sluice_applications').where('id', '=', id)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missingRefusal('application')
      for (const { consumer_key } of clients) logChange('key', consumer_key)
      for (const subscription of subscriptions) logChange('subscription', subscription.id)
      logChange('application', id)
      return clients.map(({ consumer_key }) => consumer_key)
    }, IN_USE)
    for (const consumerKey of keys) await this.#tokens.revoke({ consumerKey })
  }
}

/** A key or subscription was added during the removal. */
const IN_USE = { reference: () => existsRefusal('a new key or subscription', 'applicationId') }

function nameExists() {
  return existsRefusal('an application with this name', 'name')
}

function columnsOf({ name, description, tier, attributes }: Omit<Application, 'id' | 'createdMs'>) {
  requireName('name', name)
  requireText('description', description)
  requireName('throttlingPolicy', tier)
  return { name, description, tier, attributes: jsonText('attributes', attributes) }
}
