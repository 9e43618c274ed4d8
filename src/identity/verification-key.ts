/** From a key of a key set (RFC 7517) to what signatures are checked with, or to the reason why it is not used. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { PublicJwk } from './facts.ts'

const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
/** RFC 7518 3.4: a curve for each algorithm. */
const CURVE_ALGORITHM: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' }

/** RFC 7518 3.3: at least 2,048 bits. Beyond 8,192 a verification takes longer than anybody should make us work. */
const RSA_BITS_MIN = 2048
const RSA_BITS_MAX = 8192
/** RFC 8017 3.1 asks for an odd one from 3 on; a large one makes verification slow. */
const RSA_EXPONENT_MAX = 0xffff_ffffn

/** A public key that signatures of its issuer are checked with. */
export class VerificationKey {
  readonly kid: string
  /** Algorithms that it fits, of those that the issuer may sign with. */
  readonly algorithms: readonly string[]
  readonly key: KeyObject
  /** False once its issuer has withdrawn it, or its terms are other ones: what it has proved is proved no longer. */
  isCurrent = true

  constructor(kid: string, algorithms: readonly string[], key: KeyObject) {
    this.kid = kid
    this.algorithms = algorithms
    this.key = key
  }
}

/** `accepted`: the algorithms that the issuer may sign with. A text says why the key is not used. */
export function verificationKey(jwk: PublicJwk, accepted: readonly string[]): VerificationKey | string {
  const { kid = '', alg = '', crv, use, key_ops: operations } = jwk
  if (typeof kid !== 'string' || typeof alg !== 'string') return 'kid and alg must be texts'
  // Whoever has published it may sign with it; a symmetric key would be the secret of both sides (RFC 8725 2.1).
  if ('d' in jwk || 'k' in jwk) return 'it is not a public key'
  if (use !== undefined && use !== 'sig') return 'its use is not signatures'
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    return 'key_ops does not have verify'
  }
  const fitting = algorithmsOf(jwk)
  if (fitting.length === 0) return `kty ${shown(jwk.kty)} with crv ${shown(crv)} is not supported`
  if (alg !== '' && !fitting.includes(alg)) return `alg ${shown(alg)} is not one of its kty and curve`
  const algorithms = fitting.filter(name => accepted.includes(name) && (alg === '' || name === alg))
  if (algorithms.length === 0) return 'none of its algorithms is accepted of its issuer'
  const key = publicKey(jwk)
  return typeof key === 'string' ? key : new VerificationKey(kid, algorithms, key)
}

function algorithmsOf({ kty, crv }: PublicJwk): readonly string[] {
  if (kty === 'RSA') return RSA_ALGORITHMS
  if (kty === 'OKP') return crv === 'Ed25519' ? ['EdDSA'] : []
  const algorithm = kty === 'EC' && typeof crv === 'string' && Object.hasOwn(CURVE_ALGORITHM, crv) ? crv : ''
  return algorithm === '' ? [] : [CURVE_ALGORITHM[algorithm]!]
}

/** Made of the members that the kind of key has, and of no other. OpenSSL checks that points are on their curve. */
function publicKey({ kty, crv, n, e, x, y }: PublicJwk): KeyObject | string {
  const members = kty === 'RSA' ? { kty, n, e } : kty === 'EC' ? { kty, crv, x, y } : { kty, crv, x }
  try {
    const key = createPublicKey({ key: members as never, format: 'jwk' })
    return kty === 'RSA' ? soundRsa(key) : key
  } catch (error) {
    return `it cannot be read: ${(error as Error).message}`
  }
}

function soundRsa(key: KeyObject): KeyObject | string {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  if (modulusLength < RSA_BITS_MIN || modulusLength > RSA_BITS_MAX) {
    return `its ${modulusLength} bits are not ${RSA_BITS_MIN} to ${RSA_BITS_MAX}`
  }
  const isUsual = publicExponent >= 3n && publicExponent <= RSA_EXPONENT_MAX && publicExponent % 2n === 1n
  return isUsual ? key : 'its exponent is not an odd number from 3 to 2^32'
}

function shown(value: unknown): string {
  return JSON.stringify(String(value).slice(0, 64))
}
