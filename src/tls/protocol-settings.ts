/**
 * TLS versions and cipher suites: those of a listener, from their spelling in the configuration to the names of
 * OpenSSL, and the defaults, which backend connections have. Only TLS 1.2 and 1.3 are offered (RFC 8996), and only
 * suites with forward secrecy and AEAD (RFC 9325 4.2).
 */
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import type { TlsProtocolSettings, TlsVersion } from '../socket/tls.ts'

const VERSIONS: readonly TlsVersion[] = ['TLSv1.2', 'TLSv1.3']
/** Java's names of the older versions; `SSLv2Hello` is a handshake format, not a version. */
const OLD_VERSIONS = ['SSLV2HELLO', 'SSLV3', 'TLSV1', 'TLSV1.0', 'TLSV1.1']

/** IANA name, which Java uses, -> OpenSSL name. Suites of TLS 1.3 have one name. */
const STRONG_SUITES: Readonly<Record<string, string>> = {
  TLS_AES_128_GCM_SHA256: 'TLS_AES_128_GCM_SHA256',
  TLS_AES_256_GCM_SHA384: 'TLS_AES_256_GCM_SHA384',
  TLS_CHACHA20_POLY1305_SHA256: 'TLS_CHACHA20_POLY1305_SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
}
const STRONG_BY_NAME = new Map([
  ...Object.entries(STRONG_SUITES),
  ...Object.values(STRONG_SUITES).map(name => [name, name] as const),
])
const STRONG_NAMES = [...STRONG_BY_NAME.keys()]
export const TLS_13_SUITES: readonly string[] = Object.values(STRONG_SUITES).filter(isTls13)

/** A signal in Java's lists of suites, not a suite (RFC 5746 3.3). */
const RENEGOTIATION_SIGNAL = 'TLS_EMPTY_RENEGOTIATION_INFO_SCSV'
/** Parts of suite names. A name that consists of these parts and is not strong is a weak suite. */
const SUITE_NAME_PARTS = new Set(
  [
    'TLS SSL WITH EXPORT EXP ECDHE DHE EDH ECDH DH ADH AECDH ECDSA RSA DSS DSA PSK SRP KRB5 GOST2001 ANON NULL',
    'AES AES128 AES256 ARIA ARIA128 ARIA256 CAMELLIA CAMELLIA128 CAMELLIA256 CHACHA20 POLY1305 3DES DES DES40 RC4 RC2',
    'SEED IDEA 128 256 40 56 8 EDE CBC CBC3 GCM CCM CCM8 MD5 SHA SHA1 SHA256 SHA384',
  ]
    .join(' ')
    .split(' '),
)
const STRONG_SUITES_HINT = 'name suites with ECDHE and GCM or CHACHA20-POLY1305, or none for the defaults'

/** TLS 1.2 and 1.3 with the default suites. */
export const DEFAULT_PROTOCOL_SETTINGS: TlsProtocolSettings = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: '',
}

export interface ConfiguredProtocols {
  /** Empty for all versions. */
  readonly protocols: readonly string[]
  /** Empty for the default suites. */
  readonly ciphers: readonly string[]
  /** File and line of both keys, for diagnostics. */
  readonly where: string
  /** Paths of both keys, for diagnostics. */
  readonly names: { readonly protocols: string; readonly ciphers: string }
}

/** With errors in the diagnostics the result must not be used. */
export function protocolSettings(
  { protocols, ciphers, where, names }: ConfiguredProtocols,
  diagnostics: Diagnostics,
): TlsProtocolSettings {
  const versions = readVersions(protocols, where, names.protocols, diagnostics)
  if (versions.length === 0) return DEFAULT_PROTOCOL_SETTINGS
  const suites = readSuites(ciphers, where, names.ciphers, diagnostics)
  if (ciphers.length === 0) return { minVersion: versions[0]!, maxVersion: versions.at(-1)!, ciphers: '' }
  return combine(versions, suites, where, names, diagnostics)
}

function readVersions(
  protocols: readonly string[],
  where: string,
  key: string,
  diagnostics: Diagnostics,
): readonly TlsVersion[] {
  if (protocols.length === 0) return VERSIONS
  const wanted = protocols.map(name => name.toUpperCase())
  const versions = VERSIONS.filter(version => wanted.includes(version.toUpperCase()))
  const hint = `name ${VERSIONS.join(' or ')}, or both`
  const unknown = protocols.filter(
    (_, at) => !OLD_VERSIONS.includes(wanted[at]!) && !VERSIONS.some(known => known.toUpperCase() === wanted[at]),
  )
  for (const name of unknown) diagnostics.error(where, key, 'unknown TLS version', hint, name)
  const old = protocols.filter((_, at) => OLD_VERSIONS.includes(wanted[at]!))
  if (versions.length > 0 && old.length > 0) {
    diagnostics.warn(where, key, 'versions before TLSv1.2 are never offered', hint, old.join(','))
  }
  if (versions.length === 0 && unknown.length === 0) {
    diagnostics.error(where, key, 'only versions before TLSv1.2, which are never offered', hint, old.join(','))
  }
  return versions
}

/** OpenSSL names of the strong suites, in the given order, each once. Weak suites are warnings, unknown ones errors. */
function readSuites(given: readonly string[], where: string, key: string, diagnostics: Diagnostics): readonly string[] {
  const suites: string[] = []
  for (const name of given) {
    const suite = STRONG_BY_NAME.get(name.toUpperCase())
    if (suite !== undefined) suites.push(suite)
    else if (name !== RENEGOTIATION_SIGNAL) reportSuite(name, where, key, diagnostics)
  }
  return [...new Set(suites)]
}

function reportSuite(name: string, where: string, key: string, diagnostics: Diagnostics): void {
  const upperCase = name.toUpperCase()
  const parts = upperCase.split(/[_-]/)
  if (parts.length > 1 && parts.every(part => SUITE_NAME_PARTS.has(part))) {
    diagnostics.warn(where, key, 'weak cipher suites are never offered', STRONG_SUITES_HINT, name)
    return
  }
  const guess = nearest(upperCase, STRONG_NAMES)
  const hint = guess === '' ? 'use names of the IANA registry or of OpenSSL' : `did you mean ${guess}?`
  diagnostics.error(where, key, 'unknown cipher suite', hint, name)
}

/**
 * Lists of suites are often older than TLS 1.3: a list without suites of TLS 1.3 gets all of them, which are strong. A
 * list with suites of TLS 1.3 alone disables TLS 1.2.
 */
function combine(
  versions: readonly TlsVersion[],
  suites: readonly string[],
  where: string,
  { protocols, ciphers }: ConfiguredProtocols['names'],
  diagnostics: Diagnostics,
): TlsProtocolSettings {
  const tls12Suites = suites.filter(suite => !isTls13(suite))
  const tls13Suites = suites.filter(isTls13)
  if (suites.length === 0) {
    diagnostics.error(where, ciphers, 'names no suite that can be offered', STRONG_SUITES_HINT)
    return DEFAULT_PROTOCOL_SETTINGS
  }
  const maxVersion = versions.at(-1)!
  const hint = `name one, or set ${protocols} = "TLSv1.3"`
  if (maxVersion === 'TLSv1.2' && tls12Suites.length === 0) {
    diagnostics.error(where, ciphers, 'names no suite for TLSv1.2', hint)
    return DEFAULT_PROTOCOL_SETTINGS
  }
  if (versions[0] === 'TLSv1.2' && tls12Suites.length === 0) {
    diagnostics.warn(where, ciphers, 'names no suite for TLSv1.2, so TLSv1.2 is not offered', hint)
  }
  const minVersion = tls12Suites.length === 0 ? 'TLSv1.3' : versions[0]!
  const listed = [
    ...(maxVersion === 'TLSv1.2' ? [] : tls13Suites.length === 0 ? TLS_13_SUITES : tls13Suites),
    ...(minVersion === 'TLSv1.3' ? [] : tls12Suites),
  ]
  return { minVersion, maxVersion, ciphers: listed.join(':') }
}

function isTls13(suite: string): boolean {
  return suite.startsWith('TLS_')
}
