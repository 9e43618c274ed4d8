/**
 * The token that tells a backend who is calling (`[apim.jwt]`), made once for a caller and used again until it is
 * nearly over. What is ready is one string; signing happens on another thread, and once for all that wait.
 */
import { createPrivateKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { withoutTenant } from '../config/account-names.ts'
import type { Caller } from '../exchange/caller.ts'
import { isFieldText } from '../http1/writer.ts'
import { METRIC } from '../observe/metrics.ts'
import { SharedAnswers } from '../structure/shared-answers.ts'
import { type BackendApi, callerClaims, type JwtClaims, userClaims } from './backend-claims.ts'
import type { Inquiry, InquiryResults } from './feed.ts'
import type { BackendJwtPlan } from './identity-plan.ts'

/** Why there is none; fit for the log. */
export class NoBackendJwt extends Error {
  override readonly name = 'NoBackendJwt'
}

interface JwtSources {
  /** Rejects with the cause in its message. */
  readonly ask: <I extends Inquiry>(inquiry: I) => Promise<InquiryResults[I['kind']]>
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly metrics: { add(cell: number, by: number): void }
}

/** One that is ready. Times in milliseconds since 1970. */
interface ReadyJwt {
  /** With its CRLF. */
  readonly line: string
  readonly untilMs: number
  /** From then on another one is made while this one is still used. */
  readonly renewMs: number
}

/** Callers beyond have theirs made again. */
const KEPT_MAX = 10_000
const KEPT_CHARS_MAX = 32 * 1024 * 1024
const USERS_MAX = 10_000
const USERS_CHARS_MAX = 16 * 1024 * 1024
/** Under way at once. */
const MAKING_MAX = 1024
/** Backends have clocks of their own: so long before its end it is not used any more, unless it is short itself. */
const MARGIN_MS = 30_000
const MARGIN_PART = 0.1
const RENEWED_AFTER_PART = 0.75
/** Of the token: the head has room for no more (exchange/caller.ts). */
const CHARS_MAX = 6144
const ISSUER = 'wso2.org/products/am'

export class BackendJwts {
  readonly #sources: JwtSources
  #plan: BackendJwtPlan
  #key: KeyObject | null = null
  #start = ''
  #header = ''
  /** By caller, as long as there is one: the way that nearly every request goes. */
  #byCaller = new WeakMap<Caller, ReadyJwt>()
  /** By what it says: callers are made anew whenever anything has changed, most often for somebody else. */
  readonly #kept = new LRUCache<string, ReadyJwt>({
    max: KEPT_MAX,
    maxSize: KEPT_CHARS_MAX,
    sizeCalculation: ({ line }, key) => line.length + key.length,
  })
  readonly #users = new LRUCache<string, Readonly<Record<string, unknown>>>({
    max: USERS_MAX,
    maxSize: USERS_CHARS_MAX,
    sizeCalculation: (claims, key) => JSON.stringify(claims).length + key.length,
  })
  readonly #making = new SharedAnswers<ReadyJwt>()

  constructor(plan: BackendJwtPlan, sources: JwtSources) {
    this.#sources = sources
    this.#plan = plan
    this.renew(plan)
  }

  get isMade(): boolean {
    return this.#plan.isMade
  }

  /** Another configuration is in force: nothing from before is used again. Throws what OpenSSL says of a key. */
  renew(plan: BackendJwtPlan): void {
    const { signer, isSigned, encoding } = plan
    this.#key = signer === null ? null : createPrivateKey(signer.key)
    this.#plan = plan
    this.#start = `${plan.field}: `
    const thumbprints = signer === null || signer.x5t === '' ? {} : { x5t: signer.x5t, 'x5t#S256': signer.x5tS256 }
    const header = isSigned
      ? { typ: 'JWT', alg: 'RS256', ...(signer === null ? {} : { kid: signer.kid, ...thumbprints }) }
      : { typ: 'JWT', alg: 'none' }
    this.#header = Buffer.from(JSON.stringify(header)).toString(encoding)
    this.#byCaller = new WeakMap()
    this.#kept.clear()
    this.#users.clear()
    this.#making.forget()
  }

  /** The whole line for a caller. Throws, or rejects with, NoBackendJwt. */
  lineFor(caller: Caller, api: BackendApi): string | Promise<string> {
    const ready = this.#byCaller.get(caller)
    const { metrics, now } = this.#sources
    const nowMs = now()
    if (ready !== undefined && nowMs < ready.untilMs) {
      metrics.add(METRIC.backendJwtHits, 1)
      if (nowMs >= ready.renewMs) this.#renewLater(caller, api)
      return ready.line
    }
    const claims = callerClaims(caller, api, this.#plan.prefix)
    // Whatever could make it another token is part of the key.
    const content = JSON.stringify([claims, caller.revocationKey, caller.expiresMs, caller.claims])
    const kept = this.#kept.get(content)
    if (kept !== undefined && nowMs < kept.untilMs) {
      metrics.add(METRIC.backendJwtHits, 1)
      this.#byCaller.set(caller, kept)
      return kept.line
    }
    metrics.add(METRIC.backendJwtMisses, 1)
    return this.#make(content, claims, caller).then(({ line }) => line)
  }

  /** Whoever asks meanwhile has the one that is still good; if it fails, the next one asks again. */
  #renewLater(caller: Caller, api: BackendApi): void {
    const claims = callerClaims(caller, api, this.#plan.prefix)
    const content = JSON.stringify([claims, caller.revocationKey, caller.expiresMs, caller.claims])
    if (!this.#making.has(content)) this.#make(content, claims, caller).catch(() => {})
  }

  #make(content: string, claims: JwtClaims, caller: Caller): Promise<ReadyJwt> {
    if (!this.#making.has(content) && this.#making.size >= MAKING_MAX) {
      return Promise.reject(new NoBackendJwt(`${MAKING_MAX} are being made already`))
    }
    const plan = this.#plan
    // Of this configuration: another one begins with nothing.
    const byCaller = this.#byCaller
    const making = this.#making.ask(content, async () => {
      const ready = await this.#made(claims, caller)
      if (plan === this.#plan && plan.keptMs > 0) this.#kept.set(content, ready)
      return ready
    })
    return making.then(ready => {
      if (plan.keptMs > 0) byCaller.set(caller, ready)
      return ready
    })
  }

  async #made(claims: JwtClaims, caller: Caller): Promise<ReadyJwt> {
    const { prefix, hasUserClaims, isCustom, lifeMs, keptMs } = this.#plan
    const more = hasUserClaims ? userClaims(await this.#known(caller), caller, prefix) : {}
    const nowMs = this.#sources.now()
    const endMs = caller.expiresMs === 0 ? nowMs + lifeMs : Math.min(nowMs + lifeMs, caller.expiresMs)
    const times = { exp: Math.floor(endMs / 1000), iat: Math.floor(nowMs / 1000), jti: randomUUID() }
    // What the user store says never stands in the way of what the gateway says.
    const all = { ...more, iss: ISSUER, sub: caller.user, ...times, ...claims }
    const token = isCustom ? await this.#custom(all) : await this.#signed(all)
    if (token.length > CHARS_MAX) throw new NoBackendJwt(`it has ${token.length} characters, ${CHARS_MAX} at most pass`)
    const endsWithCaller = endMs === caller.expiresMs
    const life = endMs - nowMs
    const margin = endsWithCaller ? 0 : Math.min(MARGIN_MS, life * MARGIN_PART)
    const untilMs = Math.min(endMs - margin, nowMs + keptMs)
    // What cannot last longer is not worth another one.
    const renewMs = endsWithCaller ? Number.POSITIVE_INFINITY : nowMs + (untilMs - nowMs) * RENEWED_AFTER_PART
    return { line: `${this.#start}${token}\r\n`, untilMs, renewMs }
  }

  /** Empty of callers that are no users. */
  async #known({ user, tenant, isApplication, method }: Caller): Promise<Readonly<Record<string, unknown>>> {
    if (isApplication || method === 'mutual_tls') return {}
    const key = `${tenant}\n${user}`
    const kept = this.#users.get(key)
    this.#sources.metrics.add(kept === undefined ? METRIC.userClaimsMisses : METRIC.userClaimsHits, 1)
    if (kept !== undefined) return kept
    // Some issuers name the tenant with the user.
    const claims = await this.#ask({ kind: 'claims', user: withoutTenant(user, tenant), tenant })
    if (this.#plan.claimsMs > 0) this.#users.set(key, claims, { ttl: this.#plan.claimsMs })
    return claims
  }

  async #custom(claims: JwtClaims): Promise<string> {
    const token = await this.#ask({ kind: 'backendJwt', claims })
    if (token === '' || !isFieldText(token)) throw new NoBackendJwt('generator_impl has made no text for a field')
    return token
  }

  async #ask<I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> {
    try {
      return await this.#sources.ask(inquiry)
    } catch (error) {
      throw new NoBackendJwt((error as Error).message)
    }
  }

  #signed(claims: JwtClaims): Promise<string> {
    const { encoding, isSigned } = this.#plan
    const input = `${this.#header}.${Buffer.from(JSON.stringify(claims)).toString(encoding)}`
    if (!isSigned) return Promise.resolve(`${input}.`)
    if (this.#key === null) return Promise.reject(new NoBackendJwt('there is no key to sign with'))
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    sign('RSA-SHA256', Buffer.from(input), this.#key, (error, signature) => {
      if (error === null) resolve(`${input}.${signature.toString(encoding)}`)
      else reject(new NoBackendJwt(`signing failed: ${error.message}`))
    })
    return promise
  }
}
