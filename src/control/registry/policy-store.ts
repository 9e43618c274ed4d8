/** Stores throttling policies, as their REST bodies with what only describes them, and deny policies. */
import { randomUUID } from 'node:crypto'
import { nameBasedUuid } from '../../runtime/name-based-uuid.ts'
import type { DenyPolicy, PolicyLevel, PolicySet, ThrottlingPolicy } from '../../throttle/policy.ts'
import { readPolicy } from '../../throttle/policy-body.ts'
import type { ChangeLog } from './change-log.ts'
import type { Database } from './database.ts'
import { existsRefusal, jsonText, missingRefusal } from './field-validation.ts'
import { RegistryRefusal } from './registry-errors.ts'
import type { DenyPolicyRow, PolicyRow } from './tables.ts'

/** Rows of each of the two tables: reactors hold all of them. */
const POLICIES_MAX = 10_000
/** Names that an error tells. */
const USERS_SHOWN = 5

/** A policy with the body that was sent for it. */
interface StoredPolicy {
  readonly id: string
  readonly policy: ThrottlingPolicy
  readonly body: Readonly<Record<string, unknown>>
}

/** The id of a policy, wherever it comes from. */
export function policyId(level: PolicyLevel, name: string): string {
  return nameBasedUuid('policy', level, name)
}

export class PolicyStore {
  readonly #database: Database
  readonly #changes: ChangeLog

  constructor(database: Database, changes: ChangeLog) {
    this.#database = database
    this.#changes = changes
  }

  /** Every policy, in the order of levels and names. */
  async list(): Promise<readonly StoredPolicy[]> {
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_policies').selectAll().orderBy('level').orderBy('name').limit(POLICIES_MAX).execute(),
    )
    return rows.map(storedPolicyOf)
  }

  async get(level: PolicyLevel, id: string): Promise<StoredPolicy | null> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_policies').selectAll().where('id', '=', id).where('level', '=', level).executeTakeFirst(),
    )
    return row === undefined ? null : storedPolicyOf(row)
  }

  /** `body`: the REST body that `policy` was read from. Replaces the policy of this level and name, if there is one. */
  async put(policy: ThrottlingPolicy, body: object): Promise<void> {
    const { level, name } = policy
    const row: PolicyRow = { id: policyId(level, name), level, name, body: jsonText('body', body) }
    await this.#changes.transaction(
      async (transaction, logChange) => {
        const update = transaction.updateTable('sluice_policies').set({ body: row.body }).where('id', '=', row.id)
        // MariaDB counts an equal row as not changed.
        const known = await transaction
          .selectFrom('sluice_policies')
          .select('id')
          .where('id', '=', row.id)
          .executeTakeFirst()
        if (known === undefined) {
          const counted = transaction.selectFrom('sluice_policies').select(it => it.fn.countAll().as('total'))
          requireRoom(Number((await counted.executeTakeFirstOrThrow()).total))
          await transaction.insertInto('sluice_policies').values(row).execute()
        } else await update.execute()
        logChange('policy', row.id)
      },
      { unique: () => existsRefusal('a policy of this name', 'policyName') },
    )
  }

  async remove(id: string): Promise<void> {
    await this.#changes.transaction(async (transaction, logChange) => {
      const removal = transaction.deleteFrom('sluice_policies').where('id', '=', id)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missingRefusal('policy')
      logChange('policy', id)
    })
  }

  /** Names of applications that have this tier of the level, or ids of subscriptions; five at most. */
  async usersOf(level: PolicyLevel, tier: string): Promise<readonly string[]> {
    if (level === 'application') {
      const rows = await this.#database.read(db =>
        db.selectFrom('sluice_applications').select('name').where('tier', '=', tier).limit(USERS_SHOWN).execute(),
      )
      return rows.map(({ name }) => `application ${name}`)
    }
    if (level !== 'subscription') return []
    const rows = await this.#database.read(db =>
      db
        .selectFrom('sluice_subscriptions')
        .select(['api_name', 'api_version', 'id'])
        .where('tier', '=', tier)
        .limit(USERS_SHOWN)
        .execute(),
    )
    return rows.map(row => `subscription ${row.id} to ${row.api_name}:${row.api_version}`)
  }

  async listDenied(): Promise<readonly DenyPolicy[]> {
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_deny_policies').selectAll().orderBy('kind').orderBy('value').limit(POLICIES_MAX).execute(),
    )
    return rows.map(denyPolicyOf)
  }

  async createDenied(policy: Omit<DenyPolicy, 'id'>): Promise<DenyPolicy> {
    const row: DenyPolicyRow = {
      id: randomUUID(),
      kind: policy.type,
      value: policy.value,
      is_inverted: policy.inverted ? 1 : 0,
      is_enabled: policy.enabled ? 1 : 0,
    }
    await this.#changes.transaction(
      async (transaction, logChange) => {
        const counted = transaction.selectFrom('sluice_deny_policies').select(it => it.fn.countAll().as('total'))
        requireRoom(Number((await counted.executeTakeFirstOrThrow()).total))
        await transaction.insertInto('sluice_deny_policies').values(row).execute()
        logChange('policy', row.id)
      },
      { unique: () => existsRefusal('a deny policy of this type and value', 'conditionValue') },
    )
    return denyPolicyOf(row)
  }

  async setDenied(id: string, enabled: boolean): Promise<DenyPolicy> {
    return this.#changes.transaction(async (transaction, logChange) => {
      const found = transaction.selectFrom('sluice_deny_policies').selectAll().where('id', '=', id)
      const row = await found.executeTakeFirst()
      if (row === undefined) throw missingRefusal('deny policy')
      const is_enabled = enabled ? 1 : 0
      await transaction.updateTable('sluice_deny_policies').set({ is_enabled }).where('id', '=', id).execute()
      logChange('policy', id)
      return denyPolicyOf({ ...row, is_enabled })
    })
  }

  async removeDenied(id: string): Promise<void> {
    await this.#changes.transaction(async (transaction, logChange) => {
      const removal = transaction.deleteFrom('sluice_deny_policies').where('id', '=', id)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missingRefusal('deny policy')
      logChange('policy', id)
    })
  }

  /** All of both kinds, as reactors take them. */
  async snapshot(): Promise<PolicySet> {
    const policies = (await this.list()).map(({ policy }) => policy)
    return { policies, denied: await this.listDenied() }
  }
}

function requireRoom(count: number): void {
  if (count < POLICIES_MAX) return
  throw new RegistryRefusal('invalid', '', `there are ${POLICIES_MAX} policies already: remove some first`)
}

function storedPolicyOf({ id, level, body: text }: PolicyRow): StoredPolicy {
  const body = JSON.parse(text) as StoredPolicy['body']
  return { id, policy: readPolicy(level, body).value, body }
}

function denyPolicyOf({ id, kind, value, is_inverted, is_enabled }: DenyPolicyRow): DenyPolicy {
  return { id, type: kind, value, inverted: is_inverted === 1, enabled: is_enabled === 1 }
}
