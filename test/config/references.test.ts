import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { describe } from '../../src/config/fault.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

const HOME = '\u{24}{home}'
const DATA = '\u{24}{data}'
const HOST = '\u{24}{host}'
const OFFSET = '\u{24}{offset}'

function resolved(t: TestContext, toml: string, home = temporaryHome(t, { 'deployment.toml': toml })): Resolution {
  return examine(home, [], join(home, 'elsewhere'))
}

/** The faults of a text, with the file named `F`. */
function faultsOf(t: TestContext, toml: string): readonly string[] {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  return resolved(t, toml, home).faults.map(fault => describe(fault).replaceAll(join(home, 'deployment.toml'), 'F'))
}

process.env.SLUICE_TEST_TEXT = 'from outside'
process.env.SLUICE_TEST_NUMBER = '17'
process.env.SLUICE_TEST_LIST = '10.0.0.0/8,::1'

const PATHS: readonly (readonly [given: string, comesTo: string])[] = [
  ['$ref{server.hostname}', 'gw'],
  ['$conf{server.hostname}', 'gw'],
  ['a/$ref{server.hostname}/b-$ref{server.offset}', 'a/gw/b-3'],
  ['$ref{transport.passthru_http.http.headers.preserve}', 'Content-Type'],
  ['$ref{transport.passthru_http.http.headers.preserve}.log', 'Content-Type.log'],
  ['$ref{my.own.key}', 'mine'],
  ['$env{SLUICE_TEST_TEXT}', 'from outside'],
  [`${HOST}:${OFFSET}`, 'gw:3'],
  ['$${home}', HOME],
  ['$$ref{server.hostname} and $env{SLUICE_TEST_TEXT}', '$ref{server.hostname} and from outside'],
  ['costs $5 {x}', 'costs $5 {x}'],
]

for (const [given, comesTo] of PATHS) {
  test(`${given} comes to ${comesTo}`, t => {
    const toml = `[server]\nhostname = "gw"\noffset = 3\n[my]\nown.key = "mine"\n[access_log]\npath = '${given}'`
    const { configuration, faults } = resolved(t, toml)
    if (given === '$ref{transport.passthru_http.http.headers.preserve}') assert.equal(faults.length, 1)
    else assert.equal(configuration.access_log.path, comesTo)
  })
}

test('home and data are the folders of this start', t => {
  const home = temporaryHome(t, {
    'deployment.toml': `[access_log]\npath = "${DATA}/x"\n[server]\nbase_path = "${HOME}"`,
  })
  const { configuration } = resolved(t, '', home)
  assert.equal(configuration.access_log.path, join(home, 'elsewhere', 'x'))
  assert.equal(configuration.server.base_path, home)
})

test('a value that is one reference has the type of what it refers to', t => {
  const { configuration } = resolved(t, '[management]\nhealth_port = "$ref{my.port}"\n[my]\nport = 99')
  assert.equal(configuration.management.health_port, 99)
})

test('numbers and lists may come from the environment', t => {
  const { configuration, faults } = resolved(
    t,
    '[server]\noffset = "$env{SLUICE_TEST_NUMBER}"\n[transport.passthru_http]\ntrusted_proxies = ["192.168.0.0/16", "$env{SLUICE_TEST_NUMBER}.0.0.0/8"]',
  )
  assert.deepEqual(faults, [])
  assert.equal(configuration.server.offset, 17)
  assert.deepEqual(configuration['transport.passthru_http'].trusted_proxies, ['192.168.0.0/16', '17.0.0.0/8'])
})

test('a list in one text may come from the environment', t => {
  const { configuration } = resolved(t, '[transport.passthru_http]\ntrusted_proxies = "$env{SLUICE_TEST_LIST}"')
  assert.deepEqual(configuration['transport.passthru_http'].trusted_proxies, ['10.0.0.0/8', '::1/128'])
})

test('defaults may refer to other keys', t => {
  assert.equal(resolved(t, '[server]\nhostname = "gw"').configuration.server.base_path, 'https://gw:9443')
})

const MISSING: readonly (readonly [toml: string, ...faults: readonly string[]])[] = [
  [
    '[access_log]\npath = "$ref{server.hostnam}"',
    'F:2: access_log.path = "$ref{server.hostnam}": there is no key server.hostnam to refer to (did you mean server.hostname?)',
  ],
  [
    '[access_log]\npath = "$env{SLUICE_TEST_ABSENT}"',
    'F:2: access_log.path = "$env{SLUICE_TEST_ABSENT}": there is no environment variable SLUICE_TEST_ABSENT (set it before the start, or write the value here)',
  ],
  [
    `[access_log]\npath = "\u{24}{carbon}"`,
    'F:2: access_log.path = "\u{24}{carbon}": there is no property carbon (conf/reference.md lists the properties; another key is $ref{section.key})',
  ],
  [
    '[server]\noffset = "$env{SLUICE_TEST_TEXT}"',
    'F:2: server.offset = "$env{SLUICE_TEST_TEXT}": expected a whole number, 0 to 64535, and it comes to "from outside" (the default is offset = 0)',
  ],
  [
    '[access_log]\npath = "$ref{access_log.path}"',
    'F:2: access_log.path = "$ref{access_log.path}": references run in a circle: access_log.path -> access_log.path (give one of them a value)',
  ],
  [
    '[access_log]\npath = "x$ref{my.a}"\n[my]\na = "$ref{my.b}"\nb = "$ref{my.a}"',
    'F:2: access_log.path = "x$ref{my.a}": references run in a circle: access_log.path -> my.a (F:4) -> my.b (F:5) -> my.a (give one of them a value)',
  ],
  // A value that refers to a faulty one is not blamed as well.
  [
    '[server]\nhostname = 5\n[access_log]\npath = "$ref{server.hostname}"',
    'F:2: server.hostname = 5: expected a host name or an IP address (write it in quotes: "5")',
  ],
]

for (const [toml, ...faults] of MISSING) {
  test(`a reference that leads nowhere is one fault: ${JSON.stringify(toml)}`, t => {
    assert.deepEqual(faultsOf(t, toml), faults)
  })
}
