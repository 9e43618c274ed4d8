import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecureContext, getCiphers } from 'node:tls'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import type { TlsProtocolSettings } from '../../src/socket/tls.ts'
import { protocolSettings, TLS_13_SUITES } from '../../src/tls/protocol-settings.ts'

const ALL_13 = TLS_13_SUITES.join(':')
const ONE_12 = 'ECDHE-RSA-AES128-GCM-SHA256'
const JAVA_12 = 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'
const ONE_13 = 'TLS_AES_128_GCM_SHA256'

function read(
  protocols: readonly string[],
  ciphers: readonly string[],
): { settings: TlsProtocolSettings; diagnostics: Diagnostics } {
  const diagnostics = new Diagnostics()
  const settings = protocolSettings(
    { protocols, ciphers, where: '', names: { protocols: 'protocols', ciphers: 'ciphers' } },
    diagnostics,
  )
  return { settings, diagnostics }
}

/** [versions, suites, lowest version, highest version, cipher list, number of warnings] */
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
  test(`versions [${protocols}] with suites [${ciphers}] are accepted`, () => {
    const { settings, diagnostics } = read(protocols, ciphers)
    assert.deepEqual(diagnostics.errors, [])
    assert.deepEqual(settings, { minVersion: `TLSv${min}`, maxVersion: `TLSv${max}`, ciphers: list })
    assert.equal(diagnostics.warnings.length, warnings)
    if (list !== '') createSecureContext({ ciphers: list })
  })
}

const HINT = 'name suites with ECDHE and GCM or CHACHA20-POLY1305, or none for the defaults'
const BAD: readonly (readonly [readonly string[], readonly string[], string])[] = [
  [
    ['TLSv1', 'TLSv1.1'],
    [],
    'protocols = TLSv1,TLSv1.1: only versions before TLSv1.2, which are never offered (name TLSv1.2 or TLSv1.3, or both)',
  ],
  [
    ['SSLv3'],
    [],
    'protocols = SSLv3: only versions before TLSv1.2, which are never offered (name TLSv1.2 or TLSv1.3, or both)',
  ],
  [['TLSv1.4'], [], 'protocols = TLSv1.4: unknown TLS version (name TLSv1.2 or TLSv1.3, or both)'],
  [['TLSv1.2', 'TLS'], [], 'protocols = TLS: unknown TLS version (name TLSv1.2 or TLSv1.3, or both)'],
  [
    [],
    ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA265', ONE_12],
    `ciphers = TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA265: unknown cipher suite (did you mean ${JAVA_12}?)`,
  ],
  [[], ['HIGH', ONE_12], 'ciphers = HIGH: unknown cipher suite (use names of the IANA registry or of OpenSSL)'],
  [[], ['TLS_RSA_WITH_AES_128_CBC_SHA'], `ciphers: names no suite that can be offered (${HINT})`],
  [['TLSv1.2'], [ONE_13], 'ciphers: names no suite for TLSv1.2 (name one, or set protocols = "TLSv1.3")'],
]

for (const [protocols, ciphers, error] of BAD) {
  test(`versions [${protocols}] with suites [${ciphers}] are an error`, () => {
    assert.deepEqual(read(protocols, ciphers).diagnostics.errors.map(formatDiagnostic), [error])
  })
}

test('every suite of Node is either offered or known to be weak', () => {
  const named = getCiphers().map(name => name.toUpperCase().replaceAll('_', name.startsWith('tls_') ? '_' : '-'))
  const { diagnostics } = read([], [...named, ONE_12])
  assert.deepEqual(diagnostics.errors.map(formatDiagnostic), [])
})

test('every offered suite exists in Node', () => {
  const known = getCiphers()
  for (const suite of [...TLS_13_SUITES, ONE_12]) assert.ok(known.includes(suite.toLowerCase()), suite)
})
