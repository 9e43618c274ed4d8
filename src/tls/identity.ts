/** What a store is for: a key with its chain to show, or the certificates that the other side's must lead to. */
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Findings } from '../config/findings.ts'
import type { TlsIdentity } from '../socket/tls.ts'
import type { StoredCertificate, StoredKey } from './store-contents.ts'
import type { OpenStore, StoreSetting } from './store-file.ts'

/** Undefined with a fault when there is no key, or no certificate for it. Dates are warned of. */
export function identityOf({ setting, label, contents }: OpenStore, findings: Findings): TlsIdentity | undefined {
  const { fileName } = setting.names
  if (contents.keys.length === 0) {
    return findings.fault(label, fileName, 'there is no key in it', 'take a store with a key and its certificate')
  }
  const chosen = chosenKey(setting, label, contents.keys, findings)
  if (chosen === undefined) return undefined
  const [leaf, ...rest] = chainOf(chosen.key, contents.certificates)
  if (leaf === undefined) {
    const expected = `no certificate in it belongs to ${shownKey(chosen)}`
    return findings.fault(label, fileName, expected, 'put the certificate of the key, and its chain, into the store')
  }
  if (contents.keys.length > 1 && setting.alias === undefined) noteChoice(label, chosen, contents.keys, findings)
  const dates = datesOf(leaf)
  if (dates !== '') findings.warn(label, fileName, dates, 'renew it; the other side refuses it')
  return {
    cert: [leaf, ...rest].map(certificate => certificate.toString()).join(''),
    key: String(chosen.key.export({ type: 'pkcs8', format: 'pem' })),
  }
}

/** Undefined with a fault when there is none. */
export function trustedOf({ setting, label, contents }: OpenStore, findings: Findings): readonly string[] | undefined {
  const issuers = new Set<string>()
  for (const { key } of contents.keys) {
    for (const { fingerprint256 } of chainOf(key, contents.certificates).slice(1)) issuers.add(fingerprint256)
  }
  // Whoever issued this side's own certificate is not trusted for the other's, unless stored for that.
  const trusted = contents.certificates.filter(
    ({ certificate, isTrusted }) => isTrusted || !issuers.has(certificate.fingerprint256),
  )
  const { fileName } = setting.names
  if (trusted.length === 0) {
    const remedy = 'import the certificates that are to be trusted'
    return findings.fault(label, fileName, 'there is no trusted certificate in it', remedy)
  }
  const dated = trusted.filter(({ certificate }) => datesOf(certificate) !== '')
  // Stores that come with Java have a hundred authorities, and some of them are always past.
  const more = dated.length > 1 ? `, and so with ${dated.length - 1} more of ${trusted.length}` : ''
  if (dated.length > 0)
    findings.warn(label, fileName, `${datesOf(dated[0]!.certificate)}${more}`, 'nothing they signed is taken')
  return [...new Set(trusted.map(({ certificate }) => certificate.toString()))]
}

/** Undefined with a fault when the wanted one is not among several. Java takes names without regard to case. */
function chosenKey(
  { alias }: StoreSetting,
  label: string,
  keys: readonly StoredKey[],
  findings: Findings,
): StoredKey | undefined {
  // Order of the names, because Java stores have none of their own; without names that of the file.
  const sorted = [...keys].sort(({ alias: one }, { alias: other }) => (one < other ? -1 : Number(one > other)))
  const first = sorted[0]
  const names = keys.map(key => key.alias).join(', ')
  // PEM has no names to choose by.
  if (alias === undefined || (keys.length === 1 && names === '')) return first
  const chosen = sorted.find(key => key.alias.toLowerCase() === alias.wanted.toLowerCase())
  if (chosen !== undefined) return chosen
  const remedy = names.replaceAll(', ', '') === '' ? 'the keys in it have no names' : `in it there is ${names}`
  if (keys.length > 1) {
    return findings.fault(label, alias.name, 'there is no key of that name in it', remedy, alias.wanted)
  }
  // A name that came along from another store, as in most files of the reference platform, must not end a start.
  findings.warn(label, alias.name, 'there is no key of that name in it, so the only one is used', remedy, alias.wanted)
  return first
}

function noteChoice(label: string, chosen: StoredKey, keys: readonly StoredKey[], findings: Findings): void {
  findings.note('of several keys in a store the first by name is used; set alias for another one', {
    STORE: label,
    KEY: chosen.alias,
    KEYS: keys.map(({ alias }) => alias).join(', '),
  })
}

function shownKey({ alias }: StoredKey): string {
  return alias === '' ? 'its key' : `its key ${alias}`
}

/** From the certificate of the key up, the root included where the store has it; each certificate once. */
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

/** What is wrong with the dates of a certificate; '' when it is valid now. */
function datesOf({ subject, validFrom, validTo, validFromDate, validToDate }: X509Certificate): string {
  const named = `the certificate of ${(subject ?? '').replaceAll('\n', ', ')}`
  const now = new Date()
  if (validToDate < now) return `${named} has expired on ${validTo}`
  return validFromDate > now ? `${named} is valid from ${validFrom} only` : ''
}

/** Names that a certificate is for, in lower case: DNS names of its SAN. */
export function dnsNamesOf(certificate: X509Certificate): readonly string[] {
  const entries = (certificate.subjectAltName ?? '').split(', ')
  return entries.flatMap(entry => (entry.startsWith('DNS:') ? [entry.slice(4).toLowerCase()] : []))
}
