/** OAuth of endpoints in sequences, end to end: worker threads, a scripted backend and a scripted token endpoint. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BackendTokenClient } from '../../src/control/remote/backend-token-client.ts'
import { HttpClient } from '../../src/control/remote/http-client.ts'
import type { EndpointForm } from '../../src/mediation/endpoint-plan.ts'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { ScriptedControl } from '../harness/scripted-control.ts'
import {
  endpointOfFile,
  planTokens,
  type Reaction,
  says,
  startBackend,
  startCallsOf,
} from '../harness/sequence-calls.ts'

const SETTINGS = { requestsMax: 100, perHostMax: 50, idleMax: 100, waitingMax: 1024, trust: {}, ownCertificates: [] }
const CLIENT = '<clientId>a client</clientId><clientSecret>s:cr-et%t</clientSecret>'
process.env.SLUICE_TEST_OAUTH = 's:cr-et%t'

const grant = (url: string, inner = CLIENT, name = 'clientCredentials') =>
  `<authentication><oauth><${name}>${inner}<tokenUrl>${url}</tokenUrl></${name}></oauth></authentication>`

/** The field of a head; '' for none. */
const fieldOf = (head: string, name: string) => new RegExp(`^${name}: (.*)\\r$`, 'im').exec(head)?.[1] ?? ''

/** A backend that takes some tokens only. */
const takes =
  (...tokens: readonly string[]): Reaction =>
  ({ head, body }) =>
    tokens.includes(fieldOf(head, 'authorization'))
      ? [200, JSON.stringify({ got: fieldOf(head, 'authorization'), body })]
      : [401, '{"no":"entry"}']

interface Scene {
  readonly flows: (http: string, port: number) => FlowTexts
  readonly backend: Reaction
  readonly token?: Reaction
  readonly inner?: string
  readonly grantName?: string
  /** Endpoints of files, of the element. */
  readonly named?: (http: string) => Record<string, string>
  readonly permits?: SharedArrayBuffer
}

/** A gateway with an API of these flows, whose control thread asks the token endpoint. */
async function start(t: TestContext, { flows, backend: reaction, token, inner, grantName, named, permits }: Scene) {
  let issued = 0
  const issue: Reaction = () => {
    return [200, JSON.stringify({ access_token: `t-${++issued}`, token_type: 'Bearer', expires_in: 3600 })]
  }
  const issuer = await startBackend(t, { '/token': token ?? issue })
  const backend = await startBackend(t, { '/in': reaction, '/x': says(200, '{"own":1}') })
  const auth = grant(`http://127.0.0.1:${issuer.port}/token`, inner, grantName)
  const http = `<http uri-template="http://127.0.0.1:${backend.port}/in">${auth}</http>`
  const mediation = await flowsOf(flows(http, backend.port))
  const files: Record<string, EndpointForm> = {}
  for (const [name, content] of Object.entries(named?.(http) ?? {})) files[name] = await endpointOfFile(content)
  const { ask, gateway } = await startCallsOf(
    t,
    mediation,
    backend.port,
    files,
    permits === undefined ? {} : { permits },
  )
  const http1 = new HttpClient(SETTINGS)
  t.after(() => http1.close())
  const tokens = new BackendTokenClient(http1)
  tokens.configure(planTokens(mediation.sequences, files))
  const control = new ScriptedControl(gateway.authState)
  control.handlers = { backendToken: ({ key, refused }) => tokens.get(key, refused) }
  const causes = () => gateway.reports.map(({ fields }) => String(fields.CAUSE_OF_ERROR))
  return { ask, gateway, issuer, backend, causes }
}

const within = (content: string) => `<endpoint>${content}</endpoint>`
const called = (http: string) => ({ request: `<call>${within(http)}</call><respond/>` })
const PLACES: readonly (readonly [what: string, scene: Pick<Scene, 'flows' | 'named'>])[] = [
  ['<call>', { flows: called }],
  ['<send>', { flows: http => ({ request: `<send>${within(http)}</send>` }) }],
  ['a file', { flows: () => ({ request: '<send><endpoint key="one"/></send>' }), named: http => ({ one: http }) }],
  [
    'a file that the message chooses',
    {
      flows: () => ({ request: "<call><endpoint key-expression=\"fn:concat('o', 'ne')\"/></call><respond/>" }),
      named: http => ({ one: http }),
    },
  ],
  ['a group', { flows: http => called(`<failover>${within(http)}${within(http)}</failover>`) }],
  ['a list of recipients', { flows: http => called(`<recipientlist>${within(http)}</recipientlist>`) }],
  [
    'a copy',
    {
      flows: http => ({ request: `<clone><target><sequence><send>${within(http)}</send></sequence></target></clone>` }),
    },
  ],
]
for (const [what, scene] of PLACES) {
  test(`requests to the endpoint of ${what} have a token, which is fetched once`, async t => {
    const { ask, issuer, backend } = await start(t, { ...scene, backend: takes('Bearer t-1') })
    const lines = 'Authorization: Basic b2Y6Y2xpZW50\r\n'
    for (const body of ['{"n":1}', '{"n":2}']) {
      assert.deepEqual(await ask('POST /a/x', body, lines), [200, JSON.stringify({ got: 'Bearer t-1', body })])
    }
    assert.equal(issuer.received.length, 1)
    const authorizations = backend.received.map(({ head }) => head.match(/^authorization: .*$/gim))
    assert.deepEqual(authorizations.flat(), Array(2).fill('Authorization: Bearer t-1'))
  })
}

test('requests that come together wait for one token', async t => {
  const { ask, issuer } = await start(t, { flows: called, backend: takes('Bearer t-1') })
  const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await ask())[0]))
  assert.deepEqual(statuses, [200, 200, 200, 200])
  assert.equal(issuer.received.length, 1)
})

const PARTS = `<requestParameters><parameter name="scope">a b</parameter></requestParameters>
  <customHeaders><header name="X-Tenant">seven</header></customHeaders>`
const BASIC = `Basic ${Buffer.from('a+client:s%3Acr-et%25t').toString('base64')}`
const OWN = 'client_id=a+client&client_secret=s%3Acr-et%25t'
const READ = "<clientId>a client</clientId><clientSecret>{get-property('env', 'SLUICE_TEST_OAUTH')}</clientSecret>"
/** Grant, what is in it, and the form and Authorization of the token request. */
const GRANTS: readonly (readonly [name: string, inner: string, form: string, authorization: string])[] = [
  ['clientCredentials', CLIENT, 'grant_type=client_credentials', BASIC],
  ['clientCredentials', READ, 'grant_type=client_credentials', BASIC],
  ['clientCredentials', `${CLIENT}<authMode>Payload</authMode>`, `grant_type=client_credentials&${OWN}`, ''],
  [
    'passwordCredentials',
    `${CLIENT}<username>ann</username><password>p&amp;w</password>`,
    'grant_type=password&username=ann&password=p%26w',
    BASIC,
  ],
  [
    'authorizationCode',
    `${CLIENT}<refreshToken>r-1</refreshToken>`,
    'grant_type=refresh_token&refresh_token=r-1',
    BASIC,
  ],
]
for (const [name, inner, form, authorization] of GRANTS) {
  test(`a token of the grant ${name} is asked for with ${form}`, async t => {
    const scene = { flows: called, backend: takes('Bearer t-1'), inner: inner + PARTS, grantName: name }
    const { ask, issuer } = await start(t, scene)
    assert.equal((await ask())[0], 200)
    const [{ head, body }] = issuer.received as [(typeof issuer.received)[number]]
    assert.equal(body, `scope=a+b&${form}`)
    assert.equal(fieldOf(head, 'authorization'), authorization)
    assert.equal(fieldOf(head, 'x-tenant'), 'seven')
  })
}

const MARK = '<log level="custom"><property name="flow" value="of the response"/></log>'
for (const [what, flows] of [
  ['<call>', called],
  ['<send>', (http: string) => ({ request: `<send>${within(http)}</send>`, response: MARK })],
  [
    '<send> with receive',
    (http: string) => ({ request: `<send receive="mark">${within(http)}</send>`, others: { mark: MARK } }),
  ],
] as const) {
  test(`${what}: a backend that refuses a token gets the request once more, with another token`, async t => {
    const { ask, issuer, backend, gateway } = await start(t, { flows, backend: takes('Bearer t-2') })
    const body = '{"n":1}'
    assert.deepEqual(await ask('POST /a/x', body), [200, JSON.stringify({ got: 'Bearer t-2', body })])
    assert.equal(issuer.received.length, 2)
    assert.deepEqual(
      backend.received.map(({ head }) => fieldOf(head, 'authorization')),
      ['Bearer t-1', 'Bearer t-2'],
    )
    const logged = gateway.reports.filter(({ event }) => event === 'sequence log').map(({ fields }) => fields.MESSAGE)
    assert.deepEqual(logged, what === '<call>' ? [] : ['flow = of the response'])
  })
}

test('a backend that refuses every token is 900424, and is asked twice at most', async t => {
  const { ask, issuer, backend, causes } = await start(t, { flows: called, backend: takes() })
  for (let asked = 0; asked < 2; asked++) {
    const [status, body] = await ask()
    assert.equal(status, 503)
    assert.match(body, /900424/)
  }
  // A token is replaced once a minute at most (D115).
  assert.equal(issuer.received.length, 2)
  assert.equal(backend.received.length, 3)
  assert.ok(causes().some(cause => cause.includes("the backend refuses the gateway's credentials")))
})

for (const [what, token, cause] of [
  ['fails', says(500, '{}'), /has no token: .*status 500/],
  ['returns no token', says(200, '{"token_type":"Bearer"}'), /has no token: .*no valid access_token/],
] as const) {
  test(`a token endpoint that ${what}: 900424 with its cause, and nothing reaches the backend`, async t => {
    const { ask, backend, causes, gateway } = await start(t, { flows: called, backend: takes(), token })
    const [status, body] = await ask()
    assert.equal(status, 503)
    assert.match(body, /900424/)
    assert.equal(backend.received.length, 0)
    assert.ok(
      causes().some(given => cause.test(given)),
      causes().join('\n'),
    )
    assert.ok(!JSON.stringify(gateway.reports).includes('cr-et'))
  })
}

for (const property of [
  '<property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>',
  '<property name="OUT_ONLY" value="true"/>',
]) {
  test(`${property}: the client gets 202 before the request, with its token, is answered`, async t => {
    const flows = (http: string) => ({ request: `${property}<send>${within(http)}</send>` })
    const { ask, backend } = await start(t, { flows, backend: () => null })
    assert.deepEqual(await ask('POST /a/x', '{"n":1}'), [202, ''])
    await eventually('the request has come', () => backend.received.length === 1)
    const [{ head, body }] = backend.received as [(typeof backend.received)[number]]
    assert.deepEqual([fieldOf(head, 'authorization'), body], ['Bearer t-1', '{"n":1}'])
  })
}

test('a request whose client leaves while it waits for a token never reaches the backend', async t => {
  const asked = Promise.withResolvers<Peer>()
  const token: Reaction = (_, peer) => {
    asked.resolve(peer)
    return null
  }
  const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
  const scene = { flows: called, backend: takes('Bearer t-1'), token, permits }
  const { gateway, issuer, backend, ask } = await start(t, scene)
  const client = await connectPeer(gateway.port)
  client.send('POST /a/x HTTP/1.1\r\nHost: gateway\r\nContent-Length: 4\r\n\r\nleft')
  const peer = await asked.promise
  client.reset()
  await eventually('the free permit', () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain).running === 0)
  const text = JSON.stringify({ access_token: 't-1', token_type: 'Bearer', expires_in: 3600 })
  peer.send(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
  assert.equal((await ask('POST /a/x', '"stays"'))[0], 200)
  assert.deepEqual([issuer.received.length, backend.received.map(({ body }) => body)], [1, ['"stays"']])
})
