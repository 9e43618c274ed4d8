/**
 * `Client-certificates` of an exported project: which clients are known by their certificates. Beside the list,
 * `client_certificates.yaml`, stand the certificates, as PEM or DER.
 */
import { X509Certificate } from 'node:crypto'
import { join, resolve, sep } from 'node:path'
import { readBinary, readSource } from './source-file.ts'
import { type Fault, printable } from './fault.ts'
import { YamlFile } from './yaml-file.ts'

export interface ClientCertificate {
  readonly alias: string
  /** SHA-256 of its DER form, base64url: what tokens that are bound to it hold (RFC 8705 3.1). */
  readonly thumbprint: string
  /** Name of the throttling policy; '' where none is named. */
  readonly tier: string
}

interface ClientCertificates {
  readonly certificates: readonly ClientCertificate[]
  readonly faults: readonly Fault[]
  /** There is such a list. */
  readonly isThere: boolean
}

const FOLDER = 'Client-certificates'
const LISTS = ['client_certificates.yaml', 'client_certificates.yml', 'client_certificates.json']
/** Newer exports keep those of each kind of key in a folder of its own. */
const PLACES = ['', 'PRODUCTION', 'SANDBOX']
const CERTIFICATE_BYTES_MAX = 65_536
const CERTIFICATES_MAX = 1000

/** `project`: its folder. */
export function readClientCertificates(project: string): ClientCertificates {
  const found: ClientCertificate[] = []
  const faults: Fault[] = []
  let isThere = false
  for (const place of PLACES) {
    const folder = join(project, FOLDER, place)
    const source = firstOf(LISTS.map(name => join(folder, name)))
    if (source === undefined) continue
    isThere = true
    if (source.fault !== undefined) {
      faults.push(source.fault)
      continue
    }
    const file = new YamlFile(source.label, source.text)
    if (file.faults.length === 0) found.push(...listed(file, folder))
    faults.push(...file.faults)
  }
  return { certificates: found, faults, isThere }
}

function firstOf(paths: readonly string[]): ReturnType<typeof readSource> {
  for (const path of paths) {
    const source = readSource(path)
    if (source !== undefined) return source
  }
  return undefined
}

function listed(file: YamlFile, folder: string): readonly ClientCertificate[] {
  const length = file.lengthOf(['data'])
  if (length === undefined || length > CERTIFICATES_MAX) {
    file.object(['data'], undefined, `expected a list of at most ${CERTIFICATES_MAX} certificates`, 'export it again')
    return []
  }
  return Array.from({ length }, (_, item) => ['data', item]).flatMap(at => {
    const name = file.text([...at, 'certificate']) ?? ''
    const thumbprint = name === '' ? undefined : thumbprintOf(file, [...at, 'certificate'], folder, name)
    if (thumbprint === undefined) return []
    return [{ alias: file.optional([...at, 'alias']), tier: file.optional([...at, 'tierName']), thumbprint }]
  })
}

function thumbprintOf(
  file: YamlFile,
  path: readonly (string | number)[],
  folder: string,
  name: string,
): string | undefined {
  const whole = resolve(folder, name)
  const inside = whole.startsWith(`${resolve(folder)}${sep}`)
  const read = inside ? readBinary(whole, CERTIFICATE_BYTES_MAX) : undefined
  try {
    if (read !== undefined) return thumbprint(new X509Certificate(read))
  } catch {
    file.object(path, name, 'is no certificate', 'put it there as PEM or DER')
    return undefined
  }
  file.object(path, printable(name), `is no file of ${FOLDER}`, 'put the certificate there')
  return undefined
}

function thumbprint(certificate: X509Certificate): string {
  return Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}
