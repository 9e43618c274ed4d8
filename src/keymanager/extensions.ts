/**
 * Modules of operators that change what tokens and answers say. Each is an ES module inside the configuration folder
 * that exports one function, which gets plain data and answers claims, or a promise of them:
 *
 *   token_generator             export function tokenClaims(claims, { client, user })
 *   id_token_builder            export function idTokenClaims(claims, { client, user })
 *   claim_callback_handler      export function moreClaims({ client, user, scopes })
 *   user_info_claim_retriever   export function userClaims({ user, scopes })
 *
 * They run in the thread of the key manager, with its rights. What a token rests on (`iss`, `sub`, `aud`, `exp`, ...)
 * is not theirs to change.
 */
import { loadModule } from '../config/module-file.ts'
import { inTime } from '../structure/in-time.ts'
import { OAuthRefusal } from './oauth-refusal.ts'
import type { ExtensionPaths } from './settings.ts'

/** Longer than this none is waited for. */
const ANSWER_MS = 5000

export type Claims = Readonly<Record<string, unknown>>

/** Whom claims are about: an application that asks for itself has no user. */
export interface ClaimFacts {
  readonly client: string
  readonly user: { readonly name: string; readonly tenant: string; readonly roles: readonly string[] } | null
  readonly scopes: readonly string[]
}

type Extension = (...given: readonly unknown[]) => unknown

const NAMES = {
  tokenGenerator: 'tokenClaims',
  idTokenBuilder: 'idTokenClaims',
  claimCallbackHandler: 'moreClaims',
  userInfoClaimRetriever: 'userClaims',
} as const satisfies Record<keyof ExtensionPaths, string>

/** Claims that decide what a token is good for. */
const OURS = new Set([
  ...[
    'iss',
    'sub',
    'aud',
    'azp',
    'client_id',
    'aut',
    'scope',
    'iat',
    'nbf',
    'exp',
    'jti',
    'cnf',
    'tenant',
    'token_type',
  ],
  ...['nonce', 'auth_time', 'at_hash'],
])

export class Extensions {
  readonly #functions: ReadonlyMap<keyof ExtensionPaths, Extension>

  private constructor(functions: ReadonlyMap<keyof ExtensionPaths, Extension>) {
    this.#functions = functions
  }

  /** Throws ModuleBroken. */
  static async load(folder: string, paths: ExtensionPaths): Promise<Extensions> {
    const functions = new Map<keyof ExtensionPaths, Extension>()
    for (const kind of Object.keys(NAMES) as (keyof ExtensionPaths)[]) {
      if (paths[kind] === '') continue
      functions.set(kind, await loadModule(folder, paths[kind], NAMES[kind]))
    }
    return new Extensions(functions)
  }

  async accessToken(claims: Claims, facts: ClaimFacts): Promise<Claims> {
    return this.#replacing('tokenGenerator', claims, facts)
  }

  async idToken(claims: Claims, facts: ClaimFacts): Promise<Claims> {
    const more = (await this.#call('claimCallbackHandler', facts)) ?? {}
    return this.#replacing('idTokenBuilder', { ...without(more), ...claims }, facts)
  }

  /** Undefined where the registry decides. */
  async userClaims(facts: ClaimFacts): Promise<Claims | undefined> {
    return this.#call('userInfoClaimRetriever', facts)
  }

  async #replacing(kind: 'tokenGenerator' | 'idTokenBuilder', claims: Claims, facts: ClaimFacts): Promise<Claims> {
    const made = await this.#call(kind, { ...claims }, facts)
    if (made === undefined) return claims
    const kept = Object.entries(claims).filter(([name]) => OURS.has(name))
    return { ...without(made), ...Object.fromEntries(kept) }
  }

  /** Undefined without such a module. Throws OAuthRefusal where it fails: no token may come of that. */
  async #call(kind: keyof ExtensionPaths, ...given: readonly unknown[]): Promise<Claims | undefined> {
    const extension = this.#functions.get(kind)
    if (extension === undefined) return undefined
    const made = await answerOf(Promise.try(extension, ...given), NAMES[kind])
    if (typeof made === 'object' && made !== null && !Array.isArray(made)) return made as Claims
    throw failed(NAMES[kind], 'it answered no object')
  }
}

function without(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !OURS.has(name)))
}

async function answerOf(made: Promise<unknown>, name: string): Promise<unknown> {
  try {
    return await inTime(made, ANSWER_MS, () => new Error(`no answer within ${ANSWER_MS} ms`))
  } catch (error) {
    throw failed(name, (error as Error).message)
  }
}

/** The cause is for the log: what a module says could hold anything. */
function failed(name: string, cause: string): OAuthRefusal {
  const refusal = new OAuthRefusal('server_error', 'a module of the operator has failed', { status: 500 })
  refusal.cause = `${name}: ${cause}`
  return refusal
}
