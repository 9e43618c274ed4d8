/**
 * Authenticates and authorises the caller of an API: the first scheme that finds credentials decides. Strips the
 * client's credentials from the request, unless `enable_outbound_auth_header` forwards them.
 */
import type { FaultCode } from '../faults/error-codes.ts'
import type { DescribedFilter } from '../filters/filter-chain.ts'
import { fieldNamed, KIND } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Outcome, Refusal } from '../proxy/exchange/outcome.ts'
import { countedAddress } from '../throttle/denials.ts'
import type { AccessPlan } from './auth-plan.ts'
import type { AuthenticationResult, Authenticator, CertificateAuthenticator } from './authenticator.ts'
import { Challenges } from './challenges.ts'
import { CustomValidation } from './custom-validator.ts'
import type { Grant, ResourceRequirements } from './grants.ts'
import type { ReactorAuth } from './reactor-auth.ts'

const AUTHORIZATION = 'authorization'
/** Index of a field that is repeated. */
const REPEATED = -2

interface AuthenticationOptions {
  /** Null where the chain is only described and sees no request. */
  readonly auth: ReactorAuth | null
  readonly access: AccessPlan
  readonly requirements: ResourceRequirements
  /** A prototype: no credentials are required, and the key type is PRODUCTION. */
  readonly isOpen: boolean
  /** A request without credentials goes on, because some of its operations may need none. */
  readonly admitsAnonymous?: boolean
  /** Null where the API accepts no client certificates. */
  readonly certificates: CertificateAuthenticator | null
  /** In the order in which they look for credentials. */
  readonly others: readonly Authenticator[]
}

export class AuthenticationFilter implements DescribedFilter {
  readonly name = 'authentication'
  readonly #auth: ReactorAuth | null
  readonly #access: AccessPlan
  readonly #requirements: ResourceRequirements
  readonly #isOpen: boolean
  readonly #admitsAnonymous: boolean
  readonly #certificates: CertificateAuthenticator | null
  readonly #others: readonly Authenticator[]
  /** The scheme among `others` whose credentials are not in the field of tokens; null: there is none. */
  readonly #stripping: Authenticator | null
  readonly #challenges: Challenges
  readonly #validation: CustomValidation | null

  constructor(options: AuthenticationOptions) {
    const { auth, access, requirements, isOpen, admitsAnonymous = false, certificates, others } = options
    this.#auth = auth
    this.#access = access
    this.#requirements = requirements
    this.#isOpen = isOpen
    this.#admitsAnonymous = admitsAnonymous
    this.#certificates = certificates
    this.#others = others
    this.#stripping = others.find(({ stripCredentials }) => stripCredentials !== undefined) ?? null
    this.#challenges = new Challenges(access.schemes)
    this.#validation = auth === null ? null : new CustomValidation(auth)
  }

  get about(): string {
    if (this.#isOpen) return 'a prototype: no credentials are required'
    const { schemes, api, requiresCertificate, requiresOther } = this.#access
    const needsSubscription = schemes.includes('oauth2') || schemes.includes('api_key')
    const both = requiresCertificate && requiresOther ? ', a certificate and one of the other schemes' : ''
    return `${schemes.join(', ')}${both}${needsSubscription ? `; subscription to ${api}` : ''}`
  }

  request(exchange: Exchange): FilterResult {
    const auth = this.#auth!
    const { resource } = exchange
    const field = this.#stripField(exchange.head!, auth)
    this.#stripping?.stripCredentials?.(exchange)
    if (resource === null) return undefined
    if (this.#isOpen) exchange.keyType = 'PRODUCTION'
    if (this.#isOpen || resource.authType === 'None') {
      exchange.caller = auth.anonymous(countedAddress(exchange), exchange.keyType)
      return undefined
    }
    if (field === REPEATED) return this.#refusal(900901)
    const { requiresCertificate, requiresOther } = this.#access
    const certificate = this.#certificates?.authenticate(exchange)
    if (certificate?.kind === 'denial') return this.#refusal(certificate.code)
    if (certificate === undefined && requiresCertificate) return this.#refusal(900902)
    if (certificate !== undefined && !requiresOther) return this.#authorize(exchange, certificate)
    return this.#authenticate(exchange, field)
  }

  /** No closures on this path: each would allocate its scope for every request. */
  #authenticate(exchange: Exchange, field: number): FilterResult {
    for (const authenticator of this.#others) {
      const result = authenticator.authenticate(exchange, field)
      if (result instanceof Promise) return this.#authorizeLater(exchange, result)
      if (result !== undefined) return this.#authorize(exchange, result)
    }
    if (!this.#admitsAnonymous) return this.#refusal(900902)
    exchange.caller = this.#auth!.anonymous(countedAddress(exchange), exchange.keyType)
    return undefined
  }

  async #authorizeLater(exchange: Exchange, result: Promise<AuthenticationResult>): Promise<Outcome | undefined> {
    return this.#authorize(exchange, await result)
  }

  #authorize(exchange: Exchange, result: AuthenticationResult): FilterResult {
    if (result === undefined) return this.#refusal(900902)
    if (result.kind === 'denial') return this.#refusal(result.code)
    const code = this.#requirements.denialCode(result, exchange.resource!)
    if (this.#auth!.validator !== null) return this.#validate(exchange, result, code)
    return this.#finish(exchange, result, code)
  }

  /** `builtIn`: what subscription, token type and scopes say. */
  #validate(exchange: Exchange, grant: Grant, builtIn: FaultCode | 0): FilterResult {
    const code = this.#validation!.codeFor(exchange, grant, builtIn)
    return typeof code === 'number' ? this.#finish(exchange, grant, code) : this.#finishLater(exchange, grant, code)
  }

  async #finishLater(exchange: Exchange, grant: Grant, code: Promise<FaultCode | 0>): Promise<Outcome | undefined> {
    return this.#finish(exchange, grant, await code)
  }

  #finish(exchange: Exchange, { caller }: Grant, code: FaultCode | 0): Outcome | undefined {
    return code === 0 ? this.#admit(exchange, caller) : this.#refusal(code)
  }

  #admit(exchange: Exchange, caller: Caller): undefined {
    exchange.caller = caller
    exchange.keyType = caller.keyType
  }

  #refusal(code: FaultCode): Refusal {
    return this.#challenges.refusal(code, this.#fieldName(this.#auth!))
  }

  #fieldName({ plan }: ReactorAuth): string {
    const { authField } = this.#access
    return authField === '' ? plan.authField : authField
  }

  /** Strips the field of tokens and returns its index; -1 where it is missing, REPEATED where it is repeated. */
  #stripField(head: Head, auth: ReactorAuth): number {
    const { plan } = auth
    const name = this.#fieldName(auth)
    const isAuthorization = name === AUTHORIZATION
    const first = isAuthorization ? head.find(KIND.AUTHORIZATION) : fieldNamed(arena.bytes, head, name)
    if (first < 0) return -1
    const isAlone = isAuthorization
      ? !head.isRepeated(KIND.AUTHORIZATION)
      : fieldNamed(arena.bytes, head, name, first + 1) < 0
    if (plan.forwardsAuthField) return isAlone ? first : REPEATED
    head.kinds[first] = KIND.CREDENTIAL
    if (isAlone) return first
    for (let field = first; field >= 0; field = fieldNamed(arena.bytes, head, name, field + 1)) {
      head.kinds[field] = KIND.CREDENTIAL
    }
    return REPEATED
  }
}
