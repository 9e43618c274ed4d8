/**
 * Gets access tokens for protected backends (RFC 6749 4.3, 4.4, 6) and caches them for all reactors until shortly
 * before they expire. A token that a backend rejected is replaced. So is the configured refresh token by another one
 * that the server returns.
 */
import type { BackendTokenPlan } from '../../auth/auth-plan.ts'
import { basicAuthorization } from '../../auth/basic-credentials.ts'
import { ControlCallFailed } from '../../auth/control-protocol.ts'
import { SingleFlight } from '../../runtime/single-flight.ts'
import { type HttpClient, jsonBody } from './http-client.ts'

interface BackendAccessToken {
  readonly token: string
  readonly expiresMs: number
}

const BYTES_MAX = 64 * 1024
/** Life of a token whose response has no `expires_in`. */
const LIFE_MS = 300_000
/** A token is replaced this long before it expires, at most `MARGIN_PART` of its life. */
const MARGIN_MS = 60_000
const MARGIN_PART = 0.2
const LIFE_MS_MAX = 86_400_000
/** RFC 6750 2.1. */
const TOKEN_SYNTAX = /^[\w.~+/-]+=*$/

interface CachedToken extends BackendAccessToken {
  readonly renewMs: number
}

export class BackendTokenClient {
  readonly #client: Pick<HttpClient, 'send'>
  /** By the key of the endpoint. */
  #plans: ReadonlyMap<string, BackendTokenPlan> = new Map()
  /** By the plan of the endpoint as JSON: other credentials or scopes mean another token. */
  readonly #cache = new Map<string, CachedToken>()
  /** Refresh tokens in the place of configured ones, by the same keys (RFC 6749 6). */
  readonly #refreshTokens = new Map<string, string>()
  readonly #requests = new SingleFlight<CachedToken>()

  constructor(client: Pick<HttpClient, 'send'>) {
    this.#client = client
  }

  /** Replaces the endpoints, at a start and a reload. Tokens of unchanged endpoints stay cached. */
  configure(plans: readonly BackendTokenPlan[]): void {
    this.#plans = new Map(plans.map(plan => [plan.key, plan]))
    const configured = new Set(plans.map(plan => JSON.stringify(plan)))
    for (const known of [this.#cache, this.#refreshTokens]) {
      for (const id of known.keys()) if (!configured.has(id)) known.delete(id)
    }
  }

  /**
   * The cached or a new token. `refused`: a token that the backend rejected, '' for none. Rejects with
   * ControlCallFailed.
   */
  async get(key: string, refused: string): Promise<BackendAccessToken> {
    const plan = this.#plans.get(key)
    if (plan === undefined) throw new ControlCallFailed('the backend is unknown')
    const id = JSON.stringify(plan)
    const cached = this.#cache.get(id)
    if (cached !== undefined && cached.token !== refused && Date.now() < cached.renewMs) return cached
    return this.#requests.run(id, async () => {
      const token = await this.#fetch(plan, id)
      this.#cache.set(id, token)
      return token
    })
  }

  async #fetch(plan: BackendTokenPlan, id: string): Promise<CachedToken> {
    const { tokenUrl, clientId, clientSecret, headers, inForm = false } = plan
    const response = await this.#client.send({
      url: tokenUrl,
      // RFC 6749 2.3.1.
      ...(inForm ? {} : { authorization: basicAuthorization(formText(clientId), formText(clientSecret)) }),
      ...(headers === undefined ? {} : { headers }),
      form: new URLSearchParams({
        ...formOf(plan, this.#refreshTokens.get(id)),
        ...(inForm ? { client_id: clientId, client_secret: clientSecret } : {}),
      }),
      bytesMax: BYTES_MAX,
    })
    const found = jsonBody(response, 'the token endpoint')
    const { access_token: token, token_type: type, expires_in: lifeS, refresh_token: refreshToken } = found
    if (typeof token !== 'string' || !TOKEN_SYNTAX.test(token))
      throw new ControlCallFailed('the token endpoint returns no valid access_token')
    if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
      throw new ControlCallFailed('the token endpoint returns a token_type other than Bearer')
    }
    if (lifeS !== undefined && !Number.isFinite(Number(lifeS))) {
      throw new ControlCallFailed('the token endpoint: expires_in is not a number of seconds')
    }
    const lifeMs = Math.min(lifeS === undefined ? LIFE_MS : Number(lifeS) * 1000, LIFE_MS_MAX)
    const isReplaced = typeof refreshToken === 'string' && refreshToken !== ''
    if (isReplaced && plan.grant?.kind === 'refresh_token') this.#refreshTokens.set(id, refreshToken)
    const nowMs = Date.now()
    const renewMs = nowMs + lifeMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART)
    return { token, expiresMs: nowMs + lifeMs, renewMs }
  }
}

/** The form of a request, without credentials of the client. */
function formOf({ scopes, parameters, grant }: BackendTokenPlan, replaced: string | undefined): Record<string, string> {
  const scope: Record<string, string> = scopes.length === 0 ? {} : { scope: scopes.join(' ') }
  const common = { ...parameters, ...scope }
  if (grant === undefined) return { ...common, grant_type: 'client_credentials' }
  const { kind } = grant
  if (kind === 'refresh_token') return { ...common, grant_type: kind, refresh_token: replaced ?? grant.refreshToken }
  return { ...common, grant_type: kind, username: grant.username, password: grant.password }
}

/** Form-encodes one value, spaces included (RFC 6749 appendix B). */
function formText(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1)
}
