/** Database servers: several nodes on one, connections that are cut, servers that do not answer. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Client } from '../../src/registry/entities.ts'
import type { Registry } from '../../src/registry/registry.ts'
import { type RealDatabase, realDatabase } from './real-databases.ts'
import { applicationCalled, clientOf, TENANT, Told, tokenOf } from './registry-facts.ts'

type Clause = (database: RealDatabase, one: Registry, other: Registry) => Promise<void>

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['what one node changes is told on the other, and its own changes once', otherNodes],
  ['of uses at once on two nodes exactly one finds the token active', useOnce],
  ['a family that one node revokes takes the token that another one is giving', familyRace],
  ['changes that were cleared away before they were seen are said to be missed', missedChanges],
  ['a connection that is cut in the middle is unavailable at once, and the next call works', cutInTheMiddle],
  ['idle connections that were cut are not handed out', cutWhileIdle],
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
  const [own, told] = [new Told(one), new Told(other)]
  const { id } = await one.applications.create(applicationCalled('of the first node'))
  const { client } = await one.clients.create(clientOf(id))
  const issued = tokenOf(client.consumerKey)
  await one.tokens.add('on-both-nodes', issued)
  await one.tokens.revoke({ id: issued.id })
  await told.until(() => told.revoked.length > 0)
  await one.applications.remove(id)
  await told.until(() => told.news.some(({ removed }) => removed.applications.includes(id)))
  const user = await one.users.create({ name: 'moved', tenant: TENANT, roles: [], claims: {} }, 'a-good-password')
  await one.users.update(user.id, { isLocked: true })
  await told.until(() => told.users > 0)
  const revoked = { key: issued.revocationKey, expiresMs: issued.expiresMs }
  assert.deepEqual([own.revoked, told.revoked], [[revoked], [revoked]])
  assert.ok(told.news.some(({ keys }) => keys.some(({ consumerKey }) => consumerKey === client.consumerKey)))
  assert.equal(own.news.length, 3)
  assert.deepEqual([own.misses, told.misses, own.users, told.users], [0, 0, 1, 1])
}

async function useOnce(_: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const { consumerKey } = await newClient(one)
  await one.tokens.add('once-on-two-nodes', tokenOf(consumerKey, { kind: 'code' }))
  const uses = await Promise.all(
    Array.from({ length: 20 }, (_unused, at) => (at % 2 === 0 ? one : other).tokens.use('once-on-two-nodes')),
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
    // Refused, or there and revoked: never there and good.
    assert.equal(found?.issued.state ?? 'refused', given.status === 'fulfilled' ? 'REVOKED' : 'refused')
  }
}

async function missedChanges(database: RealDatabase, one: Registry, other: Registry): Promise<void> {
  const told = new Told(other)
  new Told(one)
  await database.run('update sluice_change_counter set value = value + 1')
  await told.until(() => told.misses > 0)
  const { id } = await one.applications.create(applicationCalled('after the gap'))
  await told.until(() => told.news.some(({ applications }) => applications.some(it => it.id === id)))
}

async function cutInTheMiddle(database: RealDatabase, one: Registry): Promise<void> {
  const { consumerKey } = await newClient(one)
  await one.tokens.add('held', tokenOf(consumerKey, { kind: 'refresh' }))
  await database.run('begin')
  await database.run("update sluice_tokens set state = 'ACTIVE' where consumer_key = 'nobody' or kind = 'refresh'")
  const waits = one.tokens.use('held')
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
  assert.equal((await one.tokens.use('held'))?.issued.state, 'ACTIVE')
}

/** Until the statement of the registry is seen to wait for the lock. */
async function blocked(database: RealDatabase): Promise<void> {
  const waiting =
    database.kind === 'postgre'
      ? "select pid from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'sluice_test%'"
      : "select id from information_schema.processlist where info like 'update `sluice_tokens`%'"
  while ((await database.watch(waiting)).length === 0);
}

async function cutWhileIdle(database: RealDatabase, one: Registry): Promise<void> {
  await Promise.all(Array.from({ length: 5 }, () => one.tenants.list()))
  await database.cut()
  for (let calls = 0; calls < 5; calls++) assert.deepEqual(await one.tenants.list(), ['carbon.super'])
}

test('a server that is not there, or says nothing, is unavailable within the time for connecting', async t => {
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
