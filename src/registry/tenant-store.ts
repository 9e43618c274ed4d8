/** Tenants, with the roles that each of them has from the beginning. */
import type { Database, Within } from './database.ts'
import { mustBeName, taken } from './field-rules.ts'
import { ADMIN_ROLE, MANAGEMENT_SCOPES } from './management-scopes.ts'
import type { TenantStore } from './registry.ts'

/** Of every tenant, and never removed: scopes of the management API ask for them. */
export const BUILT_IN_ROLES: readonly string[] = [
  ...new Set([ADMIN_ROLE, ...Object.values(MANAGEMENT_SCOPES).flat()]),
].sort()

export class DatabaseTenantStore implements TenantStore {
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
    mustBeName('tenant', domain)
    await this.#database.transaction(
      async within => {
        await within.insertInto('sluice_tenants').values({ domain, created_ms: this.#nowMs() }).execute()
        await this.#addRoles(within, domain)
      },
      { unique: () => taken('a tenant with this domain', 'tenant') },
    )
  }

  /** That it is there, with its roles, whoever made it. */
  async ensure(domain: string): Promise<void> {
    await this.#database.transaction(async within => {
      const insert = within.insertInto('sluice_tenants').values({ domain, created_ms: this.#nowMs() })
      await this.#database.unlessThere(insert, 'domain').execute()
      await this.#addRoles(within, domain)
    })
  }

  async #addRoles(within: Within, tenant: string): Promise<void> {
    const roles = BUILT_IN_ROLES.map(name => ({ tenant, name }))
    await this.#database.unlessThere(within.insertInto('sluice_roles').values(roles), 'name').execute()
  }
}
