/** The control plane as reactors use it: with a local key manager, and with that of another node. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { SignJWT } from 'jose'
import { ControlPlane } from '../../src/control/control-plane.ts'
import { ReactorChannels } from '../../src/control/reactor-channels.ts'
import type { ControlPlan } from '../../src/plan/control-messages.ts'
import { PortControlChannel } from '../../src/auth/control-channel.ts'
import { NOTHING_DECLARED } from '../../src/auth/records.ts'
import type { AuthPlan } from '../../src/auth/auth-plan.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { PasswordValidator } from '../../src/auth/password-validator.ts'
import type { ManagementPlan } from '../../src/plan/management-plan.ts'
import { allocateMetrics, MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import { authPlan } from '../../src/plan/auth-planning.ts'
import { NO_THROTTLING } from '../../src/throttle/throttle-plan.ts'
import { CA, SELF_SIGNED, SERVER } from '../harness/certificates.ts'
import { withRealHashes } from '../harness/cheap-hashes.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { json, MisbehavingServer } from './remote/misbehaving-server.ts'

const home = mkdtempSync(join(tmpdir(), 'sluice-control-'))
const server = await MisbehavingServer.listen()
const closings: (() => unknown)[] = []
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
const EXP = Math.floor(Date.now() / 1000) + 3600

after(async () => {
  for (const close of closings.reverse()) await close()
  server.close()
  rmSync(home, { recursive: true, force: true })
})

function planOf(toml: string, more: Partial<ControlPlan> = {}): ControlPlan {
  writeFileSync(join(home, 'deployment.toml'), toml)
  const { configuration } = loadConfiguration(home, [])
  return {
    ...{ configuration, home, dataDir: home, databaseWaitMs: 0, apis: [], runsKeyManager: false, trust: {} },
    ...{ runsGateway: true, receiver: null },
    management: null,
    takesIssuer: false,
    ...{ ownIssuer: configuration.oauth['oidc.id_token.issuer'], issuers: authPlan(configuration).issuers },
    ...{ backends: [], declared: NOTHING_DECLARED, authVersion: new SharedArrayBuffer(4) },
    ...{ metrics: allocateMetrics(1), column: 0, throttling: NO_THROTTLING, ...more },
  }
}

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-data-'))
  closings.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function boundTo(role: string): ControlPlan['apis'][number] {
  const named = { name: role, version: '1', context: `/${role}`, provider: '', state: 'PUBLISHED', tiers: [] }
  return { ...named, scopes: [{ name: 'trade', roles: [role] }] }
}

/** A control plane with one reactor. */
async function open(plan: ControlPlan) {
  const reports: string[] = []
  const reactors = new ReactorChannels({ bug: assert.fail })
  const state = new AuthState(plan.authVersion, { issuers: plan.issuers, skewMs: 0 } as unknown as AuthPlan)
  const connect = (reactor: number): PortControlChannel => {
    const { port1, port2 } = new MessageChannel()
    closings.push(() => port2.close())
    reactors.attach(reactor, port2)
    return new PortControlChannel(port1, update => reactor === 0 && state.apply(update))
  }
  state.attach(connect(0))
  const control = await ControlPlane.open(plan, {
    reactors,
    report: (_, event, fields) => reports.push(`${event} ${JSON.stringify(fields)}`),
    callPrimary: () => assert.fail(),
    metrics: new MetricsColumn(allocateMetrics(1), 0),
  })
  closings.push(
    () => control.close(),
    () => state.close(),
  )
  state.catchUp()
  return { control, state, reports, connect }
}

function tokenOf(claims: Record<string, unknown>): Promise<string> {
  return new SignJWT({ exp: EXP, ...claims }).setProtectedHeader({ alg: 'RS256', kid: 'a' }).sign(RSA.privateKey)
}

const ROLE = '[server]\nserver_role = "gateway-worker"\n'
const WORKER = `${ROLE}[apim.key_manager]\nservice_url = "${server.origin}/services/"\n`

test('a node without a key manager fetches keys and introspects tokens at another one', async () => {
  const jwk = { ...RSA.publicKey.export({ format: 'jwk' }), kid: 'a' }
  server.answer = (response, { url }) => {
    const answer = url === '/oauth2/jwks' ? { keys: [jwk] } : { active: true, client_id: 'key', sub: 'anna' }
    json(answer)(response, { url } as never)
  }
  const plan = planOf(WORKER)
  const { state } = await open(plan)
  await state.call({ kind: 'key', issuer: plan.ownIssuer, kid: 'a' })
  assert.equal(state.issuers.find(plan.ownIssuer)!.hasKeys, true)
  const said = await state.call({ kind: 'introspect', token: 'opaque' })
  assert.deepEqual([said?.user, said?.issuer], ['anna', plan.ownIssuer])
  await assert.rejects(state.call({ kind: 'password', user: 'anna', password: '', address: '' }), /no key manager/)
  server.answer = json('<html>', 200, 'text/html')
  await assert.rejects(state.call({ kind: 'introspect', token: 'other' }), /text\/html/)
  assert.equal(state.issuers.find(plan.ownIssuer)!.hasKeys, true)
})

test('concurrent introspections of one token are one request to the key manager', async () => {
  server.answer = json({ active: true, client_id: 'key', sub: 'anna' })
  const { state, connect } = await open(planOf(WORKER))
  const askers = [state, connect(1), connect(2)]
  server.received.length = 0
  const answers = await Promise.all(
    Array.from({ length: 999 }, (_, at) => askers[at % 3]!.call({ kind: 'introspect', token: 'new' })),
  )
  assert.ok(answers.every(answer => answer?.user === 'anna'))
  assert.equal(server.received.filter(({ path }) => path === '/oauth2/introspect').length, 1)
})

test('an introspection after a revocation shares none that started before it', async () => {
  server.answer = json({ active: true })
  const { control, state, connect } = await open(planOf(WORKER, { dataDir: dataFolder() }))
  await state.call({ kind: 'introspect', token: 'lets us in' })
  const arrived = Promise.withResolvers<() => void>()
  server.answer = (response, { url }) => arrived.resolve(() => json({ active: true })(response, { url } as never))
  const before = state.call({ kind: 'introspect', token: 'one' })
  const answerFirst = await arrived.promise
  await control.manage({ action: 'token revoke', token: await tokenOf({ jti: 'another' }) })
  server.answer = json({ active: false })
  assert.equal(await connect(1).call({ kind: 'introspect', token: 'one' }), null)
  answerFirst()
  assert.notEqual(await before, null)
})

test('concurrent checks of one password are one login', async () => {
  const plan = planOf('', { runsKeyManager: true, dataDir: dataFolder() })
  const { state, connect } = await open(plan)
  const attempts = () => snapshotMetrics(plan.metrics).counts.verifiedSecretMisses
  const before = attempts()
  const wrong = { kind: 'password', user: 'admin', password: 'guessed', address: '10.0.0.1' } as const
  const askers = [state, connect(1)]
  // A cheap hash would end before the last of them asks.
  await withRealHashes(async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => askers[at % 2]!.call(wrong)))
    assert.deepEqual(new Set(answers), new Set([null]))
  })
  assert.equal(attempts(), before + 1)
})

test('a revocation on a node without a database applies at once and survives a restart', async () => {
  const module = 'export const tokenRevoked = token => { (globalThis.heard ??= []).push(token) }'
  writeFileSync(join(home, 'notifier.js'), module)
  const plan = planOf(`${WORKER}[apim.token.revocation]\nnotifier_impl = "notifier.js"\n`)
  const { control, state } = await open(plan)
  const token = await tokenOf({ jti: 'one' })
  await control.manage({ action: 'token revoke', token })
  state.catchUp()
  assert.equal(state.revoked.has('one'), true)
  const { heard } = globalThis as unknown as { readonly heard: unknown }
  assert.deepEqual(heard, [{ key: 'one', expiresMs: EXP * 1000 }])
  await control.manage({ action: 'token revoke', token: await tokenOf({}) })
  const file = join(home, 'revoked.json')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).tokens.length, 2)
  const { state: next } = await open(plan)
  assert.deepEqual([next.revoked.has('one'), next.revoked.size], [true, 2])
  for (const wrong of ['opaque', 7, undefined]) {
    await assert.rejects(control.manage({ action: 'token revoke', token: wrong }), /not a JWT/)
  }
})

for (const [what, exp] of [
  ['a fraction of a second (RFC 7519 2)', EXP + 0.123456],
  ['a time beyond every calendar', 1e306],
] as const) {
  test(`a revoked token that expires at ${what} leaves a file that the next start can read`, async () => {
    const plan = planOf(WORKER)
    const { control } = await open(plan)
    await control.manage({ action: 'token revoke', token: await tokenOf({ jti: 'odd', exp }) })
    const { state } = await open(plan)
    assert.equal(state.revoked.has('odd'), true)
    rmSync(join(home, 'revoked.json'))
  })
}

for (const damage of ['', '{', '{"format":2,"tokens":[]}', '{"format":1,"tokens":[["a"]]}', '{"format":1}']) {
  test(`a damaged file of revoked tokens (${damage}) refuses the start`, async () => {
    writeFileSync(join(home, 'revoked.json'), damage)
    await assert.rejects(open(planOf(WORKER)), { name: 'RevocationFileDamaged', message: /revoked\.json/ })
    rmSync(join(home, 'revoked.json'))
  })
}

test('a reload adds and removes issuers and declared applications', async () => {
  server.answer = json({ keys: [{ ...RSA.publicKey.export({ format: 'jwk' }), kid: 'a' }] })
  const issuer = `[[apim.jwt.issuer]]\nname = "other"\njwks.url = "${server.origin}/keys"\n`
  const { control, state } = await open(planOf(WORKER))
  const application = { id: 'a', name: 'a', owner: '', tenant: '', tier: '', attributes: {} }
  const declared = { ...NOTHING_DECLARED, applications: [application, { ...application, id: 'b' }] }
  const plan = planOf(`${WORKER}${issuer}`, { declared })
  await control.reload(plan)
  state.updatePlan({ issuers: plan.issuers, skewMs: 0 } as unknown as AuthPlan)
  await state.call({ kind: 'key', issuer: 'other', kid: 'a' })
  assert.equal(state.issuers.find('other')!.hasKeys, true)
  state.catchUp()
  assert.equal(state.subscriptions.size.applications, 2)
  server.received.length = 0
  await control.reload(planOf(WORKER, { declared: { ...declared, applications: [application] } }))
  await state.call({ kind: 'key', issuer: 'other', kid: 'b' })
  state.catchUp()
  assert.equal(state.subscriptions.size.applications, 1)
  assert.ok(server.received.every(({ path }) => path !== '/keys'))
})

function management(identity = SERVER): ManagementPlan {
  return {
    ...{ host: '127.0.0.1', port: 0, connectionsMax: 256, origin: 'https://localhost:9443' },
    ...{ hostNames: [], filters: [] },
    ...{ console: { networks: [] }, web: { networks: [] } },
    tls: { identity, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' },
  }
}

async function scim(port: number, password: string, method: string, path: string, body: object | null = null) {
  const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
  const headers = { authorization, host: 'localhost', 'content-type': 'application/json' }
  const asked = { host: '127.0.0.1', servername: 'localhost', port, ca: CA.cert, agent: false, method, path, headers }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request(asked, resolve)
    .on('error', reject)
    .end(body === null ? '' : JSON.stringify(body))
  const answer = await promise
  let text = ''
  for await (const piece of answer.setEncoding('utf8')) text += piece
  assert.ok(answer.statusCode! < 300, text)
  return text === '' ? {} : JSON.parse(text)
}

test('reactors know of a changed or removed user before the admin API responds', async () => {
  const given = { runsKeyManager: true, dataDir: dataFolder(), management: management() }
  const plan = planOf('[user_store.properties]\nSCIMEnabled = true\n', given)
  const { control, state } = await open(plan)
  const admin = control.firstAccount!.password
  const passwords = new PasswordValidator({ state, metrics: { add: () => {} }, nowMs: () => 0 })
  const roles = async () => (await passwords.validate('annabel', 'a-good-password', '10.0.0.3'))?.user.roles
  const user = { userName: 'annabel', password: 'a-good-password' }
  const { id } = await scim(control.port, admin, 'POST', '/scim2/Users', user)
  assert.deepEqual(await roles(), ['Internal/everyone'])
  const changed = { ...user, roles: [{ value: 'admin' }] }
  await scim(control.port, admin, 'PUT', `/scim2/Users/${id}`, changed)
  assert.deepEqual(await roles(), ['Internal/everyone', 'admin'])
  await scim(control.port, admin, 'DELETE', `/scim2/Users/${id}`)
  assert.equal(await roles(), undefined)
})

test('a reload with an identity that the listener refuses changes nothing in the key manager', async () => {
  const dataDir = dataFolder()
  const plan = planOf('', { runsKeyManager: true, dataDir, management: management() })
  const { control, state } = await open(plan)
  const told = Atomics.load(new Int32Array(plan.authVersion), 0)
  const other = '[oauth]\noidc.id_token.issuer = "https://other.example"\n'
  const broken = management({ ...SERVER, key: SELF_SIGNED.key })
  const reload = control.reload(planOf(other, { runsKeyManager: true, dataDir, management: broken }))
  await assert.rejects(reload, /key/)
  assert.equal(Atomics.load(new Int32Array(plan.authVersion), 0), told)
  await control.manage({ action: 'application create', name: 'shop' })
  await control.manage({ action: 'key generate', application: 'shop' })
  const { accessToken } = (await control.manage({ action: 'token', application: 'shop' })) as { accessToken: string }
  assert.equal((await state.call({ kind: 'introspect', token: accessToken }))!.issuer, plan.ownIssuer)
})

test('a node with a key manager knows its keys, users and tokens without a request', async () => {
  server.received.length = 0
  const plan = planOf('', { runsKeyManager: true, dataDir: dataFolder(), apis: [boundTo('buyer'), boundTo('seller')] })
  const { control, state } = await open(plan)
  assert.deepEqual([state.hasSnapshot, state.issuers.find(plan.ownIssuer)!.hasKeys], [true, true])
  const { password } = control.firstAccount!
  const admin = await state.call({ kind: 'password', user: 'admin@carbon.super', password, address: '10.0.0.2' })
  assert.deepEqual(admin, { name: 'admin', tenant: 'carbon.super', roles: ['Internal/everyone', 'admin'] })
  assert.equal(await state.call({ kind: 'password', user: 'admin', password: 'guessed', address: '10.0.0.1' }), null)
  assert.equal(await state.call({ kind: 'introspect', token: 'nobodys' }), null)
  await control.manage({ action: 'application create', name: 'shop' })
  await control.manage({ action: 'key generate', application: 'shop' })
  state.catchUp()
  assert.deepEqual(state.subscriptions.size, { applications: 1, keys: 1, subscriptions: 0 })
  const { accessToken } = (await control.manage({ action: 'token', application: 'shop' })) as { accessToken: string }
  assert.equal((await state.call({ kind: 'introspect', token: accessToken }))!.isApplication, true)
  const scoped = await control.manage({ action: 'token', application: 'shop', scopes: ['trade'] })
  const why = 'a scope that two APIs bind to different roles is not for those who have neither'
  assert.deepEqual((scoped as { readonly scopes: unknown }).scopes, ['default'], why)
  await control.manage({ action: 'token revoke', token: accessToken })
  state.catchUp()
  assert.equal(state.revoked.size, 1)
  assert.equal(server.received.length, 0)
})

const LIMIT = { type: 'REQUESTCOUNTLIMIT', requestCount: { timeUnit: 'min', unitTime: 1, requestCount: 3 } }
const TIERS = '/api/am/admin/v4/throttling/policies/application'

test('issue 16: a policy and a deny policy are in force on reactors before the REST API responds', async () => {
  const plan = planOf('', { runsKeyManager: true, dataDir: dataFolder(), management: management() })
  const { control, state } = await open(plan)
  const { password } = control.firstAccount!
  const limitOf = (name: string): number | undefined => {
    state.catchUp()
    const { policy, isKnown } = state.policies.application(name)
    return isKnown ? policy.quota?.limit : undefined
  }
  const isDenied = (): boolean => {
    state.catchUp()
    return state.policies.denied.denies('USER', 'mallory')
  }
  const { version } = state.policies
  const body = { policyName: 'Small', defaultLimit: LIMIT }
  const { policyId } = await scim(control.port, password, 'POST', TIERS, body)
  assert.deepEqual([limitOf('Small'), state.policies.version > version], [3, true])
  await scim(control.port, password, 'DELETE', `${TIERS}/${policyId}`)
  assert.equal(limitOf('Small'), undefined)
  const denied = '/api/am/admin/v4/throttling/deny-polic'
  const user = { conditionType: 'USER', conditionValue: 'mallory' }
  const { conditionId } = await scim(control.port, password, 'POST', `${denied}ies`, user)
  assert.equal(isDenied(), true)
  await scim(control.port, password, 'PATCH', `${denied}y/${conditionId}`, { conditionStatus: false })
  assert.equal(isDenied(), false)
  await control.manage({ action: 'throttle deny enable', deny: 'mallory' })
  assert.equal(isDenied(), true)
})

const SECTION = '[apim.throttling]\nthrottle_decision_endpoints = ["tcp://localhost:5672"]\n'

/** [keys, names of the registry's policies that reactors have, whether its deny policy holds at once]. */
const DEPLOYED: readonly (readonly [toml: string, policies: readonly string[], denies: boolean])[] = [
  ['', ['10PerMin', 'Small'], true],
  [`${SECTION}enable_policy_deploy = false\n`, [], true],
  [`${SECTION}skip_redeploying_policies = ["10PerMin", "Small"]\n`, ['Small'], true],
  ['[apim.throttling.blacklist_condition]\nstart_delay = "1h"\n', ['10PerMin', 'Small'], false],
]

for (const [toml, names, denies] of DEPLOYED) {
  test(`issue 16: what reactors get of the registry with ${JSON.stringify(toml)}, also after a restart`, async () => {
    const given = { runsKeyManager: true, dataDir: dataFolder() }
    const { control, state } = await open(planOf(toml, given))
    for (const policyName of ['10PerMin', 'Small']) {
      const body = { policyName, defaultLimit: LIMIT }
      await control.manage({ action: 'throttle policy apply', level: 'application', body })
    }
    await control.manage({ action: 'throttle deny add', type: 'USER', value: 'mallory' })
    const deployed = (reactor: typeof state) => {
      reactor.catchUp()
      const tiers = ['10PerMin', 'Small'].filter(name => reactor.policies.application(name).policy.quota!.limit === 3)
      return [tiers, reactor.policies.denied.denies('USER', 'mallory')]
    }
    assert.deepEqual(deployed(state), [names, denies])
    await control.close()
    assert.deepEqual(deployed((await open(planOf(toml, given))).state), [names, denies])
  })
}

test('issue 16: a reload of enable_policy_deploy takes policies back and deploys them', async () => {
  const given = { runsKeyManager: true, dataDir: dataFolder() }
  const { control, state } = await open(planOf('', given))
  const body = { policyName: 'Small', defaultLimit: LIMIT }
  await control.manage({ action: 'throttle policy apply', level: 'application', body })
  const known = []
  for (const toml of [`${SECTION}enable_policy_deploy = false\n`, '']) {
    await control.reload(planOf(toml, given))
    state.catchUp()
    known.push(state.policies.application('Small').isKnown)
  }
  assert.deepEqual(known, [false, true])
})

test('issue 16: deny policies are fetched after start_delay, and again at each period', async () => {
  const toml = '[apim.throttling.blacklist_condition]\nstart_delay = "20ms"\nperiod = "20ms"\n'
  const given = { runsKeyManager: true, dataDir: dataFolder() }
  const { control, state } = await open(planOf(toml, given))
  await control.manage({ action: 'throttle deny add', type: 'USER', value: 'mallory' })
  const { version } = state.policies
  while (!state.policies.denied.denies('USER', 'mallory') || state.policies.version < version + 3) {
    await sleep(5)
    state.catchUp()
  }
})
