/** Every mediator of the language from a real request: in the request, response and fault flow, and on handshakes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ApiMediationPlan } from '../../src/mediation/flow-plan.ts'
import { MEDIATORS } from '../../src/mediation/mediators/list.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { operation } from '../harness/filter-chain.ts'
import { flowsOf, type FlowTexts, startFlows, takeHead } from '../harness/flows.ts'
import { type GatewayOptions, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, refusingPort } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { address, type PathBackend, planEndpoints, says, startBackend } from '../harness/sequence-calls.ts'
import { type Owner, sharedBySuite } from '../harness/suite.ts'
import { switchingProtocols, upgradeRequest } from '../harness/tunnels.ts'

type Steps = (port: number) => string

const seen = (expression: string) => `<property name="X-Seen" expression="${expression}" scope="transport"/>`
const set = (value: string) => `<property name="X-Seen" value="${value}" scope="transport"/>`
const json = (text: string) => `<payloadFactory media-type="json"><format>${text}</format><args/></payloadFactory>`
const body = json('{"a":[1,2],"b":"x"}')
const xml = (text: string) => `<payloadFactory media-type="xml"><format>${text}</format><args/></payloadFactory>`
const branch = (steps: string) => `<target><sequence>${steps}</sequence></target>`
const http = (port: number, path: string) =>
  `<endpoint><http method="post" uri-template="http://127.0.0.1:${port}${path}"/></endpoint>`
const gather = '<aggregate><onComplete expression="json-eval($.n)">'.concat(
  ...['<property name="all" expression="json-eval($)"/>', '</onComplete></aggregate>', seen("get-property('all')")],
)
const opa = (port: number) => `<opa serverUrl="http://127.0.0.1:${port}/policies" policy="p" rule="allow"/>`
const OTHERS = { shared: set('shared') }

/** Steps, the field X-Seen that they leave, and what they log: they need heads alone. */
const OF_HEADS: readonly (readonly [mediator: string, steps: Steps, value: string, logged?: string])[] = [
  ['property', () => set('set'), 'set'],
  ['propertyGroup', () => `<propertyGroup>${set('in group')}</propertyGroup>`, 'in group'],
  ['variable', () => `<variable name="v" type="INTEGER" value="7"/>${seen(`\${vars.v + 1}`)}`, '8'],
  ['filter', () => `<filter xpath="true()"><then>${set('then')}</then><else>${set('else')}</else></filter>`, 'then'],
  [
    'switch',
    () => `<switch source="'b'"><case regex="a">${set('a')}</case><case regex="[bc]">${set('b')}</case></switch>`,
    'b',
  ],
  ['header', () => '<header name="X-Seen" value="header" scope="transport"/>', 'header'],
  ['log', () => `<log level="custom"><property name="k" value="v"/></log>${set('logged')}`, 'logged', 'k = v'],
  ['sequence', () => '<sequence key="shared"/>', 'shared'],
  [
    'rewrite',
    () =>
      `<rewrite><rewriterule><action fragment="path" value="/new"/></rewriterule></rewrite>
        ${seen("get-property('axis2', 'REST_URL_POSTFIX')")}`,
    '/new',
  ],
]

const OF_WORKERS: readonly (readonly [mediator: string, steps: Steps, value: string])[] = [
  ['payloadFactory', () => body + seen('json-eval($.b)'), 'x'],
  [
    'enrich',
    () =>
      `${body}<enrich><source type="inline">"y"</source>
        <target xpath="json-eval($.b)"/></enrich>${seen('json-eval($.b)')}`,
    'y',
  ],
  [
    'makefault',
    () =>
      `<makefault version="soap11"><code value="s11:Server"/><reason value="why"/></makefault>
        ${seen('string(//faultstring)')}`,
    'why',
  ],
  [
    'foreach',
    () =>
      `${body}<foreach expression="json-eval($.a)"><sequence>${json('9')}</sequence></foreach>
        ${seen('json-eval($.a)')}`,
    '[9,9]',
  ],
  ['builder', () => `<builder/>${body}${seen('json-eval($.b)')}`, 'x'],
  ['call', port => `${body}<call>${http(port, '/n')}</call>${seen('json-eval($.n)')}`, '1'],
  [
    'callout',
    port =>
      `${body}<callout serviceURL="http://127.0.0.1:${port}/n"><target key="k"/></callout>${seen("get-property('k')")}`,
    '{"n":1}',
  ],
  [
    'clone and aggregate',
    port => `${body}<clone>${branch(`<call>${http(port, '/n')}</call>`).repeat(2)}</clone>${gather}`,
    '[1,1]',
  ],
  [
    'iterate and aggregate',
    port =>
      `${body}<iterate expression="json-eval($.a)">${branch(`<call>${http(port, '/n')}</call>`)}</iterate>${gather}`,
    '[1,1]',
  ],
  [
    'scatter-gather',
    port =>
      `${body}<scatter-gather><aggregation expression="json-eval($.n)"/>
        <sequence><call>${http(port, '/n')}</call></sequence></scatter-gather>${seen('json-eval($)')}`,
    '[1]',
  ],
  [
    'class',
    () => `${body}<class name="code.mjs"><property name="n" value="v"/></class>${seen('json-eval($.b)')}`,
    'xv',
  ],
  ['opa', port => `${body}${opa(port)}${set('allowed')}`, 'allowed'],
  [
    'script',
    () => `${body}<script language="js">mc.setProperty('k', mc.getPayloadJSON().b + 1)</script>${seen('$ctx:k')}`,
    'x1',
  ],
  [
    'validate',
    () => `${body}<validate><schema>{"required":["c"]}</schema><on-fail>${set('invalid')}</on-fail></validate>`,
    'invalid',
  ],
  ['JSON to XML', () => `${body}${seen('string(//b)')}`, 'x'],
  ['XML to JSON', () => `${xml('<r><b>x</b></r>')}${seen('json-eval($.r.b)')}`, 'x'],
]

const MODULE = 'export const mediate = (m, { properties }) => { m.json = { b: m.json.b + properties.n } }'

interface Seen {
  readonly status: number
  /** X-Seen of the response. */
  readonly client: string
  /** X-Seen of the request that the backend got; null: none. */
  readonly backend: string | null
  /** Target of that request; '' for none. */
  readonly target: string
  /** What sequences have logged. */
  readonly logged: readonly string[]
  readonly body: string
}

/** Flows by the path of their operation: one gateway serves those of all tests. */
const flowsByPath = new Map<string, (port: number) => FlowTexts>()

/** Adds flows while tests are defined; the result sends a request through them. `fails`: no backend listens. */
function exchangeWith(texts: (port: number) => FlowTexts, fails = false): () => Promise<Seen> {
  const path = `/${flowsByPath.size}`
  flowsByPath.set(path, texts)
  return async () => {
    const { backend, ask, logged } = await shared
    backend.received.length = 0
    const before = logged().length
    const { status, fields, body } = await ask(`${fails ? '/refused' : '/a'}${path}`)
    const own = backend.received.find(({ target }) => target === path || target === '/new')
    const sent = own === undefined ? null : (/^x-seen: (.*)\r$/im.exec(own.head)?.[1] ?? '')
    const client = fields.get('x-seen')?.join() ?? ''
    return { status, client, backend: sent, target: own?.target ?? '', logged: logged().slice(before), body }
  }
}

interface Shared {
  readonly backend: PathBackend
  ask(path: string): ReturnType<typeof takeResponse>
  /** Texts of `<log>`, in order. */
  logged(): readonly string[]
}

const shared = sharedBySuite(async (suite): Promise<Shared> => {
  const own = Object.fromEntries([...flowsByPath.keys()].map(path => [path, says(200, '{"own":1}')]))
  const allows = { '/policies/p/allow': says(200, '{"result":true}') }
  const answers = { '/n': says(200, '{"n":1}'), '/new': says(200, '{"own":1}'), ...own, ...allows }
  const backend = await startBackend(suite, answers)
  const texts = [...flowsByPath].map(([path, flows]) => [`GET ${path}`, flows(backend.port)] as const)
  const mediation = await flowsOf({ others: OTHERS }, Object.fromEntries(texts))
  const home = temporaryHome(suite, { 'code.mjs': MODULE })
  return { backend, ...(await startPair(suite, mediation, backend.port, { home })) }
})

/** Starts a gateway with `/a` and with `/refused`, where no backend listens; both have an operation per flow. */
async function startPair(
  t: Owner,
  mediation: ApiMediationPlan,
  port: number,
  options: GatewayOptions = {},
): Promise<Omit<Shared, 'backend'>> {
  const refusing = await refusingPort()
  t.after(() => refusing.close())
  const overrides = { mediation, resources: Object.keys(mediation.byOperation).map(operation) }
  const apis = [
    { context: '/a', port, overrides },
    { context: '/refused', port: refusing.port, overrides },
  ]
  const sequenceEndpoints = planEndpoints(mediation.sequences)
  const gateway = await startGateway(apis, { sequenceEndpoints, ...options })
  t.after(() => gateway.stop())
  const ask = async (path: string) => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
    return takeResponse(client)
  }
  return { ask, logged: () => loggedOf(gateway) }
}

function loggedOf({ reports }: TestGateway): readonly string[] {
  return reports.filter(({ event }) => event === 'sequence log').map(({ fields }) => String(fields.MESSAGE))
}

for (const [mediator, steps, value, line] of [...OF_HEADS, ...OF_WORKERS]) {
  const lines = line === undefined ? [] : [line]
  describe(`<${mediator}>`, () => {
    const inRequest = exchangeWith(port => ({ request: steps(port) }))
    const inResponse = exchangeWith(port => ({ response: steps(port) }))
    const inFault = exchangeWith(port => ({ fault: steps(port) }), true)
    test('acts in the request flow', async () => {
      const { status, backend, logged } = await inRequest()
      assert.deepEqual([status, backend, logged], [200, value, lines])
    })
    test('acts in the response flow', async () => {
      const { status, client, logged } = await inResponse()
      assert.deepEqual([status, client, logged], [200, value, lines])
    })
    test('acts in the fault flow', async () => {
      const { client, logged } = await inFault()
      assert.deepEqual([client, logged], [value, lines])
    })
  })
}

const rewritten = exchangeWith(() => ({
  request: '<rewrite><rewriterule><action fragment="path" value="/new"/></rewriterule></rewrite>',
}))
test('<rewrite> in the request flow changes the target that the backend gets', async () => {
  assert.equal((await rewritten()).target, '/new')
})

for (const [side, request, response] of [
  ['in', 'for requests', ''],
  ['out', '', 'for responses'],
] as const) {
  const steps = `<${side}>${set(`for ${side === 'in' ? 'requests' : 'responses'}`)}</${side}>`
  const exchange = exchangeWith(() => ({ request: steps, response: steps }))
  const refused = exchangeWith(() => ({ fault: steps }), true)
  test(`<${side}> acts on one direction alone, and on faults as on requests`, async () => {
    const passed = await exchange()
    assert.deepEqual([passed.backend, passed.client], [request, response])
    assert.equal((await refused()).client, request)
  })
}

const FLOWS = ['request', 'response', 'fault'] as const
type Flow = (typeof FLOWS)[number]
/** Status, X-Seen of the backend and of the client; the other flows set X-Seen where they run. */
const ENDS: readonly (readonly [steps: string, flow: Flow, expected: readonly [number, string | null, string]])[] = [
  [`${set('own')}<respond/>`, 'request', [200, null, 'own']],
  [`${set('own')}<respond/>`, 'response', [200, '', 'own']],
  [`${set('own')}<respond/>`, 'fault', [502, null, 'own']],
  [`${set('own')}<send/>`, 'request', [200, 'own', 'response flow']],
  [`${set('own')}<send/>`, 'response', [200, '', 'own']],
  [`${set('own')}<send/>`, 'fault', [502, null, 'own']],
  [`${set('own')}<drop/>`, 'request', [202, null, '']],
  [`${set('own')}<drop/>`, 'response', [202, '', '']],
  [`${set('own')}<drop/>`, 'fault', [502, null, '']],
  ['<loopback/>', 'request', [200, null, 'response flow']],
  [`<loopback/>${set('own')}`, 'response', [200, '', 'own']],
  ['<throwError type="T" errorMessage="m"/>', 'request', [500, null, 'fault flow']],
  ['<throwError type="T" errorMessage="m"/>', 'response', [500, '', 'fault flow']],
  ['<throwError type="T" errorMessage="m"/>', 'fault', [502, null, '']],
]

/** Mediators with tests of their own here, and those that API policies and types of APIs become. */
const ELSEWHERE = [
  ...['in', 'out', 'cache', 'call-template'],
  ...['interceptor', 'queryParameter', 'resourcePath', 'jsonThreatProtection', 'xmlThreatProtection'],
  ...[
    'regexThreatProtection',
    'guardrail',
    'wellFormedBody',
    'accessClaim',
    'openApiContract',
    'graphqlQuery',
    'soapFaultCheck',
    'keepRequest',
    'cache',
  ],
]

test('no mediator of the language is left out', () => {
  const texts = [...OF_HEADS, ...OF_WORKERS].map(([, steps]) => steps(1)).concat(ENDS.map(([steps]) => steps))
  const isThere = (name: string) => texts.some(text => new RegExp(`<${name}[ />]`).test(text))
  const names = MEDIATORS.map(({ name }) => name)
  assert.deepEqual(
    names.filter(name => !isThere(name)),
    names.filter(name => ELSEWHERE.includes(name)),
  )
})

for (const isOnWorker of [false, true]) {
  for (const [steps, flow, [status, backend, client]] of ENDS) {
    const where = isOnWorker ? 'a worker' : 'the reactor'
    const others = { response: set('response flow'), fault: set('fault flow') }
    const own = (isOnWorker ? '<property name="p" expression="json-eval($.own)"/>' : '') + steps
    const exchange = exchangeWith(() => ({ ...others, [flow]: own }), flow === 'fault')
    test(`${steps.slice(steps.lastIndexOf('<'))} in the ${flow} flow on ${where}: ${status}`, async () => {
      const got = await exchange()
      assert.deepEqual([got.status, got.backend, got.client], [status, backend, client])
    })
  }
}

const finder = `<cache collector="false" timeout="60" maxMessageSize="1000">
  <onCacheHit>${set('hit')}<respond/></onCacheHit>
  <protocol type="HTTP"><methods>GET</methods></protocol></cache>`
const COLLECTOR = '<cache collector="true"/>'
const ofCall = (port: number) => `<call>${http(port, '/n')}</call><property name="RESPONSE" value="true"/>`

/** Flows, whether the second request is answered from the cache, and what the first one gets. */
const CACHES: readonly (readonly [what: string, texts: (port: number) => FlowTexts, hits: boolean, body: string])[] = [
  ['the response flow', () => ({ request: finder, response: COLLECTOR }), true, '{"own":1}'],
  [
    'the request flow, behind a call',
    port => ({ request: `${finder}${ofCall(port)}${COLLECTOR}<respond/>` }),
    true,
    '{"n":1}',
  ],
  ['the request flow, before a response', () => ({ request: finder + COLLECTOR }), false, '{"own":1}'],
  ['no flow', () => ({ request: finder }), false, '{"own":1}'],
]
for (const [what, texts, hits, body] of CACHES) {
  const exchange = exchangeWith(texts)
  const does = hits ? 'responds in place of the backend' : 'keeps nothing'
  test(`<cache> with a collector in ${what} ${does}`, async () => {
    const [first, second] = [await exchange(), await exchange()]
    assert.deepEqual([first.body, first.client], [body, ''])
    assert.deepEqual([second.body, second.client, second.backend], [body, hits ? 'hit' : '', hits ? null : ''])
  })
}

const failing = exchangeWith(() => ({ request: finder, fault: set('fault flow') + COLLECTOR }), true)
test('<cache> with a collector in the fault flow keeps no fault', async () => {
  for (const { status, client } of [await failing(), await failing()])
    assert.deepEqual([status, client], [502, 'fault flow'])
})

describe('on the handshake of a WebSocket', () => {
  for (const [mediator, steps, value, line] of OF_HEADS) {
    test(`<${mediator}> acts on the request and on the 101`, async t => {
      const mediation = await flowsOf({ request: steps(0), response: steps(0), others: OTHERS })
      const { gateway, backend } = await startFlows(t, [mediation], { kinds: ['ws'] })
      const client = await connectPeer(gateway.port)
      t.after(() => client.destroy())
      client.send(upgradeRequest('websocket').replace('/echo/', '/a/').replace('Host: a', 'Host: h'))
      const peer = await backend.next()
      const pattern = new RegExp(`^x-seen: ${value}\r$`, 'im')
      assert.match(await takeHead(peer), pattern)
      peer.send(switchingProtocols('websocket', ''))
      assert.match(await takeHead(client), pattern)
      assert.deepEqual(loggedOf(gateway), line === undefined ? [] : [line, line])
    })
  }
})

const sending = exchangeWith(port => ({ request: `${set('own')}<send>${address(port)}</send>` }))
test('an endpoint that <send> names gets the message of the request flow', async () => {
  const { backend, body } = await sending()
  assert.deepEqual([backend, body], ['own', '{"own":1}'])
})

const ORDER: Readonly<Record<Flow, readonly string[]>> = {
  request: ['WSO2AM--Ext--In', 'a:v1--In', 'policy-of-api', 'policy-of-operation'],
  response: ['WSO2AM--Ext--Out', 'a:v1--Out', 'policy-of-api', 'policy-of-operation'],
  fault: ['WSO2AM--Ext--Fault', 'a:v1--Fault', 'policy-of-api'],
}

for (const isOnWorker of [false, true]) {
  const where = isOnWorker ? 'a worker' : 'the reactor'
  test(`the sequences of each flow run in the order of its plan on ${where}`, async t => {
    const append = (name: string) => {
      const order = `<property name="order" expression="concat($ctx:order, '${name};')"/>${seen('$ctx:order')}`
      return isOnWorker ? `<property name="p" expression="json-eval($.own)"/>${order}` : order
    }
    const names = [...new Set(Object.values(ORDER).flat())]
    const { sequences } = await flowsOf({ others: Object.fromEntries(names.map(name => [name, append(name)])) })
    const none = { sequences: [], needs: 'nothing' } as const
    const flows = { request: none, response: none, fault: none }
    const own = (flow: Flow) => ({ sequences: ORDER[flow], needs: isOnWorker ? 'worker' : 'heads' }) as const
    const byOperation = Object.fromEntries(FLOWS.map(flow => [`GET /${flow}`, { ...flows, [flow]: own(flow) }]))
    const backend = await startBackend(t, Object.fromEntries(FLOWS.map(flow => [`/${flow}`, says(200, '{"own":1}')])))
    const { ask } = await startPair(t, { sequences, flows, byOperation }, backend.port)
    for (const flow of FLOWS) {
      const { fields } = await ask(`${flow === 'fault' ? '/refused' : '/a'}/${flow}`)
      const sent = /^x-seen: (.*)\r$/im.exec(backend.received[0]?.head ?? '')?.[1]
      const got = flow === 'request' ? sent : fields.get('x-seen')?.join()
      assert.equal(got, ORDER[flow].map(name => `${name};`).join(''), flow)
    }
  })
}

for (const isOnWorker of [false, true]) {
  const where = isOnWorker ? 'a worker' : 'the reactor'
  const read = isOnWorker ? '<property name="p" expression="json-eval($.own)"/>' : ''
  const raised = (
    [
      ['900777', 900_777, 'message'],
      ['900902', 900_902, 'message'],
      ['T', 500, 'description'],
    ] as const
  ).flatMap(([type, code, text]) =>
    (['request', 'response'] as const).map(flow => {
      const raise = `${read}<throwError type="${type}" errorMessage="too late"/>`
      return { what: `${flow} ${type}`, code, text, exchange: exchangeWith(() => ({ [flow]: raise })) }
    }),
  )
  test(`clients get the number and text that <throwError> gives on ${where}, and 500 without a number`, async () => {
    for (const { what, code, text, exchange } of raised) {
      const { status, body } = await exchange()
      const { fault } = JSON.parse(body)
      assert.deepEqual([status, fault.code, fault[text]], [500, code, 'too late'], what)
    }
  })
  const withStatus = (['request', 'response'] as const).flatMap(flow =>
    (
      [
        ['422', 422],
        ['99', 500],
        ['x', 500],
      ] as const
    ).map(([given, sent]) => {
      const property = `<property name="CUSTOM_HTTP_SC" value="${given}"/>`
      const raise = `${read}${property}<throwError type="7" errorMessage="m"/>`
      return { what: `${flow} ${given}`, sent, exchange: exchangeWith(() => ({ [flow]: raise })) }
    }),
  )
  test(`<throwError> on ${where} sends the status that CUSTOM_HTTP_SC holds`, async () => {
    for (const { what, sent, exchange } of withStatus) assert.equal((await exchange()).status, sent, what)
  })
}
