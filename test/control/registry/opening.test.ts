/** Opening the registry: migrations, the first account, and what survives a restart. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { credentialsOrSuperAdmin } from '../../../src/control/registry/super-admin.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { KINDS, type RealDatabase, realDatabase } from './real-databases.ts'
import { applicationCalled, TENANT } from './registry-fixtures.ts'

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

/** In this order: each clause begins with the state of the one before. */
function CLAUSES(): readonly (readonly [string, Clause])[] {
  return [
    ['two nodes that start concurrently create the tables and the super admin once', startTogether],
    ['only the first start returns the generated password of the super admin', passwordOnce],
    ['applications and revocations survive a restart', restart],
    ['CaseInsensitiveUsername applies to new and existing names', caseInsensitive],
    ['tables of an earlier release get what is new, and keep what they have', earlierTables],
    ['tables newer than the release refuse the start with an explanation', newerTables],
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
  await before.tokens.addRevocation({ key: 'revoked-before', expiresMs }, 'somebody')
  await before.close()
  const after = await database.open()
  const { subscriptions, revoked } = await after.snapshot()
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
    name: 'ConfigurationErrors',
    message: /CaseInsensitiveUsername.*"marie".*differ.*case/is,
  })
  const unharmed = await database.open()
  assert.deepEqual(await unharmed.users.find('Marie', TENANT), made)
  await unharmed.close()
}

async function earlierTables(database: RealDatabase): Promise<void> {
  const before = await database.open()
  const { id } = await before.applications.create(applicationCalled('of the earlier release'))
  await before.close()
  for (const table of ['sluice_signing_keys', 'sluice_nodes']) await database.run(`drop table ${table}`)
  await database.run("update sluice_schema set version = 1 where part = 'apim'")
  const after = await database.open()
  assert.equal((await after.applications.get(id))?.name, 'of the earlier release')
  assert.deepEqual(await after.signingKeys.list(), [])
  await after.close()
}

async function newerTables(database: RealDatabase): Promise<void> {
  await database.run("update sluice_schema set version = 99 where part = 'apim'")
  await assert.rejects(database.open(), {
    name: 'ConfigurationErrors',
    message: /database\.apim_db: .*its tables have version 99, this release supports \d \(start the release/,
  })
}

test('a configured password creates the account without a file or a generated password', async () => {
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

test('the files of the embedded database are readable by their owner only', async () => {
  const database = (await realDatabase('h2')) as RealDatabase
  const registry = await database.open()
  for (const end of ['', '-wal', '-shm']) {
    assert.equal(statSync(join(database.dataDir, `registry.db${end}`)).mode & 0o777, 0o600)
  }
  await registry.close()
  await database.remove()
})

test("credentials default to the generated password for the super admin's name only", async () => {
  const database = (await realDatabase('h2')) as RealDatabase
  const registry = await database.open()
  const { configuration } = loadConfiguration(database.dataDir, [], database.dataDir)
  const { username, password } = configuration['apim.key_manager']
  const admin = { username: 'admin', password: registry.generatedPassword }
  assert.deepEqual(credentialsOrSuperAdmin({ username, password }, configuration, database.dataDir), admin)
  const own = { username: 'admin', password: 'of-its-own' }
  assert.deepEqual(credentialsOrSuperAdmin(own, configuration, database.dataDir), own)
  const other = { username: 'somebody', password: '' }
  assert.deepEqual(credentialsOrSuperAdmin(other, configuration, database.dataDir), other)
  await registry.close()
  await database.remove()
})
