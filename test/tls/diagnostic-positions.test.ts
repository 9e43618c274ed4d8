/** Diagnostics of a store or a profile name the line of the configuration that names the file, once. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'
import { MODERN_P12 } from './fixtures/stores.ts'

const HTTPS = 'transport.passthru_https'
const BACKEND =
  'type: api\nversion: v4.0.0\ndata:\n  name: A\n  context: /a\n  version: 1.0.0\n  endpointConfig:\n' +
  '    endpoint_type: http\n    production_endpoints:\n      url: https://h\n'

/** Errors and warnings of `check` in a home whose only store is `own.p12`. */
async function diagnosticsOf(t: TestContext, toml: string, sets: readonly string[] = []): Promise<readonly string[]> {
  const home = temporaryHome(t, { 'deployment.toml': toml, 'apis/A/api.yaml': BACKEND })
  mkdirSync(join(home, 'security'))
  writeFileSync(join(home, 'security/own.p12'), MODERN_P12)
  const output = new Transcript()
  await check(argumentsFor(home, { sets }), output)
  const lines = output.text.replaceAll(`${home}/`, '').replaceAll('deployment.toml', 'F').split('\n')
  return lines.filter(line => /^(?:error|warning) /.test(line) && !/accepted and not acted on/.test(line))
}

const MISSING = 'cannot be read: there is no such file'
const hint = (key: string): string => `put the file into the folder security of the home, or set ${key}`

const CASES: readonly (readonly [what: string, toml: string, sets: readonly string[], lines: readonly string[]])[] = [
  [
    'a store of the transport that is missing',
    `[${HTTPS}]\n"listener.key_store.file_name" = "none.jks"\n`,
    [],
    [
      `error    security/none.jks: ${HTTPS}.listener.key_store.file_name: ${MISSING} ` +
        `(named at F:2; ${hint(`${HTTPS}.listener.key_store.file_name`)})`,
    ],
  ],
  [
    'one store that listener and sender inherit, once',
    '[keystore.primary]\nfile_name = "none.jks"\n',
    [],
    [
      `error    security/none.jks: keystore.primary.file_name: ${MISSING} ` +
        `(named at F:2; ${hint('keystore.primary.file_name')})`,
    ],
  ],
  [
    'one trust store that listener, sender and WebSocket inherit, once',
    '[truststore]\nfile_name = "none.jks"\npassword = "p"\n[transport.wss]\nsender.enable = true\n',
    [],
    [
      `error    security/none.jks: truststore.file_name: ${MISSING} ` +
        `(named at F:2; ${hint('truststore.file_name')})`,
    ],
  ],
  [
    'two keys that name the same file, twice',
    `[${HTTPS}]\n"listener.key_store.file_name" = "none.jks"\n"sender.key_store.file_name" = "none.jks"\n`,
    [],
    ['listener', 'sender'].map(
      (side, at) =>
        `error    security/none.jks: ${HTTPS}.${side}.key_store.file_name: ${MISSING} ` +
        `(named at F:${at + 2}; ${hint(`${HTTPS}.${side}.key_store.file_name`)})`,
    ),
  ],
  [
    'a store that --set names',
    '',
    ['keystore.tls.file_name=none.jks'],
    [
      `error    security/none.jks: keystore.tls.file_name: ${MISSING} ` +
        `(named at --set; ${hint('keystore.tls.file_name')})`,
    ],
  ],
  [
    'a wrong password',
    '[keystore.tls]\nfile_name = "own.p12"\npassword = "secret"\n',
    [],
    [
      `error    security/own.p12: keystore.tls.password: wrong password for security/own.p12 ` +
        `(set at F:3; set keystore.tls.password)`,
    ],
  ],
  [
    'no password at all',
    '[keystore.tls]\nfile_name = "own.p12"\n',
    [],
    [
      'error    security/own.p12: keystore.tls.file_name: needs a password, and none is set ' +
        '(named at F:2; set keystore.tls.password)',
    ],
  ],
  [
    'a wrong alias, which is a warning',
    '[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\nalias = "other"\n',
    [],
    [
      `warning  security/own.p12: keystore.tls.alias = other: holds no key with this alias, ` +
        'so its only key is used (named at F:4; its keys: server)',
    ],
  ],
  [
    'a profile that is missing',
    `[${HTTPS}]\n"listener.ssl_profile.file_path" = "gone.xml"\n`,
    [],
    [
      `error    gone.xml: ${HTTPS}.listener.ssl_profile.file_path: ${MISSING} ` +
        `(named at F:2; put the file there, or set ${HTTPS}.listener.ssl_profile.file_path)`,
    ],
  ],
  [
    'a weak verifier, which is a warning',
    `[${HTTPS}]\n"sender.hostname_verifier" = "AllowAll"\n`,
    [],
    [
      `warning  F:2: ${HTTPS}.sender.hostname_verifier = AllowAll: ` +
        'backends are accepted with a certificate for any name (set Strict)',
    ],
  ],
  [
    'a required client certificate without a trust store',
    `[${HTTPS}]\n"listener.parameters.SSLVerifyClient" = "require"\n`,
    [],
    [
      `error    ${HTTPS}.listener.trust_store.file_name: ` +
        `clients are asked for certificates, and no trust store is set (set ${HTTPS}.listener.trust_store.file_name)`,
    ],
  ],
]

for (const [what, toml, sets, lines] of CASES) {
  test(`a diagnostic names the line of the key: ${what}`, async t => {
    assert.deepEqual(await diagnosticsOf(t, toml, sets), lines)
  })
}
