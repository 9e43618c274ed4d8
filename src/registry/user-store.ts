/** Users and roles. */
import { createHash, randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { SUPER_TENANT } from '../config/account-names.ts'
import { ConfigurationFaults, type Fault, show } from '../config/fault.ts'
import { type AccountRules, EVERYONE } from './account-rules.ts'
import type { ChangeLog } from './change-log.ts'
import type { Database, Within } from './database.ts'
import type { User } from './entities.ts'
import { missing, mustBeName, taken, writtenJson } from './field-rules.ts'
import type { LoginGuard } from './login-guard.ts'
import { ADMIN_ROLE } from './management-scopes.ts'
import { hashPassword } from './password-hash.ts'
import { type Page, RegistryRefusal, type TokenStore, type UserStore } from './registry.ts'
import type { Tables, UserRow } from './tables.ts'
import { BUILT_IN_ROLES } from './tenant-store.ts'
import type { VerifiedSecrets } from './verified-secrets.ts'

interface UserStoreTerms {
  readonly changes: ChangeLog
  readonly verified: VerifiedSecrets
  readonly rules: AccountRules
  readonly guard: LoginGuard
  /** Neither removed nor locked: nobody would be left to undo it. */
  readonly superAdmin: string
  readonly nowMs: () => number
}

/** The setting that says how `name_key` was made. */
const COMPARISON = 'usernames'

export class DatabaseUserStore implements UserStore {
  readonly #database: Database
  readonly #tokens: TokenStore
  readonly #terms: UserStoreTerms
  readonly #verified: VerifiedSecrets

  constructor(database: Database, tokens: TokenStore, terms: UserStoreTerms) {
    this.#database = database
    this.#tokens = tokens
    this.#terms = terms
    this.#verified = terms.verified
  }

  async get(id: string): Promise<User | null> {
    return this.#database.read(db => userById(db, id))
  }

  async find(name: string, tenant: string): Promise<User | null> {
    const row = await this.#row(name, tenant)
    return row === undefined ? null : this.#database.read(db => userOf(db, row))
  }

  async list(
    tenant: string,
    { offset, limit }: Page,
  ): Promise<{ readonly total: number; readonly users: readonly User[] }> {
    return this.#database.read(async db => {
      const found = db.selectFrom('sluice_users').where('tenant', '=', tenant)
      const { total } = await found.select(it => it.fn.countAll().as('total')).executeTakeFirstOrThrow()
      const rows = await found.selectAll().orderBy('name_key').limit(limit).offset(offset).execute()
      const users: User[] = []
      for (const row of rows) users.push(await userOf(db, row))
      return { total: Number(total), users }
    })
  }

  authenticate(name: string, tenant: string, password: string, place = ''): Promise<User | 'locked' | null> {
    const { rules, guard } = this.#terms
    const judge = async () => {
      const row = await this.#row(name, tenant)
      if (!rules.couldBePassword(password)) return null
      const phc = row?.password_hash ?? ''
      const { isRight, isOld } = await this.#verified.verify(row?.id ?? '', password, phc)
      if (!isRight || row === undefined) return null
      // Told to those alone who know the password: others must not learn who there is.
      if (row.is_locked === 1) return 'locked'
      if (isOld) await this.#replaceHash(row, await hashPassword(password))
      return this.#database.read(db => userOf(db, row))
    }
    return guard.attempt(this.#guardName(name, tenant), judge, place)
  }

  async passwordMark(name: string, tenant: string): Promise<string> {
    const row = await this.#row(name, tenant)
    if (row === undefined) return ''
    return createHash('sha256')
      .update(JSON.stringify([row.id, row.password_hash]))
      .digest('base64url')
  }

  async create({ name, tenant, roles, claims }: Pick<User, 'name' | 'tenant' | 'roles' | 'claims'>, password: string) {
    this.#terms.rules.mustBeUsername(name)
    this.#terms.rules.mustBePassword(password)
    return this.insert({ name, tenant, roles, claims }, await hashPassword(password))
  }

  /** With a hash that was made, and whatever the patterns say of name and password. */
  async insert(
    { name, tenant, roles, claims }: Pick<User, 'name' | 'tenant' | 'roles' | 'claims'>,
    password_hash: string,
  ): Promise<User> {
    mustBeName('username', name)
    const row: UserRow = {
      ...{ id: randomUUID(), tenant, name, password_hash },
      name_key: this.#terms.rules.nameKey(name),
      claims: writtenJson('claims', claims),
      is_locked: 0,
      created_ms: this.#terms.nowMs(),
    }
    return this.#database.transaction(
      async within => {
        await within.insertInto('sluice_users').values(row).execute()
        await giveRoles(within, row, roles)
        return userOf(within, row)
      },
      { unique: () => taken('a user with this name', 'username'), reference: () => missing('tenant', 'tenant') },
    )
  }

  /**
   * Names that are there are compared as configured from now on. Throws ConfigurationFaults where two of them would
   * become the same.
   */
  async compareAsConfigured(): Promise<void> {
    const { rules } = this.#terms
    await this.#database.transaction(async within => {
      const kept = within.selectFrom('sluice_settings').selectAll().where('name', '=', COMPARISON)
      const value = rules.isCaseInsensitive ? 'case-insensitive' : 'case-sensitive'
      const known = (await kept.executeTakeFirst())?.value ?? 'case-sensitive'
      if (known === value) return
      const users = await within.selectFrom('sluice_users').select(['id', 'tenant', 'name']).execute()
      const seen = new Set<string>()
      for (const { tenant, name } of users) {
        if (seen.has(this.#guardName(name, tenant))) throw new ConfigurationFaults([alike(name, tenant)])
        seen.add(this.#guardName(name, tenant))
      }
      for (const { id, name } of users) {
        const change = within.updateTable('sluice_users').set({ name_key: rules.nameKey(name) })
        await change.where('id', '=', id).execute()
      }
      await within.deleteFrom('sluice_settings').where('name', '=', COMPARISON).execute()
      await within.insertInto('sluice_settings').values({ name: COMPARISON, value }).execute()
    })
  }

  async update(id: string, change: Partial<Pick<User, 'roles' | 'claims' | 'isLocked'>>): Promise<User> {
    const user = await this.#database.transaction(
      async within => {
        const row = await within.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
        if (row === undefined) throw missing('user')
        if (change.isLocked) this.#mustNotBeSuperAdmin(row, 'isLocked')
        if (change.roles?.includes(ADMIN_ROLE) === false) this.#mustNotBeSuperAdmin(row, 'roles')
        const changed = {
          claims: change.claims === undefined ? row.claims : writtenJson('claims', change.claims),
          is_locked: change.isLocked === undefined ? row.is_locked : Number(change.isLocked),
        }
        await within.updateTable('sluice_users').set(changed).where('id', '=', id).execute()
        if (change.roles !== undefined) {
          await within.deleteFrom('sluice_user_roles').where('user_id', '=', id).execute()
          await giveRoles(within, row, change.roles)
        }
        return userOf(within, { ...row, ...changed })
      },
      { reference: () => missing('role', 'roles') },
    )
    if (change.isLocked !== undefined || change.roles !== undefined) await this.#terms.changes.usersChanged(id)
    if (change.isLocked) await this.#tokens.revoke({ user: user.name, tenant: user.tenant })
    return user
  }

  async setPassword(id: string, password: string): Promise<void> {
    this.#terms.rules.mustBePassword(password)
    const password_hash = await hashPassword(password)
    const row = await this.#database.transaction(async within => {
      await within.updateTable('sluice_users').set({ password_hash }).where('id', '=', id).execute()
      return within.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
    })
    if (row === undefined) throw missing('user')
    this.#terms.guard.forget(this.#guardName(row.name, row.tenant))
    await this.#terms.changes.usersChanged(id)
    await this.#tokens.revoke({ user: row.name, tenant: row.tenant })
  }

  async remove(id: string): Promise<void> {
    const row = await this.#database.transaction(async within => {
      await within.updateTable('sluice_users').set({ is_locked: 1 }).where('id', '=', id).execute()
      const found = await within.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
      if (found === undefined) throw missing('user')
      this.#mustNotBeSuperAdmin(found, 'username')
      return found
    })
    await this.#terms.changes.usersChanged(id)
    // In another database, perhaps: it is locked first and gone last, so that a second try finds what is left.
    await this.#tokens.revoke({ user: row.name, tenant: row.tenant })
    await this.#database.transaction(within => within.deleteFrom('sluice_users').where('id', '=', id).execute())
  }

  async roles(tenant: string): Promise<readonly string[]> {
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_roles').select('name').where('tenant', '=', tenant).orderBy('name').execute(),
    )
    return rows.length === 0 ? [] : [...rows.map(({ name }) => name), EVERYONE].sort()
  }

  async createRole(tenant: string, role: string): Promise<void> {
    this.#terms.rules.mustBeRole(role)
    mustBeName('role', role)
    await this.#database.transaction(
      within => within.insertInto('sluice_roles').values({ tenant, name: role }).execute(),
      { unique: () => taken('a role with this name', 'role'), reference: () => missing('tenant', 'tenant') },
    )
  }

  async removeRole(tenant: string, role: string): Promise<void> {
    if (BUILT_IN_ROLES.includes(role) || role === EVERYONE)
      throw new RegistryRefusal('in use', 'role', `${role} is a role of the platform itself`)
    await this.#database.transaction(async within => {
      const given = within.deleteFrom('sluice_user_roles').where('tenant', '=', tenant).where('role', '=', role)
      await given.execute()
      const removal = within.deleteFrom('sluice_roles').where('tenant', '=', tenant).where('name', '=', role)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missing('role')
    })
    await this.#terms.changes.usersChanged(role)
  }

  #row(name: string, tenant: string): Promise<UserRow | undefined> {
    const key = this.#terms.rules.nameKey(name)
    return this.#database.read(db => {
      const users = db.selectFrom('sluice_users').selectAll().where('tenant', '=', tenant)
      return users.where('name_key', '=', key).executeTakeFirst()
    })
  }

  #guardName(name: string, tenant: string): string {
    return `${tenant}\n${this.#terms.rules.nameKey(name)}`
  }

  #mustNotBeSuperAdmin({ tenant, name_key }: UserRow, field: string): void {
    if (tenant === SUPER_TENANT && name_key === this.#terms.rules.nameKey(this.#terms.superAdmin))
      throw new RegistryRefusal('in use', field, 'the super admin can neither be removed nor locked, and stays admin')
  }

  async #replaceHash({ id, password_hash: old }: UserRow, password_hash: string): Promise<void> {
    await this.#database.transaction(within => {
      const change = within.updateTable('sluice_users').set({ password_hash }).where('id', '=', id)
      // Not where it was changed meanwhile.
      return change.where('password_hash', '=', old).execute()
    })
  }
}

function alike(name: string, tenant: string): Fault {
  return {
    where: '',
    key: 'user_store.properties.CaseInsensitiveUsername',
    given: 'true',
    expected: `${show(name)} of tenant ${show(tenant)} and another user differ in nothing but case`,
    remedy: 'remove one of them, with the key set to false, first',
  }
}

async function userById(db: Kysely<Tables>, id: string): Promise<User | null> {
  const row = await db.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? null : userOf(db, row)
}

async function userOf(db: Kysely<Tables>, row: UserRow): Promise<User> {
  const given = await db.selectFrom('sluice_user_roles').select('role').where('user_id', '=', row.id).execute()
  const { id, name, tenant } = row
  return {
    ...{ id, name, tenant },
    roles: [...given.map(({ role }) => role), EVERYONE].sort(),
    claims: JSON.parse(row.claims),
    isLocked: row.is_locked === 1,
  }
}

/** Throws RegistryRefusal for roles that the tenant has not. */
async function giveRoles(within: Within, { id, tenant }: UserRow, roles: readonly string[]): Promise<void> {
  const given = [...new Set(roles)].filter(role => role !== EVERYONE)
  if (given.length === 0) return
  const known = within.selectFrom('sluice_roles').select('name').where('tenant', '=', tenant).where('name', 'in', given)
  const found = (await known.execute()).map(({ name }) => name)
  const unknown = given.find(role => !found.includes(role))
  if (unknown !== undefined) throw missing('role', 'roles')
  await within
    .insertInto('sluice_user_roles')
    .values(given.map(role => ({ user_id: id, tenant, role })))
    .execute()
}
