/** Stores users and roles, and authenticates users. Removing, locking or a new password revokes a user's tokens. */
import { createHash, randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { SUPER_TENANT } from '../../auth/account-names.ts'
import { ConfigurationErrors, type Diagnostic, formatValue } from '../../config/diagnostics.ts'
import {
  type AccountRules,
  EVERYONE,
  existsRefusal,
  jsonText,
  missingRefusal,
  requireName,
} from './field-validation.ts'
import type { ChangeLog } from './change-log.ts'
import type { TokenStore } from './token-store.ts'
import type { Database, DatabaseTransaction } from './database.ts'
import type { Page, User } from './entities.ts'
import type { LoginGuard } from './login-guard.ts'
import { ADMIN_ROLE } from './management-scopes.ts'
import { hashPassword, type VerifiedSecretCache } from './password-hash.ts'
import { RegistryRefusal } from './registry-errors.ts'
import type { Tables, UserRow } from './tables.ts'
import { BUILT_IN_ROLES } from './tenant-store.ts'

interface UserStoreOptions {
  readonly changes: ChangeLog
  readonly tokens: TokenStore
  readonly secrets: VerifiedSecretCache
  readonly rules: AccountRules
  readonly guard: LoginGuard
  /** Name of the account that can be neither removed nor locked, so that an administrator always exists. */
  readonly superAdmin: string
  readonly nowMs: () => number
}

/** A user to be created; active by default. */
type NewUser = Pick<User, 'name' | 'tenant' | 'roles' | 'claims'> & Partial<Pick<User, 'isLocked'>>

/** Database setting that records how `name_key` is formed. */
const COMPARISON_SETTING = 'usernames'

export class UserStore {
  readonly #database: Database
  readonly #tokens: TokenStore
  readonly #options: UserStoreOptions
  readonly #secrets: VerifiedSecretCache

  constructor(database: Database, options: UserStoreOptions) {
    this.#database = database
    this.#tokens = options.tokens
    this.#options = options
    this.#secrets = options.secrets
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

  /** Users who have the role, locked ones left out, by name. */
  async withRole(tenant: string, role: string, limit: number): Promise<readonly User[]> {
    return this.#database.read(async db => {
      const holders = db.selectFrom('sluice_user_roles').select('user_id').where('tenant', '=', tenant)
      const found = db
        .selectFrom('sluice_users')
        .selectAll()
        .where('id', 'in', holders.where('role', '=', role))
      const rows = await found.where('is_locked', '=', 0).orderBy('name_key').limit(limit).execute()
      const users: User[] = []
      for (const row of rows) users.push(await userOf(db, row))
      return users
    })
  }

  /**
   * Takes the same time for unknown users. Resolves with 'locked' for an account or a login that is locked. `address`:
   * of the client, for the lockout.
   */
  authenticate(name: string, tenant: string, password: string, address = ''): Promise<User | 'locked' | null> {
    const { rules, guard } = this.#options
    const verify = async () => {
      const row = await this.#row(name, tenant)
      if (!rules.isPasswordLength(password)) return null
      const phc = row?.password_hash ?? ''
      const { isCorrect, isOutdated } = await this.#secrets.verify(row?.id ?? '', password, phc)
      if (!isCorrect || row === undefined) return null
      // Reported with the correct password only: nobody else may learn that the user exists.
      if (row.is_locked === 1) return 'locked'
      if (isOutdated) await this.#replaceHash(row, await hashPassword(password))
      return this.#database.read(db => userOf(db, row))
    }
    return guard.attempt(this.#accountKey(name, tenant), verify, address)
  }

  /** A digest that changes with the password and the account; '' for an unknown user. It is no secret. */
  async passwordVersion(name: string, tenant: string): Promise<string> {
    const row = await this.#row(name, tenant)
    if (row === undefined) return ''
    return createHash('sha256')
      .update(JSON.stringify([row.id, row.password_hash]))
      .digest('base64url')
  }

  async create(user: NewUser, password: string): Promise<User> {
    this.#options.rules.requireUsername(user.name)
    this.#options.rules.requirePassword(password)
    return this.insert(user, await hashPassword(password))
  }

  /** Inserts a user with a given password hash, without checking the patterns of names and passwords. */
  async insert({ name, tenant, roles, claims, isLocked = false }: NewUser, password_hash: string): Promise<User> {
    requireName('username', name)
    const row: UserRow = {
      ...{ id: randomUUID(), tenant, name, password_hash },
      name_key: this.#options.rules.nameKey(name),
      claims: jsonText('claims', claims),
      is_locked: Number(isLocked),
      created_ms: this.#options.nowMs(),
    }
    if (isLocked) this.#requireNotSuperAdmin(row, 'isLocked')
    return this.#database.transaction(
      async transaction => {
        await transaction.insertInto('sluice_users').values(row).execute()
        await assignRoles(transaction, row, roles)
        return userOf(transaction, row)
      },
      {
        unique: () => existsRefusal('a user with this name', 'username'),
        reference: () => missingRefusal('tenant', 'tenant'),
      },
    )
  }

  /**
   * Applies `CaseInsensitiveUsername` to existing names. Throws ConfigurationErrors where two names would become equal.
   */
  async applyNameComparison(): Promise<void> {
    const { rules } = this.#options
    await this.#database.transaction(async transaction => {
      const setting = transaction.selectFrom('sluice_settings').selectAll().where('name', '=', COMPARISON_SETTING)
      const value = rules.isCaseInsensitive ? 'case-insensitive' : 'case-sensitive'
      const known = (await setting.executeTakeFirst())?.value ?? 'case-sensitive'
      if (known === value) return
      const users = await transaction.selectFrom('sluice_users').select(['id', 'tenant', 'name']).execute()
      const seen = new Set<string>()
      for (const { tenant, name } of users) {
        if (seen.has(this.#accountKey(name, tenant))) throw new ConfigurationErrors([namesCollide(name, tenant)])
        seen.add(this.#accountKey(name, tenant))
      }
      for (const { id, name } of users) {
        const change = transaction.updateTable('sluice_users').set({ name_key: rules.nameKey(name) })
        await change.where('id', '=', id).execute()
      }
      await transaction.deleteFrom('sluice_settings').where('name', '=', COMPARISON_SETTING).execute()
      await transaction.insertInto('sluice_settings').values({ name: COMPARISON_SETTING, value }).execute()
    })
  }

  async update(id: string, change: Partial<Pick<User, 'roles' | 'claims' | 'isLocked'>>): Promise<User> {
    const user = await this.#database.transaction(
      async transaction => {
        const row = await transaction.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
        if (row === undefined) throw missingRefusal('user')
        if (change.isLocked) this.#requireNotSuperAdmin(row, 'isLocked')
        if (change.roles?.includes(ADMIN_ROLE) === false) this.#requireNotSuperAdmin(row, 'roles')
        const changed = {
          claims: change.claims === undefined ? row.claims : jsonText('claims', change.claims),
          is_locked: change.isLocked === undefined ? row.is_locked : Number(change.isLocked),
        }
        await transaction.updateTable('sluice_users').set(changed).where('id', '=', id).execute()
        if (change.roles !== undefined) {
          await transaction.deleteFrom('sluice_user_roles').where('user_id', '=', id).execute()
          await assignRoles(transaction, row, change.roles)
        }
        return userOf(transaction, { ...row, ...changed })
      },
      { reference: () => missingRefusal('role', 'roles') },
    )
    if (change.isLocked !== undefined || change.roles !== undefined) await this.#options.changes.usersChanged(id)
    if (change.isLocked) await this.#tokens.revoke({ user: user.name, tenant: user.tenant })
    return user
  }

  /** Throws RegistryRefusal for a password that the patterns refuse. */
  requirePassword(password: string): void {
    this.#options.rules.requirePassword(password)
  }

  async setPassword(id: string, password: string): Promise<void> {
    this.requirePassword(password)
    const password_hash = await hashPassword(password)
    const row = await this.#database.transaction(async transaction => {
      await transaction.updateTable('sluice_users').set({ password_hash }).where('id', '=', id).execute()
      return transaction.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
    })
    if (row === undefined) throw missingRefusal('user')
    this.#options.guard.forget(this.#accountKey(row.name, row.tenant))
    await this.#options.changes.usersChanged(id)
    await this.#tokens.revoke({ user: row.name, tenant: row.tenant })
  }

  async remove(id: string): Promise<void> {
    const row = await this.#database.transaction(async transaction => {
      await transaction.updateTable('sluice_users').set({ is_locked: 1 }).where('id', '=', id).execute()
      const found = await transaction.selectFrom('sluice_users').selectAll().where('id', '=', id).executeTakeFirst()
      if (found === undefined) throw missingRefusal('user')
      this.#requireNotSuperAdmin(found, 'username')
      return found
    })
    await this.#options.changes.usersChanged(id)
    // Tokens may be in another database. The user is locked first and deleted last, so that a retry completes the
    // removal.
    await this.#tokens.revoke({ user: row.name, tenant: row.tenant })
    await this.#database.transaction(transaction =>
      transaction.deleteFrom('sluice_users').where('id', '=', id).execute(),
    )
  }

  async roles(tenant: string): Promise<readonly string[]> {
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_roles').select('name').where('tenant', '=', tenant).orderBy('name').execute(),
    )
    return rows.length === 0 ? [] : [...rows.map(({ name }) => name), EVERYONE].sort()
  }

  async createRole(tenant: string, role: string): Promise<void> {
    this.#options.rules.requireRole(role)
    requireName('role', role)
    await this.#database.transaction(
      transaction => transaction.insertInto('sluice_roles').values({ tenant, name: role }).execute(),
      {
        unique: () => existsRefusal('a role with this name', 'role'),
        reference: () => missingRefusal('tenant', 'tenant'),
      },
    )
  }

  async removeRole(tenant: string, role: string): Promise<void> {
    if (BUILT_IN_ROLES.includes(role) || role === EVERYONE)
      throw new RegistryRefusal('in use', 'role', `${role} is a built-in role`)
    await this.#database.transaction(async transaction => {
      const given = transaction.deleteFrom('sluice_user_roles').where('tenant', '=', tenant).where('role', '=', role)
      await given.execute()
      const removal = transaction.deleteFrom('sluice_roles').where('tenant', '=', tenant).where('name', '=', role)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missingRefusal('role')
    })
    await this.#options.changes.usersChanged(role)
  }

  #row(name: string, tenant: string): Promise<UserRow | undefined> {
    const key = this.#options.rules.nameKey(name)
    return this.#database.read(db => {
      const users = db.selectFrom('sluice_users').selectAll().where('tenant', '=', tenant)
      return users.where('name_key', '=', key).executeTakeFirst()
    })
  }

  #accountKey(name: string, tenant: string): string {
    return `${tenant}\n${this.#options.rules.nameKey(name)}`
  }

  #requireNotSuperAdmin({ tenant, name_key }: UserRow, field: string): void {
    if (tenant === SUPER_TENANT && name_key === this.#options.rules.nameKey(this.#options.superAdmin))
      throw new RegistryRefusal(
        'in use',
        field,
        'the super admin cannot be removed or locked, and keeps the role admin',
      )
  }

  async #replaceHash({ id, password_hash: old }: UserRow, password_hash: string): Promise<void> {
    await this.#database.transaction(transaction => {
      const change = transaction.updateTable('sluice_users').set({ password_hash }).where('id', '=', id)
      // Keeps a hash that was changed meanwhile.
      return change.where('password_hash', '=', old).execute()
    })
  }
}

function namesCollide(name: string, tenant: string): Diagnostic {
  return {
    where: '',
    key: 'user_store.properties.CaseInsensitiveUsername',
    given: 'true',
    expected: `${formatValue(name)} of tenant ${formatValue(tenant)} and another user differ only in case`,
    hint: 'first remove one of them with the key set to false',
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

/** Throws RegistryRefusal for a role that the tenant does not have. */
async function assignRoles(
  transaction: DatabaseTransaction,
  { id, tenant }: UserRow,
  roles: readonly string[],
): Promise<void> {
  const given = [...new Set(roles)].filter(role => role !== EVERYONE)
  if (given.length === 0) return
  const known = transaction
    .selectFrom('sluice_roles')
    .select('name')
    .where('tenant', '=', tenant)
    .where('name', 'in', given)
  const found = (await known.execute()).map(({ name }) => name)
  const unknown = given.find(role => !found.includes(role))
  if (unknown !== undefined) throw missingRefusal('role', 'roles')
  await transaction
    .insertInto('sluice_user_roles')
    .values(given.map(role => ({ user_id: id, tenant, role })))
    .execute()
}
