/** Issue 14, item 7: `[carbon_health_check]` and its checkers. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { examine } from '../../src/config/load.ts'
import { HealthChecks } from '../../src/control/health-checks.ts'
import type { Registry } from '../../src/control/registry/registry.ts'
import { temporaryHome } from '../config/temporary-home.ts'

interface Database {
  readonly sections: readonly string[]
  readonly connections: number
  readonly used: number
  readonly error?: string
}

const EMBEDDED: Database = { sections: ['database.apim_db', 'database.shared_db'], connections: 1, used: 1 }
const APIM: Database = { sections: ['database.apim_db'], connections: 50, used: 0 }
const SHARED: Database = { sections: ['database.shared_db'], connections: 50, used: 0 }
const DOWN = { error: 'ECONNREFUSED db.secret.example' }

function registryOf(databases: readonly Database[], users = ''): Registry {
  const failing = async (message = ''): Promise<object> => {
    if (message !== '') throw new Error(message)
    return {}
  }
  const rows = databases.map(({ sections, connections, used, error }) => {
    return { sections, connections, usedConnections: () => used, ping: () => failing(error) }
  })
  return { databases: () => rows, users: { list: () => failing(users) } } as unknown as Registry
}

const MODULES = {
  'checks/good.js': 'export const checkHealth = ({ properties }) => ({ colour: properties.colour, order: 1 })',
  'checks/bad.js': 'export function checkHealth() { throw new Error("the queue is full") }',
  'checks/wrong.js': 'export const checkHealth = () => "yes"',
}

async function health(t: TestContext, toml: string, registry: Registry) {
  const home = temporaryHome(t, { 'deployment.toml': toml, ...MODULES })
  const { configuration, errors } = examine(home, [], join(home, 'data'))
  assert.deepEqual(errors, [])
  const logged: string[] = []
  const checks = await HealthChecks.load(configuration, home)
  const response = await checks.respond(registry, (_level, event, fields) => {
    logged.push(`${event} ${JSON.stringify(fields)}`)
  })
  return { status: response.status, body: await response.json(), logged: logged.join() }
}

const ON = '[carbon_health_check]\nenable = true\n'
const NO_USERS = `${ON}super_tenant_health_checker.enable = false\n`
const NO_DATABASES = `${ON}data_source_health_checker.enable = false\n`
const USERS = { key: 'user_store.PRIMARY', value: 'available' }

function available(name: string, used: string) {
  return [
    { key: `database.${name}`, value: 'available' },
    { key: `database.${name}.used_connections`, value: used },
  ]
}

/** [case, deployment.toml, databases, entries] */
const HEALTHY: readonly (readonly [string, string, readonly Database[], readonly object[]])[] = [
  [
    'both checkers, databases first',
    ON,
    [EMBEDDED],
    [...available('apim_db', '1 of 1'), ...available('shared_db', '1 of 1'), USERS],
  ],
  ['data_source_health_checker.enable', NO_DATABASES, [{ ...APIM, ...DOWN }], [USERS]],
  ['super_tenant_health_checker.enable', NO_USERS, [APIM], available('apim_db', '0 of 50')],
  [
    'the orders',
    `${ON}super_tenant_health_checker.order = 1\ndata_source_health_checker.order = 2\n`,
    [APIM],
    [USERS, ...available('apim_db', '0 of 50')],
  ],
  [
    'monitored.datasources',
    `${NO_USERS}data_source_health_checker.properties.'monitored.datasources' = "jdbc/WSO2SHARED_DB"\n`,
    [{ ...APIM, ...DOWN }, SHARED],
    available('shared_db', '0 of 50'),
  ],
  [
    'pool_usage_limit_percentage, up to which a pool is healthy',
    `${NO_USERS}data_source_health_checker.pool_usage_limit_percentage = 90\n`,
    [{ ...APIM, used: 45 }],
    available('apim_db', '45 of 50'),
  ],
  [
    'a module of the operator, between the built-in ones',
    `${NO_USERS}[[health_checker]]\nname = "checks/good.js"\norder = 1\n[health_checker.properties]\ncolour = "red"\n`,
    [APIM],
    [{ key: 'colour', value: 'red' }, { key: 'order', value: '1' }, ...available('apim_db', '0 of 50')],
  ],
]

for (const [name, toml, databases, entries] of HEALTHY) {
  test(`health checks obey ${name}`, async t => {
    const { status, body, logged } = await health(t, toml, registryOf(databases))
    assert.deepEqual([status, body, logged], [200, { health: entries }, ''])
  })
}

/** [case, deployment.toml, databases, error of the user store, codes, the log] */
const UNHEALTHY: readonly (readonly [string, string, readonly Database[], string, readonly string[], RegExp])[] = [
  ['a database that does not answer', ON, [{ ...APIM, ...DOWN }, SHARED], '', ['HC_00001'], /ECONNREFUSED/],
  ['a pool beyond its limit', ON, [{ ...APIM, used: 41 }], '', ['HC_00002'], /82 % of 50 connections/],
  ['a user store that does not answer', ON, [APIM], 'no users', ['HC_00003'], /no users/],
  ['two failures', ON, [{ ...APIM, ...DOWN }], 'no users', ['HC_00001', 'HC_00003'], /ECONNREFUSED.*no users/],
  [
    'a module that throws',
    `${ON}[[health_checker]]\nname = "checks/bad.js"\n`,
    [APIM],
    '',
    ['HC_00004'],
    /queue is full/,
  ],
  [
    'a module without an object',
    `${ON}[[health_checker]]\nname = "checks/wrong.js"\n`,
    [APIM],
    '',
    ['HC_00004'],
    /no|not an object/,
  ],
]

for (const [name, toml, databases, users, codes, said] of UNHEALTHY) {
  test(`health checks answer 503 for ${name}; only the log has the cause`, async t => {
    const { status, body, logged } = await health(t, toml, registryOf(databases, users))
    const { errors } = body as { errors: { code: string; message: string; description: string }[] }
    assert.equal(status, 503)
    assert.deepEqual(
      errors.map(({ code }) => code),
      codes,
    )
    for (const error of errors) assert.ok(error.message !== '' && error.description !== '')
    assert.doesNotMatch(JSON.stringify(body), /ECONNREFUSED|secret|queue is full/)
    assert.match(logged, said)
  })
}

test('without carbon_health_check.enable the health service answers 404', async t => {
  assert.equal((await health(t, '', registryOf([EMBEDDED]))).status, 404)
})

test('names that no database or user store has are warned of', t => {
  const toml = `${ON}super_tenant_health_checker.properties.'monitored.user.stores' = ["LDAP"]\n`
  const more = 'data_source_health_checker.properties.\'monitored.datasources\' = ["jdbc/Other"]\n'
  const home = temporaryHome(t, { 'deployment.toml': toml + more })
  const warnings = examine(home, [], join(home, 'data')).warnings.map(({ expected }) => expected)
  assert.equal(warnings.length, 2, warnings.join())
  assert.match(warnings.join(), /can name PRIMARY alone.*can name jdbc\/WSO2AM_DB/)
})
