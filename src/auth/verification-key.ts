/** Imports a key of a key set (RFC 7517) for the verification of signatures, or says why the key cannot be used. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { PublicJwk } from './records.ts'

const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
/** RFC 7518 3.4: one algorithm per curve. */
const CURVE_ALGORITHM: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' }

/** RFC 7518 3.3: at least 2,048 bits. Keys beyond 8,192 bits make each verification too slow. */
const RSA_BITS_MIN = 2048
const RSA_BITS_MAX = 8192
/** RFC 8017 3.1 asks for an odd exponent from 3 on; a large one makes verification slow. */
const RSA_EXPONENT_MAX = 0xffff_ffffn

/** A public key of an issuer. */
export class VerificationKey {
  readonly kid: string
  /** Algorithms that fit the key and that its issuer may sign with. */
  readonly algorithms: readonly string[]
  readonly key: KeyObject
  /** False once the issuer has withdrawn the key or its plan has changed: cached tokens of the key are dropped. */
  isValid = true

  constructor(kid: string, algorithms: readonly string[], key: KeyObject) {
    this.kid = kid
    this.algorithms = algorithms
    this.key = key
  }
}

/** `accepted`: algorithms that the issuer may sign with. Returns a string with the reason where the key is not used. */
export function importVerificationKey(jwk: PublicJwk, accepted: readonly string[]): VerificationKey | string {
  const { kid = '', alg = '', crv, use, key_ops: operations } = jwk
  if (typeof kid !== 'string' || typeof alg !== 'string') return 'kid and alg must be strings'
  // A published private key lets anybody sign; a symmetric key would be a shared secret (RFC 8725 2.1).
  if ('d' in jwk || 'k' in jwk) return 'it is not a public key'
  if (use !== undefined && use !== 'sig') return 'its use is not sig'
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    return 'key_ops does not have verify'
  }
  const fitting = algorithmsOf(jwk)
  if (fitting.length === 0) return `kty ${quoted(jwk.kty)} with crv ${quoted(crv)} is not supported`
  if (alg !== '' && !fitting.includes(alg)) return `alg ${quoted(alg)} is not one of its kty and curve`
  const algorithms = fitting.filter(name => accepted.includes(name) && (alg === '' || name === alg))
  if (algorithms.length === 0) return 'none of its algorithms is accepted for its issuer'
  const key = publicKey(jwk)
  return typeof key === 'string' ? key : new VerificationKey(kid, algorithms, key)
}

function algorithmsOf({ kty, crv }: PublicJwk): readonly string[] {
  if (kty === 'RSA') return RSA_ALGORITHMS
  if (kty === 'OKP') return crv === 'Ed25519' ? ['EdDSA'] : []
  const algorithm = kty === 'EC' && typeof crv === 'string' && Object.hasOwn(CURVE_ALGORITHM, crv) ? crv : ''
  return algorithm === '' ? [] : [CURVE_ALGORITHM[algorithm]!]
}

/** Passes on only the members that belong to the key type. OpenSSL checks that a point is on its curve. */
function publicKey({ kty, crv, n, e, x, y }: PublicJwk): KeyObject | string {
  const members = kty === 'RSA' ? { kty, n, e } : kty === 'EC' ? { kty, crv, x, y } : { kty, crv, x }
  try {
    const key = createPublicKey({ key: members as never, format: 'jwk' })
    return kty === 'RSA' ? checkedRsa(key) : key
  } catch (error) {
    return `it cannot be read: ${(error as Error).message}`
  }
}

function checkedRsa(key: KeyObject): KeyObject | string {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  if (modulusLength < RSA_BITS_MIN || modulusLength > RSA_BITS_MAX) {
    return `its ${modulusLength} bits are not ${RSA_BITS_MIN} to ${RSA_BITS_MAX}`
  }
  const isUsual = publicExponent >= 3n && publicExponent <= RSA_EXPONENT_MAX && publicExponent % 2n === 1n
  return isUsual ? key : 'its exponent is not an odd number from 3 to 2^32'
}

function quoted(value: unknown): string {
  return JSON.stringify(String(value).slice(0, 64))
}
