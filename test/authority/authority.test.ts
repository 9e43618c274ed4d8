/** The authority as reactors meet it: with a key manager of its own, and asking that of another node. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { SignJWT } from 'jose'
import { Authority } from '../../src/authority/authority.ts'
import { ReactorLines } from '../../src/authority/reactor-lines.ts'
import type { AuthorityPlan } from '../../src/authority-messages.ts'
import { AuthorityLine } from '../../src/identity/authority-line.ts'
import { NOTHING_DECLARED } from '../../src/identity/declared-applications.ts'
import type { IdentityPlan } from '../../src/identity/identity-plan.ts'
import { IdentityState } from '../../src/identity/identity-state.ts'
import { Passwords } from '../../src/identity/passwords.ts'
import type { ManagementPlan } from '../../src/management-plan.ts'
import { allocateMetrics, snapshotMetrics } from '../../src/observe/metrics.ts'
import { identityPlan } from '../../src/primary/identity-planning.ts'
import { CA, SELF_SIGNED, SERVER } from '../harness/certificates.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { json, MisbehavingServer } from '../remote/misbehaving-server.ts'

const home = mkdtempSync(join(tmpdir(), 'sluice-authority-'))
const server = await MisbehavingServer.listen()
const closings: (() => unknown)[] = []
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 })
const EXP = Math.floor(Date.now() / 1000) + 3600

after(async () => {
  for (const close of closings.reverse()) await close()
  server.close()
  rmSync(home, { recursive: true, force: true })
})

function planOf(toml: string, more: Partial<AuthorityPlan> = {}): AuthorityPlan {
  writeFileSync(join(home, 'deployment.toml'), toml)
  const { configuration } = loadConfiguration(home, [])
  return {
    ...{ configuration, home, dataDir: home, apis: [], runsKeyManager: false, trust: {}, management: null },
    ...{ ownIssuer: configuration.oauth['oidc.id_token.issuer'], issuers: identityPlan(configuration).issuers },
    ...{ backends: [], declared: NOTHING_DECLARED, epoch: new SharedArrayBuffer(4) },
    ...{ metrics: allocateMetrics(1), column: 0, ...more },
  }
}

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-data-'))
  closings.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function boundTo(role: string): AuthorityPlan['apis'][number] {
  const named = { name: role, version: '1', context: `/${role}`, provider: '', state: 'PUBLISHED', tiers: [] }
  return { ...named, scopes: [{ name: 'trade', roles: [role] }] }
}

/** An authority with one reactor. */
async function begin(plan: AuthorityPlan) {
  const reports: string[] = []
  const lines = new ReactorLines({ bug: assert.fail })
  const state = new IdentityState(plan.epoch, { issuers: plan.issuers, skewMs: 0 } as unknown as IdentityPlan)
  const connect = (reactor: number): AuthorityLine => {
    const { port1, port2 } = new MessageChannel()
    closings.push(() => port2.close())
    lines.attach(reactor, port2)
    return new AuthorityLine(port1, news => reactor === 0 && state.take(news))
  }
  state.connect(connect(0))
  const authority = await Authority.open(plan, {
    lines,
    report: (_, event, fields) => reports.push(`${event} ${JSON.stringify(fields)}`),
    ask: () => assert.fail(),
  })
  closings.push(
    () => authority.close(),
    () => state.close(),
  )
  state.catchUp()
  return { authority, state, reports, connect }
}

function tokenOf(claims: Record<string, unknown>): Promise<string> {
  return new SignJWT({ exp: EXP, ...claims }).setProtectedHeader({ alg: 'RS256', kid: 'a' }).sign(RSA.privateKey)
}

const ROLE = '[server]\nserver_role = "gateway-worker"\n'
const WORKER = `${ROLE}[apim.key_manager]\nservice_url = "${server.origin}/services/"\n`

test('a node without a key manager has its keys from another one, and asks it about tokens', async () => {
  const jwk = { ...RSA.publicKey.export({ format: 'jwk' }), kid: 'a' }
  server.answer = (response, { url }) => {
    const answer = url === '/oauth2/jwks' ? { keys: [jwk] } : { active: true, client_id: 'key', sub: 'anna' }
    json(answer)(response, { url } as never)
  }
  const plan = planOf(WORKER)
  const { state } = await begin(plan)
  await state.ask({ kind: 'key', issuer: plan.ownIssuer, kid: 'a' })
  assert.equal(state.issuers.find(plan.ownIssuer)!.hasKeys, true)
  const said = await state.ask({ kind: 'introspect', token: 'opaque' })
  assert.deepEqual([said?.user, said?.issuer], ['anna', plan.ownIssuer])
  await assert.rejects(state.ask({ kind: 'password', user: 'anna', password: '', address: '' }), /no key manager/)
  server.answer = json('<html>', 200, 'text/html')
  await assert.rejects(state.ask({ kind: 'introspect', token: 'other' }), /text\/html/)
  assert.equal(state.issuers.find(plan.ownIssuer)!.hasKeys, true)
})

test('what reactors ask about one token at the same time is one call of the key manager', async () => {
  server.answer = json({ active: true, client_id: 'key', sub: 'anna' })
  const { state, connect } = await begin(planOf(WORKER))
  const askers = [state, connect(1), connect(2)]
  server.received.length = 0
  const answers = await Promise.all(
    Array.from({ length: 999 }, (_, at) => askers[at % 3]!.ask({ kind: 'introspect', token: 'new' })),
  )
  assert.ok(answers.every(answer => answer?.user === 'anna'))
  assert.equal(server.received.filter(({ path }) => path === '/oauth2/introspect').length, 1)
})

test('whoever asks after a revocation joins no question that was begun before it', async () => {
  server.answer = json({ active: true })
  const { authority, state, connect } = await begin(planOf(WORKER, { dataDir: dataFolder() }))
  await state.ask({ kind: 'introspect', token: 'lets us in' })
  const arrived = Promise.withResolvers<() => void>()
  server.answer = (response, { url }) => arrived.resolve(() => json({ active: true })(response, { url } as never))
  const before = state.ask({ kind: 'introspect', token: 'one' })
  const answerFirst = await arrived.promise
  await authority.manage({ action: 'token revoke', token: await tokenOf({ jti: 'another' }) })
  server.answer = json({ active: false })
  assert.equal(await connect(1).ask({ kind: 'introspect', token: 'one' }), null)
  answerFirst()
  assert.notEqual(await before, null)
})

test('what reactors ask about one password at the same time is one attempt to log in', async () => {
  const plan = planOf('', { runsKeyManager: true, dataDir: dataFolder() })
  const { state, connect } = await begin(plan)
  const attempts = () => snapshotMetrics(plan.metrics).counts.verifiedSecretMisses
  const before = attempts()
  const wrong = { kind: 'password', user: 'admin', password: 'guessed', address: '10.0.0.1' } as const
  const askers = [state, connect(1)]
  const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => askers[at % 2]!.ask(wrong)))
  assert.deepEqual(new Set(answers), new Set([null]))
  assert.equal(attempts(), before + 1)
})

test('what a node without a database revokes is revoked at once, told on, and stays so after a restart', async () => {
  const module = 'export const tokenRevoked = token => { (globalThis.heard ??= []).push(token) }'
  writeFileSync(join(home, 'notifier.js'), module)
  const plan = planOf(`${WORKER}[apim.token.revocation]\nnotifier_impl = "notifier.js"\n`)
  const { authority, state } = await begin(plan)
  const token = await tokenOf({ jti: 'one' })
  await authority.manage({ action: 'token revoke', token })
  state.catchUp()
  assert.equal(state.revoked.has('one'), true)
  const { heard } = globalThis as unknown as { readonly heard: unknown }
  assert.deepEqual(heard, [{ key: 'one', expiresMs: EXP * 1000 }])
  await authority.manage({ action: 'token revoke', token: await tokenOf({}) })
  const file = join(home, 'revoked.json')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).tokens.length, 2)
  const { state: next } = await begin(plan)
  assert.deepEqual([next.revoked.has('one'), next.revoked.size], [true, 2])
  for (const wrong of ['opaque', 7, undefined]) {
    await assert.rejects(authority.manage({ action: 'token revoke', token: wrong }), /no JWT/)
  }
})

for (const [what, exp] of [
  ['a fraction of a second (RFC 7519 2)', EXP + 0.123456],
  ['a time that no calendar has', 1e306],
] as const) {
  test(`a revoked token that expires at ${what} does not spoil the file for the next start`, async () => {
    const plan = planOf(WORKER)
    const { authority } = await begin(plan)
    await authority.manage({ action: 'token revoke', token: await tokenOf({ jti: 'odd', exp }) })
    const { state } = await begin(plan)
    assert.equal(state.revoked.has('odd'), true)
    rmSync(join(home, 'revoked.json'))
  })
}

for (const damage of ['', '{', '{"format":2,"tokens":[]}', '{"format":1,"tokens":[["a"]]}', '{"format":1}']) {
  test(`a file of revoked tokens that is damaged (${damage}) refuses the start`, async () => {
    writeFileSync(join(home, 'revoked.json'), damage)
    await assert.rejects(begin(planOf(WORKER)), { name: 'RevocationFileDamaged', message: /revoked\.json/ })
    rmSync(join(home, 'revoked.json'))
  })
}

test('a reload brings issuers and takes them away, and what files declare changes', async () => {
  server.answer = json({ keys: [{ ...RSA.publicKey.export({ format: 'jwk' }), kid: 'a' }] })
  const issuer = `[[apim.jwt.issuer]]\nname = "other"\njwks.url = "${server.origin}/keys"\n`
  const { authority, state } = await begin(planOf(WORKER))
  const application = { id: 'a', name: 'a', owner: '', tenant: '', tier: '', attributes: {} }
  const declared = { ...NOTHING_DECLARED, applications: [application, { ...application, id: 'b' }] }
  const plan = planOf(`${WORKER}${issuer}`, { declared })
  await authority.reload(plan)
  state.renew({ issuers: plan.issuers, skewMs: 0 } as unknown as IdentityPlan)
  await state.ask({ kind: 'key', issuer: 'other', kid: 'a' })
  assert.equal(state.issuers.find('other')!.hasKeys, true)
  state.catchUp()
  assert.equal(state.subscriptions.size.applications, 2)
  server.received.length = 0
  await authority.reload(planOf(WORKER, { declared: { ...declared, applications: [application] } }))
  await state.ask({ kind: 'key', issuer: 'other', kid: 'b' })
  state.catchUp()
  assert.equal(state.subscriptions.size.applications, 1)
  assert.ok(server.received.every(({ path }) => path !== '/keys'))
})

function management(identity = SERVER): ManagementPlan {
  return {
    ...{ host: '127.0.0.1', port: 0, origin: 'https://localhost:9443', hostNames: [], filters: [] },
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

test('reactors know of a user who changes or goes before the management API has answered', async () => {
  const plan = planOf('', { runsKeyManager: true, dataDir: dataFolder(), management: management() })
  const { authority, state } = await begin(plan)
  const admin = /^password of admin: (\S+)/.exec(authority.said[0]!)![1]!
  const passwords = new Passwords({ sources: state, metrics: { add: () => {} }, nowMs: () => 0 })
  const roles = async () => (await passwords.check('annabel', 'a-good-password', '10.0.0.3'))?.user.roles
  const user = { userName: 'annabel', password: 'a-good-password' }
  const { id } = await scim(authority.port, admin, 'POST', '/scim2/Users', user)
  assert.deepEqual(await roles(), ['Internal/everyone'])
  const changed = { ...user, roles: [{ value: 'admin' }] }
  await scim(authority.port, admin, 'PUT', `/scim2/Users/${id}`, changed)
  assert.deepEqual(await roles(), ['Internal/everyone', 'admin'])
  await scim(authority.port, admin, 'DELETE', `/scim2/Users/${id}`)
  assert.equal(await roles(), undefined)
})

test('a reload whose listener cannot take its keys leaves the key manager as it was', async () => {
  const dataDir = dataFolder()
  const plan = planOf('', { runsKeyManager: true, dataDir, management: management() })
  const { authority, state } = await begin(plan)
  const told = Atomics.load(new Int32Array(plan.epoch), 0)
  const other = '[oauth]\noidc.id_token.issuer = "https://other.example"\n'
  const broken = management({ ...SERVER, key: SELF_SIGNED.key })
  const reload = authority.reload(planOf(other, { runsKeyManager: true, dataDir, management: broken }))
  await assert.rejects(reload, /key/)
  assert.equal(Atomics.load(new Int32Array(plan.epoch), 0), told)
  await authority.manage({ action: 'application create', name: 'shop' })
  await authority.manage({ action: 'key generate', application: 'shop' })
  const { accessToken } = (await authority.manage({ action: 'token', application: 'shop' })) as { accessToken: string }
  assert.equal((await state.ask({ kind: 'introspect', token: accessToken }))!.issuer, plan.ownIssuer)
})

test('a node with a key manager knows its own keys, users and tokens without asking anybody', async () => {
  server.received.length = 0
  const plan = planOf('', { runsKeyManager: true, dataDir: dataFolder(), apis: [boundTo('buyer'), boundTo('seller')] })
  const { authority, state } = await begin(plan)
  assert.deepEqual([state.isComplete, state.issuers.find(plan.ownIssuer)!.hasKeys], [true, true])
  const [said = ''] = authority.said
  const password = /^password of admin: (\S+)/.exec(said)![1]!
  const admin = await state.ask({ kind: 'password', user: 'admin@carbon.super', password, address: '10.0.0.2' })
  assert.deepEqual(admin, { name: 'admin', tenant: 'carbon.super', roles: ['Internal/everyone', 'admin'] })
  assert.equal(await state.ask({ kind: 'password', user: 'admin', password: 'guessed', address: '10.0.0.1' }), null)
  assert.equal(await state.ask({ kind: 'introspect', token: 'nobodys' }), null)
  await authority.manage({ action: 'application create', name: 'shop' })
  await authority.manage({ action: 'key generate', application: 'shop' })
  state.catchUp()
  assert.deepEqual(state.subscriptions.size, { applications: 1, keys: 1, subscriptions: 0 })
  const { accessToken } = (await authority.manage({ action: 'token', application: 'shop' })) as { accessToken: string }
  assert.equal((await state.ask({ kind: 'introspect', token: accessToken }))!.isApplication, true)
  const scoped = await authority.manage({ action: 'token', application: 'shop', scopes: ['trade'] })
  const why = 'a scope that two APIs bind to different roles is not for those who have neither'
  assert.deepEqual((scoped as { readonly scopes: unknown }).scopes, ['default'], why)
  await authority.manage({ action: 'token revoke', token: accessToken })
  state.catchUp()
  assert.equal(state.revoked.size, 1)
  assert.equal(server.received.length, 0)
})
