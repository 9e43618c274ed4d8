import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecureContext, getCiphers } from 'node:tls'
import { describe } from '../../src/config/fault.ts'
import type { TlsTerms } from '../../src/socket/tls.ts'
import { SUITES_13 } from '../../src/tls/cipher-suites.ts'
import { Findings } from '../../src/config/findings.ts'
import { termsOf } from '../../src/tls/terms.ts'

const ALL_13 = SUITES_13.join(':')
const ONE_12 = 'ECDHE-RSA-AES128-GCM-SHA256'
const JAVA_12 = 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'
const ONE_13 = 'TLS_AES_128_GCM_SHA256'

function read(protocols: readonly string[], ciphers: readonly string[]): { terms: TlsTerms; findings: Findings } {
  const findings = new Findings()
  const terms = termsOf(
    { protocols, ciphers, where: '', names: { protocols: 'protocols', ciphers: 'ciphers' } },
    findings,
  )
  return { terms, findings }
}

/** Protocols, suites, what is agreed on: lowest and highest version, list; and how often is warned. */
const GOOD: readonly (readonly [readonly string[], readonly string[], string, string, string, number])[] = [
  [[], [], '1.2', '1.3', '', 0],
  [['TLSv1.2', 'TLSv1.3'], [], '1.2', '1.3', '', 0],
  [['TLSv1.3'], [], '1.3', '1.3', '', 0],
  [['tlsv1.2'], [], '1.2', '1.2', '', 0],
  [['TLSv1', 'TLSv1.1', 'TLSv1.2'], [], '1.2', '1.2', '', 1],
  [['SSLv2Hello', 'SSLv3', 'TLSv1.3'], [], '1.3', '1.3', '', 1],
  [[], [JAVA_12], '1.2', '1.3', `${ALL_13}:${ONE_12}`, 0],
  [[], [ONE_12], '1.2', '1.3', `${ALL_13}:${ONE_12}`, 0],
  [[], [ONE_13, JAVA_12, ONE_12], '1.2', '1.3', `${ONE_13}:${ONE_12}`, 0],
  [['TLSv1.2'], [ONE_13, JAVA_12], '1.2', '1.2', ONE_12, 0],
  [['TLSv1.3'], [ONE_13, JAVA_12], '1.3', '1.3', ONE_13, 0],
  [['TLSv1.3'], [JAVA_12], '1.3', '1.3', ALL_13, 0],
  [[], [ONE_13], '1.3', '1.3', ONE_13, 1],
  [[], [JAVA_12, 'TLS_EMPTY_RENEGOTIATION_INFO_SCSV'], '1.2', '1.3', `${ALL_13}:${ONE_12}`, 0],
  [[], [JAVA_12, 'TLS_RSA_WITH_AES_128_CBC_SHA', 'AES128-SHA'], '1.2', '1.3', `${ALL_13}:${ONE_12}`, 2],
]

for (const [protocols, ciphers, min, max, list, warnings] of GOOD) {
  test(`versions [${protocols}] with suites [${ciphers}] are taken`, () => {
    const { terms, findings } = read(protocols, ciphers)
    assert.deepEqual(findings.faults, [])
    assert.deepEqual(terms, { minVersion: `TLSv${min}`, maxVersion: `TLSv${max}`, ciphers: list })
    assert.equal(findings.warnings.length, warnings)
    if (list !== '') createSecureContext({ ciphers: list })
  })
}

const FORWARD = 'name suites with ECDHE and GCM or CHACHA20, or none for those of the gateway'
const BAD: readonly (readonly [readonly string[], readonly string[], string])[] = [
  [
    ['TLSv1', 'TLSv1.1'],
    [],
    'protocols = TLSv1,TLSv1.1: only versions that are never offered are named (name TLSv1.2 or TLSv1.3, or both)',
  ],
  [
    ['SSLv3'],
    [],
    'protocols = SSLv3: only versions that are never offered are named (name TLSv1.2 or TLSv1.3, or both)',
  ],
  [['TLSv1.4'], [], 'protocols = TLSv1.4: there is no such version of TLS (name TLSv1.2 or TLSv1.3, or both)'],
  [['TLSv1.2', 'TLS'], [], 'protocols = TLS: there is no such version of TLS (name TLSv1.2 or TLSv1.3, or both)'],
  [
    [],
    ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA265', ONE_12],
    `ciphers = TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA265: there is no such cipher suite (did you mean ${JAVA_12}?)`,
  ],
  [
    [],
    ['HIGH', ONE_12],
    'ciphers = HIGH: there is no such cipher suite (names are those of the IANA registry or of OpenSSL)',
  ],
  [[], ['TLS_RSA_WITH_AES_128_CBC_SHA'], `ciphers: none of its suites can be offered (${FORWARD})`],
  [['TLSv1.2'], [ONE_13], 'ciphers: it has no suite for TLSv1.2 (name one, or set protocols = "TLSv1.3")'],
]

for (const [protocols, ciphers, fault] of BAD) {
  test(`versions [${protocols}] with suites [${ciphers}] are a fault`, () => {
    assert.deepEqual(read(protocols, ciphers).findings.faults.map(describe), [fault])
  })
}

test('every suite that Node has is either offered or known to be weak, never unknown', () => {
  const named = getCiphers().map(name => name.toUpperCase().replaceAll('_', name.startsWith('tls_') ? '_' : '-'))
  const { findings } = read([], [...named, ONE_12])
  assert.deepEqual(findings.faults.map(describe), [])
})

test('every suite that is offered is one of Node', () => {
  const known = getCiphers()
  for (const suite of [...SUITES_13, ONE_12]) assert.ok(known.includes(suite.toLowerCase()), suite)
})
