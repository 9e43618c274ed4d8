/** The first account, and what keys come to that stand for its credentials. There is no built-in password. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { SUPER_TENANT } from '../config/account-names.ts'
import type { Configuration } from '../config/catalogue.ts'
import { readIfThere, readOrMake, unfit } from './generated-file.ts'
import { ADMIN_ROLE } from './management-scopes.ts'
import { hashPassword } from './password-hash.ts'
import { RegistryRefusal } from './registry.ts'
import type { DatabaseUserStore } from './user-store.ts'

interface Credentials {
  readonly username: string
  readonly password: string
}

const FILE = 'admin-password'
/** 128 bits and more. */
const PASSWORD_BYTES = 18

/** As configured, or as the first start has made them; the password is '' where there is none here. */
function superAdminCredentials({ super_admin }: Configuration, dataDir: string): Credentials {
  const { username, password } = super_admin
  return { username, password: password === '' ? generated(dataDir) : password }
}

/**
 * Credentials of a key that stands for the super admin's unless it is set: `apim.key_manager.password` and its like. A
 * password goes with a name of its own, and with no other.
 */
export function withSuperAdmin(given: Credentials, configuration: Configuration, dataDir: string): Credentials {
  if (given.password !== '' || given.username !== configuration.super_admin.username) return given
  return superAdminCredentials(configuration, dataDir)
}

/**
 * Makes the account where there is none. Answers its password where this call has made that up, else ''. The file comes
 * first: an account whose password nobody knows would be worse than a password without an account.
 */
export async function createSuperAdmin(
  users: DatabaseUserStore,
  { super_admin }: Configuration,
  dataDir: string,
): Promise<string> {
  const { username, password, create_admin_account } = super_admin
  if (!create_admin_account || (await users.find(username, SUPER_TENANT)) !== null) return ''
  const chosen = password === '' ? generate(dataDir) : password
  try {
    const account = { name: username, tenant: SUPER_TENANT, roles: [ADMIN_ROLE], claims: {} }
    await users.insert(account, await hashPassword(chosen))
  } catch (error) {
    if (!(error instanceof RegistryRefusal && error.reason === 'exists')) throw error
    // Another node was faster, and its password holds.
    const isSame = (await users.authenticate(username, SUPER_TENANT, chosen)) !== null
    if (password === '' && !isSame) rmSync(join(dataDir, FILE), { force: true })
    return ''
  }
  return password === '' ? chosen : ''
}

/** '' where there is no such file. Throws what the system says. */
function generated(dataDir: string): string {
  return readIfThere(join(dataDir, FILE))?.toString().trim() ?? ''
}

/** Characters of four kinds: what a person may be asked for elsewhere. Throws ConfigurationFaults. */
function generate(dataDir: string): string {
  const file = join(dataDir, FILE)
  const make = () => Buffer.from(`${randomBytes(PASSWORD_BYTES).toString('base64url')}-aA1\n`)
  const password = readOrMake(file, make).toString().trim()
  // Somebody else has been at it.
  if (password.length < PASSWORD_BYTES) throw unfit(file, 'is damaged', 'remove it: another password is made then')
  return password
}
