/**
 * Login sessions of browsers: in memory, bounded, gone with the thread. A session is stored by the digest of its
 * cookie.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { growingTo } from '../../runtime/lru-options.ts'

const SESSIONS_MAX = 10_000
const CONSENTS_MAX = 64
const IDLE_MS = 30 * 60_000
const LIFE_MS = 12 * 3_600_000

export interface BrowserSession {
  readonly user: string
  readonly tenant: string
  /** Version of the password that was used; a changed password ends the session. */
  readonly passwordVersion: string
  /** Milliseconds since 1970. */
  readonly authenticatedMs: number
  lastUsedMs: number
  /** Digests of the consents that the user gave. */
  readonly consents: Set<string>
}

export class BrowserSessions {
  readonly #sessions = new LRUCache<string, BrowserSession>(growingTo(SESSIONS_MAX))
  readonly #nowMs: () => number
  /** Known to this thread alone: forms expire with it, as sessions do. */
  readonly #formKey = randomBytes(32)

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Returns the new cookie value; a new one each time prevents session fixation. */
  start(user: string, tenant: string, passwordVersion: string): string {
    const cookie = randomBytes(32).toString('base64url')
    const now = this.#nowMs()
    const times = { authenticatedMs: now, lastUsedMs: now }
    const session = { user, tenant, passwordVersion, ...times, consents: new Set<string>() }
    this.#sessions.set(digestOf(cookie), session)
    return cookie
  }

  find(cookie: string): BrowserSession | null {
    const digest = digestOf(cookie)
    const session = this.#sessions.get(digest)
    const now = this.#nowMs()
    if (session === undefined) return null
    if (now - session.lastUsedMs > IDLE_MS || now - session.authenticatedMs > LIFE_MS) {
      this.#sessions.delete(digest)
      return null
    }
    session.lastUsedMs = now
    return session
  }

  end(cookie: string): void {
    this.#sessions.delete(digestOf(cookie))
  }

  /** `consent`: a client and its scopes. It lasts as long as the session. */
  allow({ consents }: BrowserSession, consent: string): void {
    if (consents.size < CONSENTS_MAX) consents.add(digestOf(consent))
  }

  isAllowed({ consents }: BrowserSession, consent: string): boolean {
    return consents.has(digestOf(consent))
  }

  /** Token that binds a form to the browser's cookie and to its purpose (CSRF). */
  formToken(cookie: string, purpose: string): string {
    return createHmac('sha256', this.#formKey).update(`${cookie}\n${purpose}`).digest('base64url')
  }

  isFormToken(token: string, cookie: string, purpose: string): boolean {
    const presented = Buffer.from(token)
    const expected = Buffer.from(this.formToken(cookie, purpose))
    return presented.length === expected.length && timingSafeEqual(presented, expected)
  }
}

function digestOf(text: string): string {
  return hash('sha256', text, 'base64url')
}
