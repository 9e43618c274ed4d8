/**
 * The keys that tokens are signed with: made at the first start, kept in the data folder. The newest one signs; those
 * before it are published until the last token that they have signed is over.
 */
import { type KeyObject, createPrivateKey, createPublicKey, generateKeyPair } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { JWK, JWTPayload } from 'jose'
// By themselves: the whole package is 46 files, most of them about encryption.
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { SignJWT } from 'jose/jwt/sign'
import type { PublicJwk } from '../identity/facts.ts'
import { readKept, replaceKept } from '../store/kept-file.ts'

const NAME = 'signing-keys.json'
const FORMAT = 1
const ALGORITHM = 'RS256'
const MODULUS_BITS = 2048
/** Rotated more often than this within the life of a token, the oldest go: a set of keys has to stay short. */
const KEYS_MAX = 16
const DAY_MS = 86_400_000

/** The message names the file and never what stands in it. */
export class SigningKeysDamaged extends Error {
  override readonly name = 'SigningKeysDamaged'
}

interface SigningKey {
  readonly kid: string
  readonly createdMs: number
  /** Until then tokens may be about that it has signed; milliseconds since 1970. */
  readonly untilMs: number
  readonly privateKey: KeyObject
  readonly publicJwk: PublicJwk
}

export class SigningKeys {
  readonly #path: string
  readonly #now: () => number
  /** Newest first, never empty. */
  #keys: readonly SigningKey[]
  /** Writings follow each other. */
  #writing: Promise<void> = Promise.resolve()

  private constructor(path: string, keys: readonly SigningKey[], now: () => number) {
    this.#path = path
    this.#keys = keys
    this.#now = now
  }

  /** Throws SigningKeysDamaged, and what the file system says. */
  static async open(dataDir: string, now: () => number): Promise<SigningKeys> {
    const path = join(dataDir, NAME)
    const kept = await readKeys(path)
    const opened = new SigningKeys(path, kept, now)
    if (kept.length === 0) await opened.rotate()
    return opened
  }

  /** What others verify with. */
  get published(): readonly PublicJwk[] {
    const nowMs = this.#now()
    return this.#keys.filter(({ untilMs }, age) => age === 0 || untilMs > nowMs).map(({ publicJwk }) => publicJwk)
  }

  /** When the key that signs was made, in milliseconds since 1970. */
  get newestMs(): number {
    return this.#keys[0]!.createdMs
  }

  /** The key that signs, for verifying tokens of one's own; undefined for a kid that is not published. */
  verificationKey(kid: string): KeyObject | undefined {
    const known = this.#keys.find(key => key.kid === kid)
    return known === undefined ? undefined : createPublicKey(known.privateKey)
  }

  /** `type`: `typ` of the header (RFC 8725 3.11), so that no token passes for one of another kind. */
  async sign(type: string, claims: JWTPayload & { readonly exp: number }): Promise<string> {
    const newest = this.#keys[0]!
    await this.#keepUntil(newest, claims.exp * 1000)
    return new SignJWT(claims)
      .setProtectedHeader({ typ: type, alg: ALGORITHM, kid: newest.kid })
      .sign(newest.privateKey)
  }

  /** A new key signs from now on. */
  async rotate(): Promise<void> {
    const fresh = await makeKey(this.#now())
    const nowMs = this.#now()
    const last = this.#keys.filter(({ untilMs }) => untilMs > nowMs)
    await this.#replace([fresh, ...last].slice(0, KEYS_MAX))
  }

  /** Written in whole days, so that the file is not written with every token. */
  async #keepUntil(key: SigningKey, expiresMs: number): Promise<void> {
    if (expiresMs <= key.untilMs) return
    const untilMs = Math.ceil(expiresMs / DAY_MS + 1) * DAY_MS
    await this.#replace(this.#keys.map(one => (one.kid === key.kid ? { ...one, untilMs } : one)))
  }

  async #replace(keys: readonly SigningKey[]): Promise<void> {
    this.#keys = keys
    const written = this.#writing.then(() => writeKeys(this.#path, this.#keys))
    this.#writing = written.catch(() => {})
    await written
  }
}

async function makeKey(nowMs: number): Promise<SigningKey> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS })
  return describeKey(privateKey, nowMs, 0)
}

async function describeKey(privateKey: KeyObject, createdMs: number, untilMs: number): Promise<SigningKey> {
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' }) as JWK & { readonly kty: string }
  const kid = await calculateJwkThumbprint(jwk)
  return { kid, createdMs, untilMs, privateKey, publicJwk: { ...jwk, kid, alg: ALGORITHM, use: 'sig' } }
}

/** None where there is no file. */
async function readKeys(path: string): Promise<readonly SigningKey[]> {
  const text = readKept(path)
  if (text === undefined) return []
  try {
    const { format, keys } = JSON.parse(text) as { format: unknown; keys: readonly KeptKey[] }
    if (format !== FORMAT || keys.length === 0) throw new Error('unknown format')
    return await Promise.all(
      keys.map(({ pem, createdMs, untilMs }) => describeKey(createPrivateKey(pem), Number(createdMs), Number(untilMs))),
    )
  } catch {
    // The cause could quote the file.
    throw new SigningKeysDamaged(`${path} holds no signing keys: restore it, or remove it, which ends all tokens`)
  }
}

interface KeptKey {
  readonly pem: string
  readonly createdMs: number
  readonly untilMs: number
}

async function writeKeys(path: string, keys: readonly SigningKey[]): Promise<void> {
  const kept = keys.map(({ privateKey, createdMs, untilMs }) => {
    return { createdMs, untilMs, pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
  })
  await replaceKept(path, `${JSON.stringify({ format: FORMAT, keys: kept }, null, 1)}\n`)
}
