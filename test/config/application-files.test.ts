/** Applications that a home declares: what is read, and which faults name which line. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readApplications } from '../../src/config/application-files.ts'
import { describe } from '../../src/config/fault.ts'
import { declaredFacts } from '../../src/primary/declared-planning.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { temporaryHome } from './temporary-home.ts'

const SHOP = `name: Shop
owner: alice
tier: 10PerMin
attributes: { team: a }
keys:
  - { type: SANDBOX, consumerKey: 0123, issuer: https://idp.example }
  - consumerKey: own
subscriptions:
  - { api: "Orders:1.0.0", tier: Gold }
  - { api: "Bills:2.0.0", status: BLOCKED }
`

function homeWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const named = Object.entries(files).map(([name, text]) => [`applications/${name}`, text] as const)
  return temporaryHome(t, { 'deployment.toml': '', ...Object.fromEntries(named) })
}

function faultsOf(t: TestContext, text: string): string {
  return readApplications(homeWith(t, { 'shop.yaml': text }))
    .faults.map(describe)
    .join('\n')
}

test('an application is read with its keys and subscriptions, and told as facts', t => {
  const home = homeWith(t, { 'shop.yaml': SHOP })
  const { applications, faults } = readApplications(home)
  assert.deepEqual(faults, [])
  const facts = declaredFacts(applications, loadConfiguration(home, []).configuration)
  const [{ id, ...application }] = facts.applications as [(typeof facts.applications)[0]]
  const tenant = 'carbon.super'
  assert.deepEqual(application, { name: 'Shop', owner: 'alice', tenant, tier: '10PerMin', attributes: { team: 'a' } })
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(facts.keys, [
    { issuer: 'https://idp.example', consumerKey: '0123', applicationId: id, keyType: 'SANDBOX' },
    { issuer: 'https://localhost:9443/oauth2/token', consumerKey: 'own', applicationId: id, keyType: 'PRODUCTION' },
  ])
  assert.deepEqual(
    facts.subscriptions.map(({ api, tier, status }) => [api, tier, status]),
    [
      ['Orders:1.0.0', 'Gold', 'ACTIVE'],
      ['Bills:2.0.0', 'Unlimited', 'BLOCKED'],
    ],
  )
})

test('who names no owner has an application of the super admin', t => {
  const home = homeWith(t, { 'a.yml': 'name: Small' })
  const { configuration } = loadConfiguration(home, ['super_admin.username=root'])
  assert.equal(declaredFacts(readApplications(home).applications, configuration).applications[0]!.owner, 'root')
})

const WRONG: readonly (readonly [why: string, text: string, said: RegExp])[] = [
  ['no name', 'owner: a', /shop\.yaml:1: name: is missing/],
  ['an unknown member', 'name: a\nkey: x', /shop\.yaml:2: key: is not known here/],
  [
    'a secret, which is nowhere used',
    'name: a\nkeys:\n  - { consumerKey: k, secret: s }',
    /shop\.yaml:3: .*secret.*is not known here/,
  ],
  [
    'a status that is none',
    'name: a\nsubscriptions:\n  - { api: "a:1", status: ON }',
    /shop\.yaml:3: .*status = "ON": expected one of ACTIVE/,
  ],
  ['an API without a version', 'name: a\nsubscriptions:\n  - { api: a }', /shop\.yaml:3: .*expected name:version/],
  [
    'one subscription twice',
    'name: a\nsubscriptions:\n  - { api: "a:1" }\n  - { api: "a:1" }',
    /shop\.yaml:4: .*is declared at .*shop\.yaml:3 already/,
  ],
  ['what is no list', 'name: a\nkeys: x', /shop\.yaml:2: keys: expected a list/],
  ['what is no YAML', 'name: [', /shop\.yaml:1:\d+: not valid YAML/],
]

for (const [why, text, said] of WRONG) {
  test(`a fault names its line: ${why}`, t => assert.match(faultsOf(t, text), said))
}

test('a key that two files declare is a fault that names both', t => {
  const key = 'keys: [{ consumerKey: same }]'
  const home = homeWith(t, { 'a.yaml': `name: A\n${key}`, 'b.yaml': `name: B\n${key}` })
  assert.match(readApplications(home).faults.map(describe).join(), /b\.yaml:2: .*is declared at .*a\.yaml:2 already/)
})

test('a home without the folder declares nothing', t => {
  assert.deepEqual(readApplications(temporaryHome(t, { 'deployment.toml': '' })), { applications: [], faults: [] })
})
