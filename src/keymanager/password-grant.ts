/** Name and password of a user (RFC 6749 4.3). */
import { withoutTenant } from '../config/account-names.ts'
import { invalidGrant, type Redemption } from './redemption.ts'
import { tooMany } from './oauth-refusal.ts'
import { readScopes } from './scopes.ts'
import { type Subject, userSubject } from './subjects.ts'
import { issueTokens, mayRefresh, type TokenAnswer } from './token-maker.ts'
import type { KeyManager } from './key-manager.ts'

const PASSWORD_CHARS_MAX = 1024

export async function redeemPassword({ manager, client, form, address }: Redemption): Promise<TokenAnswer> {
  const asked = readScopes(form.text('scope'))
  const shown = { name: form.required('username'), password: form.required('password'), address }
  const subject = await logIn(manager, client.tenant, shown)
  if (subject === null) throw invalidGrant('the name or the password is wrong')
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopes.grant(asked, subject),
    family: '',
    refreshes: mayRefresh(manager, client),
    identifies: true,
    nonce: '',
    authenticatedS: Math.floor(manager.surroundings.now() / 1000),
  })
}

interface ShownPassword {
  /** With or without its tenant. */
  readonly name: string
  readonly password: string
  /** Where it was typed. */
  readonly address: string
}

/** A user of the tenant; null where anything about it is wrong. Throws OAuthRefusal (429) after too many failures. */
export async function logIn(manager: KeyManager, tenant: string, shown: ShownPassword): Promise<Subject | null> {
  const { limits } = manager.settings
  const { password, address } = shown
  const name = withoutTenant(shown.name, tenant)
  if (name.length > PASSWORD_CHARS_MAX || password.length > PASSWORD_CHARS_MAX) return null
  const place = `user ${name}@${tenant}\n${address}`
  manager.lockout.check(place, limits.failures)
  const user = await manager.registry.users.authenticate(name, tenant, password, address)
  if (user === 'locked') throw tooMany('too many failures', limits.lockoutMs)
  if (user === null || user.isLocked) {
    if (manager.lockout.failed(place, limits.failures, limits.lockoutMs)) {
      manager.surroundings.log('warn', 'user locked out after wrong passwords', { CLIENT_ADDRESS: address, USER: name })
    }
    return null
  }
  manager.lockout.succeeded(place)
  return userSubject(user)
}
