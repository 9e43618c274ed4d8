/** Decides which requested scopes a token receives. */
import { compilePattern } from '../../runtime/pattern.ts'
import { MANAGEMENT_SCOPES } from '../registry/management-scopes.ts'
import type { KeyManagerOptions } from './key-manager.ts'
import { OAuthError } from './oauth-error.ts'

/** RFC 6749 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const SCOPES_MAX = 100
const SCOPE_CHARS_MAX = 255
/** Scope of a token whose request names none. */
const DEFAULT_SCOPE = 'default'
/** Scopes that release claims (OpenID Connect Core 5.4). */
export const CLAIM_SCOPES = ['profile', 'email', 'address', 'phone'] as const

/** Parses a scope parameter: each scope once, in order. Throws OAuthError. */
export function readScopes(text: string): readonly string[] {
  const scopes = [...new Set(text.split(' ').filter(scope => scope !== ''))]
  const isInvalid = scopes.length > SCOPES_MAX || scopes.some(one => one.length > SCOPE_CHARS_MAX || !SCOPE.test(one))
  if (isInvalid) throw new OAuthError('invalid_scope', 'scope is malformed or too long')
  return scopes
}

/** The user or application that a token is issued to. */
interface ScopeSubject {
  readonly roles: readonly string[]
  readonly isApplication: boolean
}

export class ScopePolicy {
  readonly #rolesOfScope: KeyManagerOptions['rolesOfScope']
  readonly #patterns: readonly string[]
  readonly #report: KeyManagerOptions['report']
  /** Compiled for the first scope that no API binds, because the engine takes 8 MB. */
  #allowed: readonly ((scope: string) => boolean)[] | null = null

  constructor(
    patterns: readonly string[],
    { rolesOfScope, report }: Pick<KeyManagerOptions, 'rolesOfScope' | 'report'>,
  ) {
    // An API cannot bind scopes of the management API to other roles.
    this.#rolesOfScope = scope =>
      Object.hasOwn(MANAGEMENT_SCOPES, scope) ? [MANAGEMENT_SCOPES[scope]!] : rolesOfScope(scope)
    this.#patterns = patterns
    this.#report = report
  }

  /** Leaves out what cannot be granted (RFC 6749 3.3); the response lists what was. */
  grant(requested: readonly string[], subject: ScopeSubject): readonly string[] {
    const granted = requested.filter(scope => this.#isGranted(scope, requested, subject))
    if (granted.length > 0) return granted
    return this.#rolesOfScope(DEFAULT_SCOPE) === null ? [DEFAULT_SCOPE] : []
  }

  #isGranted(scope: string, requested: readonly string[], { roles, isApplication }: ScopeSubject): boolean {
    const required = this.#rolesOfScope(scope)
    // Role bindings of APIs take precedence over patterns.
    if (required !== null) return required.every(roleSet => roleSet.some(role => roles.includes(role)))
    this.#allowed ??= this.#patterns.map(pattern => matcher(pattern, this.#report))
    if (this.#allowed.some(matches => matches(scope))) return true
    return !isApplication && requested.includes('openid') && CLAIM_SCOPES.some(one => one === scope)
  }
}

/** Matches whole scopes, in linear time, because clients choose the scope. */
function matcher(pattern: string, report: KeyManagerOptions['report']): (scope: string) => boolean {
  try {
    const compiled = compilePattern(pattern)
    return scope => compiled.matcher(scope).matches()
  } catch (error) {
    report('error', 'invalid pattern in allowed_scopes', { CAUSE_OF_ERROR: (error as Error).message })
    return () => false
  }
}
