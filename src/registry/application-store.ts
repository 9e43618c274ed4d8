/** Applications, with what hangs on them. */
import { randomUUID } from 'node:crypto'
import type { ChangeLog } from './change-log.ts'
import type { Database } from './database.ts'
import type { Application } from './entities.ts'
import { missing, mustBeName, mustBeText, taken, writtenJson } from './field-rules.ts'
import type { ApplicationStore, Page, TokenStore } from './registry.ts'
import { applicationOf } from './rows.ts'
import type { ApplicationRow } from './tables.ts'

interface ApplicationRoom {
  readonly database: Database
  readonly changes: ChangeLog
  readonly tokens: TokenStore
  readonly nowMs: () => number
}

export class DatabaseApplicationStore implements ApplicationStore {
  readonly #room: ApplicationRoom

  constructor(room: ApplicationRoom) {
    this.#room = room
  }

  async get(id: string): Promise<Application | null> {
    const row = await this.#room.database.read(db =>
      db.selectFrom('sluice_applications').selectAll().where('id', '=', id).executeTakeFirst(),
    )
    return row === undefined ? null : applicationOf(row)
  }

  async list(
    { tenant, owner, name }: { readonly tenant: string; readonly owner?: string; readonly name?: string },
    { offset, limit }: Page,
  ): Promise<{ readonly total: number; readonly applications: readonly Application[] }> {
    return this.#room.database.read(async db => {
      let found = db.selectFrom('sluice_applications').where('tenant', '=', tenant)
      if (owner !== undefined) found = found.where('owner', '=', owner)
      if (name !== undefined) found = found.where('name', '=', name)
      const { total } = await found.select(it => it.fn.countAll().as('total')).executeTakeFirstOrThrow()
      const ordered = found.selectAll().orderBy('name').orderBy('id')
      const rows = await ordered.limit(limit).offset(offset).execute()
      return { total: Number(total), applications: rows.map(applicationOf) }
    })
  }

  async create(given: Omit<Application, 'id' | 'createdMs'>): Promise<Application> {
    mustBeName('owner', given.owner)
    const row: ApplicationRow = {
      id: randomUUID(),
      tenant: given.tenant,
      owner: given.owner,
      token_type: given.tokenType,
      created_ms: this.#room.nowMs(),
      ...changeable(given),
    }
    await this.#room.changes.transaction(
      async (within, note) => {
        await within.insertInto('sluice_applications').values(row).execute()
        note('application', row.id)
      },
      { unique: nameTaken },
    )
    return applicationOf(row)
  }

  async update(
    id: string,
    change: Partial<Pick<Application, 'name' | 'description' | 'tier' | 'attributes'>>,
  ): Promise<Application> {
    return this.#room.changes.transaction(
      async (within, note) => {
        const row = await within.selectFrom('sluice_applications').selectAll().where('id', '=', id).executeTakeFirst()
        if (row === undefined) throw missing('application')
        const changed = changeable({ ...applicationOf(row), ...change })
        await within.updateTable('sluice_applications').set(changed).where('id', '=', id).execute()
        note('application', id)
        return applicationOf({ ...row, ...changed })
      },
      { unique: nameTaken },
    )
  }

  async remove(id: string): Promise<void> {
    const keys = await this.#room.changes.transaction(async (within, note) => {
      const clients = await within
        .selectFrom('sluice_clients')
        .select('consumer_key')
        .where('application_id', '=', id)
        .execute()
      const subscriptions = await within
        .selectFrom('sluice_subscriptions')
        .select('id')
        .where('application_id', '=', id)
        .execute()
      await within.deleteFrom('sluice_clients').where('application_id', '=', id).execute()
      await within.deleteFrom('sluice_subscriptions').where('application_id', '=', id).execute()
      const removal = within.deleteFrom('sluice_applications').where('id', '=', id)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missing('application')
      for (const { consumer_key } of clients) note('key', consumer_key)
      for (const subscription of subscriptions) note('subscription', subscription.id)
      note('application', id)
      return clients.map(({ consumer_key }) => consumer_key)
    }, IN_USE)
    for (const consumerKey of keys) await this.#room.tokens.revoke({ consumerKey })
  }
}

/** A key or a subscription that came while it was removed. */
const IN_USE = { reference: () => taken('a new key or subscription of it', 'applicationId') }

function nameTaken() {
  return taken('an application with this name', 'name')
}

function changeable({ name, description, tier, attributes }: Omit<Application, 'id' | 'createdMs'>) {
  mustBeName('name', name)
  mustBeText('description', description)
  mustBeName('throttlingPolicy', tier)
  return { name, description, tier, attributes: writtenJson('attributes', attributes) }
}
