/**
 * Access tokens for protected backends, got with the gateway's own credentials (RFC 6749 4.4), and kept for all
 * reactors until they are nearly over. One that a backend has refused is replaced.
 */
import type { BackendTokenPlan } from '../identity/identity-plan.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import type { HttpClient } from './http-client.ts'
import { jsonIn } from './json-answer.ts'

interface BackendAccess {
  readonly token: string
  readonly expiresMs: number
}

const BYTES_MAX = 64 * 1024
/** Where nothing is said of its end. */
const LIFE_MS = 300_000
/** A token with less to live is asked for anew. */
const MARGIN_MS = 60_000
const MARGIN_PART = 0.2
const LIFE_MS_MAX = 86_400_000
/** RFC 6750 2.1. */
const FORM = /^[\w.~+/-]+=*$/

interface Kept extends BackendAccess {
  readonly renewMs: number
}

export class BackendTokens {
  readonly #client: Pick<HttpClient, 'send'>
  #plans: ReadonlyMap<string, BackendTokenPlan> = new Map()
  readonly #kept = new Map<string, Kept>()
  readonly #asking = new Map<string, Promise<Kept>>()

  constructor(client: Pick<HttpClient, 'send'>) {
    this.#client = client
  }

  /** At a start and a reload: tokens that were got on the same terms stay. */
  renew(plans: readonly BackendTokenPlan[]): void {
    const before = this.#plans
    this.#plans = new Map(plans.map(plan => [plan.key, plan]))
    for (const [key, plan] of before) {
      if (JSON.stringify(this.#plans.get(key)) === JSON.stringify(plan)) continue
      this.#kept.delete(key)
      this.#asking.delete(key)
    }
  }

  /** `refused`: a token that the backend would not have. Rejects with InquiryFailed. */
  async get(key: string, refused: string): Promise<BackendAccess> {
    const plan = this.#plans.get(key)
    if (plan === undefined) throw new InquiryFailed('no such backend is known')
    const kept = this.#kept.get(key)
    if (kept !== undefined && kept.token !== refused && Date.now() < kept.renewMs) return kept
    return this.#asking.get(key) ?? this.#ask(plan)
  }

  #ask(plan: BackendTokenPlan): Promise<Kept> {
    const { key } = plan
    const asking = this.#fetched(plan)
    this.#asking.set(key, asking)
    asking
      .then(
        access => {
          // Unless its terms have changed meanwhile.
          if (this.#asking.get(key) === asking) this.#kept.set(key, access)
        },
        () => {},
      )
      .finally(() => {
        if (this.#asking.get(key) === asking) this.#asking.delete(key)
      })
    return asking
  }

  async #fetched({ tokenUrl, clientId, clientSecret, scopes, parameters }: BackendTokenPlan): Promise<Kept> {
    const scope = scopes.length === 0 ? {} : { scope: scopes.join(' ') }
    const answer = await this.#client.send({
      url: tokenUrl,
      // RFC 6749 2.3.1.
      authorization: `Basic ${Buffer.from(`${formText(clientId)}:${formText(clientSecret)}`).toString('base64')}`,
      form: new URLSearchParams({ ...parameters, ...scope, grant_type: 'client_credentials' }),
      bytesMax: BYTES_MAX,
    })
    const { access_token: token, token_type: type, expires_in: lifeS } = jsonIn(answer, 'the token endpoint')
    if (typeof token !== 'string' || !FORM.test(token)) throw new InquiryFailed('the token endpoint gives no token')
    if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
      throw new InquiryFailed('the token endpoint gives a token of another type than Bearer')
    }
    if (lifeS !== undefined && !Number.isFinite(Number(lifeS))) {
      throw new InquiryFailed('the token endpoint: expires_in is no number of seconds')
    }
    const lifeMs = Math.min(lifeS === undefined ? LIFE_MS : Number(lifeS) * 1000, LIFE_MS_MAX)
    const nowMs = Date.now()
    const renewMs = nowMs + lifeMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART)
    return { token, expiresMs: nowMs + lifeMs, renewMs }
  }
}

/** As a form would have it, blanks and all (RFC 6749 appendix B). */
function formText(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1)
}
