/** `${property}`: facts that only a start knows. */
import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { PROPERTIES } from '../../src/config/properties.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const FILE = `[server]
hostname = "gw.example.com"
node_ip = "10.0.1.11"
offset = 7
[super_admin]
username = "chief"
password = "geheim"
[transport.passthru_http]
listener.parameters.port = 1000
[transport.passthru_https]
listener.parameters.port = 2000
[transport.ws]
listener.parameters.port = 3000
[transport.wss]
listener.parameters.port = 4000
[management]
health_port = 5000
[access_log]
path = `

function referenceTo(name: string): string {
  return `$\{${name}}`
}

/** The value of a text with the property. */
function comesTo(t: TestContext, name: string, file = FILE): string {
  const home = temporaryHome(t, { 'deployment.toml': `${file}"=${referenceTo(name)}"` })
  const { configuration, errors } = examine(home, [], join(home, 'elsewhere'))
  assert.deepEqual(errors.map(formatDiagnostic), [])
  return configuration.access_log.path.slice(1).replaceAll(home, '~')
}

const VALUES: Readonly<Record<string, string>> = {
  home: '~',
  data: '~/elsewhere',
  host: 'gw.example.com',
  ip: '10.0.1.11',
  offset: '7',
  'port.http': '1007',
  'port.https': '2007',
  'port.ws': '3007',
  'port.wss': '4007',
  'port.health': '5007',
  'port.management': '9450',
  'carbon.home': '~',
  'carbon.host': 'gw.example.com',
  'carbon.local.ip': '10.0.1.11',
  'carbon.context': '/',
  'carbon.protocol': 'https',
  'carbon.management.port': '9450',
  'mgt.transport.https.port': '9450',
  'mgt.transport.http.port': '5007',
  'http.nio.port': '1007',
  'https.nio.port': '2007',
  'receiver.url.port': '9618',
  'auth.url.port': '9718',
  'jms.port': '5679',
  'default.server.role': 'default',
  'admin.username': 'chief',
  'admin.password': 'geheim',
}

test('every property is listed with its meaning', () => {
  assert.deepEqual(
    PROPERTIES.map(({ name }) => name),
    Object.keys(VALUES),
  )
  for (const { name, meaning } of PROPERTIES) assert.match(meaning, /^\S.*\.$/, name)
})

for (const [name, value] of Object.entries(VALUES)) {
  test(`the value of ${name} is ${value}`, t => assert.equal(comesTo(t, name), value))
}

test('the property of a free port is 0, with and without an offset', t => {
  assert.equal(comesTo(t, 'http.nio.port', FILE.replace('port = 1000', 'port = 0')), '0')
})

test('without node_ip the address is one of this machine', t => {
  assert.notEqual(isIP(comesTo(t, 'carbon.local.ip', '[access_log]\npath = ')), 0)
})

test('a property that is the whole value is a number for a port', t => {
  const home = temporaryHome(t, {
    'deployment.toml': `[server]\noffset = 3\n[transport.ws]\nlistener.parameters.port = "${referenceTo('jms.port')}"`,
  })
  const { configuration, errors } = examine(home, [], join(home, 'data'))
  assert.deepEqual(errors, [])
  assert.equal(configuration['transport.ws']['listener.parameters.port'], 5675)
})

const MISSPELT = referenceTo('carbon.hots')
const HTTP_PORT = referenceTo('http.nio.port')
const GUESS = `did you mean ${referenceTo('carbon.host')}?; another key is $ref{section.key}`

const ERRORS: readonly (readonly [toml: string, ...errors: readonly string[]])[] = [
  [
    `[access_log]\npath = "${MISSPELT}"`,
    `F:2: access_log.path = "${MISSPELT}": there is no property carbon.hots (${GUESS})`,
  ],
  // A property of an invalid key is no further error.
  [
    `[server]\noffset = "x"\n[access_log]\npath = "${HTTP_PORT}"`,
    'F:2: server.offset = "x": expected a whole number, 0 to 64535 (the default is offset = 0)',
  ],
  [
    `[server]\noffset = "${HTTP_PORT}"`,
    `F:2: server.offset = "${HTTP_PORT}": references run in a circle: ` +
      `server.offset -> ${HTTP_PORT} -> server.offset (give one of them a value)`,
  ],
]

for (const [toml, ...errors] of ERRORS) {
  test(`an unknown property is one error: ${JSON.stringify(toml)}`, t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const said = examine(home, [], join(home, 'data')).errors.map(formatDiagnostic)
    assert.deepEqual(
      said.map(line => line.replaceAll(join(home, 'deployment.toml'), 'F')),
      errors,
    )
  })
}

test('the administrator password stays secret in every key that refers to it', async t => {
  const home = temporaryHome(t, { 'deployment.toml': `${FILE}"x${referenceTo('admin.password')}"` })
  const output = new Transcript()
  await explain(argumentsFor(home, { rest: ['access_log.path'] }), output, output)
  assert.match(output.text, /\(set\)/)
  assert.doesNotMatch(output.text, /geheim/)
})
