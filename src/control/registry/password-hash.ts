/**
 * Hashes passwords and client secrets with argon2id (RFC 9106), in the PHC string format, and caches verified client
 * secrets. One hash takes 19 MiB and about 30 ms of libuv's pool, so concurrency and queue are limited.
 */
import { argon2, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { LRUCache } from 'lru-cache'
import { METRIC } from '../../observe/metrics.ts'
import type { CacheUsage } from '../../runtime/cache-usage.ts'
import { Evictions, growingTo } from '../../runtime/lru-options.ts'
import { RegistryUnavailable } from './registry-errors.ts'

interface Cost {
  /** KiB. */
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
}

/** OWASP's minimum for this memory. Weaker hashes are replaced at the next login. */
const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 }
/** Limit for hashes from the database. */
const COST_MAX: Cost = { memory: 262_144, passes: 10, parallelism: 4 }
const SALT_BYTES = 16
const HASH_BYTES = 32

/** The pool has four threads, which file access and DNS share. */
const CONCURRENT_MAX = 2
/** About three seconds of work. */
const QUEUE_MAX = 128

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

const derive = promisify(argon2)

let active = 0
const queue: (() => void)[] = []

/** Rejects with RegistryUnavailable where the queue is full. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await limited(() => hashWith(password, salt, COST, HASH_BYTES))
  const { memory, passes, parallelism } = COST
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(hash)}`
}

/** `isOutdated`: the stored hash is weaker than new ones. Rejects as `hashPassword`. */
export async function verifyPassword(
  password: string,
  phc: string,
): Promise<{ isCorrect: boolean; isOutdated: boolean }> {
  const parsed = readPhc(phc)
  // An unknown user costs the same work, so that timing does not reveal who exists.
  const { cost, salt, hash } = parsed ?? DUMMY_HASH
  const computed = await limited(() => hashWith(password, salt, cost, hash.length))
  const isCorrect = timingSafeEqual(computed, hash) && parsed !== undefined
  return { isCorrect, isOutdated: cost.memory < COST.memory || cost.passes < COST.passes }
}

const DUMMY_HASH = { cost: COST, salt: Buffer.alloc(SALT_BYTES), hash: Buffer.alloc(HASH_BYTES) }

function readPhc(phc: string) {
  const [, memory, passes, parallelism, salt, hash] = PHC.exec(phc) ?? []
  const cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  if (salt === undefined || hash === undefined) return undefined
  if (cost.memory > COST_MAX.memory || cost.passes > COST_MAX.passes || cost.parallelism > COST_MAX.parallelism) {
    return undefined
  }
  return { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
}

function hashWith(password: string, salt: Buffer, cost: Cost, tagLength: number): Promise<Buffer> {
  // RFC 8265 4.2: composed Unicode, however the keyboard composes it.
  return derive('argon2id', { message: password.normalize('NFC'), nonce: salt, tagLength, ...cost })
}

async function limited<T>(work: () => Promise<T>): Promise<T> {
  if (active >= CONCURRENT_MAX) {
    if (queue.length >= QUEUE_MAX) throw new RegistryUnavailable(`${QUEUE_MAX} password checks are waiting`)
    await new Promise<void>(resolve => queue.push(resolve))
  } else active++
  try {
    return await work()
  } finally {
    const next = queue.shift()
    if (next === undefined) active--
    else next()
  }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

const ENTRIES_MAX = 10_000
const CACHE_MS = 60_000

export interface SecretCacheMetrics {
  add(cell: number, by: number): void
}

/**
 * Caches verified secrets, so that not every token request costs an argon2 hash. Its key is a keyed hash of subject,
 * stored hash and secret: no secret can be read from it, and a changed one never matches.
 */
export class VerifiedSecretCache {
  readonly #metrics: SecretCacheMetrics
  readonly #key = randomBytes(32)
  readonly #evictions = new Evictions()
  readonly #entries = new LRUCache<string, true>({
    ...growingTo(ENTRIES_MAX),
    ttl: CACHE_MS,
    dispose: this.#evictions.dispose,
  })

  constructor(metrics: SecretCacheMetrics) {
    this.#metrics = metrics
  }

  usage(): CacheUsage {
    return { entries: this.#entries.size, evictions: this.#evictions.count }
  }

  /** `phc`: '' for an unknown subject, which takes the same time. Rejects with RegistryUnavailable. */
  async verify(subject: string, secret: string, phc: string): Promise<{ isCorrect: boolean; isOutdated: boolean }> {
    const key = this.#cacheKey(subject, secret, phc)
    const isCached = phc !== '' && this.#entries.has(key)
    this.#metrics.add(isCached ? METRIC.verifiedSecretHits : METRIC.verifiedSecretMisses, 1)
    if (isCached) return { isCorrect: true, isOutdated: false }
    const result = await verifyPassword(secret, phc)
    if (result.isCorrect) this.#entries.set(key, true)
    return result
  }

  #cacheKey(subject: string, secret: string, phc: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([subject, phc, secret]))
      .digest('base64')
  }
}
