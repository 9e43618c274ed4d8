/**
 * Access tokens for protected backends: the authority gets them (RFC 6749 4.4), a reactor keeps the line that is sent.
 * One that is nearly over is replaced while it is still used; one that a backend refuses is asked for anew, once.
 */
import type { OwnCredential } from '../exchange/caller.ts'
import { isFieldText } from '../http1/writer.ts'
import type { Inquiry, InquiryResults } from './feed.ts'

/** Why there is none; fit for the log. */
export class NoBackendToken extends Error {
  override readonly name = 'NoBackendToken'
}

interface TokenSources {
  readonly ask: <I extends Inquiry>(inquiry: I) => Promise<InquiryResults[I['kind']]>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** On the way, and of the backend's clock. */
const MARGIN_MS = 30_000
const MARGIN_PART = 0.1
const RENEWED_AFTER_PART = 0.75
/** Whoever asks so soon after a failure gets it again. */
const FAILURE_MS = 1000
/** A backend that refuses a fresh token as well means something else by it. */
const REFUSALS_APART_MS = 60_000
const CHARS_MAX = 6144

/** One token, as it is sent. */
interface SentToken extends OwnCredential {
  readonly token: string
  readonly untilMs: number
  readonly renewMs: number
}

/** That of one API and kind of endpoint. */
export class BackendToken {
  readonly #key: string
  readonly #sources: TokenSources
  #sent: SentToken | null = null
  #asking: Promise<SentToken> | null = null
  #failure: { readonly error: NoBackendToken; readonly untilMs: number } | null = null
  /** What the backend would not have; '' for nothing. */
  #refused = ''
  #refusedMs = Number.NEGATIVE_INFINITY

  constructor(key: string, sources: TokenSources) {
    this.#key = key
    this.#sources = sources
  }

  /** Rejects with, or throws, NoBackendToken. */
  get(): OwnCredential | Promise<OwnCredential> {
    const sent = this.#sent
    const nowMs = this.#sources.now()
    if (sent !== null && nowMs < sent.untilMs) {
      if (nowMs >= sent.renewMs && this.#isWorthAsking(nowMs)) this.#ask().catch(() => {})
      return sent
    }
    if (!this.#isWorthAsking(nowMs)) throw this.#failure!.error
    return this.#ask()
  }

  /** Whoever asks next asks the authority. */
  forget(): void {
    this.#sent = null
    this.#failure = null
    this.#asking = null
  }

  #isWorthAsking(nowMs: number): boolean {
    return this.#failure === null || nowMs >= this.#failure.untilMs
  }

  #ask(): Promise<SentToken> {
    if (this.#asking !== null) return this.#asking
    const asking: Promise<SentToken> = this.#answered(() => this.#asking === asking)
    this.#asking = asking
    return asking
  }

  /** `isWanted`: nobody has said meanwhile that everything is different. */
  async #answered(isWanted: () => boolean): Promise<SentToken> {
    try {
      const { token, expiresMs } = await this.#sources.ask({
        kind: 'backendToken',
        key: this.#key,
        refused: this.#refused,
      })
      if (token === '' || token.length > CHARS_MAX || !isFieldText(token)) throw new Error('it is no token for a field')
      const sent = this.#newToken(token, expiresMs)
      if (isWanted()) {
        this.#sent = sent
        this.#failure = null
        this.#asking = null
      }
      return sent
    } catch (error) {
      const failed = new NoBackendToken((error as Error).message)
      if (isWanted()) {
        this.#failure = { error: failed, untilMs: this.#sources.now() + FAILURE_MS }
        this.#asking = null
      }
      throw failed
    }
  }

  #newToken(token: string, expiresMs: number): SentToken {
    const nowMs = this.#sources.now()
    const lifeMs = expiresMs - nowMs
    const untilMs = expiresMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART)
    return {
      line: `Authorization: Bearer ${token}\r\n`,
      token,
      untilMs,
      renewMs: nowMs + lifeMs * RENEWED_AFTER_PART,
      refused: () => this.#wasRefused(token),
    }
  }

  #wasRefused(token: string): void {
    const nowMs = this.#sources.now()
    if (this.#sent?.token !== token || nowMs < this.#refusedMs + REFUSALS_APART_MS) return
    this.#sent = null
    this.#refused = token
    this.#refusedMs = nowMs
  }
}
