/** The super admin's account and credentials. There is no built-in password. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { SUPER_TENANT } from '../../auth/account-names.ts'
import type { Configuration } from '../../config/catalogue.ts'
import { readIfPresent, readOrCreate, unusableFile } from '../../database/secret-file.ts'
import { ADMIN_ROLE } from './management-scopes.ts'
import { hashPassword } from './password-hash.ts'
import { RegistryRefusal } from './registry-errors.ts'
import type { UserStore } from './user-store.ts'

interface Credentials {
  readonly username: string
  readonly password: string
}

const FILE = 'admin-password'
/** 144 bits. */
const PASSWORD_BYTES = 18

/** The configured credentials, or those that the first start generated; the password is '' where this node has none. */
function superAdminCredentials({ super_admin }: Configuration, dataDir: string): Credentials {
  const { username, password } = super_admin
  return { username, password: password === '' ? generatedPassword(dataDir) : password }
}

/**
 * Credentials for keys that default to the super admin, such as `apim.key_manager.password`. A password belongs to its
 * own user name only.
 */
export function credentialsOrSuperAdmin(
  credentials: Credentials,
  configuration: Configuration,
  dataDir: string,
): Credentials {
  if (credentials.password !== '' || credentials.username !== configuration.super_admin.username) return credentials
  return superAdminCredentials(configuration, dataDir)
}

/**
 * Creates the account if it is missing. Resolves with the password that this call generated, otherwise ''. The file is
 * written first: an account with an unknown password would be useless.
 */
export async function createSuperAdmin(
  users: UserStore,
  { super_admin }: Configuration,
  dataDir: string,
): Promise<string> {
  const { username, password, create_admin_account } = super_admin
  if (!create_admin_account || (await users.find(username, SUPER_TENANT)) !== null) return ''
  const initial = password === '' ? createPassword(dataDir) : password
  try {
    const account = { name: username, tenant: SUPER_TENANT, roles: [ADMIN_ROLE], claims: {} }
    await users.insert(account, await hashPassword(initial))
  } catch (error) {
    if (!(error instanceof RegistryRefusal && error.reason === 'exists')) throw error
    // Another node created the account first, with its password.
    const isSame = (await users.authenticate(username, SUPER_TENANT, initial)) !== null
    if (password === '' && !isSame) rmSync(join(dataDir, FILE), { force: true })
    return ''
  }
  return password === '' ? initial : ''
}

/** '' without the file. Throws file system errors. */
function generatedPassword(dataDir: string): string {
  return readIfPresent(join(dataDir, FILE))?.toString().trim() ?? ''
}

/**
 * Reads or creates the password. The suffix satisfies policies that demand four kinds of characters. Throws
 * ConfigurationErrors.
 */
function createPassword(dataDir: string): string {
  const file = join(dataDir, FILE)
  const make = () => Buffer.from(`${randomBytes(PASSWORD_BYTES).toString('base64url')}-aA1\n`)
  const password = readOrCreate(file, make).toString().trim()
  // The file was edited.
  if (password.length < PASSWORD_BYTES) throw unusableFile(file, 'is damaged', 'delete it: a new password is generated')
  return password
}
