/** What the handlers of a reactor need to know who asks: tokens, users, subscriptions, and nobody in particular. */
import type { Caller } from '../exchange/caller.ts'
import type { Report } from '../exchange/surroundings.ts'
import { BackendSide } from './backend-side.ts'
import type { Inquiry, InquiryResults } from './feed.ts'
import { AllowedScopes, type Denial, type Grant } from './grants.ts'
import type { IdentityPlan } from './identity-plan.ts'
import { Passwords } from './passwords.ts'
import type { SubscriptionIndex } from './subscription-index.ts'
import type { AcceptedToken, TokenChecks } from './token-verdict.ts'

/** Clients without credentials that are known by their address; whoever comes beyond takes the place of the first. */
const ANONYMOUS_MAX = 4096

/** What a request is judged by, for a handler of the operator's own. */
export interface ValidatorInput {
  readonly token: Pick<AcceptedToken, 'issuer' | 'consumerKey' | 'user' | 'isApplication' | 'claims'> & {
    readonly scopes: readonly string[]
  }
  readonly api: { readonly name: string; readonly version: string; readonly context: string }
  /** Template. */
  readonly resource: string
  readonly verb: string
}

/** `validate` of the module that `apim.key_manager.key_validation_handler_impl` names. */
export type Validator = (input: ValidatorInput) => unknown

/** What a reactor knows; IdentityState is one. */
interface IdentitySources {
  /** Another one whenever anything is different from before. */
  readonly epoch: number
  readonly usersEpoch: number
  readonly isComplete: boolean
  readonly subscriptions: SubscriptionIndex
  readonly revoked: { has(revocationKey: string): boolean }
  catchUp(): void
  ask<I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]>
}

interface IdentityParts {
  readonly plan: IdentityPlan
  readonly sources: IdentitySources
  readonly tokens: TokenChecks<Grant | Denial>
  /** Null: subscriptions and scopes alone decide. */
  readonly validator: Validator | null
  readonly report: Report
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds of a clock that only goes forward. */
  readonly nowMs: () => number
}

export class Identity {
  readonly sources: IdentitySources
  readonly tokens: TokenChecks<Grant | Denial>
  readonly passwords: Passwords
  readonly report: Report
  readonly backend: BackendSide
  #plan: IdentityPlan
  #allowedScopes: AllowedScopes
  #validator: Validator | null
  readonly #anonymous = { PRODUCTION: new Map<string, Caller>(), SANDBOX: new Map<string, Caller>() }

  constructor({ plan, sources, tokens, validator, report, metrics, nowMs }: IdentityParts) {
    this.#plan = plan
    this.#allowedScopes = new AllowedScopes(plan.allowedScopes)
    this.#validator = validator
    this.sources = sources
    this.tokens = tokens
    this.report = report
    this.backend = new BackendSide(plan.backendJwt, { ask: inquiry => sources.ask(inquiry), metrics, report })
    this.passwords = new Passwords({ sources, metrics, nowMs })
  }

  get plan(): IdentityPlan {
    return this.#plan
  }

  /** Another object after a reload. */
  get allowedScopes(): AllowedScopes {
    return this.#allowedScopes
  }

  get validator(): Validator | null {
    return this.#validator
  }

  /** At a reload. */
  renew(plan: IdentityPlan, validator: Validator | null): void {
    this.#plan = plan
    this.#allowedScopes = new AllowedScopes(plan.allowedScopes)
    this.#validator = validator
    this.backend.renew(plan.backendJwt)
  }

  /** Who asks where nothing is asked of anybody: one for all requests of an address. */
  anonymous(address: string, keyType: Caller['keyType']): Caller {
    const known = this.#anonymous[keyType]
    const caller = known.get(address)
    return caller ?? this.#newAnonymous(known, address, keyType)
  }

  #newAnonymous(known: Map<string, Caller>, address: string, keyType: Caller['keyType']): Caller {
    if (known.size >= ANONYMOUS_MAX) known.delete(known.keys().next().value!)
    const application = { id: address, name: address, owner: '', tenant: '', tier: 'Unlimited', attributes: {} }
    const caller: Caller = {
      method: 'none',
      user: 'anonymous',
      tenant: '',
      isApplication: false,
      keyType,
      application,
      consumerKey: '',
      subscriptionTier: 'Unauthenticated',
      claims: {},
      expiresMs: 0,
      revocationKey: '',
    }
    known.set(address, caller)
    return caller
  }
}
