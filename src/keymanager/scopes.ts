/** Which scopes a token is given of those that were asked for. */
import { RE2JS } from 're2js'
import { MANAGEMENT_SCOPES } from '../registry/management-scopes.ts'
import type { KeyManagerSurroundings, Log } from './key-manager.ts'
import { OAuthRefusal } from './oauth-refusal.ts'

/** RFC 6749 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const SCOPES_MAX = 100
const SCOPE_CHARS_MAX = 255
/** What a token has that nothing was asked for. */
const DEFAULT_SCOPE = 'default'
/** OpenID Connect Core 5.4: what a user may let a client know. */
export const CLAIM_SCOPES = ['profile', 'email', 'address', 'phone'] as const

/** Throws OAuthRefusal. Each once, in the order they were asked for. */
export function readScopes(text: string): readonly string[] {
  const scopes = [...new Set(text.split(' ').filter(scope => scope !== ''))]
  const isWrong = scopes.length > SCOPES_MAX || scopes.some(one => one.length > SCOPE_CHARS_MAX || !SCOPE.test(one))
  if (isWrong) throw new OAuthRefusal('invalid_scope', 'the scopes are not well-formed, or too many')
  return scopes
}

/** On whose behalf a token is asked for. */
interface ScopeHolder {
  readonly roles: readonly string[]
  readonly isApplication: boolean
}

export class ScopeGrants {
  readonly #rolesFor: KeyManagerSurroundings['rolesFor']
  readonly #allowed: readonly ((scope: string) => boolean)[]

  constructor(patterns: readonly string[], rolesFor: KeyManagerSurroundings['rolesFor'], log: Log) {
    // What opens the management API is not for an API to give away.
    this.#rolesFor = scope => (Object.hasOwn(MANAGEMENT_SCOPES, scope) ? [MANAGEMENT_SCOPES[scope]!] : rolesFor(scope))
    this.#allowed = patterns.map(pattern => matcher(pattern, log))
  }

  /** What cannot be granted is left out (RFC 6749 3.3), and the answer says what was granted. */
  grant(asked: readonly string[], holder: ScopeHolder): readonly string[] {
    const granted = asked.filter(scope => this.#isGranted(scope, asked, holder))
    if (granted.length > 0) return granted
    return this.#rolesFor(DEFAULT_SCOPE) === null ? [DEFAULT_SCOPE] : []
  }

  #isGranted(scope: string, asked: readonly string[], { roles, isApplication }: ScopeHolder): boolean {
    const needed = this.#rolesFor(scope)
    // A pattern must not open what an API has bound to roles: those win.
    if (needed !== null) return needed.every(some => some.some(role => roles.includes(role)))
    if (this.#allowed.some(matches => matches(scope))) return true
    return !isApplication && asked.includes('openid') && CLAIM_SCOPES.some(one => one === scope)
  }
}

/** All of a scope has to match, in linear time, because clients choose it. */
function matcher(pattern: string, log: Log): (scope: string) => boolean {
  try {
    const compiled = RE2JS.compile(pattern)
    return scope => compiled.matcher(scope).matches()
  } catch (error) {
    log('error', 'pattern of allowed scopes is not understood', { CAUSE_OF_ERROR: (error as Error).message })
    return () => false
  }
}
