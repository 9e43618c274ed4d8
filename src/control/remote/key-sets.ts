/**
 * Fetches the JWK sets of issuers (RFC 7517): at the start, periodically, and when a token names an unknown key, at
 * most once per interval. The last usable set stays in use: a late, faulty or empty response never removes keys.
 */
import type { IssuerKeys, PublicJwk } from '../../auth/records.ts'
import { ControlCallFailed } from '../../auth/control-protocol.ts'
import { METRIC, type MetricsColumn } from '../../observe/metrics.ts'
import { countTime } from '../../observe/operation-times.ts'
import { VerificationKey, importVerificationKey } from '../../auth/verification-key.ts'
import { type HttpClient, jsonBody } from './http-client.ts'

interface KeySetSource {
  readonly issuer: string
  readonly url: string
}

interface KeySetContext {
  readonly client: Pick<HttpClient, 'send'>
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Publishes keys to all reactors; they are in effect when it returns. */
  publish(keys: IssuerKeys): void
  report(level: 'info' | 'warn', event: string, fields: Readonly<Record<string, string | number>>): void
}

interface KeySetIntervals {
  /** Minimum time between two fetches caused by unknown keys. */
  readonly unknownKeyMs: number
  /** Time between two periodic fetches. */
  readonly refreshMs: number
  /** Time between a failed fetch and the next one. */
  readonly retryMs: number
}
const INTERVALS: KeySetIntervals = { unknownKeyMs: 30_000, refreshMs: 900_000, retryMs: 30_000 }

const BYTES_MAX = 256 * 1024
/** Includes old keys that the issuer still publishes. */
const KEYS_MAX = 64
const KID_CHARS_MAX = 256
/** Algorithms with a usable public key. The issuer's own list restricts them further. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** JWK members that signature verification reads; others are not passed on. */
const MEMBERS = ['kty', 'kid', 'alg', 'use', 'crv', 'n', 'e', 'x', 'y'] as const

export class KeySets {
  readonly #context: KeySetContext
  readonly #intervals: KeySetIntervals
  /** By issuer. */
  #sets: ReadonlyMap<string, KeySet> = new Map()

  /** `intervals`: for tests. */
  constructor(context: KeySetContext, intervals: Partial<KeySetIntervals> = {}) {
    this.#context = context
    this.#intervals = { ...INTERVALS, ...intervals }
  }

  /** Replaces the issuers, at a start and a reload. New sets are fetched; unchanged ones keep their keys. */
  configure(sources: readonly KeySetSource[]): void {
    const before = this.#sets
    const sets = new Map<string, KeySet>()
    for (const source of sources) {
      const known = before.get(source.issuer)
      sets.set(source.issuer, known?.url === source.url ? known : new KeySet(source, this.#context, this.#intervals))
    }
    for (const [issuer, set] of before) if (sets.get(issuer) !== set) set.stop()
    this.#sets = sets
  }

  /**
   * Fetches the set of an issuer again, unless the interval forbids it. Resolves when the keys are current. Rejects
   * with ControlCallFailed where the last fetch failed.
   */
  async refresh(issuer: string): Promise<void> {
    await this.#sets.get(issuer)?.refresh()
  }

  stop(): void {
    for (const set of this.#sets.values()) set.stop()
  }
}

/** The key set of one issuer. */
class KeySet {
  readonly url: string
  readonly #issuer: string
  readonly #context: KeySetContext
  readonly #intervals: KeySetIntervals
  #fetching: Promise<void> | null = null
  /** Start of the last fetch that an unknown key caused. */
  #refreshedMs = Number.NEGATIVE_INFINITY
  /** Why the last fetch failed; '' if it succeeded. */
  #failure = ''
  #published = ''
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor({ issuer, url }: KeySetSource, context: KeySetContext, intervals: KeySetIntervals) {
    this.#issuer = issuer
    this.url = url
    this.#context = context
    this.#intervals = intervals
    void this.#fetch()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async refresh(): Promise<void> {
    const now = performance.now()
    if (this.#fetching === null && now - this.#refreshedMs >= this.#intervals.unknownKeyMs) {
      this.#refreshedMs = now
      void this.#fetch()
    }
    await this.#fetching
    if (this.#failure !== '') throw new ControlCallFailed(this.#failure)
  }

  /** Never rejects. */
  #fetch(): Promise<void> {
    clearTimeout(this.#timer)
    this.#fetching = this.#load().finally(() => {
      this.#fetching = null
      if (this.#isStopped) return
      const { refreshMs, retryMs } = this.#intervals
      this.#timer = setTimeout(() => void this.#fetch(), this.#failure === '' ? refreshMs : retryMs)
    })
    return this.#fetching
  }

  async #load(): Promise<void> {
    const { client, metrics, publish, report } = this.#context
    const fromMs = performance.now()
    try {
      const response = await client.send({ url: this.url, bytesMax: BYTES_MAX })
      if (this.#isStopped) return
      const { keys, ignored } = keysOf(jsonBody(response, `the key set of ${this.#issuer}`).keys)
      if (keys.length === 0) throw new ControlCallFailed(`it has no usable key: ${ignored[0] ?? 'it is empty'}`)
      const text = JSON.stringify(keys)
      if (text !== this.#published) {
        publish({ issuer: this.#issuer, keys })
        this.#published = text
        report('info', 'key set fetched', { ISSUER: this.#issuer, KEYS: keys.length, IGNORED: ignored.join('; ') })
      }
      this.#failure = ''
      metrics.add(METRIC.keySetsFetched, 1)
    } catch (error) {
      const cause = error instanceof ControlCallFailed ? error.message : String(error)
      // Logged once per cause: an issuer that is down for an hour is one line.
      if (cause !== this.#failure) {
        const keysInUse = this.#published === '' ? 'none' : 'the last set stays in use'
        report('warn', 'key set not fetched', { ISSUER: this.#issuer, KEYS: keysInUse, CAUSE_OF_ERROR: cause })
      }
      this.#failure = cause
      metrics.add(METRIC.keySetsFailed, 1)
    } finally {
      countTime(metrics, 'keySetFetch', (performance.now() - fromMs) / 1000)
    }
  }
}

/** The usable keys of a JWK set, and why others are ignored. Throws ControlCallFailed for a value that is no list. */
function keysOf(given: unknown): { readonly keys: readonly PublicJwk[]; readonly ignored: readonly string[] } {
  if (!Array.isArray(given)) throw new ControlCallFailed('the response is not a key set: it has no list of keys')
  if (given.length > KEYS_MAX) throw new ControlCallFailed(`the key set has more than ${KEYS_MAX} keys`)
  const ignored: string[] = []
  const byName = new Map<string, string>()
  const duplicates = new Set<string>()
  const found: PublicJwk[] = []
  for (const jwk of given) {
    const key = typeof jwk === 'object' && jwk !== null ? usableKey(jwk) : 'it is not an object'
    if (typeof key === 'string') {
      ignored.push(key)
      continue
    }
    const text = JSON.stringify(key)
    // A repeated key is one key. Of two different keys with one kid neither is usable (RFC 7517 4.5).
    if (byName.get(key.kid) === text) continue
    if (byName.has(key.kid)) duplicates.add(key.kid)
    byName.set(key.kid, text)
    found.push(key)
  }
  if (duplicates.size > 0) ignored.push('several keys have the same kid')
  return { keys: found.filter(({ kid }) => !duplicates.has(kid)), ignored }
}

function usableKey(jwk: Record<string, unknown>): PublicJwk | string {
  const named = { ...jwk, kid: jwk.kid ?? '', alg: jwk.alg ?? '' } as unknown as PublicJwk
  const key = importVerificationKey(named, ALGORITHMS)
  if (!(key instanceof VerificationKey)) return key
  if (named.kid.length > KID_CHARS_MAX) return 'its kid is too long'
  return Object.fromEntries(
    MEMBERS.flatMap(name => (named[name] === undefined ? [] : [[name, named[name]]])),
  ) as PublicJwk
}
