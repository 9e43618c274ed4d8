/**
 * Who is logged in with which browser: in memory, bounded, gone with the thread. A session is known by the digest of
 * what its cookie holds.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { digestOf } from './token-memory.ts'
import { growingTo } from '../structure/growing-cache.ts'

const SESSIONS_MAX = 10_000
const CONSENTS_MAX = 64
const IDLE_MS = 30 * 60_000
const LIFE_MS = 12 * 3_600_000

export interface BrowserSession {
  readonly user: string
  readonly tenant: string
  /** Of the password that was shown: with another one the session is over. */
  readonly passwordMark: string
  /** Milliseconds since 1970. */
  readonly authenticatedMs: number
  lastUsedMs: number
  /** Digests of what the user has allowed. */
  readonly consents: Set<string>
}

export class BrowserSessions {
  readonly #sessions = new LRUCache<string, BrowserSession>(growingTo(SESSIONS_MAX))
  readonly #now: () => number
  /** Of this thread alone: forms do not outlast it, and no more do sessions. */
  readonly #formKey = randomBytes(32)

  constructor(now: () => number) {
    this.#now = now
  }

  /** Answers what its cookie holds: always new, so that nobody can have known it before (session fixation). */
  begin(user: string, tenant: string, passwordMark: string): string {
    const cookie = randomBytes(32).toString('base64url')
    const nowMs = this.#now()
    const times = { authenticatedMs: nowMs, lastUsedMs: nowMs }
    const session = { user, tenant, passwordMark, ...times, consents: new Set<string>() }
    this.#sessions.set(digestOf(cookie), session)
    return cookie
  }

  find(cookie: string): BrowserSession | null {
    const name = digestOf(cookie)
    const session = this.#sessions.get(name)
    const nowMs = this.#now()
    if (session === undefined) return null
    if (nowMs - session.lastUsedMs > IDLE_MS || nowMs - session.authenticatedMs > LIFE_MS) {
      this.#sessions.delete(name)
      return null
    }
    session.lastUsedMs = nowMs
    return session
  }

  /** `what`: a client and its scopes, for as long as the session lasts. */
  allow({ consents }: BrowserSession, what: string): void {
    if (consents.size < CONSENTS_MAX) consents.add(digestOf(what))
  }

  isAllowed({ consents }: BrowserSession, what: string): boolean {
    return consents.has(digestOf(what))
  }

  /** Binds a form to the browser that it was shown in, and to what it was about. */
  formToken(cookie: string, about: string): string {
    return createHmac('sha256', this.#formKey).update(`${cookie}\n${about}`).digest('base64url')
  }

  isFormToken(token: string, cookie: string, about: string): boolean {
    const given = Buffer.from(token)
    const right = Buffer.from(this.formToken(cookie, about))
    return given.length === right.length && timingSafeEqual(given, right)
  }
}
