/** Selects from an open store: the key to present with its certificate chain, or the trusted certificates. */
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Diagnostics } from '../config/diagnostics.ts'
import type { TlsIdentity } from '../socket/tls.ts'
import type { OpenStore, StoreSettings } from './key-store.ts'
import type { StoredCertificate, StoredKey } from './store-contents.ts'

/** Returns undefined, with an error, if the store holds no key or no certificate for it. Bad dates are warnings. */
export function selectIdentity(
  { settings, label, contents }: OpenStore,
  diagnostics: Diagnostics,
): TlsIdentity | undefined {
  const { fileName } = settings.names
  if (contents.keys.length === 0) {
    return diagnostics.error(label, fileName, 'holds no private key', 'use a store with a key and its certificate')
  }
  const selected = selectKey(settings, label, contents.keys, diagnostics)
  if (selected === undefined) return undefined
  const [leaf, ...rest] = chainOf(selected.key, contents.certificates)
  if (leaf === undefined) {
    const key = selected.alias === '' ? 'its key' : `its key ${selected.alias}`
    const hint = 'add the certificate of the key, and its chain, to the store'
    return diagnostics.error(label, fileName, `holds no certificate for ${key}`, hint)
  }
  if (contents.keys.length > 1 && settings.alias === undefined)
    logSelection(label, selected, contents.keys, diagnostics)
  const dates = dateProblem(leaf)
  if (dates !== '') diagnostics.warn(label, fileName, dates, 'renew it, because peers refuse it')
  return {
    cert: [leaf, ...rest].map(certificate => certificate.toString()).join(''),
    key: String(selected.key.export({ type: 'pkcs8', format: 'pem' })),
  }
}

/** Returns undefined, with an error, if the store holds no trusted certificate. */
export function trustedCertificates(
  { settings, label, contents }: OpenStore,
  diagnostics: Diagnostics,
): readonly string[] | undefined {
  const issuers = new Set<string>()
  for (const { key } of contents.keys) {
    for (const { fingerprint256 } of chainOf(key, contents.certificates).slice(1)) issuers.add(fingerprint256)
  }
  // The issuer of the gateway's own certificate is trusted for peers only if it has a trusted entry of its own.
  const trusted = contents.certificates.filter(
    ({ certificate, isTrusted }) => isTrusted || !issuers.has(certificate.fingerprint256),
  )
  const { fileName } = settings.names
  if (trusted.length === 0) {
    return diagnostics.error(label, fileName, 'holds no trusted certificate', 'import the certificates to trust')
  }
  const outdated = trusted.filter(({ certificate }) => dateProblem(certificate) !== '')
  // One warning for all: Java's own trust store has a hundred authorities, some of them always expired.
  const more = outdated.length > 1 ? `; ${outdated.length - 1} more of ${trusted.length} are not valid now` : ''
  if (outdated.length > 0) {
    const problem = dateProblem(outdated[0]!.certificate)
    diagnostics.warn(label, fileName, `${problem}${more}`, 'certificates signed by it are refused')
  }
  return [...new Set(trusted.map(({ certificate }) => certificate.toString()))]
}

/** Returns undefined, with an error, if none of several keys has the alias. Case is ignored, as in Java. */
function selectKey(
  { alias }: StoreSettings,
  label: string,
  keys: readonly StoredKey[],
  diagnostics: Diagnostics,
): StoredKey | undefined {
  // By alias, because entries of Java stores have no order; without aliases, in the order of the file.
  const sorted = [...keys].sort(({ alias: one }, { alias: other }) => (one < other ? -1 : Number(one > other)))
  const first = sorted[0]
  const aliases = keys.map(key => key.alias).join(', ')
  // PEM has no aliases.
  if (alias === undefined || (keys.length === 1 && aliases === '')) return first
  const selected = sorted.find(key => key.alias.toLowerCase() === alias.wanted.toLowerCase())
  if (selected !== undefined) return selected
  const hint = aliases.replaceAll(', ', '') === '' ? 'its keys have no aliases' : `its keys: ${aliases}`
  if (keys.length > 1) return diagnostics.error(label, alias.name, 'holds no key with this alias', hint, alias.wanted)
  // A warning: many files of the reference platform keep the alias of an earlier store.
  diagnostics.warn(label, alias.name, 'holds no key with this alias, so its only key is used', hint, alias.wanted)
  return first
}

function logSelection(label: string, selected: StoredKey, keys: readonly StoredKey[], diagnostics: Diagnostics): void {
  diagnostics.info('a key store holds several keys, and the first by alias is used; set alias for another one', {
    STORE: label,
    KEY: selected.alias,
    KEYS: keys.map(({ alias }) => alias).join(', '),
  })
}

/** The certificate of the key and its issuers up to a root that the store holds; each certificate once. */
function chainOf(key: KeyObject, certificates: readonly StoredCertificate[]): readonly X509Certificate[] {
  const left = certificates.map(({ certificate }) => certificate)
  const chain: X509Certificate[] = []
  let next = left.findIndex(certificate => certificate.checkPrivateKey(key))
  while (next !== -1) {
    const [certificate] = left.splice(next, 1)
    chain.push(certificate!)
    if (certificate!.checkIssued(certificate!)) break
    next = left.findIndex(issuer => certificate!.checkIssued(issuer) && certificate!.verify(issuer.publicKey))
  }
  return chain
}

/** Returns '' for a certificate that is valid now. */
function dateProblem({ subject, validFrom, validTo, validFromDate, validToDate }: X509Certificate): string {
  const certificate = `the certificate of ${(subject ?? '').replaceAll('\n', ', ')}`
  const now = new Date()
  if (validToDate < now) return `${certificate} has expired on ${validTo}`
  return validFromDate > now ? `${certificate} is not valid before ${validFrom}` : ''
}

/** DNS names in the subject alternative name, in lower case. */
export function dnsNamesOf(certificate: X509Certificate): readonly string[] {
  const entries = (certificate.subjectAltName ?? '').split(', ')
  return entries.flatMap(entry => (entry.startsWith('DNS:') ? [entry.slice(4).toLowerCase()] : []))
}
