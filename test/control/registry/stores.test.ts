/** The stores on each database: what is stored, refused and reported. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { consumerKeyId } from '../../../src/auth/records.ts'
import type { Client } from '../../../src/control/registry/entities.ts'
import type { ThrottlingPolicy } from '../../../src/throttle/policy.ts'
import { readPolicy } from '../../../src/throttle/policy-body.ts'
import type { Registry } from '../../../src/control/registry/registry.ts'
import { ISSUER, KINDS, type RealDatabase, realDatabase } from './real-databases.ts'
import { applicationCalled, clientOf, PAGE, REFUSED, TENANT, RecordingListener, tokenOf } from './registry-fixtures.ts'

type Clause = (registry: Registry, client: Client, database: RealDatabase) => Promise<void>

const CLAUSES: readonly (readonly [string, Clause])[] = [
  ['changes of an application, its key and its subscription are reported', toldChanges],
  ['names are unique per tenant and owner, and case and inner spaces matter', uniqueNames],
  ['references to missing entities are refused', danglingReferences],
  ['a client without an application can be mapped to one once', mapping],
  ['of concurrent attempts to add a key of one type to an application one succeeds', oneKeyOfAType],
  ['the secret of a client is valid until it is renewed', clientSecrets],
  ['a public client has no secret', publicClients],
  ['a registration access token finds its client alone, and ends with it', registrations],
  ['a request is decided once, and the decision is that of its subscription', decisions],
  ['a decision never changes a subscription that does not wait', lateDecisions],
  ['requests end with their application or subscription', removedRequests],
  ['an approval is used once, and of concurrent attempts to send a request one is made', usedRequests],
  ['policies are stored, replaced and removed, and each change is reported with all of them', policies],
  ['a deny policy is switched, and one of the same type and value is refused', deniedOnes],
  ['lists have a stable order and a total', pages],
  ['a token is found by its value, and the database contains only its hash', tokensByHash],
  ['of concurrent uses exactly one finds the token active', useOnce],
  ['a revoked family includes all of its tokens, also a late one', families],
  ['removing a client revokes its tokens, and no token can be added afterwards', removedClients],
  ['revocations are in the snapshot until the token expires', revocations],
  ['a revocation is kept while oauth.timestamp_skew could accept the token', skewedRevocations],
  ['a second revocation can prolong the first', longerRevocations],
  ['expired tokens are removed, and access tokens are kept for audits', cleanUps],
  ['users are created, found, changed and removed', users],
  ['a locked account is reported with the correct password only, and its tokens are revoked', lockedUsers],
  ['removed, locked and changed users are reported at once', toldUsers],
  ['roles are created and removed, except built-in ones', roles],
  ['the super admin cannot be removed or locked', superAdmin],
  ['users of different tenants are separate', tenants],
]

for (const kind of KINDS) {
  describe(`in ${kind}`, () => {
    let database: RealDatabase | string
    let registry: Registry
    let client: Client
    before(async () => {
      database = await realDatabase(kind)
      if (typeof database === 'string') return
      registry = await database.open()
      client = (await registry.clients.create(clientOf(null))).client
    })
    after(async () => {
      if (typeof database === 'string') return
      await registry.close()
      await database.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof database === 'string') t.skip(database)
        else await body(registry, client, database)
      })
    }
  })
}

async function toldChanges(registry: Registry): Promise<void> {
  const told = new RecordingListener(registry)
  const application = await registry.applications.create(applicationCalled('told'))
  const { client } = await registry.clients.create(clientOf(application.id))
  const { id } = await registry.subscriptions.create({
    ...{ applicationId: application.id, apiName: 'Menu', apiVersion: '1.0', tier: 'Gold', status: 'ACTIVE' },
  })
  await registry.subscriptions.update(id, { status: 'BLOCKED' }, ['ACTIVE'])
  const facts = await registry.snapshot()
  await registry.applications.remove(application.id)
  const name = { issuer: ISSUER, consumerKey: client.consumerKey }
  assert.deepEqual(
    told.updates.map(({ applications, keys, subscriptions, removed }) => [
      applications.map(it => it.attributes.team),
      keys.map(it => it.consumerKey),
      subscriptions.map(it => [it.api, it.status]),
      [...removed.applications, ...removed.keys, ...removed.subscriptions],
    ]),
    [
      [['kitchen'], [], [], []],
      [[], [client.consumerKey], [], []],
      [[], [], [['Menu:1.0', 'ACTIVE']], []],
      [[], [], [['Menu:1.0', 'BLOCKED']], []],
      [[], [], [], [application.id, consumerKeyId(name), id]],
    ],
  )
  assert.ok(facts.subscriptions.subscriptions.some(it => it.id === id && it.status === 'BLOCKED'))
  assert.ok(facts.subscriptions.keys.some(it => consumerKeyId(it) === consumerKeyId(name)))
}

async function uniqueNames(registry: Registry): Promise<void> {
  await registry.applications.create(applicationCalled('Lunch'))
  await assert.rejects(registry.applications.create(applicationCalled('Lunch')), REFUSED('exists', 'name'))
  const other = await registry.applications.create(applicationCalled('lunch'))
  await assert.rejects(registry.applications.update(other.id, { name: 'Lunch' }), REFUSED('exists', 'name'))
  await registry.applications.create({ ...applicationCalled('Lunch'), owner: 'somebody' })
  await registry.applications.create({ ...applicationCalled('Lünch') })
  await assert.rejects(registry.applications.create(applicationCalled('Lunch ')), REFUSED('invalid', 'name'))
  await assert.rejects(registry.applications.create(applicationCalled('x'.repeat(256))), REFUSED('invalid', 'name'))
  await registry.applications.create(applicationCalled('𝕏'.repeat(127)))
  assert.deepEqual((await registry.applications.update(other.id, { tier: 'Gold' })).name, 'lunch')
  assert.deepEqual((await registry.applications.update(other.id, { tier: 'Gold' })).tier, 'Gold')
}

async function danglingReferences(registry: Registry): Promise<void> {
  const nowhere = '00000000-0000-4000-8000-000000000000'
  await assert.rejects(registry.clients.create(clientOf(nowhere)), REFUSED('missing', 'applicationId'))
  const subscription = { apiName: 'Menu', apiVersion: '1.0', tier: 'Gold', status: 'ACTIVE' } as const
  await assert.rejects(
    registry.subscriptions.create({ applicationId: nowhere, ...subscription }),
    REFUSED('missing', 'applicationId'),
  )
  const asked: readonly (() => Promise<unknown>)[] = [
    () => registry.applications.update(nowhere, { tier: 'Gold' }),
    () => registry.applications.remove(nowhere),
    () => registry.clients.update('nobody', { name: 'x' }),
    () => registry.clients.remove('nobody'),
    () => registry.subscriptions.remove(nowhere),
    () => registry.users.update(nowhere, { isLocked: true }),
    () => registry.users.remove(nowhere),
  ]
  for (const ask of asked) await assert.rejects(ask, { name: 'RegistryRefusal', reason: 'missing' })
  assert.equal(await registry.applications.get(nowhere), null)
  assert.equal(await registry.subscriptions.get(nowhere), null)
}

async function mapping(registry: Registry): Promise<void> {
  const { client } = await registry.clients.create({ ...clientOf(null), consumerKey: 'mapped-client' })
  await assert.rejects(
    registry.clients.create({ ...clientOf(null), consumerKey: 'mapped-client' }),
    REFUSED('exists', 'client_id'),
  )
  const { id } = await registry.applications.create(applicationCalled('mapping'))
  const told = new RecordingListener(registry)
  const mapped = await registry.clients.mapToApplication(client.consumerKey, id, 'SANDBOX')
  assert.deepEqual([mapped.applicationId, mapped.keyType], [id, 'SANDBOX'])
  assert.equal(told.updates[0]?.keys[0]?.keyType, 'SANDBOX')
  assert.equal((await registry.clients.listForApplication(id)).length, 1)
  await assert.rejects(
    registry.clients.mapToApplication(client.consumerKey, id, 'SANDBOX'),
    REFUSED('exists', 'consumerKey'),
  )
}

async function oneKeyOfAType(registry: Registry): Promise<void> {
  const { clients } = registry
  const { id } = await registry.applications.create(applicationCalled('one key of a type'))
  const free = (await clients.create(clientOf(null))).client.consumerKey
  const attempts: readonly Promise<unknown>[] = [
    clients.create(clientOf(id)),
    clients.mapToApplication(free, id, 'PRODUCTION'),
    clients.create(clientOf(id)),
  ]
  const refused = (await Promise.allSettled(attempts)).filter(it => it.status === 'rejected')
  assert.equal(refused.length, 2)
  for (const { reason } of refused) assert.deepEqual({ ...reason, name: reason.name }, REFUSED('exists', 'keyType'))
  await clients.create({ ...clientOf(id), keyType: 'SANDBOX' })
  const keys = (await clients.listForApplication(id)).map(({ keyType }) => keyType)
  assert.deepEqual(keys.sort(), ['PRODUCTION', 'SANDBOX'])
}

async function clientSecrets(registry: Registry, _: unknown, database: RealDatabase): Promise<void> {
  const { client, secret } = await registry.clients.create(clientOf(null))
  const key = client.consumerKey
  assert.deepEqual(await registry.clients.authenticate(key, secret), client)
  assert.deepEqual(await registry.clients.authenticate(key, secret), client)
  assert.equal(await registry.clients.authenticate(key, `${secret}x`), null)
  assert.equal(await registry.clients.authenticate('nobody', secret), null)
  const renewed = await registry.clients.renewSecret(key)
  assert.equal(await registry.clients.authenticate(key, secret), null)
  assert.deepEqual(await registry.clients.authenticate(key, renewed), client)
  const [row] = await database.run(`select * from sluice_clients where consumer_key = '${key}'`)
  assert.match(String(row?.secret_hash), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  assert.ok(!JSON.stringify(row).includes(renewed))
  const changed = await registry.clients.update(key, { redirectUris: ['https://a.example/'], validityS: 60 })
  assert.deepEqual([changed.redirectUris, changed.validityS, changed.name], [['https://a.example/'], 60, client.name])
}

async function publicClients(registry: Registry): Promise<void> {
  const { client, secret } = await registry.clients.create({ ...clientOf(null), isPublic: true })
  assert.equal(secret, '')
  assert.equal(await registry.clients.authenticate(client.consumerKey, ''), null)
  assert.equal(await registry.clients.renewSecret(client.consumerKey), '')
}

async function pages(registry: Registry): Promise<void> {
  for (const name of ['p-c', 'p-a', 'p-b']) {
    await registry.applications.create({ ...applicationCalled(name), owner: 'pager' })
  }
  const of = { tenant: TENANT, owner: 'pager' }
  const { total, applications } = await registry.applications.list(of, { offset: 1, limit: 1 })
  assert.deepEqual([total, applications.map(({ name }) => name)], [3, ['p-b']])
  const named = await registry.applications.list({ ...of, name: 'p-a' }, PAGE)
  assert.deepEqual([named.total, named.applications.length], [1, 1])
}

async function tokensByHash(registry: Registry, client: Client, database: RealDatabase): Promise<void> {
  const issued = tokenOf(client.consumerKey)
  await registry.tokens.add('what-a-client-shows', issued, '{"nonce":"n"}')
  assert.deepEqual(await registry.tokens.find('what-a-client-shows'), { issued, data: '{"nonce":"n"}' })
  assert.equal(await registry.tokens.find('something-else'), null)
  const rows = await database.run(`select * from sluice_tokens where id = '${issued.id}'`)
  assert.ok(!JSON.stringify(rows).includes('what-a-client-shows'))
  await assert.rejects(
    registry.tokens.add('what-a-client-shows', tokenOf(client.consumerKey)),
    REFUSED('exists', 'token'),
  )
}

async function useOnce(registry: Registry, client: Client): Promise<void> {
  const issued = tokenOf(client.consumerKey, { kind: 'refresh' })
  await registry.tokens.add('once', issued)
  const uses = await Promise.all(Array.from({ length: 20 }, () => registry.tokens.consume('once')))
  assert.deepEqual(uses.map(use => use?.issued.state).sort(), ['ACTIVE', ...Array(19).fill('USED')])
  assert.equal(await registry.tokens.consume('never'), null)
}

async function families(registry: Registry, client: Client): Promise<void> {
  const told = new RecordingListener(registry)
  const of = (change: object) => tokenOf(client.consumerKey, { family: 'one-authorisation', ...change })
  const access = of({})
  await registry.tokens.addAll([
    { token: 'f-access', issued: access },
    { token: 'f-refresh', issued: of({ kind: 'refresh' }) },
  ])
  await registry.tokens.consume('f-refresh')
  await registry.tokens.revoke({ family: 'one-authorisation' })
  assert.deepEqual(told.revoked, [{ key: access.revocationKey, expiresMs: access.expiresMs }])
  assert.equal((await registry.tokens.find('f-access'))?.issued.state, 'REVOKED')
  assert.equal((await registry.tokens.find('f-refresh'))?.issued.state, 'USED')
  await assert.rejects(registry.tokens.add('f-late', of({})), REFUSED('invalid', 'token'))
  assert.equal(await registry.tokens.find('f-late'), null)
}

async function removedClients(registry: Registry): Promise<void> {
  const { client } = await registry.clients.create(clientOf(null))
  const issued = tokenOf(client.consumerKey)
  await registry.tokens.add('of-a-removed-client', issued)
  const told = new RecordingListener(registry)
  await registry.clients.remove(client.consumerKey)
  assert.deepEqual(
    told.revoked.map(({ key }) => key),
    [issued.revocationKey],
  )
  await assert.rejects(registry.tokens.add('late', tokenOf(client.consumerKey)), REFUSED('missing', 'client_id'))
}

async function revocations(registry: Registry, client: Client): Promise<void> {
  const expiresMs = Date.now() + 60_000
  await registry.tokens.addRevocation({ key: '#of-another-issuer', expiresMs }, client.consumerKey)
  await registry.tokens.addRevocation({ key: '#of-another-issuer', expiresMs }, client.consumerKey)
  await registry.tokens.addRevocation({ key: 'over', expiresMs: 1 }, client.consumerKey)
  const { revoked } = await registry.snapshot()
  assert.deepEqual(
    revoked.filter(({ key }) => key === '#of-another-issuer' || key === 'over'),
    [{ key: '#of-another-issuer', expiresMs }],
  )
}

async function skewedRevocations(registry: Registry, client: Client): Promise<void> {
  const nowMs = Date.now()
  const justOver = { key: 'just-over', expiresMs: nowMs - 60_000 }
  await registry.tokens.addRevocation(justOver, client.consumerKey)
  await registry.tokens.removeExpired(nowMs)
  assert.deepEqual(
    (await registry.snapshot()).revoked.filter(({ key }) => key === justOver.key),
    [justOver],
  )
}

async function longerRevocations(registry: Registry, client: Client): Promise<void> {
  const expiresMs = Date.now() + 60_000
  for (const each of [expiresMs, expiresMs + 9000, expiresMs + 1000]) {
    await registry.tokens.addRevocation({ key: 'longer', expiresMs: each }, client.consumerKey)
  }
  const { revoked } = await registry.snapshot()
  assert.deepEqual(
    revoked.filter(({ key }) => key === 'longer'),
    [{ key: 'longer', expiresMs: expiresMs + 9000 }],
  )
}

async function cleanUps(registry: Registry, client: Client, database: RealDatabase): Promise<void> {
  const over = tokenOf(client.consumerKey, { expiresMs: Date.now() - 1000 })
  await registry.tokens.add('over-access', over)
  await registry.tokens.add('over-refresh', tokenOf(client.consumerKey, { kind: 'refresh', expiresMs: 1000 }))
  await registry.tokens.add('lasting', tokenOf(client.consumerKey))
  assert.equal(await registry.tokens.removeExpired(Date.now()), 2)
  assert.equal(await registry.tokens.find('over-access'), null)
  assert.notEqual(await registry.tokens.find('lasting'), null)
  const audits = await database.run('select * from sluice_token_audit')
  assert.deepEqual(
    audits.map(({ id }) => id),
    [over.id],
  )
}

async function users(registry: Registry): Promise<void> {
  const user = { name: 'Marie', tenant: TENANT, roles: ['Internal/subscriber'], claims: { given_name: 'Märie 𝕏' } }
  const made = await registry.users.create(user, 'a-good-password')
  assert.deepEqual(await registry.users.find('Marie', TENANT), made)
  assert.deepEqual(await registry.users.get(made.id), made)
  assert.deepEqual(made.roles, ['Internal/everyone', 'Internal/subscriber'])
  assert.equal(await registry.users.find('marie', TENANT), null)
  const missing = [await registry.users.find('Marie\0', TENANT), await registry.clients.get('\0')]
  assert.deepEqual(missing, [null, null], 'a name with NUL is unknown and no failure')
  await assert.rejects(registry.users.create(user, 'a-good-password'), REFUSED('exists', 'username'))
  await assert.rejects(
    registry.users.create({ ...user, name: 'abc' }, 'a-good-password'),
    REFUSED('invalid', 'username'),
  )
  await assert.rejects(
    registry.users.create({ ...user, name: 'Pierre' }, 'short'.slice(1)),
    REFUSED('invalid', 'password'),
  )
  await assert.rejects(
    registry.users.create({ ...user, name: 'Pierre', roles: ['no such role'] }, 'a-good-password'),
    REFUSED('missing', 'roles'),
  )
  assert.equal(await registry.users.find('Pierre', TENANT), null)
  await assert.rejects(
    registry.users.create({ ...user, tenant: 'nowhere.example', roles: [] }, 'a-good-password'),
    REFUSED('missing', 'tenant'),
  )
  const changed = await registry.users.update(made.id, { roles: ['Internal/publisher'], claims: {} })
  assert.deepEqual([changed.roles, changed.claims], [['Internal/everyone', 'Internal/publisher'], {}])
  await registry.users.setPassword(made.id, 'another-password')
  assert.equal(await registry.users.authenticate('Marie', TENANT, 'a-good-password'), null)
  assert.deepEqual(await registry.users.authenticate('Marie', TENANT, 'another-password'), changed)
  await registry.users.remove(made.id)
  assert.equal(await registry.users.find('Marie', TENANT), null)
}

async function lockedUsers(registry: Registry, client: Client): Promise<void> {
  const user = { name: 'leaving', tenant: TENANT, roles: [], claims: {} }
  const { id } = await registry.users.create(user, 'a-good-password')
  const own = tokenOf(client.consumerKey, { user: 'leaving' })
  await registry.tokens.add('of-leaving', own)
  await registry.tokens.add('of-an-application', tokenOf(client.consumerKey, { user: 'leaving', isApplication: true }))
  const told = new RecordingListener(registry)
  await registry.users.update(id, { isLocked: true })
  assert.deepEqual(
    told.revoked.map(({ key }) => key),
    [own.revocationKey],
  )
  assert.equal(await registry.users.authenticate('leaving', TENANT, 'wrong'), null)
  assert.equal(await registry.users.authenticate('leaving', TENANT, 'a-good-password'), 'locked')
}

async function toldUsers(registry: Registry): Promise<void> {
  const { users } = registry
  await users.createRole(TENANT, 'waiters')
  const { id } = await users.create({ name: 'told-of', tenant: TENANT, roles: ['waiters'], claims: {} }, 'password-1')
  const told = new RecordingListener(registry)
  const changes: readonly (() => Promise<unknown>)[] = [
    () => users.update(id, { roles: [] }),
    () => users.update(id, { isLocked: true }),
    () => users.update(id, { isLocked: false }),
    () => users.setPassword(id, 'password-2'),
    () => users.removeRole(TENANT, 'waiters'),
    () => users.remove(id),
  ]
  for (const [at, change] of changes.entries()) {
    await change()
    assert.equal(told.userChanges, at + 1)
  }
  assert.equal(told.updates.length, 0)
}

async function registrations(registry: Registry, client: Client): Promise<void> {
  const given = { authMethod: 'client_secret_post', logoutUris: ['https://app.example/bye'] } as const
  const made = await registry.clients.create(clientOf(null), given)
  const { consumerKey } = made.client
  const found = await registry.clients.findByRegistrationToken(consumerKey, made.registrationToken)
  assert.deepEqual(found?.client, made.client)
  const { createdMs, ...registration } = found!.registration
  assert.deepEqual(registration, given)
  assert.ok(createdMs > 0)
  assert.equal(await registry.clients.findByRegistrationToken(consumerKey, `${made.registrationToken}x`), null)
  assert.equal(await registry.clients.findByRegistrationToken(client.consumerKey, made.registrationToken), null)
  assert.equal(await registry.clients.registration(client.consumerKey), null)
  await registry.clients.updateRegistration(consumerKey, { ...given, logoutUris: [] })
  assert.deepEqual((await registry.clients.registration(consumerKey))?.logoutUris, [])
  await registry.clients.remove(consumerKey)
  assert.equal(await registry.clients.findByRegistrationToken(consumerKey, made.registrationToken), null)
}

const ASKS = { tenant: TENANT, requester: 'alice', properties: { tier: 'Gold' }, callsEngine: true } as const

async function waiting(registry: Registry, name: string) {
  const application = await registry.applications.create(applicationCalled(name))
  const about = { applicationId: application.id, apiName: 'Menu', apiVersion: '1.0', tier: 'Bronze' }
  const subscription = await registry.subscriptions.create(
    { ...about, status: 'ON_HOLD' },
    { ...ASKS, kind: 'AM_SUBSCRIPTION_CREATION' },
  )
  const [request] = await registry.workflows.listForApplication(application.id)
  return { application, subscription, request: request! }
}

async function decisions(registry: Registry): Promise<void> {
  const { application, subscription, request } = await waiting(registry, 'decided')
  assert.deepEqual([request.subject, request.status, request.requester], [subscription.id, 'CREATED', 'alice'])
  const told = new RecordingListener(registry)
  const outcomes = await Promise.all([
    registry.workflows.decide(request.id, 'APPROVED', 'fine'),
    registry.workflows.decide(request.id, 'APPROVED', 'fine'),
  ])
  assert.equal(outcomes.filter(outcome => outcome !== null).length, 1)
  assert.equal((await registry.subscriptions.get(subscription.id))?.status, 'ACTIVE')
  assert.deepEqual(
    told.updates.map(({ subscriptions }) => subscriptions.map(({ status }) => status)),
    [['ACTIVE']],
  )
  assert.deepEqual((await registry.workflows.get(request.id))?.description, 'fine')
  await assert.rejects(registry.workflows.decide('nobody', 'APPROVED', ''), REFUSED('missing', ''))
  const kind = 'AM_SUBSCRIPTION_UPDATE'
  const first = await registry.workflows.request(application.id, subscription.id, { ...ASKS, kind })
  const second = await registry.workflows.request(application.id, subscription.id, { ...ASKS, kind })
  assert.equal(await registry.workflows.get(first.id), null)
  assert.deepEqual([...(await registry.workflows.bySubject(kind, [subscription.id])).keys()], [subscription.id])
  await registry.workflows.decide(second.id, 'APPROVED', '')
  assert.deepEqual((await registry.subscriptions.get(subscription.id))?.tier, 'Gold')
  const { total } = await registry.workflows.listPending({ tenant: TENANT, kind }, PAGE)
  assert.equal(total, 0)
}

async function lateDecisions(registry: Registry): Promise<void> {
  const { subscription, request } = await waiting(registry, 'late')
  const unblocked = registry.subscriptions.update(subscription.id, { status: 'ACTIVE' }, ['ACTIVE', 'BLOCKED'])
  await assert.rejects(unblocked, REFUSED('in use', ''))
  await registry.workflows.decide(request.id, 'REJECTED', '')
  assert.equal((await registry.subscriptions.get(subscription.id))?.status, 'REJECTED')
  assert.equal(await registry.workflows.decide(request.id, 'APPROVED', ''), null)
  assert.equal((await registry.subscriptions.get(subscription.id))?.status, 'REJECTED')
}

async function removedRequests(registry: Registry): Promise<void> {
  const { application, subscription, request } = await waiting(registry, 'short-lived')
  await registry.subscriptions.remove(subscription.id)
  assert.equal(await registry.workflows.get(request.id), null)
  const kind = 'AM_APPLICATION_CREATION'
  const { id } = await registry.workflows.request(application.id, application.id, { ...ASKS, kind })
  await registry.applications.remove(application.id)
  assert.equal(await registry.workflows.get(id), null)
  const gone = registry.workflows.request(application.id, application.id, { ...ASKS, kind })
  await assert.rejects(gone, REFUSED('missing', 'applicationId'))
}

async function usedRequests(registry: Registry): Promise<void> {
  const application = await registry.applications.create(applicationCalled('keys'))
  const kind = 'AM_APPLICATION_REGISTRATION_SANDBOX'
  const { id } = await registry.workflows.request(application.id, application.id, { ...ASKS, kind })
  const unsent = async () => (await registry.workflows.listUnsent(Date.now(), 10)).find(one => one.workflow.id === id)
  const before = (await unsent())!
  const claims = await Promise.all([1, 2].map(() => registry.workflows.claim(id, before.triedMs)))
  assert.deepEqual(claims.sort(), [false, true])
  assert.equal(
    (await registry.workflows.listUnsent(Date.now() - 60_000, 10)).some(one => one.workflow.id === id),
    false,
  )
  await registry.workflows.sent(id)
  assert.equal(await unsent(), undefined)
  assert.equal(await registry.workflows.consume(id), false)
  await registry.workflows.decide(id, 'APPROVED', '')
  const uses = await Promise.all([1, 2].map(() => registry.workflows.consume(id)))
  assert.deepEqual(uses.sort(), [false, true])
}

async function roles(registry: Registry): Promise<void> {
  await registry.users.createRole(TENANT, 'kitchen')
  await assert.rejects(registry.users.createRole(TENANT, 'kitchen'), REFUSED('exists', 'role'))
  await assert.rejects(registry.users.createRole(TENANT, 'Internal/own'), REFUSED('invalid', 'role'))
  const cook = await registry.users.create(
    { name: 'cook-1', tenant: TENANT, roles: ['kitchen'], claims: {} },
    'password-1',
  )
  assert.ok((await registry.users.roles(TENANT)).includes('kitchen'))
  await registry.users.removeRole(TENANT, 'kitchen')
  assert.deepEqual((await registry.users.get(cook.id))?.roles, ['Internal/everyone'])
  await assert.rejects(registry.users.removeRole(TENANT, 'admin'), REFUSED('in use', 'role'))
  await assert.rejects(registry.users.removeRole(TENANT, 'kitchen'), REFUSED('missing', ''))
}

async function superAdmin(registry: Registry): Promise<void> {
  const admin = await registry.users.authenticate('admin', TENANT, registry.generatedPassword)
  assert.ok(admin !== null && admin !== 'locked')
  assert.ok(admin.roles.includes('admin'))
  await assert.rejects(registry.users.remove(admin.id), REFUSED('in use', 'username'))
  await assert.rejects(registry.users.update(admin.id, { isLocked: true }), REFUSED('in use', 'isLocked'))
  const lockedName = { name: 'admin', tenant: TENANT, roles: [], claims: {}, isLocked: true }
  await assert.rejects(registry.users.create(lockedName, 'a-good-password'), REFUSED('in use', 'isLocked'))
  const powerless = registry.users.update(admin.id, { roles: ['Internal/subscriber'] })
  await assert.rejects(powerless, REFUSED('in use', 'roles'))
  assert.deepEqual(await registry.users.get(admin.id), admin)
}

async function tenants(registry: Registry): Promise<void> {
  await registry.tenants.create('kitchen.example')
  await assert.rejects(registry.tenants.create('kitchen.example'), REFUSED('exists', 'tenant'))
  assert.deepEqual(await registry.tenants.list(), ['carbon.super', 'kitchen.example'])
  const user = { name: 'admin', tenant: 'kitchen.example', roles: ['admin'], claims: {} }
  const { id } = await registry.users.create(user, 'a-good-password')
  assert.equal(await registry.users.authenticate('admin', TENANT, 'a-good-password'), null)
  assert.notEqual(await registry.users.authenticate('admin', 'kitchen.example', 'a-good-password'), null)
  assert.deepEqual(
    (await registry.users.list('kitchen.example', PAGE)).users.map(it => it.id),
    [id],
  )
  await registry.users.remove(id)
}

function policyOf(limit: number): readonly [ThrottlingPolicy, Readonly<Record<string, unknown>>] {
  const requestCount = { timeUnit: 'min', unitTime: 1, requestCount: limit }
  const body = { policyName: 'Stored', description: 'kept', defaultLimit: { type: 'REQUESTCOUNTLIMIT', requestCount } }
  return [readPolicy('application', body).value, body]
}

async function policies(registry: Registry): Promise<void> {
  const told = new RecordingListener(registry)
  const [policy, body] = policyOf(5)
  await registry.policies.put(policy, body)
  const [stored] = await registry.policies.list()
  assert.deepEqual([stored!.policy, stored!.body], [policy, body])
  const [changed, changedBody] = policyOf(6)
  await registry.policies.put(changed, changedBody)
  // An equal row is no error either.
  await registry.policies.put(changed, changedBody)
  assert.equal((await registry.policies.get('application', stored!.id))!.policy.quota!.limit, 6)
  assert.equal(await registry.policies.get('advanced', stored!.id), null)
  await registry.applications.create({ ...applicationCalled('of a policy'), tier: 'Stored' })
  assert.deepEqual(await registry.policies.usersOf('application', 'Stored'), ['application of a policy'])
  await registry.policies.remove(stored!.id)
  await assert.rejects(registry.policies.remove(stored!.id), { name: 'RegistryRefusal', reason: 'missing' })
  assert.deepEqual(
    told.policySets.map(({ policies: all }) => all.map(({ quota }) => quota!.limit)),
    [[5], [6], [6], []],
  )
}

async function deniedOnes(registry: Registry): Promise<void> {
  const told = new RecordingListener(registry)
  const policy = { type: 'IPRANGE', value: '192.0.2.1-192.0.2.9', inverted: false, enabled: true } as const
  const { id } = await registry.policies.createDenied(policy)
  await assert.rejects(registry.policies.createDenied(policy), { name: 'RegistryRefusal', reason: 'exists' })
  await registry.policies.setDenied(id, false)
  assert.deepEqual(await registry.policies.listDenied(), [{ id, ...policy, enabled: false }])
  await registry.policies.removeDenied(id)
  await assert.rejects(registry.policies.setDenied(id, true), { name: 'RegistryRefusal', reason: 'missing' })
  assert.deepEqual(
    told.policySets.map(({ denied }) => denied.map(({ enabled }) => enabled)),
    [[true], [false], []],
  )
}
