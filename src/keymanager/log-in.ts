/** A user shows name and password: for a grant, in the pages of authorization, with Basic. */
import { withoutTenant } from '../config/account-names.ts'
import type { KeyManager } from './key-manager.ts'
import { tooMany } from './oauth-refusal.ts'
import { type Subject, userSubject } from './subjects.ts'

const PASSWORD_CHARS_MAX = 1024

interface ShownPassword {
  /** With or without its tenant. */
  readonly name: string
  readonly password: string
  /** Where it was typed. */
  readonly address: string
}

/** A user of the tenant; null where anything about it is wrong. Throws OAuthRefusal (429) after too many failures. */
export async function logIn(manager: KeyManager, tenant: string, shown: ShownPassword): Promise<Subject | null> {
  const { password, address } = shown
  const name = withoutTenant(shown.name, tenant)
  if (name.length > PASSWORD_CHARS_MAX || password.length > PASSWORD_CHARS_MAX) return null
  const user = await manager.registry.users.authenticate(name, tenant, password, address)
  if (user === 'locked') {
    const fields = { CLIENT_ADDRESS: address, USER: name, TENANT: tenant }
    manager.surroundings.log('warn', 'login of a name that is locked', fields)
    throw tooMany('too many failures', manager.settings.limits.lockoutMs)
  }
  return user === null ? null : userSubject(user)
}
