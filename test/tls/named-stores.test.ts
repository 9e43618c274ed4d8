/** Of a store or a profile that is wrong it is said which line of the configuration led there, and once. */
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

/** Faults and warnings of `check`, where `own.p12` is the only store that there is. */
async function said(t: TestContext, toml: string, sets: readonly string[] = []): Promise<readonly string[]> {
  const home = temporaryHome(t, { 'deployment.toml': toml, 'apis/A/api.yaml': BACKEND })
  mkdirSync(join(home, 'security'))
  writeFileSync(join(home, 'security/own.p12'), MODERN_P12)
  const output = new Transcript()
  await check(argumentsFor(home, { sets }), output)
  const lines = output.text.replaceAll(`${home}/`, '').replaceAll('deployment.toml', 'F').split('\n')
  return lines.filter(line => /^(?:fault|warning) /.test(line) && !/accepted and not acted on/.test(line))
}

const MISSING = 'cannot be read: there is no such file'
const put = (key: string): string =>
  `put it there, or set ${key}; it is looked for in the folder security of the home folder`

/** What is wrong, the file, `--set`, and the whole of what is said. */
const NAMED: readonly (readonly [what: string, toml: string, sets: readonly string[], said: readonly string[]])[] = [
  [
    'a store of the transport that is missing',
    `[${HTTPS}]\n"listener.key_store.file_name" = "none.jks"\n`,
    [],
    [
      `fault    security/none.jks: ${HTTPS}.listener.key_store.file_name: ${MISSING} ` +
        `(named at F:2; ${put(`${HTTPS}.listener.key_store.file_name`)})`,
    ],
  ],
  [
    'one store that listener and sender follow, once',
    '[keystore.primary]\nfile_name = "none.jks"\n',
    [],
    [
      `fault    security/none.jks: keystore.primary.file_name: ${MISSING} ` +
        `(named at F:2; ${put('keystore.primary.file_name')})`,
    ],
  ],
  [
    'one trust store that listener, sender and WebSocket follow, once',
    '[truststore]\nfile_name = "none.jks"\npassword = "p"\n[transport.wss]\nsender.enable = true\n',
    [],
    [
      `fault    security/none.jks: truststore.file_name: ${MISSING} ` +
        `(named at F:2; ${put('truststore.file_name')})`,
    ],
  ],
  [
    'two keys that name the same, twice',
    `[${HTTPS}]\n"listener.key_store.file_name" = "none.jks"\n"sender.key_store.file_name" = "none.jks"\n`,
    [],
    ['listener', 'sender'].map(
      (side, at) =>
        `fault    security/none.jks: ${HTTPS}.${side}.key_store.file_name: ${MISSING} ` +
        `(named at F:${at + 2}; ${put(`${HTTPS}.${side}.key_store.file_name`)})`,
    ),
  ],
  [
    'a store that --set names',
    '',
    ['keystore.tls.file_name=none.jks'],
    [
      `fault    security/none.jks: keystore.tls.file_name: ${MISSING} ` +
        `(named at --set; ${put('keystore.tls.file_name')})`,
    ],
  ],
  [
    'a wrong password',
    '[keystore.tls]\nfile_name = "own.p12"\npassword = "secret"\n',
    [],
    [
      `fault    security/own.p12: keystore.tls.password: wrong password for security/own.p12 ` +
        `(set at F:3; set keystore.tls.password)`,
    ],
  ],
  [
    'no password at all',
    '[keystore.tls]\nfile_name = "own.p12"\n',
    [],
    [
      'fault    security/own.p12: keystore.tls.file_name: needs a password, and none is set ' +
        '(named at F:2; set keystore.tls.password)',
    ],
  ],
  [
    'an alias that is only warned of',
    '[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\nalias = "other"\n',
    [],
    [
      `warning  security/own.p12: keystore.tls.alias = other: there is no key of that name in it, ` +
        'so the only one is used (named at F:4; in it there is server)',
    ],
  ],
  [
    'a profile that is missing',
    `[${HTTPS}]\n"listener.ssl_profile.file_path" = "gone.xml"\n`,
    [],
    [
      `fault    gone.xml: ${HTTPS}.listener.ssl_profile.file_path: ${MISSING} ` +
        `(named at F:2; put it there, or set ${HTTPS}.listener.ssl_profile.file_path)`,
    ],
  ],
  [
    'a verifier that is only warned of',
    `[${HTTPS}]\n"sender.hostname_verifier" = "AllowAll"\n`,
    [],
    [
      `warning  F:2: ${HTTPS}.sender.hostname_verifier = AllowAll: ` +
        'a backend is believed with the certificate of any other (set Strict)',
    ],
  ],
  [
    'a client certificate that nothing vouches for',
    `[${HTTPS}]\n"listener.parameters.SSLVerifyClient" = "require"\n`,
    [],
    [
      `fault    ${HTTPS}.listener.trust_store.file_name: clients are asked for certificates, and none are trusted ` +
        `(set ${HTTPS}.listener.trust_store.file_name)`,
    ],
  ],
]

for (const [what, toml, sets, lines] of NAMED) {
  test(`where it was named: ${what}`, async t => {
    assert.deepEqual(await said(t, toml, sets), lines)
  })
}
