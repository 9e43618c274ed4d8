/**
 * Validates the passwords of Basic at the key manager, whose hash is slow on purpose. A confirmed password is cached
 * for a short while under a keyed hash, from which the password can neither be read nor guessed elsewhere.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { Evictions, growingTo } from '../runtime/lru-options.ts'
import { SingleFlight } from '../runtime/single-flight.ts'
import type { AuthState } from './auth-state.ts'
import type { AuthenticatedUser, ControlCall } from './control-protocol.ts'
import type { Grant } from './grants.ts'

const ENTRIES_MAX = 1024
/** Bounds how long a change on another node goes unnoticed while the shared database is down. */
const CACHE_MS = 30_000

/** A user whose password was right. */
export interface ConfirmedUser {
  readonly user: AuthenticatedUser
  readonly validUntilMs: number
  /** By the authenticator of the API. */
  readonly grants: WeakMap<object, Grant>
}

type PasswordCall = Extract<ControlCall, { kind: 'password' }>

interface PasswordContext {
  readonly state: AuthState
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number
}

export class PasswordValidator {
  readonly #hmacKey = randomBytes(32)
  readonly #context: PasswordContext
  readonly #evictions = new Evictions()
  readonly #confirmed = new LRUCache<string, ConfirmedUser>({
    ...growingTo(ENTRIES_MAX),
    dispose: this.#evictions.dispose,
  })
  /** One call for all requests with the same credentials at the same time. */
  readonly #calls = new SingleFlight<ConfirmedUser | null>()
  #usersVersion = 0

  constructor(context: PasswordContext) {
    this.#context = context
  }

  usage(): CacheUsage {
    return { entries: this.#confirmed.size, evictions: this.#evictions.count }
  }

  /**
   * Null: wrong credentials, which are never cached. Rejects where they cannot be checked. `address`: of the client,
   * because the key manager counts wrong passwords by address.
   */
  validate(user: string, password: string, address: string): ConfirmedUser | Promise<ConfirmedUser | null> {
    this.#catchUp()
    const hash = createHmac('sha256', this.#hmacKey)
      .update(JSON.stringify([user, password]))
      .digest('base64')
    const { metrics, nowMs } = this.#context
    const known = this.#confirmed.get(hash)
    const isHit = known !== undefined && known.validUntilMs > nowMs()
    metrics.add(isHit ? METRIC.passwordHits : METRIC.passwordMisses, 1)
    if (isHit) return known
    const call: PasswordCall = { kind: 'password', user, password, address }
    return this.#calls.run(`${hash} ${address}`, () => this.#confirm(hash, call))
  }

  async #confirm(hash: string, call: PasswordCall): Promise<ConfirmedUser | null> {
    const version = this.#usersVersion
    const { state, nowMs } = this.#context
    const user = await state.call(call)
    if (user === null) return null
    const confirmed = { user, validUntilMs: nowMs() + CACHE_MS, grants: new WeakMap<object, Grant>() }
    this.#catchUp()
    // A result from before an update of users is used once and not cached.
    if (version === this.#usersVersion) this.#confirmed.set(hash, confirmed)
    return confirmed
  }

  #catchUp(): void {
    const { state } = this.#context
    state.catchUp()
    if (state.usersVersion === this.#usersVersion) return
    this.#usersVersion = state.usersVersion
    this.#confirmed.clear()
    this.#calls.clear()
  }
}
