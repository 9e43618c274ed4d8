/**
 * Client certificates of a project: `Client-certificates/client_certificates.yaml` lists the clients that an API knows
 * by their certificates. The certificates are PEM or DER files beside the list.
 */
import { X509Certificate } from 'node:crypto'
import { join, resolve, sep } from 'node:path'
import { readBinary, readSource } from '../config/source-file.ts'
import { type Diagnostic, printable } from '../config/diagnostics.ts'
import type { ClientCertificate } from './api-definition.ts'
import { MemberCheck } from './known-members.ts'
import { CLIENT_CERTIFICATES_FILE } from './project-members.ts'
import { type Path, YamlFile } from './yaml-file.ts'

interface ClientCertificates {
  readonly certificates: readonly ClientCertificate[]
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  /** True if the project has such a list. */
  readonly hasList: boolean
}

export const CLIENT_CERTIFICATES = 'Client-certificates'
export const NO_CLIENT_CERTIFICATES: ClientCertificates = { certificates: [], errors: [], warnings: [], hasList: false }
const LISTS = ['client_certificates.yaml', 'client_certificates.yml', 'client_certificates.json']
/** Newer exports have a folder for each key type. */
const SUBFOLDERS = ['', 'PRODUCTION', 'SANDBOX']
const CERTIFICATE_BYTES_MAX = 65_536
const CERTIFICATES_MAX = 1000

/** `project`: folder of the project. */
export function readClientCertificates(project: string): ClientCertificates {
  const certificates: ClientCertificate[] = []
  const errors: Diagnostic[] = []
  const warnings: Diagnostic[] = []
  let hasList = false
  for (const subfolder of SUBFOLDERS) {
    const folder = join(project, CLIENT_CERTIFICATES, subfolder)
    const source = firstOf(LISTS.map(name => join(folder, name)))
    if (source === undefined) continue
    hasList = true
    if (source.error !== undefined) {
      errors.push(source.error)
      continue
    }
    const file = new YamlFile(source.label, source.text)
    if (file.errors.length === 0) certificates.push(...readList(file, folder))
    errors.push(...file.errors)
    warnings.push(...file.warnings)
  }
  return { certificates, errors, warnings, hasList }
}

function firstOf(paths: readonly string[]): ReturnType<typeof readSource> {
  for (const path of paths) {
    const source = readSource(path)
    if (source !== undefined) return source
  }
  return undefined
}

function readList(file: YamlFile, folder: string): readonly ClientCertificate[] {
  new MemberCheck(file).members(CLIENT_CERTIFICATES_FILE)
  const length = file.lengthOf(['data'])
  if (length === undefined || length > CERTIFICATES_MAX) {
    file.error(['data'], undefined, `expected a list of at most ${CERTIFICATES_MAX} certificates`, 'export it again')
    return []
  }
  return Array.from({ length }, (_, item) => ['data', item]).flatMap(at => {
    const path = [...at, 'certificate']
    const name = file.text(path) ?? ''
    const thumbprint = name === '' ? undefined : readThumbprint(file, path, folder, name)
    if (thumbprint === undefined) return []
    return [{ alias: file.optional([...at, 'alias']), tier: file.optional([...at, 'tierName']), thumbprint }]
  })
}

/** Thumbprint of the certificate in file `name`, which must not lie outside of `folder`. */
function readThumbprint(file: YamlFile, path: Path, folder: string, name: string): string | undefined {
  const certificatePath = resolve(folder, name)
  const isInside = certificatePath.startsWith(`${resolve(folder)}${sep}`)
  const bytes = isInside ? readBinary(certificatePath, CERTIFICATE_BYTES_MAX) : undefined
  if (bytes === undefined) {
    file.error(path, printable(name), `is no file of ${CLIENT_CERTIFICATES}`, 'put the certificate there')
    return undefined
  }
  try {
    const { fingerprint256 } = new X509Certificate(bytes)
    return Buffer.from(fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
  } catch {
    file.error(path, name, 'is no certificate', 'put it there as PEM or DER')
    return undefined
  }
}
