/** Built-in policies from real requests: each in the flow of an API, on the reactor or on a worker. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Flow } from '../../src/apis/api-definition.ts'
import { builtInPolicy } from '../../src/apis/built-in-policies.ts'
import { operation } from '../harness/filter-chain.ts'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import type { TestGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { loadProject } from '../harness/project-flows.ts'
import { takeResponse } from '../harness/responses.ts'
import { type Received, says, startBackend, startCallsOf } from '../harness/sequence-calls.ts'

type Parameters = Readonly<Record<string, string>>

/** Elements of a policy with the defaults of its parameters. */
function elements(name: string, flow: Flow, given: Parameters): string {
  const policy = builtInPolicy(name)!
  const defaults = policy.parameters.map(({ name, fallback }) => [name, fallback] as const)
  return policy.elements(new Map([...defaults, ...Object.entries(given)]), flow)
}

interface Outcome {
  readonly status: number
  readonly head: string
  readonly body: string
  /** The requests that the backend got. */
  readonly received: readonly Received[]
  /** Log events of the gateway. */
  readonly reports: TestGateway['reports']
}

interface Given {
  readonly request?: string
  readonly lines?: string
  readonly body?: string
  /** Status, body and lines of the backend. */
  readonly answer?: readonly [number, string, string]
  /** No backend listens. */
  readonly isDown?: boolean
  /** Elements behind those of the policy. `{port}` in parameters: that of a backend. */
  readonly ending?: string
}

async function exchange(t: TestContext, name: string, flow: Flow, parameters: Parameters, given: Given) {
  // As flows of faults end that are planned.
  const { ending = flow === 'fault' ? '<sequence key="fault"/>' : '' } = given
  return exchangeWith(t, given, port => ({
    [flow]: elements(name, flow, parameters).replace('{port}', String(port)) + ending,
  }))
}

const INTERCEPTOR = { '/api/v1/handle-request': says(200, '{}') }

/** `flows`: by the port of the backend. */
async function exchangeWith(t: TestContext, given: Given, flows: (port: number) => FlowTexts): Promise<Outcome> {
  const { request = 'GET /a/x?q=1', lines = '', body = '', answer = [200, '{"ok":true}', ''], isDown = false } = given
  const serve = () => answer
  const all = await startBackend(t, { '/x': serve, '/new': serve, '/new/7': serve, '/x/': serve, ...INTERCEPTOR })
  const port = isDown ? 1 : all.port
  const overrides = { resources: ['* /x', '* /x/{id}', '* /*'].map(operation) }
  const { gateway } = await startCallsOf(t, await flowsOf(flows(all.port)), port, {}, {}, undefined, overrides)
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  client.send(`${request} HTTP/1.1\r\nHost: gateway\r\n${lines}${length}\r\n${body}`)
  const response = await takeResponse(client)
  const head = Array.from(response.fields, ([field, values]) => `${field}: ${values.join(', ')}\r\n`).join('')
  return { status: response.status, head, body: response.body, received: all.received, reports: gateway.reports }
}

const JSON_LINE = 'Content-Type: application/json\r\n'
const XML_LINE = 'Content-Type: application/xml\r\n'
const POST = 'POST /a/x'

type Expectation = (outcome: Outcome) => void
const got =
  (pattern: RegExp): Expectation =>
  ({ received }) => {
    assert.equal(received.length, 1)
    assert.match(`${received[0]!.head}${received[0]!.body}`, pattern)
  }
const gets =
  (status: number, pattern: RegExp): Expectation =>
  outcome => {
    assert.equal(outcome.status, status)
    assert.match(`${outcome.head}${outcome.body}`, pattern)
  }

const logs =
  (pattern: RegExp): Expectation =>
  ({ reports }) => {
    const texts = reports.filter(({ event }) => event === 'sequence log').map(({ fields }) => JSON.stringify(fields))
    assert.equal(texts.length, 1)
    assert.match(texts[0]!, pattern)
  }

const OF_VARIABLE = (variable: string) => ({ newResourcePath: `/new/${variable}`, includeQueryParams: 'false' })

/** [policy, flow, parameters, exchange, what comes of it]. */
const POLICIES: readonly (readonly [string, Flow, Parameters, Given, Expectation])[] = [
  ['addHeader', 'request', { headerName: 'X-P', headerValue: 'a b' }, {}, got(/^x-p: a b\r$/im)],
  ['addHeader', 'response', { headerName: 'X-P', headerValue: 'a b' }, {}, gets(200, /^x-p: a b\r$/im)],
  [
    'setHeader',
    'request',
    { headerName: 'X-P', headerExpression: "fn:concat($trp:X-Q, '!')" },
    { lines: 'X-Q: 1\r\n' },
    got(/^x-p: 1!\r$/im),
  ],
  ['removeHeader', 'request', { headerName: 'X-P' }, { lines: 'X-P: 1\r\n' }, got(/^(?![\s\S]*x-p:)[\s\S]*$/i)],
  ['addQueryParam', 'request', { paramKey: 'a', paramValue: 'b' }, {}, got(/^GET \/x\?q=1&a=b /)],
  ['removeQueryParam', 'request', { paramKey: 'q' }, {}, got(/^GET \/x /)],
  [
    'rewriteResourcePath',
    'request',
    { newResourcePath: '/new', includeQueryParams: 'true' },
    {},
    got(/^GET \/new\?q=1 /),
  ],
  ['rewriteResourcePath', 'request', { newResourcePath: '/new', includeQueryParams: 'false' }, {}, got(/^GET \/new /)],
  ['rewriteResourcePath', 'request', OF_VARIABLE('{id}'), { request: 'GET /a/x/7?q=1' }, got(/^GET \/new\/7 /)],
  ['rewriteResourcePath', 'request', OF_VARIABLE('{uri.var.id}'), { request: 'GET /a/x/7' }, got(/^GET \/new\/7 /)],
  ...['7%3Fadmin=1', 'a%20b', '%25', '7%23f', '%C3%A4'].map((id): (typeof POLICIES)[number] => [
    'rewriteResourcePath',
    'request',
    OF_VARIABLE('{id}'),
    { request: `GET /a/x/${id}` },
    got(new RegExp(`^GET /new/${id.replace('=', '%3D')} `)),
  ]),
  ['ccAddHeader', 'request', { headerName: 'X-P', headerValue: 'a' }, {}, got(/^x-p: a\r$/im)],
  ['ccRemoveHeader', 'request', { headerName: 'X-P' }, { lines: 'X-P: 1\r\n' }, got(/^(?![\s\S]*x-p:)[\s\S]*$/i)],
  ['ccRewriteResourcePath', 'request', { resourcePath: '/new' }, {}, got(/^GET \/new /)],
  ['ccChangeHTTPMethod', 'request', { currentMethod: 'GET', updatedMethod: 'PUT' }, {}, got(/^PUT \/x\?q=1 /)],
  [
    'ccCallInterceptorService',
    'request',
    { interceptorServiceURL: 'http://127.0.0.1:{port}', includes: 'request_headers' },
    {},
    ({ received }) =>
      assert.deepEqual(
        received.map(({ method, target }) => `${method} ${target}`),
        ['POST /api/v1/handle-request', 'GET /x?q=1'],
      ),
  ],
  ['addLogMessage', 'request', { message: 'the words', level: 'custom' }, {}, logs(/MESSAGE = the words/)],
  [
    'debugRequestFlow',
    'request',
    {},
    { request: POST, body: '{"a":1}', lines: JSON_LINE },
    logs(/IN_MESSAGE[\s\S]*a[\s\S]*1/),
  ],
  ['debugResponseFlow', 'response', {}, {}, logs(/OUT_MESSAGE[\s\S]*ok[\s\S]*true|ok[\s\S]*true[\s\S]*OUT_MESSAGE/)],
  ['debugJsonFault', 'fault', {}, { isDown: true }, logs(/FAULT_MESSAGE/)],
  [
    'xmlThreatProtector',
    'request',
    { maxXMLDepth: '2' },
    { request: POST, body: '<a><b><c/></b></a>', lines: XML_LINE },
    gets(400, /"code":400/),
  ],
  [
    'xmlThreatProtector',
    'request',
    { maxXMLDepth: '3' },
    { request: POST, body: '<a><b><c/></b></a>', lines: XML_LINE },
    got(/<a><b><c\/><\/b><\/a>/),
  ],
  ['changeHTTPMethod', 'request', { httpMethod: 'put' }, {}, got(/^PUT \/x\?q=1 /)],
  ['disableChunking', 'request', {}, { request: POST, body: '{}', lines: JSON_LINE }, got(/^content-length: 2\r$/im)],
  [
    'jsonToXML',
    'request',
    {},
    { request: POST, body: '{"a":{"b":1}}', lines: JSON_LINE },
    got(/content-type: application\/xml[\s\S]*<a><b>1<\/b><\/a>/i),
  ],
  [
    'xmlToJson',
    'response',
    {},
    { answer: [200, '<a><b>1</b></a>', XML_LINE] },
    gets(200, /content-type: application\/json[\s\S]*\{"a":\{"b":1\}\}/i),
  ],
  [
    'mock',
    'request',
    { payload: '{"a": "$1"}', statusCode: '201' },
    {},
    gets(201, /application\/json[\s\S]*\{"a": "\$1"\}$/i),
  ],
  ['mock', 'request', { statusCode: '204' }, {}, gets(204, /(?:)$/)],
  [
    'addHeader',
    'fault',
    { headerName: 'X-P', headerValue: 'f' },
    { isDown: true },
    gets(502, /^x-p: f\r$[\s\S]*101503/im),
  ],
  [
    'setToHeader',
    'request',
    { value: 'http://127.0.0.1:{port}/new' },
    { isDown: true, ending: '<send><endpoint><default/></endpoint></send>' },
    got(/^GET \/new/),
  ],
  [
    'jsonFault',
    'fault',
    {},
    { isDown: true },
    gets(502, /"code":"?\d{6}"?,"type":"Status report","message":"Runtime Error"/),
  ],
  [
    'jsonThreatProtector',
    'request',
    { maxJsonDepth: '2' },
    { request: POST, body: '{"a":{"b":{}}}', lines: JSON_LINE },
    gets(400, /"code":400/),
  ],
  [
    'regularExpressionThreatProtector',
    'request',
    { enabledCheckBody: 'false' },
    { request: "GET /a/x?q=1%27%20or%20'1'='1" },
    gets(400, /"code":400/),
  ],
  [
    'WordCountGuardrail',
    'request',
    { name: 'words', min: '2', max: '3', jsonPath: '$.text' },
    { request: POST, body: '{"text":"one"}', lines: JSON_LINE },
    gets(446, /900514/),
  ],
]
for (const [name, flow, parameters, given, expectation] of POLICIES) {
  test(`${name} in the ${flow} flow, ${JSON.stringify(parameters)}`, async t => {
    expectation(await exchange(t, name, flow, parameters, given))
  })
}

/** [Accept of the client, Content-Type and body of the response to it]. */
const ACCEPTS: readonly (readonly [string, RegExp])[] = [
  ['Accept: application/xml\r\n', /content-type: application\/xml[\s\S]*<ok>true<\/ok>/i],
  ['Accept: application/json\r\n', /content-type: application\/json[\s\S]*\{"ok":true\}/i],
  ['', /content-type: application\/json[\s\S]*\{"ok":true\}/i],
]
for (const [lines, expected] of ACCEPTS) {
  test(`preserveAcceptHeader and applyAcceptHeader convert the response: ${lines.trim() || 'no Accept'}`, async t => {
    const outcome = await exchangeWith(t, { lines }, () => ({
      request: elements('preserveAcceptHeader', 'request', {}),
      response: elements('applyAcceptHeader', 'response', {}),
    }))
    gets(200, expected)(outcome)
    got(/^(?![\s\S]*accept:)/i)(outcome)
  })
}

test('setToHeader chooses the backend of a project of the endpoint type default', async t => {
  const backend = await startBackend(t, { '/new/x': says(200, '{"ok":true}') })
  const parameters = { value: `http://127.0.0.1:${backend.port}/new` }
  const { said, mediation } = await loadProject(t, {
    endpointConfig: { endpoint_type: 'default' },
    apiPolicies: { request: [{ policyName: 'setToHeader', policyVersion: 'v1', parameters }] },
  })
  assert.deepEqual(said, [])
  const { ask } = await startCallsOf(t, mediation!, 1)
  assert.deepEqual(await ask(), [200, '{"ok":true}'])
  assert.deepEqual(
    backend.received.map(({ method, target }) => `${method} ${target}`),
    ['GET /new/x'],
  )
})
