/**
 * Fields that the gateway sends to backends: the backend JWT, and its own credentials instead of those of the client.
 */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { Caller } from '../../src/proxy/exchange/caller.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { BackendCredentials, BackendCredentialsFilter } from '../../src/auth/backend-credentials.ts'
import type { ControlCall, ControlCallResults } from '../../src/auth/control-protocol.ts'
import type { BackendJwtPlan, BackendCredentialPlans } from '../../src/auth/auth-plan.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { planGateway, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { valuesOf } from '../harness/strict-http.ts'

const PASSWORD = 'Basic cGxhbnRlZC1zZWNyZXQ='
const TOKEN = 'planted-token'
const CALLER: Caller = {
  method: 'oauth2',
  user: 'alice',
  tenant: 'carbon.super',
  isApplication: false,
  keyType: 'PRODUCTION',
  application: null,
  consumerKey: 'ck',
  heldScopes: new Set(),
  subscriptionTier: 'Gold',
  claims: {},
  expiresMs: 0,
  revocationKey: 'j1',
  limits: null,
}
const CREDENTIALS: BackendCredentialPlans = {
  production: { kind: 'oauth2', key: 'k' },
  sandbox: { kind: 'basic', authorization: PASSWORD },
}
const NO_METRICS = { add: () => {} }
/** One caller per user, because the backend JWT is cached with the caller. */
const callers = new Map<string, Caller>()
/** Handles calls of the control thread. */
let handleCall: (call: ControlCall) => unknown
const calls: ControlCall[] = []

const setCaller: Filter = {
  name: 'set-caller',
  request(exchange) {
    const url = new URL(exchange.requestTarget, 'http://a')
    exchange.keyType = url.searchParams.has('sandbox') ? 'SANDBOX' : 'PRODUCTION'
    const user = url.searchParams.get('user')
    if (user === null) return undefined
    const caller = callers.get(user) ?? { ...CALLER, user, method: user === 'anonymous' ? 'none' : 'oauth2' }
    callers.set(user, caller)
    exchange.caller = caller
    return undefined
  },
}

const backend = await StrictBackend.listen()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})
const OK = backend.respond
beforeEach(() => {
  backend.respond = OK
  backend.requests.length = 0
  handleCall = () => ({ token: TOKEN, expiresMs: Date.now() + 3_600_000 })
  calls.length = 0
})

async function gatewayWith(jwt: Partial<BackendJwtPlan>, credentials: BackendCredentialPlans): Promise<TestGateway> {
  const { backendJwt } = planGateway([]).plan.auth
  const reports: TestGateway['reports'][number][] = []
  const call = async <One extends ControlCall>(one: One): Promise<ControlCallResults[One['kind']]> => {
    calls.push(one)
    return handleCall(one) as ControlCallResults[One['kind']]
  }
  const backendCredentials = new BackendCredentials(
    { ...backendJwt, isSigned: false, ...jwt },
    { call, metrics: NO_METRICS, report: (level, event, fields) => reports.push({ level, event, fields }) },
  )
  const api = { name: 'a', version: '1', context: '/a/1' }
  const own = new BackendCredentialsFilter({
    api,
    plans: credentials,
    hasCallers: true,
    credentials: backendCredentials,
  })
  const gateway = await startGateway([{ context: '/t', port: backend.port }], {
    accessLog: 'json',
    filters: [setCaller, asProduction(own)],
  })
  const all = { ...gateway, reports }
  gateways.push(all)
  return all
}

/** Runs the filter, then sets the key type to production, because the API has production endpoints only. */
function asProduction(handler: BackendCredentialsFilter): Filter {
  return {
    name: 'own',
    request(exchange) {
      const verdict = handler.request(exchange)
      exchange.keyType = 'PRODUCTION'
      return verdict
    },
  }
}

async function request(gateway: TestGateway, target: string, lines = ''): Promise<string> {
  const peer = await connectPeer(gateway.port)
  peer.send(`GET /t/${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`)
  await peer.untilEnd()
  return peer.text
}

function forwarded(name: string): readonly string[] {
  return valuesOf(backend.requests.at(-1)!.lines, name)
}

test('a protected backend gets the credentials of the gateway instead of those of the client', async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  const clientFields = 'Authorization: Bearer of-client\r\nX: y\r\nauthorization: Basic of-client\r\n'
  assert.match(await request(gateway, 'a', clientFields), /^HTTP\/1\.1 200/)
  assert.deepEqual([forwarded('authorization'), forwarded('x')], [[`Bearer ${TOKEN}`], ['y']])
  assert.match(await request(gateway, 'a?sandbox'), /^HTTP\/1\.1 200/)
  assert.deepEqual(forwarded('authorization'), [PASSWORD])
  assert.equal(calls.length, 1)
})

test('a missing token for the backend causes 503 with 900424, with the cause in the log only', async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  handleCall = () => {
    throw new Error('the token endpoint answered 500')
  }
  const text = await request(gateway, 'a')
  assert.match(text, /^HTTP\/1\.1 503 [\s\S]*"code":900424/)
  assert.doesNotMatch(text, /answered 500/)
  assert.equal(backend.requests.length, 0)
  assert.deepEqual(
    gateway.reports.map(({ level, event, fields }) => [level, event, fields.ERROR_CODE, fields.CAUSE_OF_ERROR]),
    [['error', 'no credentials for the backend', 900424, 'the token endpoint answered 500']],
  )
})

test('a 401 of a protected backend becomes 900424, and its token is not used again', async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  backend.respond = () => 'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n'
  const text = await request(gateway, 'a')
  assert.match(text, /^HTTP\/1\.1 503 [\s\S]*"code":900424/)
  assert.doesNotMatch(text, /WWW-Authenticate/i)
  backend.respond = OK
  handleCall = () => ({ token: 'another', expiresMs: Date.now() + 3_600_000 })
  await request(gateway, 'a')
  assert.deepEqual(forwarded('authorization'), ['Bearer another'])
  assert.deepEqual(calls.at(-1), { kind: 'backendToken', key: 'k', refused: TOKEN })
})

test('the backend gets a JWT of authenticated callers only', async () => {
  const gateway = await gatewayWith({ isEnabled: true }, { production: null, sandbox: null })
  await request(gateway, 'a?user=alice', 'X-JWT-Assertion: forged\r\n')
  const [token, ...others] = forwarded('x-jwt-assertion')
  assert.equal(JSON.parse(Buffer.from(token!.split('.')[1]!, 'base64').toString()).sub, 'alice')
  assert.deepEqual(others, [])
  await request(gateway, 'a?user=alice')
  assert.deepEqual(forwarded('x-jwt-assertion'), [token])
  for (const target of ['a', 'a?user=anonymous']) {
    await request(gateway, target, 'X-JWT-Assertion: forged\r\n')
    assert.deepEqual(forwarded('x-jwt-assertion'), [])
  }
})

test('the backend JWT and the credentials fit beside the longest request head', async () => {
  handleCall = ({ kind }) => {
    return kind === 'backendJwt' ? 'j'.repeat(6100) : { token: 't'.repeat(1900), expiresMs: Date.now() + 3_600_000 }
  }
  const gateway = await gatewayWith({ isEnabled: true, isCustom: true }, CREDENTIALS)
  const filling = `X-Fill: ${'f'.repeat(16_000)}\r\n`
  assert.match(await request(gateway, 'a?user=carol', filling), /^HTTP\/1\.1 200/)
  assert.deepEqual([forwarded('x-jwt-assertion')[0]?.length, forwarded('authorization')[0]?.length], [6100, 1907])
  assert.equal(forwarded('x-fill')[0]?.length, 16_000)
})

test('fields too long for the request head cause 900900, and nothing is sent', async () => {
  handleCall = ({ kind }) => {
    return kind === 'backendJwt' ? 'j'.repeat(6100) : { token: 't'.repeat(6100), expiresMs: Date.now() + 3_600_000 }
  }
  const gateway = await gatewayWith({ isEnabled: true, isCustom: true }, CREDENTIALS)
  assert.match(await request(gateway, 'a?user=dave'), /^HTTP\/1\.1 500 [\s\S]*"code":900900/)
  assert.equal(backend.requests.length, 0)
  assert.match(String(gateway.reports[0]?.fields.CAUSE_OF_ERROR), /have \d+ characters/)
})

test('a JWT generator that fails causes 500 with 900900', async () => {
  handleCall = () => {
    throw new Error('generator_impl has failed: out of ink')
  }
  const gateway = await gatewayWith({ isEnabled: true, isCustom: true }, { production: null, sandbox: null })
  const text = await request(gateway, 'a?user=erin')
  assert.match(text, /^HTTP\/1\.1 500 [\s\S]*"code":900900/)
  assert.doesNotMatch(text, /ink/)
})

test('no explanation, log event or response contains a secret', async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  const texts = [await request(gateway, 'a'), await request(gateway, 'a?sandbox')]
  const backendCredentials = new BackendCredentials(planGateway([]).plan.auth.backendJwt, {
    call: () => Promise.reject(new Error('none')),
    metrics: NO_METRICS,
    report: () => {},
  })
  const api = { name: 'a', version: '1', context: '/a/1' }
  const { about, name } = new BackendCredentialsFilter({
    api,
    plans: CREDENTIALS,
    hasCallers: true,
    credentials: backendCredentials,
  })
  const everything = JSON.stringify([texts, about, name, gateway.reports, gateway.accessLines])
  assert.doesNotMatch(everything, /planted|cGxhbnRlZC1zZWNyZXQ/)
  assert.match(about, /production endpoints get a token .*; sandbox endpoints get a password/)
})
