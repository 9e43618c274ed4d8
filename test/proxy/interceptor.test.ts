/** The policy callInterceptorService: what the service is asked, and what becomes of the message. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { builtInPolicy } from '../../src/apis/built-in-policies.ts'
import type { Flow } from '../../src/apis/api-definition.ts'
import type { GatewayOptions } from '../harness/gateway.ts'
import { loadProject } from '../harness/project-flows.ts'
import {
  type PathBackend,
  type Reaction,
  says,
  startBackend,
  startCalls,
  startCallsOf,
} from '../harness/sequence-calls.ts'

const ALL = 'request_headers,request_body,response_headers,response_body,invocation_context'
const base64 = (text: string) => Buffer.from(text).toString('base64')

function elements(port: number, flow: Flow, includes = ALL): string {
  const values = new Map([
    ['interceptorServiceURL', `http://127.0.0.1:${port}/`],
    ['includes', includes],
  ])
  return builtInPolicy('callInterceptorService')!.elements(values, flow)
}

interface Started {
  readonly service: PathBackend
  readonly backend: PathBackend
  readonly ask: Awaited<ReturnType<typeof startCalls>>['ask']
  readonly gateway: Awaited<ReturnType<typeof startCalls>>['gateway']
}

/** `request`, `response`: answers of the service; left out: no policy in that flow. */
async function start(
  t: TestContext,
  { request, response }: { readonly request?: object | Reaction; readonly response?: object | Reaction },
  includes = ALL,
): Promise<Started> {
  const reaction = (answer: object | Reaction = {}): Reaction =>
    typeof answer === 'function' ? (answer as Reaction) : says(200, JSON.stringify(answer))
  const service = await startBackend(t, {
    '/api/v1/handle-request': reaction(request),
    '/api/v1/handle-response': reaction(response),
  })
  const backend = await startBackend(t, { '/x': ({ body }) => [200, `{"got":${body || 'null'}}`, 'X-B: 1\r\n'] })
  const texts = {
    ...(request === undefined ? {} : { request: elements(service.port, 'request', includes) }),
    ...(response === undefined ? {} : { response: elements(service.port, 'response', includes) }),
  }
  return { service, backend, ...(await startCalls(t, texts, backend.port)) }
}

test('the service gets head and body of the request, and no field of the client in its own head', async t => {
  const { service, ask } = await start(t, { request: {} })
  await ask('POST /a/x', '{"a":1}', 'Authorization: Bearer secret\r\nX-C: 2\r\n')
  const [{ method, target, head, body }] = service.received as [PathBackend['received'][0]]
  assert.deepEqual([method, target], ['POST', '/api/v1/handle-request'])
  assert.doesNotMatch(head, /secret|x-c:/i)
  const asked = JSON.parse(body)
  assert.equal(asked.requestHeaders['x-c'], '2')
  assert.equal(asked.requestBody, base64('{"a":1}'))
  assert.equal(asked.invocationContext.method, 'POST')
})

test('what the policy does not include is not sent', async t => {
  const { service, ask } = await start(t, { request: {} }, 'request_headers')
  await ask('POST /a/x', '{"a":1}')
  assert.deepEqual(Object.keys(JSON.parse(service.received[0]!.body)), ['requestHeaders'])
})

test('the service changes fields and body of the request', async t => {
  const answer = {
    headersToAdd: { 'x-a': '1', 'x-c': '3', 'x-f': { toString: 1 } },
    headersToReplace: { 'x-d': '4', 'x-g': null },
    headersToRemove: ['x-e'],
    body: base64('{"b":2}'),
  }
  const { backend, ask } = await start(t, { request: answer })
  const [status, body] = await ask('POST /a/x', '{"a":1}', 'X-C: 2\r\nX-D: 3\r\nX-E: 5\r\n')
  assert.deepEqual([status, body], [200, '{"got":{"b":2}}'])
  const { head } = backend.received[0]!
  assert.match(head, /^x-a: 1\r$/im)
  assert.match(head, /^x-c: 2, 3\r$/im)
  assert.match(head, /^x-d: 4\r$/im)
  assert.doesNotMatch(head, /^x-[efg]:/im)
})

test('the body of the service are bytes, in the charset that its type names', async t => {
  for (const [type, hex] of [
    ['application/octet-stream', 'ff0080'],
    ['application/json; charset=utf-16le', '5b002200e90022005d00'],
  ] as const) {
    const answer = { headersToReplace: { 'content-type': type }, body: Buffer.from(hex, 'hex').toString('base64') }
    const { backend, ask } = await start(t, { request: answer })
    assert.equal((await ask('POST /a/x', '{"a":1}'))[0], 200)
    assert.equal(Buffer.from(backend.received[0]!.body, 'latin1').toString('hex'), hex)
  }
})

test('the service answers the client itself', async t => {
  const answer = { directRespond: true, responseCode: 403, headersToAdd: { 'content-type': 'text/plain' } }
  const { backend, ask } = await start(t, { request: { ...answer, body: base64('no') } })
  assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [403, 'no'])
  assert.deepEqual(backend.received, [])
})

test('the service changes the response, and gets what it said of the request', async t => {
  const { service, ask } = await start(t, {
    request: { interceptorContext: { seen: 'yes' } },
    response: { responseCode: 201, body: base64('{"c":3}') },
  })
  assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [201, '{"c":3}'])
  const asked = JSON.parse(service.received[1]!.body)
  assert.deepEqual([asked.responseCode, asked.interceptorContext], [200, { seen: 'yes' }])
  assert.equal(asked.responseBody, base64('{"got":{"a":1}}'))
  assert.equal(asked.responseHeaders['x-b'], '1')
})

/** A gateway with a project whose response flow asks the service; `more`: files and policies of its request flow. */
async function startProject(
  t: TestContext,
  includes: string,
  more: { readonly files?: Readonly<Record<string, string>>; readonly request?: readonly object[] } = {},
  options: GatewayOptions = {},
) {
  const service = await startBackend(t, {
    '/api/v1/handle-request': says(
      200,
      JSON.stringify({ headersToReplace: { 'x-c': 'new' }, body: base64('{"b":2}') }),
    ),
    '/api/v1/handle-response': says(200, '{}'),
  })
  const backend = await startBackend(t, { '/x': ({ body }) => [200, `{"got":${body || 'null'}}`, 'X-B: 1\r\n'] })
  const interceptorServiceURL = `http://127.0.0.1:${service.port}`
  const use = (values: object) => ({ policyName: 'callInterceptorService', parameters: values })
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://backend.example' } }
  const apiPolicies = {
    request: (more.request ?? []).map(values => use({ interceptorServiceURL, ...values })),
    response: [use({ interceptorServiceURL, includes })],
  }
  const { said, mediation } = await loadProject(t, { endpointConfig, apiPolicies }, more.files)
  const { ask, gateway } = await startCallsOf(t, mediation!, backend.port, {}, options)
  const asked = () => JSON.parse(service.received.at(-1)!.body)
  return { service, backend, ask, gateway, said, mediation: mediation!, asked }
}

const OF_REQUEST = 'request_headers,request_body,response_body'

test('D850: the service gets head and body of the request with the response', async t => {
  const { ask, asked, said } = await startProject(t, OF_REQUEST)
  assert.deepEqual(said, [])
  assert.equal((await ask('POST /a/x', '{"a":1}', 'X-C: 2\r\n'))[0], 200)
  assert.equal(asked().requestHeaders['x-c'], '2')
  assert.equal(asked().requestBody, base64('{"a":1}'))
  assert.equal(asked().responseBody, base64('{"got":{"a":1}}'))
  assert.equal((await ask('GET /a/x'))[0], 200)
  assert.equal(asked().requestBody, '')
})

test('D850: head and body of the request are those of the client, whatever its flow makes of them', async t => {
  const { ask, asked, backend } = await startProject(t, OF_REQUEST, { request: [{ includes: 'request_body' }] })
  assert.equal((await ask('POST /a/x', '{"a":1}', 'X-C: 2\r\n'))[0], 200)
  assert.match(backend.received[0]!.head, /^x-c: new\r$/im)
  assert.equal(backend.received[0]!.body, '{"b":2}')
  assert.equal(asked().requestHeaders['x-c'], '2')
  assert.equal(asked().requestBody, base64('{"a":1}'))
})

test('D850: a response flow that asks for the head alone leaves the body of the request unread', async t => {
  const { ask, asked, mediation } = await startProject(t, 'request_headers')
  assert.equal(mediation.flows.request.needs, 'heads')
  await ask('POST /a/x', '{"a":1}', 'X-C: 2\r\n')
  assert.deepEqual(Object.keys(asked()), ['responseCode', 'requestHeaders'])
})

test('D850: a response flow that asks for nothing of the request leaves its flow as it is', async t => {
  const { mediation } = await startProject(t, 'response_body')
  assert.equal(mediation.flows.request.needs, 'nothing')
})

test('D850: the service gets no body of the request that is in a file, and a warning says so', async t => {
  const bodies = { bytesMax: 1_000_000, memoryMax: 4096, pieceBytes: 4096 }
  const { ask, asked, gateway } = await startProject(t, 'request_headers,request_body', {}, { bodies })
  assert.equal((await ask('POST /a/x', `"${'a'.repeat(5000)}"`, 'X-C: 2\r\n'))[0], 200)
  assert.equal(asked().requestHeaders['x-c'], '2')
  assert.equal('requestBody' in asked(), false)
  const causes = gateway.reports.map(({ fields }) => String(fields.CAUSE_OF_ERROR))
  assert.ok(causes.some(cause => cause.includes('the body of the request is too long for an interceptor service')))
})

test('D851: trailers are a warning, and the other parts are sent', async t => {
  const { ask, asked, said } = await startProject(t, 'request_trailers,response_trailers,response_headers')
  assert.equal(said.length, 1)
  assert.match(
    said[0]!,
    /^api\.yaml:1 callInterceptorService_v1.*the service gets no request_trailers, response_trailers/,
  )
  await ask()
  assert.equal(asked().responseHeaders['x-b'], '1')
})

/** [what, reaction of the service]. */
const FAILURES: readonly (readonly [string, Reaction])[] = [
  ['an error of the service', says(500, '{}')],
  ['an answer that is no object', says(200, '[]')],
  ['an answer that is no JSON', says(200, 'no', 'Content-Type: text/plain\r\n')],
  ['a body that is no Base64', says(200, '{"body":"!!!"}')],
  ['a body of which only the start is Base64', says(200, `{"body":"${base64('[1,2]  ')}==LDNd"}`)],
  ['a body that ends within a byte', says(200, '{"body":"WzEsM"}')],
  ['a body that is not of its content type', says(200, `{"body":"${base64('not json')}"}`)],
  ['a body that is no text', says(200, '{"body":7}')],
  ['directRespond that is no boolean', says(200, '{"directRespond":"yes"}')],
  ['responseCode that is no status', says(200, '{"directRespond":true,"responseCode":"204"}')],
  ['responseCode beyond final ones', says(200, '{"directRespond":true,"responseCode":101}')],
  ['headersToAdd that is no object', says(200, '{"headersToAdd":["x-a"]}')],
  ['headersToRemove that is no list', says(200, '{"headersToRemove":"x-a"}')],
]
describe('a request is refused for', () => {
  for (const [what, reaction] of FAILURES) {
    test(what, async t => {
      const { backend, ask } = await start(t, { request: reaction })
      const [status, body] = await ask('POST /a/x', '{"a":1}')
      assert.equal(status, 500)
      assert.match(body, /Interceptor failed/)
      assert.deepEqual(backend.received, [])
    })
  }
})

test('an answer that is wrong is a cause in the log', async t => {
  const { ask, gateway } = await start(t, { request: { body: base64('not json') } })
  assert.equal((await ask('POST /a/x', '{"a":1}'))[0], 500)
  const causes = gateway.reports.map(({ level, fields }) => `${level} ${String(fields.CAUSE_OF_ERROR ?? '')}`)
  const cause = 'the body in its answer is not of the type of the message: the body is not JSON'
  assert.ok(
    causes.some(each => /^(warn|error) /.test(each) && each.includes(cause)),
    causes.join('\n'),
  )
})

test('members that are null are absent', async t => {
  const answer = { body: null, directRespond: null, responseCode: null, headersToAdd: null, headersToRemove: null }
  const { ask } = await start(t, { request: answer })
  assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [200, '{"got":{"a":1}}'])
})

test('a body in the Base64 of URLs, or without padding, is read', async t => {
  const { ask } = await start(t, { request: { body: Buffer.from('["a~~~"]').toString('base64url') } })
  assert.deepEqual(await ask('POST /a/x', '{"a":1}'), [200, '{"got":["a~~~"]}'])
})
