/**
 * Key sets of issuers (RFC 7517): fetched at the start and again and again, and when a token names a key that nobody
 * knows, at most once per interval. What was fetched last holds until something better comes: no answer that is late,
 * faulty or empty takes keys away.
 */
import type { IssuerKeys, PublicJwk } from '../identity/facts.ts'
import { InquiryFailed } from '../identity/identity-state.ts'
import { VerificationKey, verificationKey } from '../identity/verification-key.ts'
import type { HttpClient } from './http-client.ts'
import { jsonIn } from './json-answer.ts'

interface KeySource {
  readonly issuer: string
  readonly url: string
}

interface KeySetOutlets {
  readonly client: Pick<HttpClient, 'send'>
  /** Keys are in force when this returns. */
  publish(keys: IssuerKeys): void
  report(level: 'info' | 'warn', event: string, fields: Readonly<Record<string, string | number>>): void
}

interface KeySetTimes {
  /** Between two fetches for the sake of keys that nobody knows. */
  readonly unknownMs: number
  /** Between two fetches that nobody has asked for. */
  readonly rotationMs: number
  /** After one that has failed. */
  readonly retryMs: number
}
const TIMES: KeySetTimes = { unknownMs: 30_000, rotationMs: 900_000, retryMs: 30_000 }

const BYTES_MAX = 256 * 1024
/** Published old ones included. */
const KEYS_MAX = 64
const KID_CHARS_MAX = 256
/** Whether an issuer may sign with one is said where its terms are known. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** Members that verification reads: nothing else is passed on. */
const MEMBERS = ['kty', 'kid', 'alg', 'use', 'crv', 'n', 'e', 'x', 'y'] as const

export class KeySets {
  readonly #outlets: KeySetOutlets
  readonly #times: KeySetTimes
  /** By issuer. */
  #sets: ReadonlyMap<string, KeySet> = new Map()

  /** `times`: for tests. */
  constructor(outlets: KeySetOutlets, times: Partial<KeySetTimes> = {}) {
    this.#outlets = outlets
    this.#times = { ...TIMES, ...times }
  }

  /** At a start and a reload: what is new is fetched, what stays keeps its keys. */
  renew(sources: readonly KeySource[]): void {
    const before = this.#sets
    const sets = new Map<string, KeySet>()
    for (const source of sources) {
      const known = before.get(source.issuer)
      sets.set(source.issuer, known?.url === source.url ? known : new KeySet(source, this.#outlets, this.#times))
    }
    for (const [issuer, set] of before) if (sets.get(issuer) !== set) set.stop()
    this.#sets = sets
  }

  /** Resolves when the keys are as new as they can be. Rejects with InquiryFailed where that is not known. */
  async look(issuer: string): Promise<void> {
    await this.#sets.get(issuer)?.look()
  }

  stop(): void {
    for (const set of this.#sets.values()) set.stop()
  }
}

/** That of one issuer. */
class KeySet {
  readonly url: string
  readonly #issuer: string
  readonly #outlets: KeySetOutlets
  readonly #times: KeySetTimes
  #fetching: Promise<void> | null = null
  /** When the last fetch began that somebody has asked for. */
  #lookedMs = Number.NEGATIVE_INFINITY
  /** Why the last fetch was of no use; '' if it was. */
  #failure = ''
  #published = ''
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor({ issuer, url }: KeySource, outlets: KeySetOutlets, times: KeySetTimes) {
    this.#issuer = issuer
    this.url = url
    this.#outlets = outlets
    this.#times = times
    void this.#fetch()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async look(): Promise<void> {
    const now = performance.now()
    if (this.#fetching === null && now - this.#lookedMs >= this.#times.unknownMs) {
      this.#lookedMs = now
      void this.#fetch()
    }
    await this.#fetching
    if (this.#failure !== '') throw new InquiryFailed(this.#failure)
  }

  /** Never rejects. */
  #fetch(): Promise<void> {
    clearTimeout(this.#timer)
    this.#fetching = this.#fetched().finally(() => {
      this.#fetching = null
      if (this.#isStopped) return
      const { rotationMs, retryMs } = this.#times
      this.#timer = setTimeout(() => void this.#fetch(), this.#failure === '' ? rotationMs : retryMs)
    })
    return this.#fetching
  }

  async #fetched(): Promise<void> {
    const { client, publish, report } = this.#outlets
    try {
      const answer = await client.send({ url: this.url, bytesMax: BYTES_MAX })
      if (this.#isStopped) return
      const { keys, ignored } = keysIn(jsonIn(answer, `the key set of ${this.#issuer}`).keys)
      if (keys.length === 0) throw new InquiryFailed(`no key in it can be used: ${ignored[0] ?? 'there is none'}`)
      const text = JSON.stringify(keys)
      if (text !== this.#published) {
        publish({ issuer: this.#issuer, keys })
        this.#published = text
        report('info', 'key set', { ISSUER: this.#issuer, KEYS: keys.length, IGNORED: ignored.join('; ') })
      }
      this.#failure = ''
    } catch (error) {
      const cause = error instanceof InquiryFailed ? error.message : String(error)
      // An issuer that is down for an hour is one line, until it fails in another way.
      if (cause !== this.#failure) {
        const kept = this.#published === '' ? 'none are known' : 'those fetched last go on'
        report('warn', 'key set not fetched', { ISSUER: this.#issuer, KEYS: kept, CAUSE_OF_ERROR: cause })
      }
      this.#failure = cause
    }
  }
}

/** The keys that tokens can be verified with, and why others cannot. Throws InquiryFailed for what is no list. */
function keysIn(given: unknown): { readonly keys: readonly PublicJwk[]; readonly ignored: readonly string[] } {
  if (!Array.isArray(given)) throw new InquiryFailed('the answer is no key set: it has no list of keys')
  if (given.length > KEYS_MAX) throw new InquiryFailed(`the key set has more than ${KEYS_MAX} keys`)
  const ignored: string[] = []
  const byName = new Map<string, string>()
  const twice = new Set<string>()
  const found: PublicJwk[] = []
  for (const jwk of given) {
    const key = typeof jwk === 'object' && jwk !== null ? usable(jwk) : 'it is no object'
    if (typeof key === 'string') {
      ignored.push(key)
      continue
    }
    const text = JSON.stringify(key)
    // The same one again is no other one; of two that differ nobody knows which is meant (RFC 7517 4.5).
    if (byName.get(key.kid) === text) continue
    if (byName.has(key.kid)) twice.add(key.kid)
    byName.set(key.kid, text)
    found.push(key)
  }
  if (twice.size > 0) ignored.push('several keys have the same kid')
  return { keys: found.filter(({ kid }) => !twice.has(kid)), ignored }
}

function usable(jwk: Record<string, unknown>): PublicJwk | string {
  const named = { ...jwk, kid: jwk.kid ?? '', alg: jwk.alg ?? '' } as unknown as PublicJwk
  const key = verificationKey(named, ALGORITHMS)
  if (!(key instanceof VerificationKey)) return key
  if (named.kid.length > KID_CHARS_MAX) return 'its kid is too long'
  return Object.fromEntries(
    MEMBERS.flatMap(name => (named[name] === undefined ? [] : [[name, named[name]]])),
  ) as PublicJwk
}
