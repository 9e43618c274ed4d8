/** A scripted control thread: the updates that a reactor under test gets, and the results of its calls. */
import type { SubscriptionUpdate, SubscriptionStatus } from '../../src/auth/records.ts'
import { type ControlCall, ControlCallFailed, type ControlCallResults } from '../../src/auth/control-protocol.ts'
import type { IssuerPlan } from '../../src/auth/auth-plan.ts'
import type { AuthState, ControlChannel } from '../../src/auth/auth-state.ts'
import { signedToken, tokenSigner } from '../auth/token-maker.ts'

const ISSUER = 'https://localhost:9443/oauth2/token'
const NOTHING: SubscriptionUpdate = {
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

type Handlers = { readonly [K in ControlCall['kind']]?: (call: Extract<ControlCall, { kind: K }>) => unknown }

export class ScriptedControl implements ControlChannel {
  readonly signer = tokenSigner('ES256', 'key-1')
  readonly calls: ControlCall[] = []
  /** A call without a handler fails. */
  handlers: Handlers = {}
  readonly #state: AuthState
  #tokens = 0

  /** Sends a complete snapshot: its key and no subscription. */
  constructor(state: AuthState) {
    this.#state = state
    state.attach(this)
    state.apply({ kind: 'reset' })
    state.apply({ kind: 'keys', issuers: [{ issuer: ISSUER, keys: [this.signer.jwk] }] })
    state.apply({ kind: 'complete' })
  }

  /** Adds an application, with a consumer key of the same name, that is subscribed to an API. */
  subscribe(name: string, api: string, status: SubscriptionStatus = 'ACTIVE', keyType = 'PRODUCTION' as const): void {
    this.update({
      applications: [{ id: name, name, owner: 'admin', tenant: 'carbon.super', tier: 'Unlimited', attributes: {} }],
      keys: [{ issuer: ISSUER, consumerKey: name, applicationId: name, keyType }],
      subscriptions: [{ id: `${name} ${api}`, applicationId: name, api, tier: 'Gold', status }],
    })
  }

  update(update: Partial<SubscriptionUpdate>): void {
    this.#state.apply({ kind: 'subscriptions', update: { ...NOTHING, ...update } })
  }

  revoke(key: string): void {
    this.#state.apply({ kind: 'revoked', tokens: [{ key, expiresMs: Date.now() + 3_600_000 }] })
  }

  /** A new token of a user for an hour; `claims` override. */
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

  async call<One extends ControlCall>(call: One): Promise<ControlCallResults[One['kind']]> {
    this.calls.push(call)
    const handle = this.handlers[call.kind] as ((call: ControlCall) => unknown) | undefined
    if (handle === undefined) throw new ControlCallFailed('the control thread is down')
    return (await handle(call)) as ControlCallResults[One['kind']]
  }
}
