/**
 * Validates the tokens of a reactor's requests: known tokens from the cache, synchronously; new ones as JWT or by
 * introspection. Every lookup first catches up with the control thread, so that a revocation holds at once.
 */
import { arena } from '../http1/llhttp.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { TokenMemo } from '../proxy/exchange/caller.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import type { AuthPlan } from './auth-plan.ts'
import type { AuthState } from './auth-state.ts'
import { isJose, TOKEN_BYTES_MAX } from './jwt-parser.ts'
import { JwtValidator } from './jwt-validator.ts'
import { OpaqueTokenValidator } from './opaque-token-validator.ts'
import type { TokenGrant } from './grants.ts'
import { hashOf, TokenEntry, TokenTable } from './token-table.ts'
import {
  type AcceptedToken,
  failedValidation,
  refusedToken,
  type TokenResult,
  type TokenValidation,
} from './token-result.ts'

export interface TokenContext {
  readonly state: Pick<AuthState, 'version' | 'issuers' | 'revoked' | 'catchUp' | 'call'>
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Number of reactors, which share the threads that verify signatures. */
  readonly reactors: number
  /** Milliseconds of a monotonic clock at the last tick: no step of the wall clock makes cached results last longer. */
  tickMs(): number
  /** Milliseconds since 1970 at the last tick. */
  wallMs(): number
  /** Milliseconds since 1970 now: a token that was issued within this tick must not be early. */
  exactMs(): number
}

/** The keys that cached results depend on; another backend JWT, for example, drops none. */
type TokenPlan = Pick<AuthPlan, 'issuers' | 'skewMs' | 'tokenCacheMs'>

const ENTRIES_MAX = 8192
const BYTES_MAX = 21 << 20
/** Refused tokens have a table of their own: a flood of them evicts no accepted one. */
const REFUSED_MAX = 1024
const REFUSED_BYTES_MAX = 5 << 19
const REFUSED_MS = 10_000
/** Tokens whose validation is under way. */
const PENDING_MAX = 2048

const TOO_LONG: TokenResult = {
  kind: 'refused',
  code: 900901,
  description: `longer than ${TOKEN_BYTES_MAX} bytes`,
}

export class TokenValidator {
  readonly #context: TokenContext
  readonly #jwts: JwtValidator
  readonly #opaque: OpaqueTokenValidator
  readonly #accepted = new TokenTable(ENTRIES_MAX, BYTES_MAX)
  readonly #refused = new TokenTable(REFUSED_MAX, REFUSED_BYTES_MAX)
  /** One validation for all requests that carry the same token at the same time. */
  readonly #pending = new Map<string, Promise<TokenEntry>>()
  #cacheMs = 0
  #skewMs = 0
  /** JSON of the plan that cached results rest on. */
  #planText = ''

  constructor(context: TokenContext, plan: TokenPlan) {
    this.#context = context
    this.#jwts = new JwtValidator(context)
    this.#opaque = new OpaqueTokenValidator(context)
    this.updatePlan(plan)
  }

  /** At a reload; drops all cached results if the plan is another one. AuthState updates the issuers. */
  updatePlan({ issuers, skewMs, tokenCacheMs }: TokenPlan): void {
    const text = JSON.stringify([issuers, skewMs, tokenCacheMs])
    if (text === this.#planText) return
    this.#planText = text
    this.#cacheMs = tokenCacheMs
    this.#skewMs = skewMs
    this.#jwts.skewMs = skewMs
    this.clear()
  }

  /** Usage of the table of accepted tokens. */
  acceptedUsage(): CacheUsage {
    return this.#accepted.usage()
  }

  refusedUsage(): CacheUsage {
    return this.#refused.usage()
  }

  /** Gives its memory back to the arena. */
  clear(): void {
    this.#accepted.clear()
    this.#refused.clear()
  }

  /**
   * Row of the accepted token whose bytes are in the arena at `at`; negative: unknown or refused. A row holds for
   * synchronous calls only. `memo`: of fields that a client repeats, in which the token begins at `offset`; null for
   * new fields.
   */
  find(at: number, length: number, memo: TokenMemo | null, offset: number): number {
    const { state, metrics } = this.#context
    state.catchUp()
    if (memo !== null && memo.offset === offset && memo.length === length) {
      // An entry without a row has left the table: its result may rest on a plan of before.
      const { row } = memo.entry as TokenEntry
      if (row >= 0 && this.#holds(this.#accepted, row)) {
        metrics.add(METRIC.tokenHits, 1)
        return row
      }
    }
    const row = this.#accepted.find(hashOf(at, length), at, length)
    if (row < 0 || !this.#holds(this.#accepted, row)) return -1
    if (memo !== null) {
      memo.offset = offset
      memo.length = length
      memo.entry = this.#accepted.entryAt(row)
    }
    metrics.add(METRIC.tokenHits, 1)
    return row
  }

  /** As `TokenTable.grantAt`, for a row that `find` has returned. */
  grantAt(row: number, api: object): TokenGrant | null {
    return this.#accepted.grantAt(row, api)
  }

  /** As `TokenTable.putGrant`. */
  putGrant(entry: TokenEntry, grant: TokenGrant): void {
    this.#accepted.putGrant(entry, grant)
  }

  entryAt(row: number): TokenEntry {
    return this.#accepted.entryAt(row)
  }

  /**
   * Validates a token that `find` does not know, whose bytes are read during the call only. A promise for a new one,
   * which never rejects.
   */
  validateUnknown(at: number, length: number): TokenEntry | Promise<TokenEntry> {
    if (length > TOKEN_BYTES_MAX) return this.#uncached(TOO_LONG, length)
    const { metrics } = this.#context
    const row = this.#refused.find(hashOf(at, length), at, length)
    if (row >= 0 && this.#holds(this.#refused, row)) {
      metrics.add(METRIC.tokenRefusedHits, 1)
      return this.#refused.entryAt(row)
    }
    metrics.add(METRIC.tokenMisses, 1)
    return this.#validateNew(arena.bytes.latin1Slice(at, at + length))
  }

  /** Returns whether the result of a row may be used now, and removes the row otherwise. */
  #holds(table: TokenTable, row: number): boolean {
    table.use(row)
    if (table.isKept(row, this.#context.tickMs()) && this.#isInTime(table, row)) {
      const { version } = this.#context.state
      if (table.versionAt(row) === version) return true
      const { result, key } = table.entryAt(row)
      if (result.kind === 'accepted' && this.#isValid(result, key)) {
        table.moveTo(row, version)
        return true
      }
    }
    table.remove(table.entryAt(row))
    return false
  }

  /** A token that begins within this tick is judged by the exact time, as it was when it was validated. */
  #isInTime(table: TokenTable, row: number): boolean {
    const { wallMs, exactMs } = this.#context
    const nowMs = wallMs()
    return !table.hasEnded(row, nowMs) && (table.hasBegun(row, nowMs) || table.hasBegun(row, exactMs()))
  }

  #isValid({ revocationKey }: AcceptedToken, key: TokenValidation['key']): boolean {
    return key?.isValid !== false && !this.#context.state.revoked.has(revocationKey)
  }

  #validateNew(token: string): TokenEntry | Promise<TokenEntry> {
    const pending = this.#pending.get(token)
    if (pending !== undefined) return pending
    const validation = this.#begin(token)
    if (!(validation instanceof Promise)) return this.#cached(token, validation)
    const entry = validation
      .catch((error: unknown) => failedValidation(`validation failed: ${String(error)}`))
      .then(validated => {
        this.#pending.delete(token)
        return this.#cached(token, this.#recheck(validated))
      })
    this.#pending.set(token, entry)
    return entry
  }

  #begin(token: string): TokenValidation | Promise<TokenValidation> {
    if (this.#pending.size >= PENDING_MAX) return failedValidation('too many tokens are being validated')
    return isJose(token) ? this.#jwts.validate(token) : this.#opaque.validate(token)
  }

  /** Applies updates that came while the validation was under way. */
  #recheck(validation: TokenValidation): TokenValidation {
    const { result, key, alternate } = validation
    this.#context.state.catchUp()
    if (result.kind !== 'accepted') return validation
    if (!this.#isValid(result, key)) return { ...refusedToken('revoked'), isCacheable: false }
    // Anybody can compute one ECDSA signature from the other: the second one seen is not the issuer's.
    const isRespelt = alternate !== '' && this.#accepted.has(alternate)
    return isRespelt ? { ...refusedToken('known with its other ECDSA signature'), isCacheable: false } : validation
  }

  #cached(token: string, validation: TokenValidation): TokenEntry {
    const { length } = token
    const { result, key, isCacheable } = validation
    if (!isCacheable || this.#cacheMs === 0) return this.#uncached(result, length)
    const isRefused = result.kind === 'refused'
    const cachedUntilMs = this.#context.tickMs() + (isRefused ? Math.min(REFUSED_MS, this.#cacheMs) : this.#cacheMs)
    // The times of an opaque token are its server's: no skew.
    const skewMs = key === null ? 0 : this.#skewMs
    const entry = new TokenEntry(validation, length)
    const table = isRefused ? this.#refused : this.#accepted
    table.add(token, entry, { cachedUntilMs, skewMs, version: this.#context.state.version })
    return entry
  }

  /** An entry for the requests that wait for it, and no later one. */
  #uncached(result: TokenResult, length: number): TokenEntry {
    return new TokenEntry({ result, key: null }, length)
  }
}
