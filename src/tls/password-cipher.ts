/** What passwords open in a PKCS#12 store: its MAC (RFC 7292 4), and what is encrypted (RFC 8018, RFC 7292 B and C). */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { Asn1, DerReader } from './der.ts'
import { decryptPbes2, ITERATIONS_MAX, PBES2 } from './pbes2.ts'
import { StoreProblem, type StoreProblemKind } from './store-contents.ts'

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

interface DigestRow {
  readonly name: string
  readonly bytes: number
  readonly blockBytes: number
}

const MAC_DIGESTS: Readonly<Record<string, DigestRow>> = {
  '1.2.840.113549.2.5': { name: 'md5', bytes: 16, blockBytes: 64 },
  '1.3.14.3.2.26': { name: 'sha1', bytes: 20, blockBytes: 64 },
  '2.16.840.1.101.3.4.2.1': { name: 'sha256', bytes: 32, blockBytes: 64 },
  '2.16.840.1.101.3.4.2.2': { name: 'sha384', bytes: 48, blockBytes: 128 },
  '2.16.840.1.101.3.4.2.3': { name: 'sha512', bytes: 64, blockBytes: 128 },
}
/** RFC 7292 C. Those with 3DES and RC2-40 are read by the library, the others are not. */
const OLD_CIPHERS: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.12.1.1': 'RC4-128',
  '1.2.840.113549.1.12.1.2': 'RC4-40',
  '1.2.840.113549.1.12.1.3': '3DES',
  '1.2.840.113549.1.12.1.4': '3DES with two keys',
  '1.2.840.113549.1.12.1.5': 'RC2-128',
  '1.2.840.113549.1.12.1.6': 'RC2-40',
}
/** RFC 7292 B.3: what the derived bytes are for. */
const FOR_MAC = 3

export class PasswordCipher {
  readonly #der: DerReader
  readonly #pbe: ForgePbe
  readonly #util: ForgeUtil
  readonly #outdated = new Set<string>()

  private constructor(der: DerReader, pbe: ForgePbe, util: ForgeUtil) {
    this.#der = der
    this.#pbe = pbe
    this.#util = util
  }

  static async load(der: DerReader): Promise<PasswordCipher> {
    const [pbe, util] = await Promise.all([import('node-forge/lib/pbe.js'), import('node-forge/lib/util.js')])
    return new PasswordCipher(der, pbe.default, util.default)
  }

  /** Outdated algorithms that were met. */
  get outdated(): readonly string[] {
    return [...this.#outdated]
  }

  /** `macData` of RFC 7292 4. Throws a StoreProblem when the password is not that of the store. */
  verifyMac(macData: Asn1, content: string, password: string): void {
    const [digestInfo, salt, iterations] = this.#der.parts(macData)
    const [algorithm, expected] = this.#der.parts(digestInfo)
    const oid = this.#der.oid(this.#der.parts(algorithm)[0])
    const row = MAC_DIGESTS[oid]
    if (row === undefined) throw new StoreProblem('outdated', `its MAC algorithm ${oid} is not known`)
    if (row.name === 'md5') this.#outdated.add('MD5')
    const digest = new NativeDigest(row, this.#util)
    const rounds = iterations === undefined ? 1 : this.#der.count(iterations)
    if (rounds === 0 || rounds > ITERATIONS_MAX) throw new StoreProblem('unreadable', `${rounds} iterations`)
    const saltBytes = this.#util.createBuffer(this.#der.bytes(salt))
    const key = this.#pbe.generatePkcs12Key(password, saltBytes, FOR_MAC, rounds, digest.digestLength, digest)
    const hmac = createHmac(row.name, Buffer.from(key.getBytes(), 'latin1'))
    const mac = hmac.update(Buffer.from(content, 'latin1')).digest()
    const given = Buffer.from(this.#der.bytes(expected), 'latin1')
    if (given.length !== mac.length || !timingSafeEqual(given, mac)) throw new StoreProblem('store password', '')
  }

  /** `wrong`: the kind of problem when the password does not open it. */
  decrypt(algorithm: Asn1, encrypted: string, password: string, wrong: StoreProblemKind): string {
    const [name, parameters] = this.#der.parts(algorithm)
    if (parameters === undefined) throw new StoreProblem('unreadable', 'a part is missing')
    const oid = this.#der.oid(name)
    if (oid === PBES2) return decryptPbes2(this.#der, parameters, encrypted, password, wrong)
    const old = OLD_CIPHERS[oid]
    if (old !== undefined) this.#outdated.add(old)
    const cipher = this.#oldCipher(oid, parameters, password, old ?? oid)
    cipher.update(this.#util.createBuffer(encrypted))
    if (!cipher.finish()) throw new StoreProblem(wrong, '')
    return cipher.output.getBytes()
  }

  #oldCipher(oid: string, parameters: Asn1, password: string, shown: string): ReturnType<ForgePbe['getCipher']> {
    try {
      return this.#pbe.getCipher(oid, parameters, password)
    } catch {
      throw new StoreProblem('outdated', `it is encrypted with ${shown}`)
    }
  }
}

/** The digest that the key is derived with, in thousands of rounds: the library's own takes several times as long. */
class NativeDigest implements ForgeDigest {
  readonly digestLength: number
  readonly blockLength: number
  readonly #name: string
  readonly #util: ForgeUtil
  #bytes = ''

  constructor({ name, bytes, blockBytes }: DigestRow, util: ForgeUtil) {
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
