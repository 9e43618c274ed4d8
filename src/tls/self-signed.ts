/**
 * The self-signed certificate of a listener without a key store: generated at the first start, kept in the data folder,
 * renewed before it expires. Clients do not trust it; it is for trials.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readNetwork } from '../config/cidr.ts'
import type { TlsIdentity } from '../socket/tls.ts'
import { type Asn1, type Asn1Codec, loadAsn1 } from './der.ts'

const FILE_NAME = 'listener.pem'
const FILE_MODE = 0o600
const DAY_MS = 86_400_000
/** Clients accept 398 days; one day less allows for differing clocks. */
const VALIDITY_DAYS = 397
const RENEWAL_DAYS = 30
const LOCAL_NAMES = ['localhost', '127.0.0.1', '::1']

const OID = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  keyUsage: '2.5.29.15',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
}
const TYPE = { boolean: 1, integer: 2, bits: 3, octets: 4, oid: 6, utf8: 12, sequence: 16, set: 17, utcTime: 23 }
const UNIVERSAL = 0
const CONTEXT = 0x80
/** Tags of a GeneralName (RFC 5280 4.2.1.6). */
const NAME = { dns: 2, address: 7 }

interface SelfSignedCertificate {
  readonly path: string
  readonly identity: TlsIdentity
  readonly validTo: string
}

/** Returns the kept certificate, or generates one for `hostname`. Throws if the data folder is not writable. */
export async function selfSignedCertificate(dataDir: string, hostname: string): Promise<SelfSignedCertificate> {
  const path = join(dataDir, FILE_NAME)
  const names = [...new Set([hostname.toLowerCase(), ...LOCAL_NAMES])]
  const kept = readKept(path, names)
  if (kept !== undefined) return kept
  const identity = await generate(names)
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, `${identity.key}${identity.cert}`, { mode: FILE_MODE })
  renameSync(temporary, path)
  return { path, identity, validTo: new X509Certificate(identity.cert).validTo }
}

/** Undefined if there is no certificate, or one that is unreadable, about to expire, or not valid for all names. */
function readKept(path: string, names: readonly string[]): SelfSignedCertificate | undefined {
  try {
    const pem = readFileSync(path, 'latin1')
    const [key = '', cert = ''] = pem.split(/(?=-----BEGIN CERTIFICATE-----)/)
    const certificate = new X509Certificate(cert)
    const isValidForAll = names.every(name =>
      isAddress(name) ? certificate.checkIP(name) !== undefined : certificate.checkHost(name) !== undefined,
    )
    if (!isValidForAll || certificate.validToDate.getTime() - Date.now() < RENEWAL_DAYS * DAY_MS) return undefined
    return key.includes('PRIVATE KEY') ? { path, identity: { cert, key }, validTo: certificate.validTo } : undefined
  } catch {
    return undefined
  }
}

async function generate(names: readonly string[]): Promise<TlsIdentity> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const writer = new CertificateWriter(await loadAsn1())
  const der = writer.write(names, publicKey, privateKey)
  const pem = der
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${pem}\n-----END CERTIFICATE-----\n`,
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  }
}

/** Writes a self-signed certificate (RFC 5280 4.1) as DER. */
class CertificateWriter {
  readonly #asn1: Asn1Codec

  constructor(asn1: Asn1Codec) {
    this.#asn1 = asn1
  }

  write(names: readonly string[], publicKey: KeyObject, privateKey: KeyObject): Buffer {
    const algorithm = this.#sequence(this.#oid(OID.ecdsaWithSha256))
    const body = this.#body(names, publicKey, algorithm)
    const signature = sign('sha256', this.#encode(body), privateKey)
    return this.#encode(this.#sequence(body, algorithm, this.#leaf(TYPE.bits, `\0${signature.toString('latin1')}`)))
  }

  #body(names: readonly string[], publicKey: KeyObject, algorithm: Asn1): Asn1 {
    const now = Date.now()
    const version = this.#tagged(0, this.#leaf(TYPE.integer, '\x02'))
    // First bit 0: a positive integer. Second bit 1: DER allows no leading zero byte.
    const serial = randomBytes(16)
    serial[0] = (serial[0]! & 0x3f) | 0x40
    const commonName = this.#sequence(this.#oid(OID.commonName), this.#leaf(TYPE.utf8, names[0]!.slice(0, 64)))
    const name = this.#sequence(this.#node(TYPE.set, [commonName]))
    return this.#sequence(
      version,
      this.#leaf(TYPE.integer, serial.toString('latin1')),
      algorithm,
      name,
      // Valid since an hour ago, for clients whose clocks are slow.
      this.#sequence(this.#time(now - DAY_MS / 24), this.#time(now + VALIDITY_DAYS * DAY_MS)),
      name,
      this.#asn1.fromDer(publicKey.export({ type: 'spki', format: 'der' }).toString('latin1'), {
        parseAllBytes: true,
        decodeBitStrings: false,
      }),
      this.#tagged(3, this.#sequence(...this.#extensions(names))),
    )
  }

  #extensions(names: readonly string[]): readonly Asn1[] {
    const digitalSignature = '\x07\x80'
    return [
      this.#extension(OID.basicConstraints, this.#sequence()),
      this.#extension(OID.keyUsage, this.#leaf(TYPE.bits, digitalSignature)),
      this.#extension(OID.extendedKeyUsage, this.#sequence(this.#oid(OID.serverAuth))),
      this.#extension(OID.subjectAltName, this.#sequence(...names.map(name => this.#generalName(name)))),
    ]
  }

  #extension(oid: string, value: Asn1): Asn1 {
    return this.#sequence(this.#oid(oid), this.#leaf(TYPE.octets, this.#encode(value).toString('latin1')))
  }

  #generalName(name: string): Asn1 {
    if (isAddress(name)) return this.#asn1.create(CONTEXT, NAME.address, false, addressBytes(name))
    return this.#asn1.create(CONTEXT, NAME.dns, false, name)
  }

  #time(ms: number): Asn1 {
    return this.#leaf(TYPE.utcTime, this.#asn1.dateToUtcTime(new Date(ms)))
  }

  #oid(oid: string): Asn1 {
    return this.#leaf(TYPE.oid, this.#asn1.oidToDer(oid).getBytes())
  }

  #leaf(type: number, value: string): Asn1 {
    return this.#asn1.create(UNIVERSAL, type, false, value)
  }

  #sequence(...parts: readonly Asn1[]): Asn1 {
    return this.#node(TYPE.sequence, parts)
  }

  #node(type: number, parts: readonly Asn1[]): Asn1 {
    return this.#asn1.create(UNIVERSAL, type, true, parts)
  }

  #tagged(tag: number, part: Asn1): Asn1 {
    return this.#asn1.create(CONTEXT, tag, true, [part])
  }

  #encode(node: Asn1): Buffer {
    return Buffer.from(this.#asn1.toDer(node).getBytes(), 'latin1')
  }
}

function isAddress(name: string): boolean {
  return readNetwork(name) !== ''
}

/** The 4 or 16 bytes of an address, one character each. */
function addressBytes(address: string): string {
  if (!address.includes(':')) return String.fromCharCode(...address.split('.').map(Number))
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [before = '', after] = plain.split('::')
  const head = before.split(':').filter(group => group !== '')
  const tail = (after ?? '').split(':').filter(group => group !== '')
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  const numbers = groups.map(group => Number.parseInt(group, 16))
  return String.fromCharCode(...numbers.flatMap(number => [number >> 8, number & 0xff]))
}
