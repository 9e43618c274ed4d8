/**
 * Cipher suites by their two names: the registry's, which Java uses, and OpenSSL's. Only suites that are both forward
 * secret and authenticated (RFC 9325 4.2) are ever offered; what else an operator names is left out and said so.
 */
import type { Findings } from '../config/findings.ts'
import { nearest } from '../config/nearest.ts'

/** Registry name -> OpenSSL name. TLS 1.3 suites have one name. */
const STRONG: Readonly<Record<string, string>> = {
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
const BY_NAME = new Map([...Object.entries(STRONG), ...Object.values(STRONG).map(name => [name, name] as const)])
const NAMES = [...BY_NAME.keys()]
export const SUITES_13: readonly string[] = Object.values(STRONG).filter(is13)

/** In lists of Java, and no suite: RFC 5746 3.3. */
const SIGNAL = 'TLS_EMPTY_RENEGOTIATION_INFO_SCSV'
/** What the names of suites are put together from. One that is made of these and is not strong is weak. */
const PARTS = new Set(
  [
    'TLS SSL WITH EXPORT EXP ECDHE DHE EDH ECDH DH ADH AECDH ECDSA RSA DSS DSA PSK SRP KRB5 GOST2001 ANON NULL',
    'AES AES128 AES256 ARIA ARIA128 ARIA256 CAMELLIA CAMELLIA128 CAMELLIA256 CHACHA20 POLY1305 3DES DES DES40 RC4 RC2',
    'SEED IDEA 128 256 40 56 8 EDE CBC CBC3 GCM CCM CCM8 MD5 SHA SHA1 SHA256 SHA384',
  ]
    .join(' ')
    .split(' '),
)

/** OpenSSL names of what is offered, in the order given, each once. Weak ones are warned of, unknown ones faults. */
export function suitesOf(given: readonly string[], where: string, key: string, findings: Findings): readonly string[] {
  const suites: string[] = []
  for (const name of given) {
    const suite = BY_NAME.get(name.toUpperCase())
    if (suite !== undefined) suites.push(suite)
    else if (name !== SIGNAL) reportSuite(name, where, key, findings)
  }
  return [...new Set(suites)]
}

export function is13(suite: string): boolean {
  return suite.startsWith('TLS_')
}

function reportSuite(name: string, where: string, key: string, findings: Findings): void {
  const spelt = name.toUpperCase()
  const parts = spelt.split(/[_-]/)
  if (parts.length > 1 && parts.every(part => PARTS.has(part))) {
    const remedy = 'name suites with ECDHE and GCM or CHACHA20, or none for those of the gateway'
    findings.warn(where, key, 'a suite that is weak is never offered', remedy, name)
    return
  }
  const guess = nearest(spelt, NAMES)
  const remedy = guess === '' ? 'names are those of the IANA registry or of OpenSSL' : `did you mean ${guess}?`
  findings.fault(where, key, 'there is no such cipher suite', remedy, name)
}
