/** Makes keys and signed tokens as an issuer does, also for tests of the whole gateway. */
import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { PublicJwk } from '../../src/auth/records.ts'

export interface TokenSigner {
  readonly algorithm: string
  readonly kid: string
  readonly privateKey: KeyObject
  /** As published in its key set. */
  readonly jwk: PublicJwk
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }
const ORDERS: Readonly<Record<string, bigint>> = {
  ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ES384: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ES512: BigInt(`0x1${'f'.repeat(65)}a51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409`),
}

/** Generates a key pair. */
export function tokenSigner(algorithm: string, kid: string): TokenSigner {
  const { publicKey, privateKey } = pairFor(algorithm)
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' } as PublicJwk
  return { algorithm, kid, privateKey, jwk }
}

function pairFor(algorithm: string): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519')
  const namedCurve = CURVES[algorithm]
  return namedCurve === undefined
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve })
}

export function base64url(content: string | Buffer | object): string {
  const bytes = typeof content === 'object' && !Buffer.isBuffer(content) ? JSON.stringify(content) : content
  return Buffer.from(bytes as string).toString('base64url')
}

/** The header has `alg`, `kid` and the `typ` of RFC 9068; `header` overrides members, undefined removes one. */
export function signedToken(signer: TokenSigner, claims: object, header: object = {}): string {
  const { algorithm: alg, kid } = signer
  return signedParts(signer, base64url({ typ: 'at+jwt', alg, kid, ...header }), base64url(claims))
}

/** Signs any two parts. */
export function signedParts(signer: TokenSigner, header: string, payload: string): string {
  return `${header}.${payload}.${base64url(signatureOf(signer, `${header}.${payload}`))}`
}

export function signatureOf({ algorithm, privateKey: key }: TokenSigner, text: string): Buffer {
  if (algorithm === 'EdDSA') return sign(null, Buffer.from(text), key)
  const digest = `sha${algorithm.slice(2)}`
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  if (algorithm.startsWith('PS')) return sign(digest, Buffer.from(text), { key, padding, saltLength })
  const signature = sign(digest, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
  return algorithm.startsWith('ES') ? Buffer.concat(ecdsaNumbers(algorithm, signature, true)) : signature
}

/** r and the smaller or the larger of the two valid s. */
export function ecdsaNumbers(algorithm: string, signature: Buffer, isSmaller: boolean): readonly [Buffer, Buffer] {
  const half = signature.length / 2
  const order = ORDERS[algorithm]!
  const s = BigInt(`0x${signature.toString('hex', half)}`)
  return [signature.subarray(0, half), numberBytes(s > order / 2n === isSmaller ? order - s : s, half)]
}

/** Order n of the curve of an algorithm. */
export function orderBytes(algorithm: string, length: number): Buffer {
  return numberBytes(ORDERS[algorithm]!, length)
}

function numberBytes(number: bigint, length: number): Buffer {
  return Buffer.from(number.toString(16).padStart(2 * length, '0'), 'hex')
}
