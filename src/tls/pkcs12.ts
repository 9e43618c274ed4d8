/** PKCS#12 key stores (RFC 7292) of OpenSSL and of Java, old and new, with keys or with trusted certificates only. */
import type { KeyObject } from 'node:crypto'
import { type Asn1, DerReader, loadAsn1 } from './der.ts'
import { PasswordBasedEncryption } from './password-based-encryption.ts'
import {
  parseCertificate,
  parseKey,
  type StoreContents,
  type StoredCertificate,
  type StoredKey,
  StoreError,
  type StoreErrorKind,
} from './store-contents.ts'

const OID = {
  data: '1.2.840.113549.1.7.1',
  encryptedData: '1.2.840.113549.1.7.6',
  keyBag: '1.2.840.113549.1.12.10.1.1',
  shroudedKeyBag: '1.2.840.113549.1.12.10.1.2',
  certBag: '1.2.840.113549.1.12.10.1.3',
  x509Certificate: '1.2.840.113549.1.9.22.1',
  friendlyName: '1.2.840.113549.1.9.20',
  /** Java sets this attribute on trusted certificate entries. */
  trustedKeyUsage: '2.16.840.1.113894.746875.1.1',
}

/** `keyPassword`: '' if the keys have the password of the store, as most stores do. Throws a StoreError. */
export async function readPkcs12(bytes: Buffer, password: string, keyPassword: string): Promise<StoreContents> {
  const der = new DerReader(await loadAsn1())
  const encryption = await PasswordBasedEncryption.load(der)
  const [, authSafe, macData] = der.parts(der.parse(bytes.toString('latin1')))
  const [contentType, wrapped] = der.parts(authSafe)
  if (der.oid(contentType) !== OID.data)
    throw new StoreError('malformed', 'the store is signed, not password-protected')
  const content = der.bytes(der.parts(wrapped)[0])
  if (macData !== undefined) encryption.verifyMac(macData, content, password)
  const reader = new SafeReader(der, encryption, password, keyPassword)
  for (const info of der.parts(der.parse(content))) reader.readSafe(info)
  return { keys: reader.keys, certificates: reader.certificates, weakAlgorithms: encryption.weakAlgorithms }
}

/** Collects keys and certificates from the safes of a store; a safe contains bags. */
class SafeReader {
  readonly keys: StoredKey[] = []
  readonly certificates: StoredCertificate[] = []
  readonly #der: DerReader
  readonly #encryption: PasswordBasedEncryption
  readonly #password: string
  readonly #keyPassword: string

  constructor(der: DerReader, encryption: PasswordBasedEncryption, password: string, keyPassword: string) {
    this.#der = der
    this.#encryption = encryption
    this.#password = password
    this.#keyPassword = keyPassword
  }

  readSafe(contentInfo: Asn1): void {
    const [contentType, wrapped] = this.#der.parts(contentInfo)
    const content = this.#der.parts(wrapped)[0]!
    const oid = this.#der.oid(contentType)
    if (oid === OID.encryptedData) this.#readBags(this.#decryptSafe(content))
    else if (oid === OID.data) this.#readBags(this.#der.bytes(content))
    else throw new StoreError('malformed', `unknown content type ${oid}`)
  }

  #decryptSafe(encryptedData: Asn1): string {
    const [, info] = this.#der.parts(encryptedData)
    const [, algorithm, encrypted] = this.#der.parts(info)
    return this.#encryption.decrypt(algorithm!, this.#der.bytes(encrypted), this.#password, 'store password')
  }

  #readBags(safeContents: string): void {
    if (safeContents === '') return
    for (const bag of this.#der.parts(this.#der.parse(safeContents))) this.#readBag(bag)
  }

  /** Ignores bags of other types: secrets and revocation lists. */
  #readBag(bag: Asn1): void {
    const [bagType, wrapped, attributes] = this.#der.parts(bag)
    const value = this.#der.parts(wrapped)[0]!
    const alias = this.#alias(attributes)
    const oid = this.#der.oid(bagType)
    if (oid === OID.keyBag) this.keys.push({ alias, key: parseKey(this.#der.encode(value), 'malformed') })
    else if (oid === OID.shroudedKeyBag) this.keys.push({ alias, key: this.#decryptKey(value) })
    else if (oid === OID.certBag) this.#readCertificate(value, alias, attributes)
  }

  #decryptKey(value: Asn1): KeyObject {
    if (this.#keyPassword === '') return this.#decryptKeyWith(value, this.#password, 'store password')
    try {
      return this.#decryptKeyWith(value, this.#keyPassword, 'key password')
    } catch (error) {
      // Some documented files set a key password that the store does not use. Java then tries the store password.
      if (!(error instanceof StoreError) || error.kind !== 'key password') throw error
      return this.#decryptKeyWith(value, this.#password, 'key password')
    }
  }

  #decryptKeyWith(value: Asn1, password: string, onWrongPassword: StoreErrorKind): KeyObject {
    const [algorithm, encrypted] = this.#der.parts(value)
    const pkcs8 = this.#encryption.decrypt(algorithm!, this.#der.bytes(encrypted), password, onWrongPassword)
    return parseKey(Buffer.from(pkcs8, 'latin1'), onWrongPassword)
  }

  #readCertificate(value: Asn1, alias: string, attributes: Asn1 | undefined): void {
    const [certificateType, wrapped] = this.#der.parts(value)
    if (this.#der.oid(certificateType) !== OID.x509Certificate) return
    const certificate = parseCertificate(Buffer.from(this.#der.bytes(this.#der.parts(wrapped)[0]), 'latin1'))
    const isTrusted = this.#attribute(attributes, OID.trustedKeyUsage) !== undefined
    this.certificates.push({ alias, certificate, isTrusted })
  }

  #alias(attributes: Asn1 | undefined): string {
    const name = this.#attribute(attributes, OID.friendlyName)
    // node-forge has decoded the UTF-16 of a BMPString.
    return name === undefined ? '' : this.#der.bytes(name)
  }

  #attribute(attributes: Asn1 | undefined, oid: string): Asn1 | undefined {
    if (attributes === undefined) return undefined
    const found = this.#der.parts(attributes).find(attribute => this.#der.oid(this.#der.parts(attribute)[0]) === oid)
    return found === undefined ? undefined : this.#der.parts(this.#der.parts(found)[1])[0]
  }
}
