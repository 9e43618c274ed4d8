/** What backends get of the gateway: who is calling, and its own credentials in the place of the client's. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { Caller } from '../../src/exchange/caller.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import { BackendHandler } from '../../src/handlers/backend-credentials.ts'
import { BackendSide } from '../../src/identity/backend-side.ts'
import type { Inquiry, InquiryResults } from '../../src/identity/feed.ts'
import type { BackendJwtPlan, CredentialPlans } from '../../src/identity/identity-plan.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
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
  subscriptionTier: 'Gold',
  claims: {},
  expiresMs: 0,
  revocationKey: 'j1',
}
const CREDENTIALS: CredentialPlans = {
  production: { kind: 'oauth2', key: 'k' },
  sandbox: { kind: 'basic', authorization: PASSWORD },
}
const NOT_COUNTED = { add: () => {} }
/** Callers are kept: so is what was made for them. */
const callers = new Map<string, Caller>()
/** Answers of the authority. */
let answer: (inquiry: Inquiry) => unknown
const asked: Inquiry[] = []

const identifies: Handler = {
  name: 'identifies',
  request(exchange) {
    const url = new URL(exchange.requestTarget, 'http://a')
    exchange.keyType = url.searchParams.has('sandbox') ? 'SANDBOX' : 'PRODUCTION'
    const user = url.searchParams.get('user')
    if (user === null) return undefined
    const caller = callers.get(user) ?? { ...CALLER, user, method: user === 'nobody' ? 'none' : 'oauth2' }
    callers.set(user, caller)
    exchange.caller = caller
    return undefined
  },
}

const backend = await AnsweringBackend.listen()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})
const OK = backend.answer
beforeEach(() => {
  backend.answer = OK
  backend.requests.length = 0
  answer = () => ({ token: TOKEN, expiresMs: Date.now() + 3_600_000 })
  asked.length = 0
})

async function gatewayWith(jwt: Partial<BackendJwtPlan>, credentials: CredentialPlans): Promise<TestGateway> {
  const { backendJwt } = planGateway([]).plan.identity
  const reports: TestGateway['reports'][number][] = []
  const ask = async <I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> => {
    asked.push(inquiry)
    return answer(inquiry) as InquiryResults[I['kind']]
  }
  const services = new BackendSide(
    { ...backendJwt, isSigned: false, ...jwt },
    { ask, metrics: NOT_COUNTED, report: (level, event, fields) => reports.push({ level, event, fields }) },
  )
  const api = { name: 'a', version: '1', context: '/a/1' }
  const own = new BackendHandler({ api, credentials, tellsCaller: true, services })
  const gateway = await startGateway([{ context: '/t', port: backend.port }], {}, 'json', [
    identifies,
    asProduction(own),
  ])
  const all = { ...gateway, reports }
  gateways.push(all)
  return all
}

/** The test's API has one endpoint, which stands for both kinds. */
function asProduction(handler: BackendHandler): Handler {
  return {
    name: 'own',
    request(exchange) {
      const verdict = handler.request(exchange)
      exchange.keyType = 'PRODUCTION'
      return verdict
    },
  }
}

async function ask(gateway: TestGateway, target: string, lines = ''): Promise<string> {
  const peer = await connectPeer(gateway.port)
  peer.send(`GET /t/${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`)
  await peer.untilEnd()
  return peer.text
}

function got(name: string): readonly string[] {
  return valuesOf(backend.requests.at(-1)!.lines, name)
}

test("a protected backend gets the gateway's token in the place of all that the client sent", async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  const sent = 'Authorization: Bearer of-client\r\nX: y\r\nauthorization: Basic of-client\r\n'
  assert.match(await ask(gateway, 'a', sent), /^HTTP\/1\.1 200/)
  assert.deepEqual([got('authorization'), got('x')], [[`Bearer ${TOKEN}`], ['y']])
  assert.match(await ask(gateway, 'a?sandbox'), /^HTTP\/1\.1 200/)
  assert.deepEqual(got('authorization'), [PASSWORD])
  assert.equal(asked.length, 1)
})

test('no token for the backend: 900424 with 503, the cause in the log alone, nothing is sent', async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  answer = () => {
    throw new Error('the token endpoint answered 500')
  }
  const text = await ask(gateway, 'a')
  assert.match(text, /^HTTP\/1\.1 503 [\s\S]*"code":900424/)
  assert.doesNotMatch(text, /answered 500/)
  assert.equal(backend.requests.length, 0)
  assert.deepEqual(
    gateway.reports.map(({ level, event, fields }) => [level, event, fields.ERROR_CODE, fields.CAUSE_OF_ERROR]),
    [['error', 'no credentials for the backend', 900424, 'the token endpoint answered 500']],
  )
})

test("a 401 of the backend is 900424, not the client's, and the last of that token", async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  backend.answer = () => 'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n'
  const text = await ask(gateway, 'a')
  assert.match(text, /^HTTP\/1\.1 503 [\s\S]*"code":900424/)
  assert.doesNotMatch(text, /WWW-Authenticate/i)
  backend.answer = OK
  answer = () => ({ token: 'another', expiresMs: Date.now() + 3_600_000 })
  await ask(gateway, 'a')
  assert.deepEqual(got('authorization'), ['Bearer another'])
  assert.deepEqual(asked.at(-1), { kind: 'backendToken', key: 'k', refused: TOKEN })
})

test('a backend is told of users and applications, and not of nobody', async () => {
  const gateway = await gatewayWith({ isMade: true }, { production: null, sandbox: null })
  await ask(gateway, 'a?user=alice', 'X-JWT-Assertion: forged\r\n')
  const [token, ...others] = got('x-jwt-assertion')
  assert.equal(JSON.parse(Buffer.from(token!.split('.')[1]!, 'base64').toString()).sub, 'alice')
  assert.deepEqual(others, [])
  await ask(gateway, 'a?user=alice')
  assert.deepEqual(got('x-jwt-assertion'), [token])
  for (const target of ['a', 'a?user=nobody']) {
    await ask(gateway, target, 'X-JWT-Assertion: forged\r\n')
    assert.deepEqual(got('x-jwt-assertion'), [])
  }
})

test('both at once, with the longest head there may be', async () => {
  answer = ({ kind }) => {
    return kind === 'backendJwt' ? 'j'.repeat(6100) : { token: 't'.repeat(1900), expiresMs: Date.now() + 3_600_000 }
  }
  const gateway = await gatewayWith({ isMade: true, isCustom: true }, CREDENTIALS)
  const filling = `X-Fill: ${'f'.repeat(16_000)}\r\n`
  assert.match(await ask(gateway, 'a?user=carol', filling), /^HTTP\/1\.1 200/)
  assert.deepEqual([got('x-jwt-assertion')[0]?.length, got('authorization')[0]?.length], [6100, 1907])
  assert.equal(got('x-fill')[0]?.length, 16_000)
})

test('lines that the head has no room for: 900900, and nothing is sent', async () => {
  answer = ({ kind }) => {
    return kind === 'backendJwt' ? 'j'.repeat(6100) : { token: 't'.repeat(6100), expiresMs: Date.now() + 3_600_000 }
  }
  const gateway = await gatewayWith({ isMade: true, isCustom: true }, CREDENTIALS)
  assert.match(await ask(gateway, 'a?user=dave'), /^HTTP\/1\.1 500 [\s\S]*"code":900900/)
  assert.equal(backend.requests.length, 0)
  assert.match(String(gateway.reports[0]?.fields.CAUSE_OF_ERROR), /have \d+ characters/)
})

test('a generator that fails: 900900 with 500', async () => {
  answer = () => {
    throw new Error('generator_impl has failed: out of ink')
  }
  const gateway = await gatewayWith({ isMade: true, isCustom: true }, { production: null, sandbox: null })
  const text = await ask(gateway, 'a?user=erin')
  assert.match(text, /^HTTP\/1\.1 500 [\s\S]*"code":900900/)
  assert.doesNotMatch(text, /ink/)
})

test('no planted secret stands in an explanation, a log line or an answer of the gateway', async () => {
  const gateway = await gatewayWith({}, CREDENTIALS)
  const texts = [await ask(gateway, 'a'), await ask(gateway, 'a?sandbox')]
  const services = new BackendSide(planGateway([]).plan.identity.backendJwt, {
    ask: () => Promise.reject(new Error('none')),
    metrics: NOT_COUNTED,
    report: () => {},
  })
  const api = { name: 'a', version: '1', context: '/a/1' }
  const { about, name } = new BackendHandler({ api, credentials: CREDENTIALS, tellsCaller: true, services })
  const said = JSON.stringify([texts, about, name, gateway.reports, gateway.accessLines])
  assert.doesNotMatch(said, /planted|cGxhbnRlZC1zZWNyZXQ/)
  assert.match(about, /production endpoints get a token .*; sandbox endpoints get a password/)
})
