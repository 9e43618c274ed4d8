/**
 * What a caller may do with an API, made once for its credentials and kept beside them: one look at two masks says
 * whether a resource is open to it. It never says more than was true when it was made; whoever keeps it drops it when
 * anything has changed.
 */
import type { Resource } from '../exchange/resource.ts'
import type { Caller } from '../exchange/caller.ts'
import type { FaultCode } from '../errors/catalogue.ts'
import type { AcceptedToken } from './token-verdict.ts'
import { SimplePattern } from '../structure/simple-pattern.ts'
import { ScopeBits, type ScopeMask, sharesScope } from './scopes.ts'

/** Kinds of callers, a bit each. */
export const CALLER_KIND = { APPLICATION: 1, USER: 2 } as const

/** For credentials that are good, and allow nothing: why. */
export interface Denial {
  readonly kind: 'denial'
  readonly code: FaultCode
}

export interface Grant {
  readonly kind: 'grant'
  readonly caller: Caller
  /** One of CALLER_KIND. */
  readonly callerKind: number
  readonly scopes: ScopeMask
  /** What it was made of; null for what is no token. */
  readonly token: AcceptedToken | null
}

/** What a resource asks for. */
interface Needs {
  /** Of CALLER_KIND. */
  readonly kinds: number
  /** Any one of them; null: none is asked for. */
  readonly scopes: ScopeMask | null
}

const KINDS: Readonly<Record<Resource['authType'], number>> = {
  None: CALLER_KIND.APPLICATION | CALLER_KIND.USER,
  Application: CALLER_KIND.APPLICATION,
  'Application User': CALLER_KIND.USER,
  'Application & Application User': CALLER_KIND.APPLICATION | CALLER_KIND.USER,
}

/** Scopes that every caller counts as having (`apim.oauth_config.allowed_scopes`). */
export class AllowedScopes {
  readonly #patterns: readonly SimplePattern[]

  /** Those that are no patterns of ours allow nothing; the configuration takes none of them. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.flatMap(text => SimplePattern.read(text) ?? [])
  }

  includes(scope: string): boolean {
    return this.#patterns.some(pattern => pattern.matches(scope))
  }
}

/** What the resources of an API ask for. */
export class ResourceNeeds {
  readonly bits: ScopeBits
  #byResource = new WeakMap<Resource, Needs>()
  /** What the needs that are known were read with. */
  #allowed: AllowedScopes | null = null

  constructor(resources: readonly Resource[]) {
    this.bits = new ScopeBits(resources.flatMap(({ scopes }) => scopes))
  }

  /** 0: open to it. */
  refusalOf({ callerKind, scopes }: Grant, resource: Resource, allowed: AllowedScopes): 0 | 900905 | 900910 {
    if (allowed !== this.#allowed) {
      this.#byResource = new WeakMap()
      this.#allowed = allowed
    }
    const needs = this.#byResource.get(resource) ?? this.#read(resource, allowed)
    if ((needs.kinds & callerKind) === 0) return 900905
    if (needs.scopes !== null && !sharesScope(needs.scopes, scopes)) return 900910
    return 0
  }

  /** Of what was deployed with the API, and of the one resource of APIs that declare none. */
  #read(resource: Resource, allowed: AllowedScopes): Needs {
    const isFree = resource.scopes.length === 0 || resource.scopes.some(scope => allowed.includes(scope))
    const needs = { kinds: KINDS[resource.authType], scopes: isFree ? null : this.bits.maskOf(resource.scopes) }
    this.#byResource.set(resource, needs)
    return needs
  }
}
