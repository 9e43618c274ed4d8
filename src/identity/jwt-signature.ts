/** Signatures of RFC 7518 and RFC 8037: how long they are, what form they have, and what Node is asked to check. */
import { constants, type VerifyKeyObjectInput } from 'node:crypto'
import type { VerificationKey } from './verification-key.ts'

interface Algorithm {
  /** null: the algorithm hashes by itself. */
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

/** Orders of the base points (SEC 2, 2.4.2, 2.5.1, 2.6.1). */
const ORDERS: Readonly<Record<string, bigint>> = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512: BigInt(`0x01${'f'.repeat(65)}a51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409`),
}
/** Bytes of one of the two numbers (RFC 7518 3.4). */
const NUMBER_BYTES: Readonly<Record<string, number>> = { ES256: 32, ES384: 48, ES512: 66 }
const ED25519_BYTES = 64

export interface SignatureCheck {
  readonly digest: string | null
  readonly key: VerifyKeyObjectInput
}

export function signatureCheck(algorithm: string, { key }: VerificationKey): SignatureCheck {
  const { digest, scheme } = ALGORITHMS[algorithm]!
  if (scheme === 'ecdsa') return { digest, key: { key, dsaEncoding: 'ieee-p1363' } }
  if (scheme !== 'pss') return { digest, key: { key } }
  // RFC 7518 3.5: the salt is as long as the hash.
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  return { digest, key: { key, padding, saltLength } }
}

/**
 * What is wrong with the form of a signature, before anybody calculates. Of ECDSA signatures there are two for one,
 * (r, s) and (r, n - s), and half of what issuers make is of the larger kind: so `isLowS` is asked of issuers that are
 * known to make the smaller one alone. Numbers of n and more would be a third and a fourth form.
 */
export function signatureFault(
  algorithm: string,
  { key }: VerificationKey,
  signature: Buffer,
  isLowS: boolean,
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
  if (r === 0n || s === 0n || r >= order || s >= order) return 'a signature out of range'
  return isLowS && s > order / 2n ? 'the larger of two signatures' : undefined
}

/** The other of two signatures that are one; '' where there is only one. `signature`: one without a fault. */
export function twinOf(algorithm: string, signature: Buffer): string {
  const order = ORDERS[algorithm]
  if (order === undefined) return ''
  const size = NUMBER_BYTES[algorithm]!
  const s = (order - numberIn(signature.subarray(size))).toString(16).padStart(2 * size, '0')
  return Buffer.concat([signature.subarray(0, size), Buffer.from(s, 'hex')]).toString('base64url')
}

function numberIn(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`)
}
