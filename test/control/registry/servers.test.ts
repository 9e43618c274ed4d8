/** Database servers: several nodes on one server, terminated connections, servers that do not respond. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Client } from '../../../src/control/registry/entities.ts'
import { Registry } from '../../../src/control/registry/registry.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { pollPause } from '../../harness/peers.ts'
import { ISSUER, type RealDatabase, realDatabase } from './real-databases.ts'
import { applicationCalled, clientOf, TENANT, RecordingListener, tokenOf } from './registry-fixtures.ts'

type Clause = (database: RealDatabase, one: Registry, other: Registry) => Promise<void>

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['changes of one node are reported on the other, and its own changes once', otherNodes],
  ['policies that one node changes are reported on the other', otherNodesPolicies],
  ['of concurrent uses on two nodes exactly one finds the token active', useOnce],
  ['a family revoked by one node includes a token that another node adds meanwhile', familyRace],
  ['changes that were cleared away before a poll are reported as missed', missedChanges],
  ['a connection that ends during a statement is reported at once, and the next call works', cutInTheMiddle],
  ['item 4: a node with another issuer is refused beside others, and starts once they are gone', otherIssuer],
  ['item 4: a node that names no issuer takes that of the database, while others run and after them', sharedIssuer],
  ['a validationQuery that the server refuses is told with its key, and not run before each use', wrongQuery],
  ['idle connections that ended are not handed out', cutWhileIdle],
]

for (const kind of ['postgre', 'mysql'] as const) {
  describe(`in ${kind}`, () => {
    let database: RealDatabase | string
    let nodes: Registry[] = []
    before(async () => {
      database = await realDatabase(kind)
      if (typeof database === 'string') return
      nodes = [await database.open(), await database.open()]
    })
    after(async () => {
      for (const node of nodes) await node.close()
      if (typeof database !== 'string') await database.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof database === 'string') t.skip(database)
        else await body(database, nodes[0]!, nodes[1]!)
      })
    }
  })
}

async function newClient(registry: Registry): Promise<Client> {
  return (await registry.clients.create(clientOf(null))).client
}

async function otherNodes(_: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const [own, told] = [new RecordingListener(one), new RecordingListener(other)]
  const { id } = await one.applications.create(applicationCalled('of the first node'))
  const { client } = await one.clients.create(clientOf(id))
  const issued = tokenOf(client.consumerKey)
  await one.tokens.add('on-both-nodes', issued)
  await one.tokens.revoke({ id: issued.id })
  await told.until(() => told.revoked.length > 0)
  await one.applications.remove(id)
  await told.until(() => told.updates.some(({ removed }) => removed.applications.includes(id)))
  const user = await one.users.create({ name: 'moved', tenant: TENANT, roles: [], claims: {} }, 'a-good-password')
  await one.users.update(user.id, { isLocked: true })
  await told.until(() => told.userChanges > 0)
  const revoked = { key: issued.revocationKey, expiresMs: issued.expiresMs }
  assert.deepEqual([own.revoked, told.revoked], [[revoked], [revoked]])
  assert.ok(told.updates.some(({ keys }) => keys.some(({ consumerKey }) => consumerKey === client.consumerKey)))
  assert.equal(own.updates.length, 3)
  assert.deepEqual([own.missedCount, told.missedCount, own.userChanges, told.userChanges], [0, 0, 1, 1])
}

async function otherNodesPolicies(_: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const told = new RecordingListener(other)
  const { id } = await one.policies.createDenied({ type: 'USER', value: 'mallory', inverted: false, enabled: true })
  await told.until(() => told.policySets.some(({ denied }) => denied.some(each => each.id === id && each.enabled)))
  await one.policies.setDenied(id, false)
  await told.until(() => told.policySets.some(({ denied }) => denied.some(each => each.id === id && !each.enabled)))
  await one.policies.removeDenied(id)
  await told.until(() => told.policySets.at(-1)!.denied.length === 0)
}

async function useOnce(_: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const { consumerKey } = await newClient(one)
  await one.tokens.add('once-on-two-nodes', tokenOf(consumerKey, { kind: 'code' }))
  const uses = await Promise.all(
    Array.from({ length: 20 }, (_unused, at) => (at % 2 === 0 ? one : other).tokens.consume('once-on-two-nodes')),
  )
  assert.equal(uses.filter(use => use?.issued.state === 'ACTIVE').length, 1)
}

async function familyRace(_: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const { consumerKey } = await newClient(one)
  for (let round = 0; round < 10; round++) {
    const family = `raced-${round}`
    const refresh = tokenOf(consumerKey, { kind: 'refresh', family })
    await one.tokens.add(`${family}-first`, refresh)
    const next = tokenOf(consumerKey, { family })
    const [given] = await Promise.allSettled([one.tokens.add(`${family}-next`, next), other.tokens.revoke({ family })])
    const found = await one.tokens.find(`${family}-next`)
    // Either refused, or added and revoked: never added and active.
    assert.equal(found?.issued.state ?? 'refused', given.status === 'fulfilled' ? 'REVOKED' : 'refused')
  }
}

async function missedChanges(database: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const told = new RecordingListener(other)
  new RecordingListener(one)
  await database.run('update sluice_change_counter set value = value + 1')
  await told.until(() => told.missedCount > 0)
  const { id } = await one.applications.create(applicationCalled('after the gap'))
  await told.until(() => told.updates.some(({ applications }) => applications.some(it => it.id === id)))
}

async function cutInTheMiddle(database: RealDatabase, one: Registry): Promise<void> {
  const { consumerKey } = await newClient(one)
  await one.tokens.add('held', tokenOf(consumerKey, { kind: 'refresh' }))
  await database.run('begin')
  await database.run("update sluice_tokens set state = 'ACTIVE' where consumer_key = 'nobody' or kind = 'refresh'")
  const waits = one.tokens.consume('held')
  const refused = assert.rejects(waits, {
    name: 'RegistryUnavailable',
    message: /^(?:postgre|mysql) 127\.0\.0\.1:\d+\//,
  })
  await blocked(database)
  const before = performance.now()
  await database.cut()
  await refused
  assert.ok(performance.now() - before < 2000)
  await database.run('rollback')
  assert.equal((await one.tokens.consume('held'))?.issued.state, 'ACTIVE')
}

/** Resolves when the registry's statement waits for the lock. */
async function blocked(database: RealDatabase): Promise<void> {
  const waiting =
    database.kind === 'postgre'
      ? "select pid from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'sluice_test%'"
      : "select id from information_schema.processlist where info like 'update `sluice_tokens`%'"
  while ((await database.watch(waiting)).length === 0) await pollPause()
}

async function otherIssuer(database: RealDatabase): Promise<void> {
  const { configuration } = loadConfiguration(database.dataDir, [], database.dataDir)
  const issuer = 'https://another.example'
  const options = { configuration, dataDir: database.dataDir, issuer }
  await assert.rejects(Registry.open(options), (error: Error) => {
    assert.equal(error.name, 'IssuerConflict')
    assert.match(
      error.message,
      /^oauth\.oidc\.id_token\.issuer is https:\/\/another\.example here and https:\/\/localhost/,
    )
    assert.match(error.message, / on another node of (?:postgre|mysql) .*: set one issuer on all nodes/)
    return true
  })
  assert.equal((await database.run('select * from sluice_nodes')).length, 2)
  // As if no node had been seen for a minute.
  await database.run('update sluice_nodes set seen_ms = seen_ms - 60001')
  const moved = await Registry.open(options)
  await moved.close()
  assert.deepEqual(await database.run('select issuer from sluice_issuer'), [{ issuer }])
  await database.run('delete from sluice_nodes')
  await (await database.open()).close()
  assert.deepEqual(await database.run('select * from sluice_nodes'), [])
  assert.deepEqual(await database.run('select issuer from sluice_issuer'), [{ issuer: ISSUER }])
}

async function wrongQuery(database: RealDatabase): Promise<void> {
  const toml = (keys: string): string => database.toml.replace('[database.shared_db]', `${keys}\n[database.shared_db]`)
  const query = 'validationQuery = "SELECT 1 FROM nowhere"'
  await assert.rejects(database.open('', Date.now, database.dataDir, toml(query)), {
    name: 'ConfigurationErrors',
    message:
      /^database\.apim_db\.validationQuery = "SELECT 1 FROM nowhere": must run on .*nowhere.* \(leave it out for SELECT 1/,
  })
  const untested = toml(`${query}\npool_options.testOnBorrow = false`)
  await (await database.open('', Date.now, database.dataDir, untested)).close()
  writeFileSync(join(database.dataDir, 'deployment.toml'), database.toml)
}

async function sharedIssuer(database: RealDatabase): Promise<void> {
  const { configuration } = loadConfiguration(database.dataDir, [], database.dataDir)
  const open = (issuer: string) =>
    Registry.open({ configuration, dataDir: database.dataDir, issuer, takesIssuer: true })
  const shared = { name: 'IssuerShared', issuer: ISSUER }
  const running = await database.open()
  await assert.rejects(open('https://of-its-host.example'), shared)
  await (await open(ISSUER)).close()
  await running.close()
  await assert.rejects(open('https://of-its-host.example'), shared)
  // A database of an earlier release names none.
  await database.run('delete from sluice_issuer')
  await (await open(ISSUER)).close()
  assert.deepEqual(await database.run('select issuer from sluice_issuer'), [{ issuer: ISSUER }])
}

async function cutWhileIdle(database: RealDatabase, one: Registry): Promise<void> {
  await Promise.all(Array.from({ length: 5 }, () => one.tenants.list()))
  await database.cut()
  for (let calls = 0; calls < 5; calls++) assert.deepEqual(await one.tenants.list(), ['carbon.super'])
}

test('a server that is down or silent is unavailable within the connect timeout', async t => {
  const deaf = createServer(socket => socket.resume())
  await new Promise<void>(resolve => deaf.listen(0, '127.0.0.1', resolve))
  t.after(() => deaf.close())
  const { port } = deaf.address() as { port: number }
  const database = (await realDatabase('h2')) as RealDatabase
  const at = (url: string) =>
    ['apim_db', 'shared_db']
      .map(name => `[database.${name}]\ntype = "mysql"\nurl = "${url}"\nusername = "chef"\npassword = "s3cret-word"`)
      .join('\n')
  const silent = at(`jdbc:mariadb://127.0.0.1:${port}/kitchen?connectTimeout=200`)
  const before = performance.now()
  await assert.rejects(database.open(silent), {
    name: 'RegistryUnavailable',
    message: new RegExp(
      `^mysql 127\\.0\\.0\\.1:${port}/kitchen: (?:the connection did not open within 200 ms|.*ETIMEDOUT)`,
    ),
  })
  assert.ok(performance.now() - before < 2000)
  await assert.rejects(database.open(at('jdbc:mysql://127.0.0.1:1/kitchen')), {
    name: 'RegistryUnavailable',
    message: /^mysql 127\.0\.0\.1:1\/kitchen: .*ECONNREFUSED/,
  })
  await database.remove()
})
