/**
 * JWS signatures (RFC 7518, RFC 8037): checks of their form, and their verification on libuv's threads. The form is
 * checked first, because it costs nothing. A flood of new tokens can take neither all threads nor unbounded memory.
 */
import { constants, type VerifyKeyObjectInput, verify } from 'node:crypto'
import type { VerificationKey } from './verification-key.ts'

interface Algorithm {
  /** null: the algorithm contains its hash. */
  readonly digest: string | null
  readonly scheme: 'pkcs1' | 'pss' | 'ecdsa' | 'eddsa'
}

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  RS256: { digest: 'sha256', scheme: 'pkcs1' },
  RS384: { digest: 'sha384', scheme: 'pkcs1' },
  RS512: { digest: 'sha512', scheme: 'pkcs1' },
  PS256: { digest: 'sha256', scheme: 'pss' },
  PS384: { digest: 'sha384', scheme: 'pss' },
  PS512: { digest: 'sha512', scheme: 'pss' },
  ES256: { digest: 'sha256', scheme: 'ecdsa' },
  ES384: { digest: 'sha384', scheme: 'ecdsa' },
  ES512: { digest: 'sha512', scheme: 'ecdsa' },
  EdDSA: { digest: null, scheme: 'eddsa' },
}

/** Order n of the base point of each curve (SEC 2, 2.4.2, 2.5.1, 2.6.1). */
const ORDERS: Readonly<Record<string, bigint>> = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512: BigInt(`0x01${'f'.repeat(65)}a51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409`),
}
/** Bytes of r, and of s (RFC 7518 3.4). */
const NUMBER_BYTES: Readonly<Record<string, number>> = { ES256: 32, ES384: 48, ES512: 66 }
const ED25519_BYTES = 64

/** Arguments of `crypto.verify`. */
interface VerifyParameters {
  readonly digest: string | null
  readonly key: VerifyKeyObjectInput
}

export function verifyParameters(algorithm: string, { key }: VerificationKey): VerifyParameters {
  const { digest, scheme } = ALGORITHMS[algorithm]!
  if (scheme === 'ecdsa') return { digest, key: { key, dsaEncoding: 'ieee-p1363' } }
  if (scheme !== 'pss') return { digest, key: { key } }
  // RFC 7518 3.5: the salt is as long as the hash.
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  return { digest, key: { key, padding, saltLength } }
}

/**
 * Reason why the form of a signature is refused, before any verification. ECDSA is malleable: (r, s) and (r, n - s) are
 * both valid, and issuers produce either one half of the time. `lowS`: the issuer only makes the smaller s. Numbers of
 * n and more would be further spellings.
 */
export function signatureError(
  algorithm: string,
  { key }: VerificationKey,
  signature: Buffer,
  lowS: boolean,
): string | undefined {
  const order = ORDERS[algorithm]
  if (order === undefined) {
    const bits = key.asymmetricKeyDetails?.modulusLength
    const length = bits === undefined ? ED25519_BYTES : Math.ceil(bits / 8)
    return signature.length === length ? undefined : `a signature of ${signature.length} bytes`
  }
  const size = NUMBER_BYTES[algorithm]!
  if (signature.length !== 2 * size) return `a signature of ${signature.length} bytes`
  const [r, s] = [numberIn(signature.subarray(0, size)), numberIn(signature.subarray(size))]
  if (r === 0n || s === 0n || r >= order || s >= order) return 'r or s of the signature is out of range'
  return lowS && s > order / 2n ? 'the signature has the larger s' : undefined
}

/** The other valid ECDSA signature, (r, n - s), in base64url; '' for other algorithms. `signature`: well-formed. */
export function alternateSignature(algorithm: string, signature: Buffer): string {
  const order = ORDERS[algorithm]
  if (order === undefined) return ''
  const size = NUMBER_BYTES[algorithm]!
  const s = (order - numberIn(signature.subarray(size))).toString(16).padStart(2 * size, '0')
  return Buffer.concat([signature.subarray(0, size), Buffer.from(s, 'hex')]).toString('base64url')
}

function numberIn(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`)
}

/** Verifications under way in all reactors together. */
const CONCURRENT_MAX = 64
/** Verifications that wait in one reactor. */
const WAITING_MAX = 1024

interface Job {
  readonly parameters: VerifyParameters
  readonly signedPart: Buffer
  readonly signature: Buffer
  resolve(isGenuine: boolean): void
  reject(cause: Error): void
}

/** Verifies signatures on libuv's threads, which all reactors share with file access and name resolution. */
export class VerificationQueue {
  readonly #concurrentMax: number
  readonly #waiting: Job[] = []
  #running = 0

  /** `reactors`: number of reactors in the process. */
  constructor(reactors: number) {
    this.#concurrentMax = Math.max(1, Math.floor(CONCURRENT_MAX / reactors))
  }

  get isFull(): boolean {
    return this.#waiting.length >= WAITING_MAX
  }

  /** Must not be called while the queue is full. Rejects where OpenSSL fails. */
  verify(parameters: VerifyParameters, signedPart: Buffer, signature: Buffer): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ parameters, signedPart, signature, resolve, reject })
      this.#next()
    })
  }

  #next(): void {
    if (this.#running >= this.#concurrentMax) return
    const job = this.#waiting.shift()
    if (job === undefined) return
    this.#running++
    verify(job.parameters.digest, job.signedPart, job.parameters.key, job.signature, (error, isGenuine) => {
      this.#running--
      if (error === null) job.resolve(isGenuine)
      else job.reject(error)
      this.#next()
    })
  }
}
