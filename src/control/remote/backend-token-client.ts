/**
 * Gets access tokens for protected backends by client credentials (RFC 6749 4.4) and caches them for all reactors until
 * shortly before they expire. A token that a backend rejected is replaced.
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
  readonly #requests = new SingleFlight<CachedToken>()

  constructor(client: Pick<HttpClient, 'send'>) {
    this.#client = client
  }

  /** Replaces the endpoints, at a start and a reload. Tokens of unchanged endpoints stay cached. */
  configure(plans: readonly BackendTokenPlan[]): void {
    this.#plans = new Map(plans.map(plan => [plan.key, plan]))
    const configured = new Set(plans.map(plan => JSON.stringify(plan)))
    for (const id of this.#cache.keys()) if (!configured.has(id)) this.#cache.delete(id)
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
      const token = await this.#fetch(plan)
      this.#cache.set(id, token)
      return token
    })
  }

  async #fetch({ tokenUrl, clientId, clientSecret, scopes, parameters }: BackendTokenPlan): Promise<CachedToken> {
    const scope = scopes.length === 0 ? {} : { scope: scopes.join(' ') }
    const response = await this.#client.send({
      url: tokenUrl,
      // RFC 6749 2.3.1.
      authorization: basicAuthorization(formText(clientId), formText(clientSecret)),
      form: new URLSearchParams({ ...parameters, ...scope, grant_type: 'client_credentials' }),
      bytesMax: BYTES_MAX,
    })
    const { access_token: token, token_type: type, expires_in: lifeS } = jsonBody(response, 'the token endpoint')
    if (typeof token !== 'string' || !TOKEN_SYNTAX.test(token))
      throw new ControlCallFailed('the token endpoint returns no valid access_token')
    if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
      throw new ControlCallFailed('the token endpoint returns a token_type other than Bearer')
    }
    if (lifeS !== undefined && !Number.isFinite(Number(lifeS))) {
      throw new ControlCallFailed('the token endpoint: expires_in is not a number of seconds')
    }
    const lifeMs = Math.min(lifeS === undefined ? LIFE_MS : Number(lifeS) * 1000, LIFE_MS_MAX)
    const nowMs = Date.now()
    const renewMs = nowMs + lifeMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART)
    return { token, expiresMs: nowMs + lifeMs, renewMs }
  }
}

/** Form-encodes one value, spaces included (RFC 6749 appendix B). */
function formText(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1)
}
