/** Starts: tables that come about once, whoever starts, accounts that are made once, and what outlives a restart. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { withSuperAdmin } from '../../src/registry/super-admin.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { KINDS, type RealDatabase, realDatabase } from './real-databases.ts'
import { applicationCalled, TENANT } from './registry-facts.ts'

for (const kind of KINDS) {
  describe(`in ${kind}`, () => {
    let database: RealDatabase | string
    before(async () => {
      database = await realDatabase(kind)
    })
    after(async () => {
      if (typeof database !== 'string') await database.remove()
    })
    for (const [clause, body] of CLAUSES()) {
      test(clause, async t => {
        if (typeof database === 'string') t.skip(database)
        else await body(database)
      })
    }
  })
}

type Clause = (database: RealDatabase) => Promise<void>

/** In this order: each begins with what the one before has left. */
function CLAUSES(): readonly (readonly [string, Clause])[] {
  return [
    ['two nodes that start at once make the tables and the account once', startTogether],
    ['the password of the super admin is told by the first start alone', passwordOnce],
    ['applications and revocations outlive a restart', restart],
    ['CaseInsensitiveUsername takes names in upper and lower case for the same, also those there are', caseInsensitive],
    ['tables that are newer than the release refuse the start, in a sentence', newerTables],
  ]
}

async function startTogether(database: RealDatabase): Promise<void> {
  const folder = database.kind === 'h2' ? database.dataDir : mkdtempSync(join(tmpdir(), 'sluice-registry-'))
  const nodes = await Promise.all([database.open(), database.open('', Date.now, folder)])
  const passwords = nodes.map(node => node.generatedPassword)
  assert.equal(passwords.filter(password => password !== '').length, 1)
  for (const node of nodes) {
    assert.deepEqual(await node.tenants.list(), [TENANT])
    await node.close()
  }
  const kept = [database.dataDir, folder].filter(dir => existsSync(join(dir, 'admin-password')))
  const [first] = kept
  assert.equal(
    readFileSync(join(first!, 'admin-password'), 'utf8').trim(),
    passwords.find(it => it !== ''),
  )
  if (folder === database.dataDir) return
  assert.equal(kept.length, 1)
  rmSync(folder, { recursive: true })
}

async function passwordOnce(database: RealDatabase): Promise<void> {
  await database.run("delete from sluice_user_roles where role = 'admin'")
  await database.run("delete from sluice_users where name = 'admin'")
  rmSync(join(database.dataDir, 'admin-password'), { force: true })
  const first = await database.open()
  const file = join(database.dataDir, 'admin-password')
  assert.equal(readFileSync(file, 'utf8').trim(), first.generatedPassword)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.ok(first.generatedPassword.length >= 24)
  await first.close()
  const second = await database.open()
  assert.equal(second.generatedPassword, '')
  assert.equal(typeof (await second.users.authenticate('admin', TENANT, first.generatedPassword)), 'object')
  await second.close()
}

async function restart(database: RealDatabase): Promise<void> {
  const before = await database.open()
  const { id } = await before.applications.create(applicationCalled('lasting'))
  const expiresMs = Date.now() + 60_000
  await before.tokens.revokeFacts({ key: 'revoked-before', expiresMs }, 'somebody')
  await before.close()
  const after = await database.open()
  const { subscriptions, revoked } = await after.facts()
  assert.deepEqual([subscriptions.applications[0]?.id, revoked], [id, [{ key: 'revoked-before', expiresMs }]])
  await after.close()
}

async function caseInsensitive(database: RealDatabase): Promise<void> {
  const insensitive = '[user_store.properties]\nCaseInsensitiveUsername = true'
  const sensitive = await database.open()
  const user = { name: 'Marie', tenant: TENANT, roles: [], claims: {} }
  const made = await sensitive.users.create(user, 'password-1')
  await sensitive.close()
  const registry = await database.open(insensitive)
  assert.deepEqual(await registry.users.find('mARIE', TENANT), made)
  await assert.rejects(registry.users.create({ ...user, name: 'marie' }, 'password-1'), { reason: 'exists' })
  await registry.close()
  const again = await database.open()
  assert.equal(await again.users.find('marie', TENANT), null)
  await again.users.create({ ...user, name: 'marie' }, 'password-1')
  await again.close()
  await assert.rejects(database.open(insensitive), {
    name: 'ConfigurationFaults',
    message: /CaseInsensitiveUsername.*"marie".*differ.*case/is,
  })
  const unharmed = await database.open()
  assert.deepEqual(await unharmed.users.find('Marie', TENANT), made)
  await unharmed.close()
}

async function newerTables(database: RealDatabase): Promise<void> {
  await database.run("update sluice_schema set version = 99 where part = 'apim'")
  await assert.rejects(database.open(), {
    name: 'ConfigurationFaults',
    message: /database\.apim_db: .*its tables are of version 99, and this release knows 1 \(start the release/,
  })
}

test('an account with a password that was configured is made with it, and nothing is written or told', async () => {
  const database = (await realDatabase('h2')) as RealDatabase
  const registry = await database.open('[super_admin]\nusername = "chef"\npassword = "as-configured"')
  assert.equal(registry.generatedPassword, '')
  assert.equal(existsSync(join(database.dataDir, 'admin-password')), false)
  assert.equal(typeof (await registry.users.authenticate('chef', TENANT, 'as-configured')), 'object')
  await registry.close()
  const none = (await realDatabase('h2')) as RealDatabase
  const empty = await none.open('[super_admin]\ncreate_admin_account = false')
  assert.equal((await empty.users.list(TENANT, { offset: 0, limit: 1 })).total, 0)
  await empty.close()
  await database.remove()
  await none.remove()
})

test('the embedded database and what it writes beside itself are readable by the owner alone', async () => {
  const database = (await realDatabase('h2')) as RealDatabase
  const registry = await database.open()
  for (const end of ['', '-wal', '-shm']) {
    assert.equal(statSync(join(database.dataDir, `registry.db${end}`)).mode & 0o777, 0o600)
  }
  await registry.close()
  await database.remove()
})

test('credentials that default to the super admin are those of the first start, with that name alone', async () => {
  const database = (await realDatabase('h2')) as RealDatabase
  const registry = await database.open()
  const { configuration } = loadConfiguration(database.dataDir, [], database.dataDir)
  const { username, password } = configuration['apim.key_manager']
  const admin = { username: 'admin', password: registry.generatedPassword }
  assert.deepEqual(withSuperAdmin({ username, password }, configuration, database.dataDir), admin)
  const own = { username: 'admin', password: 'of-its-own' }
  assert.deepEqual(withSuperAdmin(own, configuration, database.dataDir), own)
  const other = { username: 'somebody', password: '' }
  assert.deepEqual(withSuperAdmin(other, configuration, database.dataDir), other)
  await registry.close()
  await database.remove()
})
