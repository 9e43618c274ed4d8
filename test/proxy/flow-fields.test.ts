/** The request fields that sequences see: the same on the reactor and on a worker, and none that a client forges. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { flowsOf } from '../harness/flows.ts'
import { type GatewayOptions, startGateway } from '../harness/gateway.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { address, callTo, says, startBackend, startCalls } from '../harness/sequence-calls.ts'
import { type Owner, sharedBySuite } from '../harness/suite.ts'

const NAMES = [
  'Host',
  'Via',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'X-Forwarded-Port',
  'Forwarded',
]
const CLAIMS = [
  ...['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-Host: forged.example', 'X-Forwarded-Proto: https'],
  ...['X-Forwarded-Port: 1', 'Forwarded: for=192.0.2.1', 'activityid: mine', 'TE: trailers', 'Connection: X-Near, TE'],
  ...['X-Near: 1', 'X-Own: yes'],
]
const SEEN = [...NAMES, 'activityid', 'TE', 'Connection', 'X-Near', 'X-Own']
const COPIES = SEEN.map(
  name => `<property name="S-${name}" expression="concat('[', $trp:${name}, ']')" scope="transport"/>`,
)
/** Makes a flow need a worker. */
const READS_BODY = '<property name="body" expression="json-eval($.a)"/>'

/** [what, steps of the request flow]. */
const ROWS: readonly (readonly [what: string, steps: string])[] = [
  ['sequences see the same fields', COPIES.join('')],
  ['no step changes nothing', '<property name="p" expression="$trp:Host"/>'],
  ['a removed field is gone', '<property name="X-Forwarded-Host" scope="transport" action="remove"/>'],
  ['a field that is set is sent', '<property name="X-Forwarded-For" value="gateway" scope="transport"/>'],
  ['a user agent can be removed', '<header name="User-Agent" scope="transport" action="remove"/>'],
  ['Via can be removed', '<property name="Via" scope="transport" action="remove"/>'],
  ['Via that is set is sent', '<property name="Via" value="1.1 other" scope="transport"/>'],
  [
    'the framing is seen by neither',
    '<property name="S-Length" expression="concat(\'[\', $trp:Content-Length, \']\')" scope="transport"/>',
  ],
]
const PLACES = { reactor: '', worker: READS_BODY }

/** A gateway with an API for each row and place. */
async function startRows(owner: Owner, http: GatewayOptions['http'] & object) {
  const backend = await startBackend(owner, { '/x': says(200, '{}') })
  const apis = ROWS.flatMap(([, steps], row) =>
    Object.entries(PLACES).map(async ([place, more]) => {
      const mediation = await flowsOf({ request: more + steps })
      return { context: `/${place}${row}`, port: backend.port, overrides: { mediation } }
    }),
  )
  const gateway = await startGateway(await Promise.all(apis), { http })
  owner.after(() => gateway.stop())
  /** Fields that the backend gets, in lower case, of a request with `lines`. */
  return async (t: TestContext, api: string, lines: readonly string[]): Promise<readonly string[]> => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send([`POST /${api}/x HTTP/1.1`, 'Host: api.example', ...lines, 'Content-Length: 2', '', '{}'].join('\r\n'))
    assert.equal((await takeResponse(client)).status, 200)
    return backend.received
      .at(-1)!
      .head.toLowerCase()
      .split('\r\n')
      .slice(1)
      .filter(line => !/^(?:$|host: 127\.0\.0\.1|activityid: (?!mine)|date: )/.test(line))
      .sort()
  }
}

const SETTINGS: readonly (readonly [what: string, http: GatewayOptions['http'] & object])[] = [
  ['an untrusted client', {}],
  ['a trusted proxy', { trusted_proxies: ['127.0.0.1'] }],
]

for (const [what, http] of SETTINGS) {
  describe(`of ${what},`, () => {
    const started = sharedBySuite(owner => startRows(owner, http))
    for (const [at, [row]] of ROWS.entries()) {
      test(`${row} on a worker as on the reactor`, async t => {
        const sent = await started
        const lines = [...CLAIMS, 'User-Agent: c/1']
        assert.deepEqual(await sent(t, `worker${at}`, lines), await sent(t, `reactor${at}`, lines))
      })
    }
  })
}

test('on a worker no sequence sees what an untrusted client claims to have been forwarded', async t => {
  const lines = await (await startRows(t, {}))(t, 'worker0', CLAIMS)
  const seen = Object.fromEntries(lines.filter(line => line.startsWith('s-')).map(line => line.slice(2).split(': ')))
  assert.deepEqual(seen, {
    ...{ host: '[api.example]', via: '[1.1 sluice]', 'x-own': '[yes]' },
    ...{ 'x-forwarded-for': '[127.0.0.1]', 'x-forwarded-host': '[api.example]', 'x-forwarded-proto': '[http]' },
    ...{ 'x-forwarded-port': '[]', forwarded: '[]', activityid: '[]', te: '[]', connection: '[]', 'x-near': '[]' },
  })
})

const AS_CALLER: Filter = {
  name: 'as-caller',
  request(exchange) {
    exchange.callerLines = 'X-JWT-Assertion: signed\r\nAuthorization: Basic own\r\n'
    return undefined
  },
}
const FLOWS = {
  'of the API gets them': () => READS_BODY,
  'of send does not': (to: string) => `<send>${to}</send>`,
  'of call does not': (to: string) => `<call>${to}</call><respond/>`,
} satisfies Record<string, (to: string) => string>

for (const [what, flow] of Object.entries(FLOWS)) {
  test(`credentials of the gateway and the backend JWT: an endpoint ${what}`, async t => {
    const backend = await startBackend(t, { '/x': says(200, '{}') })
    const request = flow(address(backend.port))
    const { ask } = await startCalls(t, { request }, backend.port, {}, { filters: [AS_CALLER] })
    assert.deepEqual(await ask(), [200, '{}'])
    const isOwn = /^X-JWT-Assertion: signed\r\nAuthorization: Basic own\r$/m.test(backend.received[0]!.head)
    assert.equal(isOwn, what === 'of the API gets them')
    assert.equal(/assertion|authorization/i.test(backend.received[0]!.head), isOwn)
  })
}

const ACCEPTED = '<property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>'
const copied = (steps: string) => `<clone continueParent="true"><target><sequence>${steps}</sequence></target></clone>`
const TOLD = ['x-forwarded-for: 127.0.0.1', 'x-forwarded-host: gateway', 'x-forwarded-proto: http']
const SET = '<property name="X-Forwarded-Host" value="public" scope="transport"/>'
const SET_TOLD = TOLD.map(line => line.replace(': gateway', ': public'))
const REMOVED = '<property name="X-Forwarded-Host" scope="transport" action="remove"/>'
const REMOVED_TOLD = TOLD.filter(line => !line.includes('-host'))

/** [what, request flow, of the port of the backend, what the path `/far/x` gets]. */
const WAYS: readonly (readonly [what: string, steps: (port: number) => string, told: readonly string[]])[] = [
  ['a request that <send> sends', port => `<send>${address(port, '/far')}</send>`, TOLD],
  ['one whose answer is received', port => `<send receive="r">${address(port, '/far')}</send>`, TOLD],
  ['one that is sent once its client has 202', port => `${ACCEPTED}<send>${address(port, '/far')}</send>`, TOLD],
  [
    'one of these with a field that a sequence sets',
    port => `${SET}${ACCEPTED}<send>${address(port, '/far')}</send>`,
    SET_TOLD,
  ],
  ['one that lost a field', port => `${REMOVED}${ACCEPTED}<send>${address(port, '/far')}</send>`, REMOVED_TOLD],
  ['a copy in the background', port => copied(`<send>${address(port, '/far')}</send>`), TOLD],
  [
    'a copy that is gathered',
    port => `<clone><target><sequence><send>${address(port, '/far')}</send></sequence></target></clone>`,
    TOLD,
  ],
  ['a request of <call>', port => `<call>${address(port, '/far')}</call>`, []],
  ['a <call> of a copy in the background', port => copied(`<call>${address(port, '/far')}</call>`), []],
  ['what follows a <call>', port => `${callTo(port, '/x')}<send receive="r">${address(port, '/far/x')}</send>`, []],
]
for (const [what, steps, told] of WAYS) {
  test(`D895: ${what} ${told.length === 0 ? 'has none' : 'tells the way of its client'}`, async t => {
    const backend = await startBackend(t, {
      '/x': says(200, '{}', 'X-Forwarded-For: 192.0.2.9\r\n'),
      '/far/x': says(200, '{}'),
    })
    const texts = { request: steps(backend.port), others: { r: '<property name="p" value="v"/>' } }
    const { ask } = await startCalls(t, texts, backend.port)
    await ask('GET /a/x', '', 'X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n')
    const far = () => backend.received.find(({ target }) => target === '/far/x')
    await eventually('the request has come', () => far() !== undefined)
    const lines = far()!
      .head.toLowerCase()
      .split('\r\n')
      .filter(line => /^(?:x-)?forwarded/.test(line))
    assert.deepEqual(lines.sort(), told)
  })
}

test('a log on a worker masks secret fields and copies of them', async t => {
  const backend = await startBackend(t, { '/x': says(200, '{}') })
  const request = `${READS_BODY}<property name="copy" expression="concat('is ', $trp:X-Api-Key)"/>
    <log level="custom"><property name="key" expression="$trp:X-Api-Key"/>
      <property name="copied" expression="$ctx:copy"/></log>
    <log level="headers"/>`
  const { gateway, ask } = await startCalls(
    t,
    { request, response: `<log level="custom"><property name="later" expression="$ctx:copy"/></log>${READS_BODY}` },
    backend.port,
  )
  assert.deepEqual(await ask('GET /a/x', '', 'X-Api-Key: planted\r\nCookie: a=planted\r\n'), [200, '{}'])
  const lines = () => gateway.reports.filter(({ event }) => event === 'sequence log')
  await eventually('the lines', () => lines().length >= 3)
  assert.doesNotMatch(JSON.stringify(gateway.reports), /planted/)
})
