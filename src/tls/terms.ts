/** Protocol versions and cipher suites, from the spelling of a configuration to what both sides agree on. */
import type { Findings } from '../config/findings.ts'
import type { TlsTerms, TlsVersion } from '../socket/tls.ts'
import { is13, SUITES_13, suitesOf } from './cipher-suites.ts'

const VERSIONS: readonly TlsVersion[] = ['TLSv1.2', 'TLSv1.3']
/** As Java spells them; `SSLv2Hello` is a greeting and no version. RFC 8996: not to be offered. */
const OLD = ['SSLV2HELLO', 'SSLV3', 'TLSV1', 'TLSV1.0', 'TLSV1.1']

/** No list named: TLS 1.2 and 1.3 with the suites of the gateway. */
export const DEFAULT_TERMS: TlsTerms = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' }

export interface TermsSetting {
  readonly protocols: readonly string[]
  readonly ciphers: readonly string[]
  /** Where the two were set, for faults. */
  readonly where: string
  readonly names: { readonly protocols: string; readonly ciphers: string }
}

/** With faults in the findings the answer is of no use. */
export function termsOf({ protocols, ciphers, where, names }: TermsSetting, findings: Findings): TlsTerms {
  const versions = versionsOf(protocols, where, names.protocols, findings)
  if (versions.length === 0) return DEFAULT_TERMS
  const suites = suitesOf(ciphers, where, names.ciphers, findings)
  if (ciphers.length === 0) return { minVersion: versions[0]!, maxVersion: versions.at(-1)!, ciphers: '' }
  return agreed(versions, suites, where, names, findings)
}

function versionsOf(
  protocols: readonly string[],
  where: string,
  key: string,
  findings: Findings,
): readonly TlsVersion[] {
  if (protocols.length === 0) return VERSIONS
  const wanted = protocols.map(name => name.toUpperCase())
  const versions = VERSIONS.filter(version => wanted.includes(version.toUpperCase()))
  const remedy = `name ${VERSIONS.join(' or ')}, or both`
  const strange = protocols.filter(
    (_, at) => !OLD.includes(wanted[at]!) && !VERSIONS.some(v => v.toUpperCase() === wanted[at]),
  )
  for (const name of strange) findings.fault(where, key, 'there is no such version of TLS', remedy, name)
  const old = protocols.filter((_, at) => OLD.includes(wanted[at]!))
  if (versions.length > 0 && old.length > 0) {
    findings.warn(where, key, 'old versions are never offered', remedy, old.join(','))
  }
  if (versions.length === 0 && strange.length === 0) {
    findings.fault(where, key, 'only versions that are never offered are named', remedy, old.join(','))
  }
  return versions
}

/**
 * A list of suites is often older than TLS 1.3, whose suites are all strong: where it has none of them, they are added.
 * Where it has no other, TLS 1.2 is not offered.
 */
function agreed(
  versions: readonly TlsVersion[],
  suites: readonly string[],
  where: string,
  { protocols, ciphers }: TermsSetting['names'],
  findings: Findings,
): TlsTerms {
  const suites12 = suites.filter(suite => !is13(suite))
  const suites13 = suites.filter(is13)
  if (suites.length === 0) {
    const remedy = 'name suites with ECDHE and GCM or CHACHA20, or none for those of the gateway'
    findings.fault(where, ciphers, 'none of its suites can be offered', remedy)
    return DEFAULT_TERMS
  }
  const maxVersion = versions.at(-1)!
  if (maxVersion === 'TLSv1.2' && suites12.length === 0) {
    findings.fault(where, ciphers, 'it has no suite for TLSv1.2', `name one, or set ${protocols} = "TLSv1.3"`)
    return DEFAULT_TERMS
  }
  if (versions[0] === 'TLSv1.2' && suites12.length === 0) {
    const expected = 'it has no suite for TLSv1.2, which is not offered'
    findings.warn(where, ciphers, expected, `name one, or set ${protocols} = "TLSv1.3"`)
  }
  const minVersion = suites12.length === 0 ? 'TLSv1.3' : versions[0]!
  const listed = [
    ...(maxVersion === 'TLSv1.2' ? [] : suites13.length === 0 ? SUITES_13 : suites13),
    ...(minVersion === 'TLSv1.3' ? [] : suites12),
  ]
  return { minVersion, maxVersion, ciphers: listed.join(':') }
}
