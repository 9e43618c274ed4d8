/**
 * Who asks, and whether this is theirs to ask. One for each API: credentials are looked for in the order of the
 * reference platform, the first that are there decide, and what they allow was found out when they were seen first.
 * What was read ends here: backends get no credentials of clients unless `enable_outbound_auth_header` passes them.
 */
import type { FaultCode } from '../errors/catalogue.ts'
import type { Caller } from '../exchange/caller.ts'
import type { Verdict } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Outcome, Refusal } from '../exchange/outcome.ts'
import { fieldNamed, KIND } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import type { Grant, ResourceNeeds } from '../identity/grants.ts'
import type { Identity } from '../identity/identity.ts'
import type { AccessPlan } from '../identity/identity-plan.ts'
import { Challenges } from './challenges.ts'
import type { Authenticator, CertificateAuthenticator, Found } from './authenticator.ts'
import type { ExplainedHandler } from './chain.ts'
import { OwnValidation } from './own-validation.ts'

const AUTHORIZATION = 'authorization'
/** More than one field of the name. */
const SEVERAL = -2

interface AuthenticationParts {
  /** Null where an API is only explained: no request ever comes. */
  readonly identity: Identity | null
  readonly access: AccessPlan
  readonly needs: ResourceNeeds
  /** A prototype: nobody is asked, and everybody counts as having a production key. */
  readonly isOpen: boolean
  /** Null where no certificate of a client is looked at. */
  readonly certificates: CertificateAuthenticator | null
  /** In the order in which they are asked. */
  readonly others: readonly Authenticator[]
}

export class AuthenticationHandler implements ExplainedHandler {
  readonly name = 'authentication'
  readonly #identity: Identity | null
  readonly #access: AccessPlan
  readonly #needs: ResourceNeeds
  readonly #isOpen: boolean
  readonly #certificates: CertificateAuthenticator | null
  readonly #others: readonly Authenticator[]
  /** The one of them whose credentials stand elsewhere than in the field of tokens; null: there is none. */
  readonly #taking: Authenticator | null
  readonly #challenges: Challenges
  readonly #validation: OwnValidation | null

  constructor({ identity, access, needs, isOpen, certificates, others }: AuthenticationParts) {
    this.#identity = identity
    this.#access = access
    this.#needs = needs
    this.#isOpen = isOpen
    this.#certificates = certificates
    this.#others = others
    this.#taking = others.find(({ take }) => take !== undefined) ?? null
    this.#challenges = new Challenges(access.schemes)
    this.#validation = identity === null ? null : new OwnValidation(identity)
  }

  get about(): string {
    if (this.#isOpen) return 'a prototype: nobody is asked'
    const { schemes, subject, needsCertificate, needsOther } = this.#access
    const isSubscribed = schemes.includes('oauth2') || schemes.includes('api_key')
    const both = needsCertificate && needsOther ? ', a certificate and one of the others' : ''
    return `${schemes.join(', ')}${both}${isSubscribed ? `; subscriptions to ${subject}` : ''}`
  }

  request(exchange: Exchange): Verdict {
    const identity = this.#identity!
    const { resource } = exchange
    const field = this.#takeField(exchange.head!, identity)
    this.#taking?.take?.(exchange)
    if (resource === null) return undefined
    if (this.#isOpen) exchange.keyType = 'PRODUCTION'
    if (this.#isOpen || resource.authType === 'None') {
      exchange.caller = identity.anonymous(exchange.clientAddress, exchange.keyType)
      return undefined
    }
    if (field === SEVERAL) return this.#refusal(900901)
    const { needsCertificate, needsOther } = this.#access
    const certificate = this.#certificates?.authenticate(exchange)
    if (certificate?.kind === 'denial') return this.#refusal(certificate.code)
    if (certificate === undefined && needsCertificate) return this.#refusal(900902)
    if (certificate !== undefined && !needsOther) return this.#decide(exchange, certificate)
    return this.#askOthers(exchange, field)
  }

  /** No closure here or before: each would cost every request the scope that it looks into. */
  #askOthers(exchange: Exchange, field: number): Verdict {
    for (const authenticator of this.#others) {
      const found = authenticator.authenticate(exchange, field)
      if (found instanceof Promise) return this.#decideLater(exchange, found)
      if (found !== undefined) return this.#decide(exchange, found)
    }
    return this.#refusal(900902)
  }

  async #decideLater(exchange: Exchange, found: Promise<Found>): Promise<Outcome | undefined> {
    return this.#decide(exchange, await found)
  }

  #decide(exchange: Exchange, found: Found): Verdict {
    if (found === undefined) return this.#refusal(900902)
    if (found.kind === 'denial') return this.#refusal(found.code)
    const code = this.#needs.refusalOf(found, exchange.resource!, this.#identity!.allowedScopes)
    if (code !== 0) return this.#refusal(code)
    return this.#identity!.validator === null ? this.#enter(exchange, found.caller) : this.#validated(exchange, found)
  }

  /** Asks a handler of the operator's own, which may refuse what everything else allows. */
  #validated(exchange: Exchange, grant: Grant): Verdict {
    const said = this.#validation!.codeFor(exchange, grant)
    return typeof said === 'number' ? this.#end(exchange, grant, said) : this.#endLater(exchange, grant, said)
  }

  async #endLater(exchange: Exchange, grant: Grant, said: Promise<FaultCode | 0>): Promise<Outcome | undefined> {
    return this.#end(exchange, grant, await said)
  }

  /** 0: it is let in. */
  #end(exchange: Exchange, { caller }: Grant, code: FaultCode | 0): Outcome | undefined {
    return code === 0 ? this.#enter(exchange, caller) : this.#refusal(code)
  }

  #enter(exchange: Exchange, caller: Caller): undefined {
    exchange.caller = caller
    exchange.keyType = caller.keyType
  }

  #refusal(code: FaultCode): Refusal {
    return this.#challenges.refusal(code, this.#fieldName(this.#identity!))
  }

  #fieldName({ plan }: Identity): string {
    const { authField } = this.#access
    return authField === '' ? plan.authField : authField
  }

  /** The field of credentials, which goes no further; -1 where it is not there. */
  #takeField(head: Head, identity: Identity): number {
    const { plan } = identity
    const name = this.#fieldName(identity)
    const isUsual = name === AUTHORIZATION
    const first = isUsual ? head.find(KIND.AUTHORIZATION) : fieldNamed(arena.bytes, head, name)
    if (first < 0) return -1
    const isAlone = isUsual ? !head.isRepeated(KIND.AUTHORIZATION) : fieldNamed(arena.bytes, head, name, first + 1) < 0
    if (plan.passesAuthField) return isAlone ? first : SEVERAL
    head.kinds[first] = KIND.CREDENTIAL
    if (isAlone) return first
    for (let field = first; field >= 0; field = fieldNamed(arena.bytes, head, name, field + 1)) {
      head.kinds[field] = KIND.CREDENTIAL
    }
    return SEVERAL
  }
}
