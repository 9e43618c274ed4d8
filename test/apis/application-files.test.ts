/** Applications that a home declares: their records, and the line of each error. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { applicationRecords, readApplications } from '../../src/apis/application-files.ts'
import { unknownTiers } from '../../src/apis/tier-names.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { temporaryHome } from '../config/temporary-home.ts'

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

async function errorsOf(t: TestContext, text: string): Promise<string> {
  const { errors } = await readApplications(homeWith(t, { 'shop.yaml': text }))
  return errors.map(formatDiagnostic).join('\n')
}

test('an application becomes records with its keys and subscriptions', async t => {
  const home = homeWith(t, { 'shop.yaml': SHOP })
  const { applications, errors } = await readApplications(home)
  assert.deepEqual(errors, [])
  const records = applicationRecords(applications, loadConfiguration(home, []).configuration)
  const [{ id, ...application }] = records.applications as [(typeof records.applications)[0]]
  const tenant = 'carbon.super'
  assert.deepEqual(application, { name: 'Shop', owner: 'alice', tenant, tier: '10PerMin', attributes: { team: 'a' } })
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(records.keys, [
    { issuer: 'https://idp.example', consumerKey: '0123', applicationId: id, keyType: 'SANDBOX' },
    { issuer: 'https://localhost:9443/oauth2/token', consumerKey: 'own', applicationId: id, keyType: 'PRODUCTION' },
  ])
  assert.deepEqual(
    records.subscriptions.map(({ api, tier, status }) => [api, tier, status]),
    [
      ['Orders:1.0.0', 'Gold', 'ACTIVE'],
      ['Bills:2.0.0', 'Unlimited', 'BLOCKED'],
    ],
  )
})

test('issue 16: a tier that no policy has is a warning with the place and the nearest name', async t => {
  const misspelt = SHOP.replace('10PerMin', '10PreMin').replace('tier: Gold', 'tier: Copper')
  const home = homeWith(t, { 'shop.yaml': misspelt, 'other.yaml': 'name: Other\ntier: Unlimited\n' })
  const tiers = { application: new Set(['10PerMin', 'Unlimited']), subscription: new Set(['Gold', 'Unlimited']) }
  const { applications, warnings } = await readApplications(home)
  assert.deepEqual(warnings, [])
  const unknown = unknownTiers(applications, [], { ...tiers, advanced: new Set() }, false)
  const said = unknown.map(it => formatDiagnostic(it).replaceAll(`${home}/applications/`, ''))
  assert.deepEqual(said, [
    'shop.yaml:3: tier = "10PreMin": is no application policy of this home (did you mean 10PerMin? Otherwise add policies/application/10PreMin.yaml)',
    'shop.yaml:9: subscriptions[0].tier = "Copper": is no subscription policy of this home (add policies/subscription/Copper.yaml)',
  ])
})

test('an application without an owner belongs to the super admin', async t => {
  const home = homeWith(t, { 'a.yml': 'name: Small' })
  const { configuration } = loadConfiguration(home, ['super_admin.username=root'])
  assert.equal(
    applicationRecords((await readApplications(home)).applications, configuration).applications[0]!.owner,
    'root',
  )
})

const WRONG: readonly (readonly [why: string, text: string, said: RegExp])[] = [
  ['no name', 'owner: a', /shop\.yaml:1: name: is missing/],
  ['an unknown member', 'name: a\nkey: x', /shop\.yaml:2: key: is not known here/],
  [
    'a secret, which nothing would use',
    'name: a\nkeys:\n  - { consumerKey: k, secret: s }',
    /shop\.yaml:3: .*secret.*is not known here/,
  ],
  [
    'an unknown status',
    'name: a\nsubscriptions:\n  - { api: "a:1", status: ON }',
    /shop\.yaml:3: .*status = "ON": expected one of ACTIVE/,
  ],
  ['an API without a version', 'name: a\nsubscriptions:\n  - { api: a }', /shop\.yaml:3: .*expected name:version/],
  [
    'a subscription declared twice',
    'name: a\nsubscriptions:\n  - { api: "a:1" }\n  - { api: "a:1" }',
    /shop\.yaml:4: .*is declared at .*shop\.yaml:3 already/,
  ],
  ['a text in place of a list', 'name: a\nkeys: x', /shop\.yaml:2: keys: expected a list/],
  ['invalid YAML', 'name: [', /shop\.yaml:1:\d+: not valid YAML/],
]

for (const [why, text, said] of WRONG) {
  test(`an error names its line: ${why}`, async t => assert.match(await errorsOf(t, text), said))
}

test('a key that two files declare is an error that names both', async t => {
  const key = 'keys: [{ consumerKey: same }]'
  const home = homeWith(t, { 'a.yaml': `name: A\n${key}`, 'b.yaml': `name: B\n${key}` })
  assert.match(
    (await readApplications(home)).errors.map(formatDiagnostic).join(),
    /b\.yaml:2: .*is declared at .*a\.yaml:2 already/,
  )
})

test('a home without the folder declares nothing', async t => {
  assert.deepEqual(await readApplications(temporaryHome(t, { 'deployment.toml': '' })), {
    applications: [],
    errors: [],
    warnings: [],
  })
})
