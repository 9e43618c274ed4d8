/**
 * The JWT that tells a backend who is calling (`[apim.jwt]`): made once per caller and API, reused until shortly before
 * its end. A cached one is a ready header line; signing runs on another thread, once for all waiting requests.
 */
import { createPrivateKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isFieldText } from '../http1/writer.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { Evictions } from '../runtime/lru-options.ts'
import { SingleFlight } from '../runtime/single-flight.ts'
import { stripTenant } from './account-names.ts'
import type { BackendJwtPlan } from './auth-plan.ts'
import type { AuthState } from './auth-state.ts'
import { type BackendApi, type BackendJwtClaims, callerClaims, userClaims } from './backend-jwt-claims.ts'
import type { ControlCall, ControlCallResults } from './control-protocol.ts'

/** The message is fit for the log. */
export class BackendJwtFailed extends Error {
  override readonly name = 'BackendJwtFailed'
  readonly code = 900900
}

interface BackendJwtContext {
  readonly call: AuthState['call']
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly metrics: Pick<MetricsColumn, 'add'>
}

/** A JWT as it is sent. Times in milliseconds since 1970. */
interface ReadyJwt {
  /** Header line with its CRLF. */
  readonly line: string
  /** A clock that is before this time was ahead when the JWT was made: `exp` and `iat` are wrong. */
  readonly issuedMs: number
  readonly validUntilMs: number
  /** From then on the next request starts a renewal and still gets this one. */
  readonly renewMs: number
}

const JWTS_CHARS_MAX = 32 * 1024 * 1024
const USERS_CHARS_MAX = 16 * 1024 * 1024
/** An entry counts as at least this part of its cache; a limit of entries would allocate them all at once. */
const ENTRY_PART = 10_000
const JWT_CHARS_MIN = Math.ceil(JWTS_CHARS_MAX / ENTRY_PART)
const USER_CHARS_MIN = Math.ceil(USERS_CHARS_MAX / ENTRY_PART)
/** JWTs that are being made at once. */
const PENDING_MAX = 1024
/** A JWT is not sent this close to its end, because clocks differ; for a short one it is this part of its life. */
const MARGIN_MS = 30_000
const MARGIN_PART = 0.1
const RENEWED_AFTER_PART = 0.75
/** Longest JWT: the room behind a request head is limited (proxy/exchange/caller.ts). */
const CHARS_MAX = 6144
const ISSUER = 'wso2.org/products/am'

export class BackendJwts {
  readonly #context: BackendJwtContext
  #plan: BackendJwtPlan
  #key: KeyObject | null = null
  #fieldStart = ''
  #header = ''
  /** Fast path of nearly every request. */
  #byCaller = new WeakMap<Caller, ReadyJwt>()
  readonly #evictions = { jwts: new Evictions(), users: new Evictions() }
  /** By content, because every update of any application replaces all Caller objects. */
  readonly #byContent = new LRUCache<string, ReadyJwt>({
    maxSize: JWTS_CHARS_MAX,
    sizeCalculation: ({ line }, key) => Math.max(line.length + key.length, JWT_CHARS_MIN),
    dispose: this.#evictions.jwts.dispose,
  })
  readonly #users = new LRUCache<string, BackendJwtClaims>({
    maxSize: USERS_CHARS_MAX,
    sizeCalculation: (claims, key) => Math.max(JSON.stringify(claims).length + key.length, USER_CHARS_MIN),
    dispose: this.#evictions.users.dispose,
  })
  readonly #pending = new SingleFlight<ReadyJwt>()

  constructor(plan: BackendJwtPlan, context: BackendJwtContext) {
    this.#context = context
    this.#plan = plan
    this.updatePlan(plan)
  }

  get isEnabled(): boolean {
    return this.#plan.isEnabled
  }

  /** Usage of the cache of JWTs. */
  usage(): CacheUsage {
    const { size, calculatedSize } = this.#byContent
    return { entries: size, bytes: calculatedSize, evictions: this.#evictions.jwts.count }
  }

  claimsUsage(): CacheUsage {
    const { size, calculatedSize } = this.#users
    return { entries: size, bytes: calculatedSize, evictions: this.#evictions.users.count }
  }

  /** At a reload: drops all JWTs of the old plan. Throws the error of OpenSSL for a malformed key. */
  updatePlan(plan: BackendJwtPlan): void {
    const { signer, isSigned, encoding } = plan
    this.#key = signer === null ? null : createPrivateKey(signer.key)
    this.#plan = plan
    this.#fieldStart = `${plan.field}: `
    const thumbprints = signer === null || signer.x5t === '' ? {} : { x5t: signer.x5t, 'x5t#S256': signer.x5tS256 }
    const header = isSigned
      ? { typ: 'JWT', alg: 'RS256', ...(signer === null ? {} : { kid: signer.kid, ...thumbprints }) }
      : { typ: 'JWT', alg: 'none' }
    this.#header = Buffer.from(JSON.stringify(header)).toString(encoding)
    this.#byCaller = new WeakMap()
    this.#byContent.clear()
    this.#users.clear()
    this.#pending.clear()
  }

  /** The header line for a caller. Throws, or rejects with, BackendJwtFailed. */
  lineFor(caller: Caller, api: BackendApi): string | Promise<string> {
    const ready = this.#byCaller.get(caller)
    const { metrics, now } = this.#context
    const nowMs = now()
    if (ready !== undefined && isCurrent(ready, nowMs)) {
      metrics.add(METRIC.backendJwtHits, 1)
      if (nowMs >= ready.renewMs) this.#renewInBackground(caller, api)
      return ready.line
    }
    const claims = callerClaims(caller, api, this.#plan.prefix)
    const content = contentOf(caller, claims)
    const known = this.#byContent.get(content)
    if (known !== undefined && isCurrent(known, nowMs)) {
      metrics.add(METRIC.backendJwtHits, 1)
      this.#byCaller.set(caller, known)
      return known.line
    }
    metrics.add(METRIC.backendJwtMisses, 1)
    return this.#make(content, claims, caller).then(({ line }) => line)
  }

  /** Makes the next JWT in the background; after a failure the next request tries again. */
  #renewInBackground(caller: Caller, api: BackendApi): void {
    const claims = callerClaims(caller, api, this.#plan.prefix)
    const content = contentOf(caller, claims)
    if (!this.#pending.has(content)) this.#make(content, claims, caller).catch(() => {})
  }

  #make(content: string, claims: BackendJwtClaims, caller: Caller): Promise<ReadyJwt> {
    if (!this.#pending.has(content) && this.#pending.size >= PENDING_MAX) {
      return Promise.reject(new BackendJwtFailed(`${PENDING_MAX} backend JWTs are being made already`))
    }
    const plan = this.#plan
    // The map of this plan: a reload replaces it, and a JWT of the old plan must not enter the new one.
    const byCaller = this.#byCaller
    const pending = this.#pending.run(content, async () => {
      const ready = await this.#newJwt(claims, caller)
      if (plan === this.#plan && plan.cacheMs > 0) this.#byContent.set(content, ready)
      return ready
    })
    return pending.then(ready => {
      if (plan.cacheMs > 0) byCaller.set(caller, ready)
      return ready
    })
  }

  async #newJwt(claims: BackendJwtClaims, caller: Caller): Promise<ReadyJwt> {
    const { prefix, hasUserClaims, isCustom, lifetimeMs, cacheMs } = this.#plan
    const ofUser = hasUserClaims ? userClaims(await this.#storedClaims(caller), caller, prefix) : {}
    const nowMs = this.#context.now()
    const endMs = caller.expiresMs === 0 ? nowMs + lifetimeMs : Math.min(nowMs + lifetimeMs, caller.expiresMs)
    const times = { exp: Math.floor(endMs / 1000), iat: Math.floor(nowMs / 1000), jti: randomUUID() }
    // The claims of the gateway come last and win over those of the user.
    const all = { ...ofUser, iss: ISSUER, sub: caller.user, ...times, ...claims }
    const token = isCustom ? await this.#customJwt(all) : await this.#signed(all)
    if (token.length > CHARS_MAX) {
      throw new BackendJwtFailed(`the backend JWT has ${token.length} characters, more than ${CHARS_MAX}`)
    }
    const endsWithCaller = endMs === caller.expiresMs
    const lifeMs = endMs - nowMs
    const margin = endsWithCaller ? 0 : Math.min(MARGIN_MS, lifeMs * MARGIN_PART)
    const validUntilMs = Math.min(endMs - margin, nowMs + cacheMs)
    // One that ends with the caller's credentials cannot be renewed to a later end.
    const renewMs = endsWithCaller ? Number.POSITIVE_INFINITY : nowMs + (validUntilMs - nowMs) * RENEWED_AFTER_PART
    return { line: `${this.#fieldStart}${token}\r\n`, issuedMs: nowMs, validUntilMs, renewMs }
  }

  /** Claims of the user store; empty for callers that are no users. */
  async #storedClaims({ user, tenant, isApplication, method }: Caller): Promise<BackendJwtClaims> {
    if (isApplication || method === 'mutual_tls') return {}
    const key = `${tenant}\n${user}`
    const known = this.#users.get(key)
    this.#context.metrics.add(known === undefined ? METRIC.userClaimsMisses : METRIC.userClaimsHits, 1)
    if (known !== undefined) return known
    // Some issuers append the tenant to the user name.
    const claims = await this.#call({ kind: 'claims', user: stripTenant(user, tenant), tenant })
    if (this.#plan.claimsCacheMs > 0) this.#users.set(key, claims, { ttl: this.#plan.claimsCacheMs })
    return claims
  }

  async #customJwt(claims: BackendJwtClaims): Promise<string> {
    const token = await this.#call({ kind: 'backendJwt', claims })
    if (token === '' || !isFieldText(token)) {
      throw new BackendJwtFailed('generator_impl has returned no text that fits a header field')
    }
    return token
  }

  async #call<One extends ControlCall>(call: One): Promise<ControlCallResults[One['kind']]> {
    try {
      return await this.#context.call(call)
    } catch (error) {
      throw new BackendJwtFailed((error as Error).message)
    }
  }

  #signed(claims: BackendJwtClaims): Promise<string> {
    const { encoding, isSigned } = this.#plan
    const input = `${this.#header}.${Buffer.from(JSON.stringify(claims)).toString(encoding)}`
    if (!isSigned) return Promise.resolve(`${input}.`)
    if (this.#key === null) return Promise.reject(new BackendJwtFailed('there is no key to sign backend JWTs with'))
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    sign('RSA-SHA256', Buffer.from(input), this.#key, (error, signature) => {
      if (error === null) resolve(`${input}.${signature.toString(encoding)}`)
      else reject(new BackendJwtFailed(`signing failed: ${error.message}`))
    })
    return promise
  }
}

function isCurrent({ issuedMs, validUntilMs }: ReadyJwt, nowMs: number): boolean {
  return nowMs >= issuedMs && nowMs < validUntilMs
}

/** Everything that distinguishes one JWT from another. */
function contentOf({ revocationKey, expiresMs, claims: ofToken }: Caller, claims: BackendJwtClaims): string {
  return JSON.stringify([claims, revocationKey, expiresMs, ofToken])
}
