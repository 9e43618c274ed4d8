/**
 * The certificate of a gateway that has been given none: made at the first start, kept in the data folder, made anew
 * before it expires. Nobody can trust it without having seen it, and every client says so; it is for trying things out.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readNetwork } from '../config/cidr.ts'
import type { TlsIdentity } from '../socket/tls.ts'
import { type Asn1, type Asn1Codec, loadAsn1 } from './der.ts'

const FILE = 'listener.pem'
const MODE = 0o600
const DAY_MS = 86_400_000
/** What clients accept of certificates (398 days), less a day for clocks that differ. */
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

interface SelfSigned {
  readonly path: string
  readonly identity: TlsIdentity
  readonly validTo: string
}

/** Throws when the data folder cannot be written. `hostname`: `server.hostname`. */
export async function selfSigned(dataDir: string, hostname: string): Promise<SelfSigned> {
  const path = join(dataDir, FILE)
  const names = [...new Set([hostname.toLowerCase(), ...LOCAL_NAMES])]
  const kept = readKept(path, names)
  if (kept !== undefined) return kept
  const made = await make(names)
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, `${made.key}${made.cert}`, { mode: MODE })
  renameSync(draft, path)
  return { path, identity: made, validTo: new X509Certificate(made.cert).validTo }
}

/** Undefined when there is none, or it will not do: unreadable, about to expire, or not for these names. */
function readKept(path: string, names: readonly string[]): SelfSigned | undefined {
  try {
    const pem = readFileSync(path, 'latin1')
    const [key = '', cert = ''] = pem.split(/(?=-----BEGIN CERTIFICATE-----)/)
    const certificate = new X509Certificate(cert)
    const isForAll = names.every(name =>
      isAddress(name) ? certificate.checkIP(name) !== undefined : certificate.checkHost(name) !== undefined,
    )
    if (!isForAll || certificate.validToDate.getTime() - Date.now() < RENEWAL_DAYS * DAY_MS) return undefined
    return key.includes('PRIVATE KEY') ? { path, identity: { cert, key }, validTo: certificate.validTo } : undefined
  } catch {
    return undefined
  }
}

async function make(names: readonly string[]): Promise<TlsIdentity> {
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

/** A certificate of RFC 5280 4.1, signed by its own key. */
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
    // A random number that is positive: its first bit is 0, and the next 1, so that it needs no shortening.
    const serial = randomBytes(16)
    serial[0] = (serial[0]! & 0x3f) | 0x40
    const commonName = this.#sequence(this.#oid(OID.commonName), this.#leaf(TYPE.utf8, names[0]!.slice(0, 64)))
    const name = this.#sequence(this.#node(TYPE.set, [commonName]))
    return this.#sequence(
      version,
      this.#leaf(TYPE.integer, serial.toString('latin1')),
      algorithm,
      name,
      // An hour early, for clients whose clock is late.
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

/** Four or sixteen bytes, one character each. */
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
