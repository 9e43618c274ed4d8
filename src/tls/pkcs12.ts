/** PKCS#12 stores (RFC 7292): of OpenSSL and of Java, modern and old, with keys or with trusted certificates alone. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { type Asn1, DerReader, loadAsn1 } from './der.ts'
import { PasswordCipher } from './password-cipher.ts'
import {
  type StoreContents,
  type StoredCertificate,
  type StoredKey,
  StoreProblem,
  type StoreProblemKind,
} from './store-contents.ts'

const OID = {
  data: '1.2.840.113549.1.7.1',
  encryptedData: '1.2.840.113549.1.7.6',
  keyBag: '1.2.840.113549.1.12.10.1.1',
  shroudedKeyBag: '1.2.840.113549.1.12.10.1.2',
  certBag: '1.2.840.113549.1.12.10.1.3',
  x509Certificate: '1.2.840.113549.1.9.22.1',
  friendlyName: '1.2.840.113549.1.9.20',
  /** Set by Java on certificates that are trusted. */
  trustedKeyUsage: '2.16.840.1.113894.746875.1.1',
}

/** `keyPassword`: '' where keys have the password of the store, as nearly all have. Throws a StoreProblem. */
export async function readPkcs12(bytes: Buffer, password: string, keyPassword: string): Promise<StoreContents> {
  const der = new DerReader(await loadAsn1())
  const cipher = await PasswordCipher.load(der)
  const [, authSafe, macData] = der.parts(der.parse(bytes.toString('latin1')))
  const [kind, wrapped] = der.parts(authSafe)
  if (der.oid(kind) !== OID.data) throw new StoreProblem('unreadable', 'it is signed instead of having a password')
  const content = der.bytes(der.parts(wrapped)[0])
  if (macData !== undefined) cipher.verifyMac(macData, content, password)
  const bags = new BagReader(der, cipher, password, keyPassword)
  for (const info of der.parts(der.parse(content))) bags.readSafe(info)
  return { keys: bags.keys, certificates: bags.certificates, outdated: cipher.outdated }
}

class BagReader {
  readonly keys: StoredKey[] = []
  readonly certificates: StoredCertificate[] = []
  readonly #der: DerReader
  readonly #cipher: PasswordCipher
  readonly #password: string
  readonly #keyPassword: string

  constructor(der: DerReader, cipher: PasswordCipher, password: string, keyPassword: string) {
    this.#der = der
    this.#cipher = cipher
    this.#password = password
    this.#keyPassword = keyPassword
  }

  readSafe(contentInfo: Asn1): void {
    const [kind, wrapped] = this.#der.parts(contentInfo)
    const content = this.#der.parts(wrapped)[0]!
    const oid = this.#der.oid(kind)
    if (oid === OID.encryptedData) this.#readBags(this.#decrypted(content))
    else if (oid === OID.data) this.#readBags(this.#der.bytes(content))
    else throw new StoreProblem('unreadable', `it has a part of the unknown kind ${oid}`)
  }

  #decrypted(encryptedData: Asn1): string {
    const [, info] = this.#der.parts(encryptedData)
    const [, algorithm, encrypted] = this.#der.parts(info)
    return this.#cipher.decrypt(algorithm!, this.#der.bytes(encrypted), this.#password, 'store password')
  }

  #readBags(safeContents: string): void {
    if (safeContents === '') return
    for (const bag of this.#der.parts(this.#der.parse(safeContents))) this.#readBag(bag)
  }

  /** Bags of other kinds (secrets, revocation lists) are of no use here. */
  #readBag(bag: Asn1): void {
    const [kind, wrapped, attributes] = this.#der.parts(bag)
    const value = this.#der.parts(wrapped)[0]!
    const alias = this.#alias(attributes)
    const oid = this.#der.oid(kind)
    if (oid === OID.keyBag) this.keys.push({ alias, key: readKey(this.#der.encode(value), 'unreadable') })
    else if (oid === OID.shroudedKeyBag) this.keys.push({ alias, key: this.#shroudedKey(value) })
    else if (oid === OID.certBag) this.#readCertificate(value, alias, attributes)
  }

  #shroudedKey(value: Asn1): KeyObject {
    const [algorithm, encrypted] = this.#der.parts(value)
    const wrong = this.#keyPassword === '' ? 'store password' : 'key password'
    const password = this.#keyPassword === '' ? this.#password : this.#keyPassword
    try {
      return readKey(this.#open(algorithm!, encrypted, password, wrong), wrong)
    } catch (error) {
      // Documented files set a key password that the store does not have: Java takes the store's for these.
      if (!(error instanceof StoreProblem) || error.kind !== 'key password') throw error
      return readKey(this.#open(algorithm!, encrypted, this.#password, wrong), wrong)
    }
  }

  #open(algorithm: Asn1, encrypted: Asn1 | undefined, password: string, wrong: StoreProblemKind): Buffer {
    return Buffer.from(this.#cipher.decrypt(algorithm, this.#der.bytes(encrypted), password, wrong), 'latin1')
  }

  #readCertificate(value: Asn1, alias: string, attributes: Asn1 | undefined): void {
    const [kind, wrapped] = this.#der.parts(value)
    if (this.#der.oid(kind) !== OID.x509Certificate) return
    const certificate = readCertificate(Buffer.from(this.#der.bytes(this.#der.parts(wrapped)[0]), 'latin1'))
    const isTrusted = this.#attribute(attributes, OID.trustedKeyUsage) !== undefined
    this.certificates.push({ alias, certificate, isTrusted })
  }

  #alias(attributes: Asn1 | undefined): string {
    const name = this.#attribute(attributes, OID.friendlyName)
    // The library has made text of the two bytes of each character.
    return name === undefined ? '' : this.#der.bytes(name)
  }

  #attribute(attributes: Asn1 | undefined, oid: string): Asn1 | undefined {
    if (attributes === undefined) return undefined
    const found = this.#der.parts(attributes).find(attribute => this.#der.oid(this.#der.parts(attribute)[0]) === oid)
    return found === undefined ? undefined : this.#der.parts(this.#der.parts(found)[1])[0]
  }
}

/** `wrong`: what it means when the bytes are no key. */
export function readKey(pkcs8: Buffer, wrong: StoreProblemKind): KeyObject {
  try {
    return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  } catch {
    throw new StoreProblem(wrong, 'a key in it cannot be read')
  }
}

export function readCertificate(bytes: Buffer | string): X509Certificate {
  try {
    return new X509Certificate(bytes)
  } catch {
    throw new StoreProblem('unreadable', 'a certificate in it cannot be read')
  }
}
