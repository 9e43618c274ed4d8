/**
 * Modules of the operator that change claims. Each is an ES module inside the configuration folder that exports one
 * function, which receives plain data and returns claims, or a promise of claims:
 *
 *   token_generator             export function tokenClaims(claims, { client, user })
 *   id_token_builder            export function idTokenClaims(claims, { client, user })
 *   claim_callback_handler      export function moreClaims({ client, user, scopes })
 *   user_info_claim_retriever   export function userClaims({ user, scopes })
 *
 * These modules run in the control thread, with its rights. They cannot change the claims that a token's validity
 * rests on (`iss`, `sub`, `aud`, `exp`, ...).
 */
import { loadModule } from '../../config/module-file.ts'
import { callModule, type Exported, moduleError } from './module-call.ts'
import type { ExtensionPaths } from './settings.ts'

export type Claims = Readonly<Record<string, unknown>>

/** The subject of the claims. `user` is null for an application's own token. */
export interface ClaimContext {
  readonly client: string
  readonly user: { readonly name: string; readonly tenant: string; readonly roles: readonly string[] } | null
  readonly scopes: readonly string[]
}

const NAMES = {
  tokenGenerator: 'tokenClaims',
  idTokenBuilder: 'idTokenClaims',
  claimCallbackHandler: 'moreClaims',
  userInfoClaimRetriever: 'userClaims',
} as const satisfies Record<keyof ExtensionPaths, string>

/** Claims that define a token's meaning; modules cannot change them. */
const PROTECTED_CLAIMS = new Set([
  ...['iss', 'sub', 'aud', 'azp', 'client_id', 'aut', 'scope', 'iat', 'nbf', 'exp', 'jti', 'cnf', 'tenant'],
  ...['token_type', 'nonce', 'auth_time', 'at_hash'],
])

export class Extensions {
  readonly #functions: ReadonlyMap<keyof ExtensionPaths, Exported>

  private constructor(functions: ReadonlyMap<keyof ExtensionPaths, Exported>) {
    this.#functions = functions
  }

  /** Rejects with ModuleError. */
  static async load(folder: string, paths: ExtensionPaths): Promise<Extensions> {
    const functions = new Map<keyof ExtensionPaths, Exported>()
    for (const kind of Object.keys(NAMES) as (keyof ExtensionPaths)[]) {
      if (paths[kind] === '') continue
      functions.set(kind, await loadModule(folder, paths[kind], NAMES[kind]))
    }
    return new Extensions(functions)
  }

  async accessToken(claims: Claims, context: ClaimContext): Promise<Claims> {
    return this.#replaceClaims('tokenGenerator', claims, context)
  }

  async idToken(claims: Claims, context: ClaimContext): Promise<Claims> {
    const added = (await this.#call('claimCallbackHandler', context)) ?? {}
    return this.#replaceClaims('idTokenBuilder', { ...withoutProtected(added), ...claims }, context)
  }

  /** Undefined without such a module: the registry's attributes apply. */
  async userClaims(context: ClaimContext): Promise<Claims | undefined> {
    return this.#call('userInfoClaimRetriever', context)
  }

  async #replaceClaims(
    kind: 'tokenGenerator' | 'idTokenBuilder',
    claims: Claims,
    context: ClaimContext,
  ): Promise<Claims> {
    const result = await this.#call(kind, { ...claims }, context)
    if (result === undefined) return claims
    const protectedClaims = Object.entries(claims).filter(([name]) => PROTECTED_CLAIMS.has(name))
    return { ...withoutProtected(result), ...Object.fromEntries(protectedClaims) }
  }

  /** Undefined without such a module. Rejects with OAuthError where it fails, so that no token is issued. */
  async #call(kind: keyof ExtensionPaths, ...parameters: readonly unknown[]): Promise<Claims | undefined> {
    const extension = this.#functions.get(kind)
    if (extension === undefined) return undefined
    const result = await callModule(NAMES[kind], extension, ...parameters)
    if (typeof result === 'object' && result !== null && !Array.isArray(result)) return result as Claims
    throw moduleError(NAMES[kind], 'the result is not an object')
  }
}

function withoutProtected(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !PROTECTED_CLAIMS.has(name)))
}
