/**
 * Access token of the gateway for one protected backend: the control thread gets it (RFC 6749 4.4), the reactor caches
 * the header line. It is renewed before its end while it is still used; one that the backend refuses is replaced.
 */
import { isFieldText } from '../http1/writer.ts'
import type { OwnCredential } from '../proxy/exchange/caller.ts'
import type { AuthState } from './auth-state.ts'

/** The message is fit for the log. */
export class BackendTokenFailed extends Error {
  override readonly name = 'BackendTokenFailed'
  readonly code = 900424
}

interface BackendTokenContext {
  readonly call: AuthState['call']
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** A token is not sent this close to its end, for delays and the backend's clock; of a short one it is this part. */
const MARGIN_MS = 30_000
const MARGIN_PART = 0.1
const RENEWED_AFTER_PART = 0.75
/** A failure is repeated for this long before the control thread is called again. */
const FAILURE_MS = 1000
/** Least time between two replacements: a backend that refuses fresh tokens too has another reason. */
const REPLACEMENT_INTERVAL_MS = 60_000
const CHARS_MAX = 6144

/** A token as it is sent. Times in milliseconds since 1970. */
interface ReadyToken extends OwnCredential {
  readonly token: string
  readonly validUntilMs: number
  readonly renewMs: number
}

export class BackendToken {
  readonly #key: string
  readonly #context: BackendTokenContext
  #ready: ReadyToken | null = null
  #pending: Promise<ReadyToken> | null = null
  #failure: { readonly error: BackendTokenFailed; readonly untilMs: number } | null = null
  /** The last token that the backend has refused; '' for none. */
  #refused = ''
  #refusedMs = Number.NEGATIVE_INFINITY

  /** `key`: of the BackendTokenPlan. */
  constructor(key: string, context: BackendTokenContext) {
    this.#key = key
    this.#context = context
  }

  /** Throws, or rejects with, BackendTokenFailed. */
  get(): OwnCredential | Promise<OwnCredential> {
    const ready = this.#ready
    const nowMs = this.#context.now()
    if (ready !== null && nowMs < ready.validUntilMs) {
      if (nowMs >= ready.renewMs && this.#mayCall(nowMs)) this.#fetch().catch(() => {})
      return ready
    }
    if (!this.#mayCall(nowMs)) throw this.#failure!.error
    return this.#fetch()
  }

  /** At a reload: the next request fetches a token. */
  forget(): void {
    this.#ready = null
    this.#failure = null
    this.#pending = null
  }

  #mayCall(nowMs: number): boolean {
    return this.#failure === null || nowMs >= this.#failure.untilMs
  }

  #fetch(): Promise<ReadyToken> {
    if (this.#pending !== null) return this.#pending
    const pending: Promise<ReadyToken> = this.#fetchNew(() => this.#pending === pending)
    this.#pending = pending
    return pending
  }

  /** `isCurrent`: false where `forget` was called meanwhile. */
  async #fetchNew(isCurrent: () => boolean): Promise<ReadyToken> {
    try {
      const { token, expiresMs } = await this.#context.call({
        kind: 'backendToken',
        key: this.#key,
        refused: this.#refused,
      })
      if (token === '' || token.length > CHARS_MAX || !isFieldText(token)) {
        throw new Error('the token does not fit a header field')
      }
      const ready = this.#readyToken(token, expiresMs)
      if (isCurrent()) {
        this.#ready = ready
        this.#failure = null
        this.#pending = null
      }
      return ready
    } catch (error) {
      const failed = new BackendTokenFailed((error as Error).message)
      if (isCurrent()) {
        this.#failure = { error: failed, untilMs: this.#context.now() + FAILURE_MS }
        this.#pending = null
      }
      throw failed
    }
  }

  #readyToken(token: string, expiresMs: number): ReadyToken {
    const nowMs = this.#context.now()
    const lifeMs = expiresMs - nowMs
    const validUntilMs = expiresMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART)
    return {
      line: `Authorization: Bearer ${token}\r\n`,
      token,
      validUntilMs,
      renewMs: nowMs + lifeMs * RENEWED_AFTER_PART,
      refused: () => this.#onRefused(token),
    }
  }

  #onRefused(token: string): void {
    const nowMs = this.#context.now()
    if (this.#ready?.token !== token || nowMs < this.#refusedMs + REPLACEMENT_INTERVAL_MS) return
    this.#ready = null
    this.#refused = token
    this.#refusedMs = nowMs
  }
}
