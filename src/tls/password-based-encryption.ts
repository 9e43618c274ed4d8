/** Password-based encryption of PKCS#12: the MAC (RFC 7292 4), PBES2 (RFC 8018 6.2), old schemes (RFC 7292 C). */
import { createDecipheriv, createHmac, hash, pbkdf2Sync, timingSafeEqual } from 'node:crypto'
import type { Asn1, DerReader } from './der.ts'
import { StoreError, type StoreErrorKind } from './store-contents.ts'

interface ForgeBuffer {
  getBytes(): string
}

interface ForgeDigest {
  readonly digestLength: number
  readonly blockLength: number
  start(): void
  update(bytes: string): void
  digest(): ForgeBuffer
}

export interface ForgePbe {
  getCipher(
    oid: string,
    parameters: Asn1,
    password: string,
  ): { update(input: ForgeBuffer): void; finish(): boolean; readonly output: ForgeBuffer }
  generatePkcs12Key(
    password: string,
    salt: ForgeBuffer,
    id: number,
    iterations: number,
    length: number,
    digest: ForgeDigest,
  ): ForgeBuffer
}

export interface ForgeUtil {
  createBuffer(bytes: string): ForgeBuffer
}

interface DigestAlgorithm {
  readonly name: string
  readonly bytes: number
  readonly blockBytes: number
}

const MAC_DIGESTS: Readonly<Record<string, DigestAlgorithm>> = {
  '1.2.840.113549.2.5': { name: 'md5', bytes: 16, blockBytes: 64 },
  '1.3.14.3.2.26': { name: 'sha1', bytes: 20, blockBytes: 64 },
  '2.16.840.1.101.3.4.2.1': { name: 'sha256', bytes: 32, blockBytes: 64 },
  '2.16.840.1.101.3.4.2.2': { name: 'sha384', bytes: 48, blockBytes: 128 },
  '2.16.840.1.101.3.4.2.3': { name: 'sha512', bytes: 64, blockBytes: 128 },
}
/** RFC 7292 C. node-forge decrypts 3DES and RC2-40, and none of the others. */
const OLD_CIPHERS: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.12.1.1': 'RC4-128',
  '1.2.840.113549.1.12.1.2': 'RC4-40',
  '1.2.840.113549.1.12.1.3': '3DES',
  '1.2.840.113549.1.12.1.4': '3DES with two keys',
  '1.2.840.113549.1.12.1.5': 'RC2-128',
  '1.2.840.113549.1.12.1.6': 'RC2-40',
}
/** Purpose of derived bytes (RFC 7292 B.3). */
const MAC_KEY = 3

const PBES2 = '1.2.840.113549.1.5.13'
const PBKDF2 = '1.2.840.113549.1.5.12'
const ASN1_INTEGER = 2
const DEFAULT_PRF = '1.2.840.113549.2.7'
const PRF_DIGESTS: Readonly<Record<string, string>> = {
  [DEFAULT_PRF]: 'sha1',
  '1.2.840.113549.2.8': 'sha224',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
}
const PBES2_CIPHERS: Readonly<Record<string, readonly [name: string, keyBytes: number]>> = {
  '2.16.840.1.101.3.4.1.2': ['aes-128-cbc', 16],
  '2.16.840.1.101.3.4.1.22': ['aes-192-cbc', 24],
  '2.16.840.1.101.3.4.1.42': ['aes-256-cbc', 32],
  '1.2.840.113549.3.7': ['des-ede3-cbc', 24],
}
/** More iterations would block the thread for seconds. */
const ITERATIONS_MAX = 1_000_000

export class PasswordBasedEncryption {
  readonly #der: DerReader
  readonly #pbe: ForgePbe
  readonly #util: ForgeUtil
  readonly #weakAlgorithms = new Set<string>()

  private constructor(der: DerReader, pbe: ForgePbe, util: ForgeUtil) {
    this.#der = der
    this.#pbe = pbe
    this.#util = util
  }

  static async load(der: DerReader): Promise<PasswordBasedEncryption> {
    const [pbe, util] = await Promise.all([import('node-forge/lib/pbe.js'), import('node-forge/lib/util.js')])
    return new PasswordBasedEncryption(der, pbe.default, util.default)
  }

  /** Insecure algorithms that the store uses. */
  get weakAlgorithms(): readonly string[] {
    return [...this.#weakAlgorithms]
  }

  /** Verifies `macData` (RFC 7292 4). Throws a StoreError if the password is not that of the store. */
  verifyMac(macData: Asn1, content: string, password: string): void {
    const [digestInfo, salt, iterations] = this.#der.parts(macData)
    const [algorithm, expected] = this.#der.parts(digestInfo)
    const oid = this.#der.oid(this.#der.parts(algorithm)[0])
    const mac = MAC_DIGESTS[oid]
    if (mac === undefined) throw new StoreError('unsupported', `MAC algorithm ${oid}`)
    if (mac.name === 'md5') this.#weakAlgorithms.add('MD5')
    const digest = new NativeDigest(mac, this.#util)
    const rounds = iterations === undefined ? 1 : this.#iterations(iterations)
    const saltBytes = this.#util.createBuffer(this.#der.bytes(salt))
    const key = this.#pbe.generatePkcs12Key(password, saltBytes, MAC_KEY, rounds, digest.digestLength, digest)
    const hmac = createHmac(mac.name, Buffer.from(key.getBytes(), 'latin1'))
    const computed = hmac.update(Buffer.from(content, 'latin1')).digest()
    const given = Buffer.from(this.#der.bytes(expected), 'latin1')
    if (given.length !== computed.length || !timingSafeEqual(given, computed))
      throw new StoreError('store password', '')
  }

  /** `onWrongPassword`: the error if the password does not decrypt the bytes. */
  decrypt(algorithm: Asn1, encrypted: string, password: string, onWrongPassword: StoreErrorKind): string {
    const [name, parameters] = this.#der.parts(algorithm)
    if (parameters === undefined) throw new StoreError('malformed', 'an element is missing')
    const oid = this.#der.oid(name)
    if (oid === PBES2) return this.#decryptPbes2(parameters, encrypted, password, onWrongPassword)
    const cipherName = OLD_CIPHERS[oid]
    if (cipherName !== undefined) this.#weakAlgorithms.add(cipherName)
    const cipher = this.#oldCipher(oid, parameters, password, cipherName ?? oid)
    cipher.update(this.#util.createBuffer(encrypted))
    if (!cipher.finish()) throw new StoreError(onWrongPassword, '')
    return cipher.output.getBytes()
  }

  #oldCipher(oid: string, parameters: Asn1, password: string, name: string): ReturnType<ForgePbe['getCipher']> {
    try {
      return this.#pbe.getCipher(oid, parameters, password)
    } catch {
      throw new StoreError('unsupported', `encryption with ${name}`)
    }
  }

  #decryptPbes2(parameters: Asn1, encrypted: string, password: string, onWrongPassword: StoreErrorKind): string {
    const [derivation, encryption] = this.#der.parts(parameters)
    const [cipherOid, iv] = this.#der.parts(encryption)
    const cipher = PBES2_CIPHERS[this.#der.oid(cipherOid)]
    if (cipher === undefined) throw new StoreError('unsupported', `encryption with ${this.#der.oid(cipherOid)}`)
    const [name, keyBytes] = cipher
    const key = this.#deriveKey(derivation, password, keyBytes)
    const decipher = createDecipheriv(name, key, Buffer.from(this.#der.bytes(iv), 'latin1'))
    try {
      return decipher.update(encrypted, 'latin1', 'latin1') + decipher.final('latin1')
    } catch {
      throw new StoreError(onWrongPassword, '')
    }
  }

  #deriveKey(derivation: Asn1 | undefined, password: string, keyBytes: number): Buffer {
    const [oid, parameters] = this.#der.parts(derivation)
    if (this.#der.oid(oid) !== PBKDF2) throw new StoreError('unsupported', `key derivation ${this.#der.oid(oid)}`)
    const [salt, iterations, ...optional] = this.#der.parts(parameters)
    const prf = optional.find(({ type }) => type !== ASN1_INTEGER)
    const prfOid = prf === undefined ? DEFAULT_PRF : this.#der.oid(this.#der.parts(prf)[0])
    const digest = PRF_DIGESTS[prfOid]
    if (digest === undefined) throw new StoreError('unsupported', `key derivation with ${prfOid}`)
    const saltBytes = Buffer.from(this.#der.bytes(salt), 'latin1')
    // RFC 8018 leaves the encoding of passwords open; implementations use UTF-8.
    return pbkdf2Sync(Buffer.from(password, 'utf8'), saltBytes, this.#iterations(iterations), keyBytes, digest)
  }

  #iterations(node: Asn1 | undefined): number {
    const iterations = this.#der.integer(node)
    if (iterations === 0 || iterations > ITERATIONS_MAX) throw new StoreError('malformed', `${iterations} iterations`)
    return iterations
  }
}

/** Digest for key derivation with thousands of rounds; node-forge's own digest is several times slower. */
class NativeDigest implements ForgeDigest {
  readonly digestLength: number
  readonly blockLength: number
  readonly #name: string
  readonly #util: ForgeUtil
  #bytes = ''

  constructor({ name, bytes, blockBytes }: DigestAlgorithm, util: ForgeUtil) {
    this.#name = name
    this.digestLength = bytes
    this.blockLength = blockBytes
    this.#util = util
  }

  start(): void {
    this.#bytes = ''
  }

  update(bytes: string): void {
    this.#bytes += bytes
  }

  digest(): ForgeBuffer {
    return this.#util.createBuffer(hash(this.#name, Buffer.from(this.#bytes, 'latin1'), 'latin1'))
  }
}
