/** Stores requests that wait for approval, and puts decisions about them into effect. */
import { randomUUID } from 'node:crypto'
import { type ChangeLog, inChunks } from './change-log.ts'
import type { Database, DatabaseTransaction } from './database.ts'
import type { Page, Workflow } from './entities.ts'
import { existsRefusal, jsonText, missingRefusal, requireText } from './field-validation.ts'
import { workflowOf, type WorkflowRow } from './tables.ts'

/** `callsEngine`: the workflow engine is to hear of it. */
export type WorkflowRequest = Pick<Workflow, 'kind' | 'tenant' | 'requester' | 'properties'> & {
  readonly callsEngine: boolean
}

interface WorkflowStoreOptions {
  readonly changes: ChangeLog
  readonly nowMs: () => number
}

export class WorkflowStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #nowMs: () => number

  constructor(database: Database, { changes, nowMs }: WorkflowStoreOptions) {
    this.#database = database
    this.#changes = changes
    this.#nowMs = nowMs
  }

  async get(id: string): Promise<Workflow | null> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_workflows').selectAll().where('id', '=', id).executeTakeFirst(),
    )
    return row === undefined ? null : workflowOf(row)
  }

  /** All requests of an application, of its keys and of its subscriptions. */
  async listForApplication(applicationId: string): Promise<readonly Workflow[]> {
    const rows = await this.#database.read(db => {
      const all = db.selectFrom('sluice_workflows').selectAll().where('application_id', '=', applicationId)
      return all.orderBy('created_ms').orderBy('id').execute()
    })
    return rows.map(workflowOf)
  }

  /** Requests that wait, the oldest one first. */
  async listPending(
    { tenant, kind }: { readonly tenant: string; readonly kind?: Workflow['kind'] },
    { offset, limit }: Page,
  ): Promise<{ readonly total: number; readonly workflows: readonly Workflow[] }> {
    return this.#database.read(async db => {
      let found = db.selectFrom('sluice_workflows').where('tenant', '=', tenant).where('status', '=', 'CREATED')
      if (kind !== undefined) found = found.where('kind', '=', kind)
      const { total } = await found.select(it => it.fn.countAll().as('total')).executeTakeFirstOrThrow()
      const ordered = found.selectAll().orderBy('created_ms').orderBy('id')
      const rows = await ordered.limit(limit).offset(offset).execute()
      return { total: Number(total), workflows: rows.map(workflowOf) }
    })
  }

  /** Requests of one kind by their subject. */
  async bySubject(kind: Workflow['kind'], subjects: readonly string[]): Promise<ReadonlyMap<string, Workflow>> {
    const found = new Map<string, Workflow>()
    for (const chunk of inChunks(subjects)) {
      const rows = await this.#database.read(db => {
        const all = db.selectFrom('sluice_workflows').selectAll().where('kind', '=', kind)
        return all.where('subject', 'in', chunk).execute()
      })
      for (const row of rows) found.set(row.subject, workflowOf(row))
    }
    return found
  }

  /** Replaces an earlier request about the same subject. `subject`: the application or the subscription. */
  async request(applicationId: string, subject: string, given: WorkflowRequest): Promise<Workflow> {
    return this.#database.transaction(
      async transaction => {
        await deleteOf(transaction, applicationId, given.kind, subject)
        return insertWorkflow(transaction, applicationId, subject, given, this.#nowMs())
      },
      {
        unique: () => existsRefusal('a request like this', 'workflowType'),
        reference: () => missingRefusal('application', 'applicationId'),
      },
    )
  }

  /**
   * Decides a request and puts the decision into effect. Returns null where it was decided before, and is refused where
   * it is unknown.
   */
  async decide(id: string, status: 'APPROVED' | 'REJECTED', description: string): Promise<Workflow | null> {
    requireText('description', description)
    return this.#changes.transaction(async (transaction, logChange) => {
      const decision = { status, description, updated_ms: this.#nowMs(), is_sent: 1 }
      const change = transaction.updateTable('sluice_workflows').set(decision).where('id', '=', id)
      const { numUpdatedRows } = await change.where('status', '=', 'CREATED').executeTakeFirstOrThrow()
      const rows = transaction.selectFrom('sluice_workflows').selectAll().where('id', '=', id)
      const row = await rows.executeTakeFirst()
      if (row === undefined) throw missingRefusal('request')
      if (numUpdatedRows === 0n) return null
      const workflow = workflowOf(row)
      const effect = effectOf(workflow)
      if (effect !== null) {
        const change = transaction.updateTable('sluice_subscriptions').set(effect).where('id', '=', row.subject)
        await ('status' in effect ? change.where('status', '=', 'ON_HOLD') : change).execute()
        logChange('subscription', row.subject)
      }
      return workflow
    })
  }

  /** Uses an approval up. False where another request was faster. */
  async consume(id: string): Promise<boolean> {
    return this.#database.transaction(async transaction => {
      const removal = transaction.deleteFrom('sluice_workflows').where('id', '=', id)
      const { numDeletedRows } = await removal.where('status', '=', 'APPROVED').executeTakeFirstOrThrow()
      return numDeletedRows === 1n
    })
  }

  async remove(applicationId: string, kind: Workflow['kind'], subject: string): Promise<void> {
    await this.#database.transaction(transaction => deleteOf(transaction, applicationId, kind, subject))
  }

  /** Requests that the engine has not heard of, and that were not tried since `triedMs`. */
  async listUnsent(triedMs: number, limit: number): Promise<readonly { workflow: Workflow; triedMs: number }[]> {
    const rows = await this.#database.read(db => {
      const unsent = db.selectFrom('sluice_workflows').selectAll().where('status', '=', 'CREATED')
      const due = unsent.where('is_sent', '=', 0).where('tried_ms', '<=', triedMs)
      return due.orderBy('created_ms').limit(limit).execute()
    })
    return rows.map(row => ({ workflow: workflowOf(row), triedMs: Number(row.tried_ms) }))
  }

  /** Reserves an attempt to call the engine. False where another node was faster. */
  async claim(id: string, triedMs: number): Promise<boolean> {
    return this.#database.transaction(async transaction => {
      const change = transaction.updateTable('sluice_workflows').set({ tried_ms: this.#nowMs() }).where('id', '=', id)
      const { numUpdatedRows } = await change.where('tried_ms', '=', triedMs).executeTakeFirstOrThrow()
      return numUpdatedRows === 1n
    })
  }

  async sent(id: string): Promise<void> {
    await this.#database.transaction(async transaction => {
      await transaction.updateTable('sluice_workflows').set({ is_sent: 1 }).where('id', '=', id).execute()
    })
  }
}

/** Adds a request in the transaction of its subject. */
export async function insertWorkflow(
  transaction: DatabaseTransaction,
  applicationId: string,
  subject: string,
  { kind, tenant, requester, properties, callsEngine }: WorkflowRequest,
  nowMs: number,
): Promise<Workflow> {
  const row: WorkflowRow = {
    id: randomUUID(),
    kind,
    application_id: applicationId,
    subject,
    tenant,
    requester,
    status: 'CREATED',
    properties: jsonText('properties', properties),
    description: '',
    created_ms: nowMs,
    updated_ms: nowMs,
    is_sent: callsEngine ? 0 : 1,
    tried_ms: 0,
  }
  await transaction.insertInto('sluice_workflows').values(row).execute()
  return workflowOf(row)
}

async function deleteOf(
  transaction: DatabaseTransaction,
  applicationId: string,
  kind: Workflow['kind'],
  subject: string,
): Promise<void> {
  const removal = transaction.deleteFrom('sluice_workflows').where('application_id', '=', applicationId)
  await removal.where('kind', '=', kind).where('subject', '=', subject).execute()
}

/** Change of the subscription that a decision is about; null: nothing changes but the request. */
function effectOf({
  kind,
  status,
  properties,
}: Workflow): { readonly status: 'ACTIVE' | 'REJECTED' } | { readonly tier: string } | null {
  if (kind === 'AM_SUBSCRIPTION_CREATION') return { status: status === 'APPROVED' ? 'ACTIVE' : 'REJECTED' }
  return kind === 'AM_SUBSCRIPTION_UPDATE' && status === 'APPROVED' ? { tier: properties.tier! } : null
}
