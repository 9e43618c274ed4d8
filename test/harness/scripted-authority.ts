/** What a gateway under test is told of issuers, applications and subscriptions, and who answers what it asks. */
import type { SubscriptionNews, SubscriptionStatus } from '../../src/identity/facts.ts'
import type { Inquiry, InquiryResults } from '../../src/identity/feed.ts'
import type { IssuerPlan } from '../../src/identity/identity-plan.ts'
import { type IdentityState, InquiryFailed, type Line } from '../../src/identity/identity-state.ts'
import { signedToken, tokenSigner } from '../identity/token-maker.ts'

const ISSUER = 'https://localhost:9443/oauth2/token'
const NOTHING: SubscriptionNews = {
  applications: [],
  keys: [],
  subscriptions: [],
  removed: { applications: [], keys: [], subscriptions: [] },
}

export const OWN_ISSUER: IssuerPlan = {
  issuer: ISSUER,
  isOwn: true,
  algorithms: ['ES256'],
  audiences: [],
  claims: [],
  consumerKeyClaims: ['azp'],
  scopesClaim: 'scope',
  lowS: true,
}

type Answers = { readonly [K in Inquiry['kind']]?: (inquiry: Extract<Inquiry, { kind: K }>) => unknown }

export class ScriptedAuthority implements Line {
  readonly signer = tokenSigner('ES256', 'key-1')
  readonly asked: Inquiry[] = []
  /** What has none fails. */
  answers: Answers = {}
  readonly #state: IdentityState
  #tokens = 0

  /** Has told everything, which is its keys and no subscription. */
  constructor(state: IdentityState) {
    this.#state = state
    state.connect(this)
    state.take({ kind: 'anew' })
    state.take({ kind: 'keys', issuers: [{ issuer: ISSUER, keys: [this.signer.jwk] }] })
    state.take({ kind: 'complete' })
  }

  /** An application with a key of its own name, subscribed to an API. */
  subscribe(name: string, api: string, status: SubscriptionStatus = 'ACTIVE', keyType = 'PRODUCTION' as const): void {
    this.tell({
      applications: [{ id: name, name, owner: 'admin', tenant: 'carbon.super', tier: 'Unlimited', attributes: {} }],
      keys: [{ issuer: ISSUER, consumerKey: name, applicationId: name, keyType }],
      subscriptions: [{ id: `${name} ${api}`, applicationId: name, api, tier: 'Gold', status }],
    })
  }

  tell(news: Partial<SubscriptionNews>): void {
    this.#state.take({ kind: 'subscriptions', news: { ...NOTHING, ...news } })
  }

  revoke(key: string): void {
    this.#state.take({ kind: 'revoked', tokens: [{ key, expiresMs: Date.now() + 3_600_000 }] })
  }

  /** Of a user, for an hour, unless `claims` say otherwise; each another one. */
  token(consumerKey: string, claims: object = {}): string {
    return signedToken(this.signer, { ...this.claims(consumerKey), ...claims })
  }

  claims(consumerKey: string) {
    const now = Math.floor(Date.now() / 1000)
    const jti = `jti-${++this.#tokens}`
    return { iss: ISSUER, sub: 'alice', azp: consumerKey, aut: 'APPLICATION_USER', iat: now, exp: now + 3600, jti }
  }

  apiKey(application: string, claims: object = {}): string {
    const now = Math.floor(Date.now() / 1000)
    const own = { token_type: 'apiKey', application: { uuid: application }, keytype: 'PRODUCTION', permittedIP: '' }
    return signedToken(
      this.signer,
      { iss: ISSUER, sub: 'admin', iat: now, exp: now + 3600, jti: application, ...own, ...claims },
      { typ: 'JWT' },
    )
  }

  drain(): void {}

  close(): void {}

  async ask<I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> {
    this.asked.push(inquiry)
    const answer = this.answers[inquiry.kind] as ((inquiry: Inquiry) => unknown) | undefined
    if (answer === undefined) throw new InquiryFailed('the authority is down')
    return (await answer(inquiry)) as InquiryResults[I['kind']]
  }
}
