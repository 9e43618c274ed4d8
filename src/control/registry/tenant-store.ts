/** Stores the tenants, each with its built-in roles. */
import type { Database, DatabaseTransaction } from './database.ts'
import { requireName, existsRefusal } from './field-validation.ts'
import { ADMIN_ROLE, MANAGEMENT_SCOPES } from './management-scopes.ts'

/** Roles of every tenant that cannot be removed: scopes of the management API require them. */
export const BUILT_IN_ROLES: readonly string[] = [
  ...new Set([ADMIN_ROLE, ...Object.values(MANAGEMENT_SCOPES).flat()]),
].sort()

export class TenantStore {
  readonly #database: Database
  readonly #nowMs: () => number

  constructor(database: Database, nowMs: () => number) {
    this.#database = database
    this.#nowMs = nowMs
  }

  async list(): Promise<readonly string[]> {
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_tenants').select('domain').orderBy('domain').execute(),
    )
    return rows.map(({ domain }) => domain)
  }

  async create(domain: string): Promise<void> {
    requireName('tenant', domain)
    await this.#database.transaction(
      async transaction => {
        await transaction.insertInto('sluice_tenants').values({ domain, created_ms: this.#nowMs() }).execute()
        await this.#addRoles(transaction, domain)
      },
      { unique: () => existsRefusal('a tenant with this domain', 'tenant') },
    )
  }

  /** Creates the tenant and its roles where they are missing. */
  async createIfAbsent(domain: string): Promise<void> {
    await this.#database.transaction(async transaction => {
      const insert = transaction.insertInto('sluice_tenants').values({ domain, created_ms: this.#nowMs() })
      await this.#database.insertOrIgnore(insert, 'domain').execute()
      await this.#addRoles(transaction, domain)
    })
  }

  async #addRoles(transaction: DatabaseTransaction, tenant: string): Promise<void> {
    const roles = BUILT_IN_ROLES.map(name => ({ tenant, name }))
    await this.#database.insertOrIgnore(transaction.insertInto('sluice_roles').values(roles), 'name').execute()
  }
}
