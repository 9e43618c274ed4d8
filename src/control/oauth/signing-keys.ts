/**
 * Signing keys for tokens, which all nodes of a database share. The newest key signs; each key is published before it
 * signs and until the last token that it signed has expired, so that every node accepts the tokens of every other.
 */
import { type KeyObject, createPrivateKey, createPublicKey, generateKeyPair } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { JWK, JWTPayload } from 'jose'
// Subpath imports: the whole package has 46 modules, mostly encryption.
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { SignJWT } from 'jose/jwt/sign'
import type { PublicJwk } from '../../auth/records.ts'
import { readIfPresent } from '../../runtime/atomic-file.ts'
import { SerialQueue } from '../../runtime/serial-queue.ts'
import { SingleFlight } from '../../runtime/single-flight.ts'
import type { SigningKeyStore, StoredSigningKey } from '../registry/signing-key-store.ts'

/** Keys of releases that kept them in the data folder. */
const FILE = 'signing-keys.json'
const FILE_FORMAT = 1
const ALGORITHM = 'RS256'
const MODULUS_BITS = 2048
/** Published keys; a gateway takes 64. With so many a rotation waits until a key is no longer needed. */
const KEYS_MAX = 32
const DAY_MS = 86_400_000
/**
 * Milliseconds between the publication of a new key and its first signature: gateways elsewhere keep a key set for five
 * minutes, other nodes read the database every few seconds.
 */
export const PUBLISHED_AHEAD_MS = 600_000
/** Attempts to sign, each with the keys as they are then. */
const ATTEMPTS = 2

/** The message names the file, never its content. */
export class SigningKeysDamaged extends Error {
  override readonly name = 'SigningKeysDamaged'
}

interface SigningKey extends StoredSigningKey {
  readonly privateKey: KeyObject
  readonly publicJwk: PublicJwk
}

/** Keys from the file of an earlier release. */
interface TakenKeys {
  readonly keys: number
  readonly backup: string
}

export class SigningKeys {
  readonly #store: SigningKeyStore
  readonly #nowMs: () => number
  /** The one that signs last comes first; never empty. */
  #keys: readonly SigningKey[] = []
  readonly #reading = new SerialQueue(async () => this.#use(await this.#store.list()))
  readonly #extensions = new SingleFlight<boolean>()

  private constructor(store: SigningKeyStore, nowMs: () => number) {
    this.#store = store
    this.#nowMs = nowMs
  }

  /** Creates the first key. Rejects with SigningKeysDamaged, SigningKeysUnusable, RegistryUnavailable, file errors. */
  static async open(
    store: SigningKeyStore,
    dataDir: string,
    nowMs: () => number,
  ): Promise<{ readonly signingKeys: SigningKeys; readonly taken: TakenKeys | null }> {
    const signingKeys = new SigningKeys(store, nowMs)
    const taken = await signingKeys.#takeFile(join(dataDir, FILE))
    await signingKeys.refresh()
    return { signingKeys, taken }
  }

  /** The public keys for verification. */
  get published(): readonly PublicJwk[] {
    const nowMs = this.#nowMs()
    const { signsFromMs } = this.#current()
    const isNeeded = (key: SigningKey): boolean => key.signsFromMs >= signsFromMs || key.untilMs > nowMs
    return this.#keys.filter(isNeeded).map(({ publicJwk }) => publicJwk)
  }

  /** Public key for tokens of this issuer; undefined for a kid that is not published. */
  verificationKey(kid: string): KeyObject | undefined {
    const known = this.#keys.find(key => key.kid === kid)
    return known === undefined ? undefined : createPublicKey(known.privateKey)
  }

  /** `type`: `typ` of the header (RFC 8725 3.11), so that a token of one kind is never accepted as another. */
  async sign(type: string, claims: JWTPayload & { readonly exp: number }): Promise<string> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const key = this.#current()
      if (await this.#covers(key, claims.exp * 1000)) {
        const token = new SignJWT(claims).setProtectedHeader({ typ: type, alg: ALGORITHM, kid: key.kid })
        return token.sign(key.privateKey)
      }
      await this.refresh()
    }
    throw new Error('the signing key was removed from the database while it was used')
  }

  /** Reads the keys again, as other nodes have changed them. Rejects as `open` does; the old keys stay in use then. */
  refresh(): Promise<void> {
    return this.#reading.run()
  }

  /**
   * Publishes a new key, which signs from PUBLISHED_AHEAD_MS on. `lifetimeMs`: only where the newest key is that old.
   * 'full': a key more would exceed the limit, and all are needed.
   */
  async rotate(lifetimeMs = 0): Promise<'added' | 'not due' | 'full'> {
    if (!this.#isDue(this.#keys, lifetimeMs)) return 'not due'
    const created = await createKey()
    const signsFromMs = this.#nowMs() + PUBLISHED_AHEAD_MS
    let outcome: 'added' | 'not due' | 'full' = 'added'
    const keys = await this.#store.update(stored => {
      // Another node may have been faster.
      if (!this.#isDue(stored, lifetimeMs)) outcome = 'not due'
      else outcome = stored.length >= KEYS_MAX ? 'full' : 'added'
      return outcome === 'added' ? { added: [this.#newKey(created, signsFromMs)] } : {}
    })
    await this.#use(keys)
    return outcome
  }

  /** Removes keys that no valid token needs. */
  async removeExpired(): Promise<void> {
    const nowMs = this.#nowMs()
    const isOver = (key: StoredSigningKey, keys: readonly StoredSigningKey[]): boolean => {
      // A node that still signs with the key learns of its removal when it raises `untilMs`.
      const isReplaced = keys.some(({ signsFromMs }) => signsFromMs > key.signsFromMs && signsFromMs + DAY_MS < nowMs)
      return isReplaced && key.untilMs < nowMs
    }
    if (!this.#keys.some(key => isOver(key, this.#keys))) return
    await this.#use(await this.#store.update(keys => ({ removed: keys.filter(key => isOver(key, keys)) })))
  }

  /** The key that signs now. */
  #current(): SigningKey {
    const nowMs = this.#nowMs()
    const signing = this.#keys.filter(({ signsFromMs }) => signsFromMs > 0)
    // With a clock that is behind, none signs yet.
    return signing.find(({ signsFromMs }) => signsFromMs <= nowMs) ?? signing.at(-1)!
  }

  #isDue(keys: readonly StoredSigningKey[], lifetimeMs: number): boolean {
    const newestMs = Math.max(0, ...keys.filter(({ signsFromMs }) => signsFromMs > 0).map(({ createdMs }) => createdMs))
    return this.#nowMs() - newestMs >= lifetimeMs
  }

  /** Makes sure that the key is published until the token expires. False where the key was removed. */
  async #covers(key: SigningKey, expiresMs: number): Promise<boolean> {
    if (expiresMs <= key.untilMs) return true
    // Rounded up to days, so that not every token writes to the database; a day more, the largest clock skew.
    const untilMs = Math.ceil(expiresMs / DAY_MS + 1) * DAY_MS
    const { kid } = key
    if (!(await this.#extensions.run(`${kid} ${untilMs}`, () => this.#store.extend(kid, untilMs)))) return false
    this.#keys = this.#keys.map(one => (one.kid === kid && one.untilMs < untilMs ? { ...one, untilMs } : one))
    return true
  }

  #newKey({ kid, privateKey }: Pick<SigningKey, 'kid' | 'privateKey'>, signsFromMs: number): StoredSigningKey {
    return { kid, createdMs: this.#nowMs(), signsFromMs, untilMs: 0, pem: pemOf(privateKey) }
  }

  /** Creates a key where none can sign: at the first start, and where an operator has removed the keys. */
  async #use(stored: readonly StoredSigningKey[]): Promise<void> {
    const canSign = (keys: readonly StoredSigningKey[]): boolean => keys.some(({ signsFromMs }) => signsFromMs > 0)
    let keys = stored
    if (!canSign(keys)) {
      const created = await createKey()
      const add = { added: [this.#newKey(created, this.#nowMs())] }
      // Where several nodes start at the same time, one adds its key.
      keys = await this.#store.update(present => (canSign(present) ? {} : add))
    }
    const known = new Map(this.#keys.map(key => [key.kid, key]))
    const described = await Promise.all(
      keys.map(async key => {
        const same = known.get(key.kid)
        // An extension may have been written since `stored` was read.
        const untilMs = Math.max(key.untilMs, same?.untilMs ?? 0)
        return { ...(same ?? (await describeKey(createPrivateKey(key.pem)))), ...key, untilMs }
      }),
    )
    this.#keys = described.sort((one, other) => other.signsFromMs - one.signsFromMs || other.createdMs - one.createdMs)
  }

  /** Takes in the keys of an earlier release, and keeps the file as a backup. Null without a file. */
  async #takeFile(path: string): Promise<TakenKeys | null> {
    const found = await readFile(path)
    if (found === null) return null
    const nowMs = this.#nowMs()
    let keys = 0
    await this.#store.update(present => {
      // The newest key of the file signs on where the database has none; others verify only.
      const isFirst = !present.some(({ signsFromMs }) => signsFromMs > 0)
      const own = found.map((key, age) => ({ ...key, signsFromMs: isFirst && age === 0 ? key.createdMs : 0 }))
      const needed = own.filter(({ signsFromMs, untilMs }) => signsFromMs > 0 || untilMs > nowMs)
      const added = needed.filter(({ kid }) => !present.some(key => key.kid === kid)).slice(0, KEYS_MAX)
      keys = added.length
      return { added }
    })
    const backup = existsSync(`${path}.bak`) ? `${path}.${nowMs}.bak` : `${path}.bak`
    await rename(path, backup)
    return { keys, backup }
  }
}

async function createKey(): Promise<Pick<SigningKey, 'kid' | 'privateKey' | 'publicJwk'>> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS })
  return describeKey(privateKey)
}

async function describeKey(privateKey: KeyObject): Promise<Pick<SigningKey, 'kid' | 'privateKey' | 'publicJwk'>> {
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' }) as JWK & { readonly kty: string }
  const kid = await calculateJwkThumbprint(jwk)
  return { kid, privateKey, publicJwk: { ...jwk, kid, alg: ALGORITHM, use: 'sig' } }
}

function pemOf(privateKey: KeyObject): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

interface KeyInFile {
  readonly pem: string
  readonly createdMs: number
  readonly untilMs: number
}

/** The keys, the newest one first; null without a file. Rejects with SigningKeysDamaged. */
async function readFile(path: string): Promise<readonly Omit<StoredSigningKey, 'signsFromMs'>[] | null> {
  const text = readIfPresent(path)
  if (text === undefined) return null
  try {
    const { format, keys } = JSON.parse(text) as { format: unknown; keys: readonly KeyInFile[] }
    if (format !== FILE_FORMAT || keys.length === 0) throw new Error('unknown format')
    return await Promise.all(
      keys.map(async ({ pem, createdMs, untilMs }) => {
        const { kid, privateKey } = await describeKey(createPrivateKey(pem))
        return { kid, createdMs: Number(createdMs), untilMs: Number(untilMs), pem: pemOf(privateKey) }
      }),
    )
  } catch {
    // The cause could quote private keys.
    throw new SigningKeysDamaged(
      `${path} contains no valid signing keys: restore it, or delete it, which invalidates the tokens that it signed`,
    )
  }
}
