/**
 * Grants: what a caller may do with an API, computed once per credentials and cached beside them. Comparing two masks
 * then decides each request. A grant is a snapshot: its owner drops it when the state that it rests on changes.
 */
import type { FaultCode } from '../faults/error-codes.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Resource } from '../proxy/exchange/resource.ts'
import type { AcceptedToken } from './token-result.ts'

/** Kinds of callers, one bit each. */
export const CALLER_KIND = { APPLICATION: 1, USER: 2 } as const

/** Credentials that are missing a right or are invalid, with the fault code. */
export interface Denial {
  readonly kind: 'denial'
  readonly code: FaultCode
}

export interface Grant {
  readonly kind: 'grant'
  readonly caller: Caller
  /** Bits of CALLER_KIND. */
  readonly callerKind: number
  readonly scopes: ScopeMask
  /**
   * Fault code of a token without a valid subscription; its `callerKind` is 0, so that no resource admits it. 0: the
   * subscription is valid, or none is needed.
   */
  readonly subscriptionDenial: 0 | 900907 | 900908 | 900909
  /** The token that it was computed from; null for other credentials. */
  readonly token: AcceptedToken | null
}

/** A grant of a token, which is the caller too: one object per token and API, because each more waits for memory. */
export interface TokenGrant extends Grant, Caller {
  /** Object that stands for the API. */
  readonly api: object
}

/** Bits of scopes, in words of 32. */
type ScopeMask = readonly number[]

/** Assigns a bit to each scope that the resources of an API require. */
class ScopeBits {
  readonly #bits = new Map<string, number>()

  constructor(scopes: Iterable<string>) {
    for (const scope of scopes) if (!this.#bits.has(scope)) this.#bits.set(scope, this.#bits.size)
  }

  /** Scopes that no resource requires have no bit. */
  maskOf(held: Iterable<string>): ScopeMask {
    const mask: number[] = new Array(Math.ceil(this.#bits.size / 32)).fill(0)
    for (const scope of held) {
      const bit = this.#bits.get(scope)
      if (bit !== undefined) mask[bit >>> 5]! |= 1 << (bit & 31)
    }
    return mask
  }

  /** The scopes that have a bit. */
  get names(): readonly string[] {
    return [...this.#bits.keys()]
  }
}

/** Requirements of one resource. */
interface Requirements {
  /** Bits of CALLER_KIND: any of them may call. */
  readonly callerKinds: number
  /** Any one of them is enough; null: no scope is required. */
  readonly scopes: ScopeMask | null
}

const CALLER_KINDS: Readonly<Record<Resource['authType'], number>> = {
  None: CALLER_KIND.APPLICATION | CALLER_KIND.USER,
  Application: CALLER_KIND.APPLICATION,
  'Application User': CALLER_KIND.USER,
  'Application & Application User': CALLER_KIND.APPLICATION | CALLER_KIND.USER,
}

/** Requirements of the resources of an API. */
export class ResourceRequirements {
  readonly scopeBits: ScopeBits
  readonly #byResource = new WeakMap<Resource, Requirements>()

  constructor(resources: readonly Resource[]) {
    this.scopeBits = new ScopeBits(resources.flatMap(({ scopes }) => scopes))
  }

  /** Fault code of the first requirement that the grant does not meet; 0: it meets all. */
  denialCode(grant: Grant, resource: Resource): 0 | 900905 | 900907 | 900908 | 900909 | 900910 {
    const required = this.#byResource.get(resource) ?? this.#read(resource)
    if ((required.callerKinds & grant.callerKind) === 0) return grant.subscriptionDenial || 900905
    if (required.scopes !== null && !sharesScope(required.scopes, grant.scopes)) return 900910
    return 0
  }

  #read(resource: Resource): Requirements {
    const scopes = resource.scopes.length === 0 ? null : this.scopeBits.maskOf(resource.scopes)
    const required = { callerKinds: CALLER_KINDS[resource.authType], scopes }
    this.#byResource.set(resource, required)
    return required
  }
}

/** Both masks are of the same API. */
function sharesScope(one: ScopeMask, other: ScopeMask): boolean {
  for (let word = 0; word < one.length; word++) if ((one[word]! & other[word]!) !== 0) return true
  return false
}
