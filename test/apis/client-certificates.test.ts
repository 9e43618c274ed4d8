/** `Client-certificates` of a project: the clients that an API knows by their certificates. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { loadApis } from '../../src/apis/api-loading.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { CLIENT, OTHER_CLIENT } from '../harness/certificates.ts'
import { API_OF_BOTH_KINDS } from './api-text.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const API = `${API_OF_BOTH_KINDS}  operations: [{target: /a, verb: GET}]\n`
const FOLDER = 'apis/A/Client-certificates'
const LIST = `type: client_certificates
version: v4.3.0
data:
  - {alias: one, certificate: one.crt, tierName: Gold, apiIdentifier: {apiName: A}}
`

function load(t: TestContext, files: Readonly<Record<string, string>>) {
  const inFolder = Object.fromEntries(Object.entries(files).map(([name, text]) => [`${FOLDER}/${name}`, text]))
  const home = temporaryHome(t, { 'apis/A/api.yaml': API, ...inFolder })
  const { apis, errors } = new ApiProjects(home).load()
  return { known: apis[0]?.clientCertificates, said: errors.map(formatDiagnostic).join('\n') }
}

function thumbprintOf({ cert }: { readonly cert: string }): string {
  return Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

test('a project without the list has no client certificates', t => {
  assert.deepEqual(load(t, {}), { known: [], said: '' })
})

test('a certificate has alias, tier and the SHA-256 of its DER form', t => {
  const second = LIST.replace('one.crt', 'two.crt').replace('alias: one', 'alias: two').replace('tierName: Gold, ', '')
  const files = {
    'client_certificates.yaml': LIST,
    'one.crt': CLIENT.cert,
    'SANDBOX/client_certificates.yaml': second,
    'SANDBOX/two.crt': OTHER_CLIENT.cert,
  }
  const known = [
    { alias: 'one', tier: 'Gold', thumbprint: thumbprintOf(CLIENT) },
    { alias: 'two', tier: '', thumbprint: thumbprintOf(OTHER_CLIENT) },
  ]
  assert.deepEqual(load(t, files), { known, said: '' })
})

const WRONG: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
  ['a missing certificate', { 'client_certificates.yaml': LIST }, /one\.crt.*is no file of/],
  ['a file that is no certificate', { 'client_certificates.yaml': LIST, 'one.crt': 'none' }, /is no certificate/],
  [
    'a certificate outside of the folder',
    { 'client_certificates.yaml': LIST.replace('one.crt', '../api.yaml') },
    /is no file of/,
  ],
  ['a list that is no list', { 'client_certificates.yaml': 'data: {}' }, /expected a list/],
]
for (const [what, files, pattern] of WRONG) {
  test(`${what} is an error, and the API is not deployed`, t => {
    const { known, said } = load(t, files)
    assert.match(said, pattern)
    assert.equal(known, undefined)
  })
}

const ASKS = 'listener.parameters.SSLVerifyClient'
const LISTENERS: readonly (readonly [scheme: string, certificates: boolean, toml: string, said: RegExp | null])[] = [
  ['oauth2', true, '', null],
  [
    'mutualssl',
    true,
    '',
    /no listener asks for a client certificate \(set transport\.passthru_https\.listener\.parameters\.SSLVer/,
  ],
  ['oauth2, mutualssl, mutualssl_mandatory', true, `${ASKS} = "none"`, /no listener asks for a client certificate/],
  ['mutualssl', true, `${ASKS} = "optional"`, null],
  ['mutualssl', true, 'listener.ssl_profile.file_path = "profiles.xml"', null],
  ['mutualssl', false, `${ASKS} = "optional"`, /its project lists no client certificate/],
]
for (const [scheme, isListed, toml, said] of LISTENERS) {
  const outcome = said === null ? 'no warning' : 'a warning'
  test(`[${scheme}], ${isListed ? '' : 'not '}listed, {${toml}}: ${outcome}`, async t => {
    const files = isListed ? { [`${FOLDER}/client_certificates.yaml`]: LIST, [`${FOLDER}/one.crt`]: CLIENT.cert } : {}
    const yaml = `${API}  securityScheme: [${scheme}]\n`
    const deployment = `[transport.passthru_https]\n${toml}\n`
    const home = temporaryHome(t, { 'deployment.toml': deployment, 'apis/A/api.yaml': yaml, ...files })
    const { warnings } = await loadApis(
      new ApiProjects(home),
      loadConfiguration(home, []).configuration,
      true,
      new Map(),
    )
    const text = warnings
      .map(formatDiagnostic)
      .filter(it => !it.includes('tierName'))
      .join('\n')
    if (said === null) assert.doesNotMatch(text, /certificate/)
    else assert.match(text, said)
  })
}
