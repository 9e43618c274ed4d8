/** Operations that are no requests: topics of WebSocket and event APIs, and fields of GraphQL APIs. */
import assert from 'node:assert/strict'
import { type TestContext, describe, test } from 'node:test'
import { shownName } from '../../src/apis/policy-names.ts'
import { loadProject } from '../harness/project-flows.ts'

const ENDPOINT = { endpoint_type: 'ws', production_endpoints: { url: 'ws://backend.example' } }

interface Operation {
  readonly target: string
  readonly verb: string
  readonly [member: string]: unknown
}

function load(t: TestContext, type: string, operations: readonly Operation[], more: object = {}) {
  const schema = 'type Query { pet: String, pets: [String] }'
  const data = { type, endpointConfig: ENDPOINT, operations, ...more }
  return loadProject(t, data, { 'Definitions/schema.graphql': schema })
}

const topic = (target: string, verb: string, access: object = {}): Operation => ({ target, verb, ...access })
const SCOPED = { authType: 'Application User', throttlingPolicy: 'Gold', scopes: ['read'] }

/** [what, type, operations, resources as `VERB template authType tier scopes`]. */
const TOPICS: readonly (readonly [string, string, readonly Operation[], readonly string[]])[] = [
  ['a topic', 'WS', [topic('/news', 'SUBSCRIBE', SCOPED)], ['GET /news Application User Gold read']],
  [
    'both directions',
    'WS',
    [topic('/news', 'SUBSCRIBE', SCOPED), topic('/news', 'PUBLISH', SCOPED)],
    ['GET /news Application User Gold read'],
  ],
  ['a name without a slash', 'WS', [topic('news', 'publish', SCOPED)], ['GET /news Application User Gold read']],
  ['a topic of events', 'SSE', [topic('/{id}', 'SUBSCRIBE', SCOPED)], ['GET /{id} Application User Gold read']],
]

describe('D721: operations of an API of topics are the requests that open them', () => {
  for (const [what, type, operations, expected] of TOPICS) {
    test(`${what} of the type ${type}`, async t => {
      const { api, said } = await load(t, type, operations)
      assert.deepEqual(
        said.filter(line => !line.includes('throttling')),
        [],
      )
      const shown = api!.resources.map(one => [one.verb, one.template, one.authType, one.tier, ...one.scopes].join(' '))
      assert.deepEqual(shown, expected)
    })
  }
})

test('D721: two directions of a topic that differ in access refuse the project', async t => {
  const { api, said } = await load(t, 'WS', [topic('/a', 'SUBSCRIBE', SCOPED), topic('/a', 'PUBLISH')])
  assert.equal(api, undefined)
  assert.match(said.join('\n'), /operations\[1\]\.target = "\/a": GET \/a is declared already \(one connection carries/)
})

const USES = { request: [{ policyName: 'jsonThreatProtector', policyVersion: 'v1', parameters: {} }] }

test('D721: policies of both directions of a topic run on its request, in the order of the operations', async t => {
  const add = (headerName: string) => ({
    operationPolicies: { request: [{ policyName: 'addHeader', parameters: { headerName, headerValue: '1' } }] },
  })
  const { api, said } = await load(t, 'WS', [topic('/a', 'SUBSCRIBE', add('x')), topic('a', 'PUBLISH', add('y'))])
  assert.deepEqual(said, [])
  const { request, response, fault } = api!.mediation!.byOperation['GET /a']!
  assert.deepEqual([request.map(shownName), response, fault], [['addHeader_v1', 'addHeader_v1'], [], []])
  assert.notEqual(request[0], request[1])
})

/** [policies of the first operation, what is said]. */
const OF_FIELDS: readonly (readonly [object, string])[] = [
  [{ request: [], response: [], fault: [] }, ''],
  [
    USES,
    'api.yaml:1: data.operations[1].operationPolicies: do not run for single fields of a query (attach them to the whole API as data.apiPolicies)',
  ],
]
for (const [operationPolicies, expected] of OF_FIELDS) {
  test(`D721: policies of one operation of a GraphQL API are ${expected === '' ? 'none' : 'an error'}`, async t => {
    const operations = [topic('pets', 'QUERY'), topic('pet', 'QUERY', { operationPolicies })]
    const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://backend.example' } }
    const { api, said } = await load(t, 'GRAPHQL', operations, { endpointConfig })
    assert.deepEqual(said, expected === '' ? [] : [expected])
    assert.equal(api === undefined, expected !== '')
  })
}

test('policies of an operation that is left out are not counted among those that run', async t => {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://backend.example' } }
  const use = { operationPolicies: { request: [{ policyName: 'jsonToXML', parameters: {} }] } }
  const operations = [topic('/a', 'SUBSCRIBE', use), topic('/b', 'GET')]
  const { api, said } = await load(t, 'HTTP', operations, { endpointConfig })
  assert.match(said.join('\n'), /"SUBSCRIBE": is no HTTP method and has no effect/)
  assert.deepEqual(api!.mediation!.byOperation, {})
})
