/** Policies of projects: what they become, and what is refused. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mediationSummaries } from '../../src/apis/project-mediation.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { type Files, flowsOf, H, load, namesOf, NOTHING, policies, sequence, use } from './loaded-projects.ts'

/** [policy, flow, parameters, needs]. */
const BUILT_IN: readonly (readonly [string, string, Readonly<Record<string, string>>, string])[] = [
  ['addHeader', 'request', H, 'constant'],
  ['setHeader', 'response', H, 'constant'],
  ['ccAddHeader', 'response', H, 'constant'],
  ['addHeader', 'request', { headerName: 'x-a', headerExpression: '$trp:x-b' }, 'heads'],
  ['removeHeader', 'request', { headerName: 'x-a' }, 'constant'],
  ['addQueryParam', 'request', { paramKey: 'a b', paramValue: 'c%26d' }, 'heads'],
  ['removeQueryParam', 'request', { paramKey: 'a' }, 'heads'],
  ['rewriteResourcePath', 'request', { newResourcePath: '/new', includeQueryParams: 'true' }, 'heads'],
  ['rewriteResourcePath', 'request', { newResourcePath: 'new', includeQueryParams: 'false' }, 'heads'],
  ['changeHTTPMethod', 'request', { httpMethod: 'put' }, 'heads'],
  ['rewriteHTTPMethod', 'request', { httpMethod: 'PUT' }, 'heads'],
  ['ccChangeHTTPMethod', 'request', { currentMethod: 'GET', updatedMethod: 'PUT' }, 'heads'],
  ['setToHeader', 'request', { value: '/base' }, 'heads'],
  ['setToHeaderWS', 'request', { value: '/base' }, 'heads'],
  ['jsonToXML', 'request', {}, 'worker'],
  ['xmlToJson', 'response', {}, 'worker'],
  ['xmlToJSON', 'response', {}, 'worker'],
  ['jsonFault', 'fault', {}, 'worker'],
  ['addLogMessage', 'request', {}, 'worker'],
  ['addLogMessage', 'request', { level: 'headers' }, 'heads'],
  ['debugRequestFlow', 'request', {}, 'worker'],
  ['disableChunking', 'request', {}, 'worker'],
  ['preserveAcceptHeader', 'request', {}, 'heads'],
  ['applyAcceptHeader', 'response', {}, 'worker'],
  [
    'opaPolicy',
    'request',
    { serverUrl: 'http://opa.example:8181/v1/data', policy: 'http', rule: 'allow', accessKey: 'k' },
    'worker',
  ],
  ['jsonValidator', 'request', { maxJsonDepth: '10', requestMessageBufferSize: '1024' }, 'worker'],
  ['jsonThreatProtector', 'request', {}, 'worker'],
  ['xmlValidator', 'request', {}, 'worker'],
  ['xmlThreatProtector', 'request', { maxXMLDepth: '5' }, 'worker'],
  ['regexPolicy', 'request', {}, 'worker'],
  ['regularExpressionThreatProtector', 'request', { regex: '[<>]', enabledCheckBody: 'false' }, 'heads'],
  ['WordCountGuardrail', 'request', { name: 'g', min: '1', max: '5', jsonPath: '$.text', invert: 'false' }, 'worker'],
  ['SentenceCountGuardrail', 'response', { min: '1', max: '5' }, 'worker'],
  ['ContentLengthGuardrail', 'request', { min: '1', max: '5', showAssessment: 'true' }, 'worker'],
  ['RegexGuardrail', 'request', { name: 'g', regex: '(?i)ignore\\s+all', invert: 'true' }, 'worker'],
  ['JSONSchemaGuardrail', 'request', { schema: '{"type": "object"}' }, 'worker'],
  ['URLGuardrail', 'response', { allowedUrls: 'example.com, *.example.org' }, 'worker'],
  [
    'URLGuardrail',
    'request',
    { name: 'g', onlyDNS: 'false', timeout: '3000', jsonPath: '', allowedUrls: 'example.com' },
    'worker',
  ],
  [
    'callInterceptorService',
    'response',
    { interceptorServiceURL: 'http://i.example:8443', includes: 'response_headers,response_body' },
    'worker',
  ],
  ['mock', 'request', { payload: '{"a": "$1"}', statusCode: '201' }, 'worker'],
  ['mock', 'request', { statusCode: '204' }, 'worker'],
]
describe('each policy becomes a sequence', () => {
  for (const [name, flow, parameters, expected] of BUILT_IN) {
    test(`${name} ${JSON.stringify(parameters)} needs ${expected}`, async t => {
      const apis = await load(t, { 'api.yaml': HEAD + policies(flow, use(name, parameters)) })
      assert.deepEqual(apis.said, [])
      const at = ['request', 'response', 'fault'].indexOf(flow)
      const [names, needs] = flowsOf(apis)[at]!.split(': ')
      assert.equal(names, `${name}_v1`)
      assert.equal(needs, expected)
    })
  }
})

test('a parameter that has no effect is a warning, unless it has its default value', async t => {
  const given = { serverUrl: 'http://opa.example:8181', policy: 'a', rule: 'allow', maxOpenConnections: '500' }
  const of = async (more: Record<string, string>) =>
    (await load(t, { 'api.yaml': HEAD + policies('request', use('opaPolicy', { ...given, ...more })) })).said
  assert.deepEqual(await of({}), [])
  assert.deepEqual(await of({ connectionTimeout: '' }), [])
  assert.deepEqual(await of({ connectionTimeout: '5' }), [
    'warning api.yaml:13: data.apiPolicies.request[0].parameters.connectionTimeout = "5": has no effect (limits of the gateway hold)',
  ])
})

/** Lines of an operation with a policy of the request flow. */
function operationWith(target: string, policy: string): string {
  return `    - target: ${target}\n      verb: GET\n      operationPolicies:\n        request: [${policy}]\n`
}

test('the path of a policy names variables of the template and of the context', async t => {
  const rewritten = use('rewriteResourcePath', {
    newResourcePath: '/{uri.var.tenant}/{id}',
    includeQueryParams: 'false',
  })
  const lines = `  operations:\n${operationWith('/x/{id}', rewritten)}`
  const apis = await load(t, { 'api.yaml': HEAD.replace(/context: .*/, 'context: /t/{tenant}/a') + lines })
  assert.deepEqual(apis.said, [])
  assert.deepEqual(flowsOf(apis, 'GET /x/{id}')[0], 'rewriteResourcePath_v1: heads')
})

test('D253: the address of setToHeader acts with the endpoint type default, and is a warning with others', async t => {
  const lines = policies('request', use('setToHeader', { value: 'http://other.example/base' }))
  const { said } = await load(t, { 'api.yaml': HEAD + lines })
  assert.deepEqual(said, [
    'warning api.yaml:13: data.apiPolicies.request[0].parameters.value = "http://other.example/base": has no effect: the API has endpoints (write endpoint_type: default where policies choose the backend)',
  ])
  const chosen = HEAD.replace('endpoint_type: http', 'endpoint_type: default').replace(/ {4}production_[\s\S]*$/, '')
  assert.deepEqual((await load(t, { 'api.yaml': chosen + lines })).said, [])
})

test('policies of operations run behind those of the API, by verb and template', async t => {
  const request = `        request: [${use('addHeader', H)}]\n`
  const operation = `    - target: /pets/{id}\n      verb: get\n      operationPolicies:\n${request}`
  const other = '    - {target: /pets, verb: GET, operationPolicies: {request: [], response: [], fault: []}}\n'
  const lines = `${policies('request', use('removeHeader', { headerName: 'x-b' }))}  operations:\n${operation}${other}`
  const apis = await load(t, { 'api.yaml': HEAD + lines })
  assert.deepEqual(apis.said, [])
  assert.deepEqual(flowsOf(apis), ['removeHeader_v1: constant', NOTHING, NOTHING])
  assert.deepEqual(flowsOf(apis, 'GET /pets/{id}'), ['removeHeader_v1, addHeader_v1: constant', NOTHING, NOTHING])
  assert.deepEqual(Object.keys(apis.apis[0]!.mediation!.byOperation), ['GET /pets/{id}'])
})

test('check names the sequences and policies of each flow in the order in which they run', async t => {
  const flows = (['request', 'response'] as const).map(flow => `    ${flow}: [${use('addHeader', H)}]\n`)
  const files = { 'Sequences/in-sequence/i.xml': sequence('i'), 'Sequences/out-sequence/o.xml': sequence('o') }
  const apis = await load(t, { 'api.yaml': `${HEAD}  apiPolicies:\n${flows.join('')}`, ...files })
  assert.deepEqual(apis.said, [])
  const [summary] = mediationSummaries(apis.apis)
  assert.equal(summary!.expected, 'runs request i, addHeader_v1; response o, addHeader_v1')
  const ran = flowsOf(apis).map(flow => flow.split(': ')[0])
  assert.deepEqual(ran, ['i, addHeader_v1', 'o, addHeader_v1', ''])
})

test('D943: a use keeps the name of its sequence whatever else a reload adds', async t => {
  const response = policies('response', use('setHeader', H))
  const before = await load(t, { 'api.yaml': HEAD + response })
  const added = use('setHeader', { headerName: 'Authorization', headerValue: 's' })
  const after = await load(t, { 'api.yaml': `${HEAD}${response}    request:\n      - ${added}\n` })
  assert.deepEqual([before.said, after.said], [[], []])
  assert.deepEqual(namesOf(after)[1], namesOf(before)[1])
  assert.notDeepEqual(namesOf(after)[0], namesOf(before)[1])
})

test('equal uses share a sequence, others have names of their own, and order is obeyed', async t => {
  const ordered = (name: string, order: number) =>
    use(name, { headerName: `x-${order}` }).replace('{', `{order: ${order}, `)
  const uses = [ordered('removeHeader', 2), ordered('removeHeader', 1), use('removeHeader', { headerName: 'x-2' })]
  const apis = await load(t, { 'api.yaml': HEAD + policies('request', ...uses) })
  assert.deepEqual(flowsOf(apis)[0], 'removeHeader_v1, removeHeader_v1, removeHeader_v1: constant')
  const [first, second, third] = namesOf(apis)[0]!
  assert.notEqual(first, second)
  assert.equal(second, third)
})

/** [what, lines of api.yaml from line 11 on, diagnostic]. */
const MISTAKES: readonly (readonly [string, string, string])[] = [
  [
    'an unknown policy',
    policies('request', use('addHeadr', H)),
    'error api.yaml:13: data.apiPolicies.request[0].policyName = "addHeadr": is not a policy (did you mean addHeader?',
  ],
  [
    'a policy for CORS',
    policies('request', use('corsRequestPolicy', H)),
    'error api.yaml:13: data.apiPolicies.request[0].policyName = "corsRequestPolicy": is not a policy (write data.corsConfiguration',
  ],
  [
    'a missing parameter',
    policies('request', use('removeHeader')),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.headerName: is missing',
  ],
  [
    'a URLGuardrail as exports have it, which lacks what the gateway compares with',
    policies('request', use('URLGuardrail', { name: 'g', onlyDNS: 'true', timeout: '3000' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.allowedUrls: is missing (the gateway asks no URL of a text; it compares each with allowedUrls: write the hosts',
  ],
  [
    'an unknown parameter',
    policies('request', use('removeHeader', { headerName: 'a', headrName: 'b' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.headrName: is not a parameter of the policy (did you mean headerName?)',
  ],
  [
    'an invalid value',
    policies('request', use('removeHeader', { headerName: 'a b' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.headerName = "a b": is not a valid value',
  ],
  [
    'a policy of another flow',
    policies('response', use('changeHTTPMethod', { httpMethod: 'PUT' })),
    'error api.yaml:13: data.apiPolicies.response[0].policyName = "changeHTTPMethod": does not run in the response flow',
  ],
  [
    'a misspelt member',
    policies('request', '{policyNam: addHeader}'),
    'error api.yaml:13: data.apiPolicies.request[0].policyNam: is not known here',
  ],
  [
    'an order that is no number',
    policies('request', use('removeHeader', { headerName: 'a' }).replace('{', '{order: x, ')),
    'error api.yaml:13: data.apiPolicies.request[0].order = "x": is no whole number (write 1 for the first policy of the flow)',
  ],
  [
    'a path with a variable that no resource has',
    policies('request', use('rewriteResourcePath', { newResourcePath: '/n/{uri.var.zz}' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.newResourcePath = "/n/{uri.var.zz}": the template of the resource has no variable zz',
  ],
  [
    'a path with a variable that the template of its operation does not have',
    '  operations:\n    - target: /x/{id}\n      verb: GET\n'.concat(
      operationWith('/y', use('rewriteResourcePath', { newResourcePath: '/n/{id}' })),
    ),
    'error api.yaml:17: data.operations[1].operationPolicies.request[0].parameters.newResourcePath = "/n/{id}": the template of the resource has no variable id',
  ],
  [
    'a query parameter that is not percent-encoded',
    policies('request', use('addQueryParam', { paramKey: 'a&b', paramValue: 'c' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.paramKey = "a&b": is not a valid value (percent-encode it: & is %26)',
  ],
  [
    'a policy server that wants the token of the caller',
    policies('request', use('opaPolicy', { serverUrl: 'http://o.example', policy: 'a', sendAccessToken: 'true' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.sendAccessToken = "true": is not a valid value (write false: the policy server gets no token)',
  ],
  ['a misspelt flow', policies('requests', use('addHeader', H)), 'error api.yaml:12: data.apiPolicies.requests'],
  ['no list', '  apiPolicies: {request: addHeader}\n', 'error api.yaml:11: data.apiPolicies.request: expected a list'],
]
describe('a use of a policy is refused for', () => {
  for (const [what, lines, expected] of MISTAKES) {
    test(what, async t => {
      const apis = await load(t, { 'api.yaml': HEAD + lines })
      assert.ok(
        apis.said.some(line => line.startsWith(expected)),
        apis.said.join('\n'),
      )
      assert.deepEqual(apis.apis, [])
    })
  }
})

// ---- policies of projects -------------------------------------------------------------------------------------------

const ATTRIBUTES = `  policyAttributes:
    - {name: level, type: String, required: true, validationRegex: "^(low|high)$"}
    - {name: note, type: String, required: false, defaultValue: none}
`
function specification(name: string, attributes = ATTRIBUTES, flows = '[request]'): string {
  const head = `type: operation_policy_specification\nversion: v4.1.0\ndata:\n  category: Mediation\n  name: ${name}\n`
  const about = `  version: v1\n  displayName: Mine\n  applicableFlows: ${flows}\n`
  return `${head}${about}${attributes}  supportedGateways: [Synapse]\n`
}

const TEMPLATE = '<property name="x-level" value="{{ level }}" scope="transport"/>\n'
const MINE = policies('request', use('mine', { level: 'high' }))

/** [what, files, lines of api.yaml, diagnostic; '' for a policy that becomes a constant sequence]. */
const OWN: readonly (readonly [string, Files, string, string])[] = [
  ['files named after name and version', { 'mine_v1.yaml': specification('mine'), 'mine_v1.j2': TEMPLATE }, MINE, ''],
  [
    'files named after name, version and type, as later releases export them',
    { 'mine_v1_common.yaml': specification('mine'), 'mine_v1_common.j2': TEMPLATE },
    MINE,
    '',
  ],
  [
    'files of both types, of which the use names one',
    {
      ...{ 'mine_v1_api.yaml': specification('mine'), 'mine_v1_api.j2': '<nonsense/>' },
      ...{ 'mine_v1_common.yaml': specification('mine'), 'mine_v1_common.j2': TEMPLATE },
    },
    MINE.replace('{', '{policyType: common, '),
    '',
  ],
  ['files named after the policy alone', { 'mine.yaml': specification('mine'), 'mine.j2': TEMPLATE }, MINE, ''],
  [
    'a template that is a whole sequence',
    { 'mine.yaml': specification('mine'), 'mine.j2': sequence('whatever', TEMPLATE) },
    MINE,
    '',
  ],
  [
    'a value that breaks its expression',
    { 'mine.yaml': specification('mine'), 'mine.j2': TEMPLATE },
    policies('request', use('mine', { level: 'middle' })),
    'error api.yaml:13: data.apiPolicies.request[0].parameters.level = "middle": is not a valid value (expected ^(low|high)$)',
  ],
  [
    'no template',
    { 'mine.yaml': specification('mine') },
    MINE,
    'error Policies/mine.yaml: has no template (add mine.j2 or mine.mjs)',
  ],
  [
    'a template of another gateway',
    { 'mine.yaml': specification('mine'), 'mine.gotmpl': 'x' },
    MINE,
    'error Policies/mine.yaml: has no template (mine.gotmpl is for another gateway)',
  ],
  [
    'a loop in the template',
    { 'mine.yaml': specification('mine'), 'mine.j2': `\n{% for a in b %}${TEMPLATE}{% endfor %}` },
    MINE,
    'error Policies/mine.j2:2: {% for %} is not supported',
  ],
  [
    'an error behind a condition, at its line',
    { 'mine.yaml': specification('mine'), 'mine.j2': `{% if other %}\n<drop/>\n{% endif %}\n<nonsense/>` },
    MINE,
    'error Policies/mine.j2:4: nonsense: is not a mediator',
  ],
  [
    'another name in the specification',
    { 'mine.yaml': specification('yours'), 'mine.j2': TEMPLATE },
    MINE,
    'error Policies/mine.yaml:5: data.name = "yours": is not the name of the policy',
  ],
  [
    'a flow that the policy does not have',
    { 'mine.yaml': specification('mine', ATTRIBUTES, '[response]'), 'mine.j2': TEMPLATE },
    MINE,
    'error api.yaml:13: data.apiPolicies.request[0].policyName = "mine": does not run in the request flow',
  ],
]
describe('a policy of the project with', () => {
  for (const [what, files, lines, expected] of OWN) {
    test(what, async t => {
      const inFolder = Object.fromEntries(Object.entries(files).map(([name, text]) => [`Policies/${name}`, text]))
      const apis = await load(t, { 'api.yaml': HEAD + lines, ...inFolder })
      if (expected !== '')
        assert.ok(
          apis.said.some(line => line.startsWith(expected)),
          apis.said.join('\n'),
        )
      else {
        assert.deepEqual(apis.said, [])
        assert.deepEqual(flowsOf(apis)[0], 'mine_v1: constant')
      }
    })
  }
})

test('a policy that is an ES module runs it on a worker with its parameters and their defaults', async t => {
  for (const file of ['mine_v1.mjs', 'mine_v1.js']) {
    const uses = policies('request', use('mine', { level: 'high' }))
    const files = { 'Policies/mine_v1.yaml': specification('mine'), [`Policies/${file}`]: 'export const mediate = 1' }
    const apis = await load(t, { 'api.yaml': HEAD + uses, ...files })
    assert.deepEqual(apis.said, [])
    assert.deepEqual(flowsOf(apis)[0], 'mine_v1: worker')
    const steps = JSON.stringify(apis.apis[0]!.mediation!.sequences)
    assert.match(steps, new RegExp(`"apis/[^"]*/Policies/${file}"`))
    assert.match(steps, /"level".*"high".*"note".*"none"/)
  }
})

test('a policy whose name holds a mark of XML runs under its name, as a template and as a module', async t => {
  for (const [ending, steps, needs] of [
    ['j2', TEMPLATE, 'constant'],
    ['mjs', 'export const mediate = 1', 'worker'],
  ] as const) {
    const files = { 'Policies/a&b_v1.yaml': specification('a&b'), [`Policies/a&b_v1.${ending}`]: steps }
    const apis = await load(t, { 'api.yaml': HEAD + policies('request', use('a&b', { level: 'high' })), ...files })
    assert.deepEqual(apis.said, [])
    assert.deepEqual(flowsOf(apis)[0], `a&b_v1: ${needs}`)
  }
})

/** Lines of `api.yaml` that use a policy of a built-in name, and what is said of them. */
const OF_A_BUILT_IN_NAME: readonly (readonly [what: string, use: string, files: Files, flow: string, said: string])[] =
  [
    ['the version that the platform ships', use('jsonValidator'), {}, 'jsonValidator_v1: worker', ''],
    ['a version with a point', use('jsonValidator').replace('v1', 'v1.0'), {}, 'jsonValidator_v1.0: worker', ''],
    [
      'a later version with a template',
      use('jsonValidator').replace('v1', 'v4'),
      { 'jsonValidator_v4.yaml': specification('jsonValidator', ''), 'jsonValidator_v4.j2': TEMPLATE },
      'jsonValidator_v4: constant',
      '',
    ],
    [
      'a later version without files',
      use('jsonValidator').replace('v1', 'v4'),
      {},
      '',
      'error api.yaml:13: data.apiPolicies.request[0].policyVersion = "v4": is no version of jsonValidator that the gateway has (add Policies/jsonValidator_v4.yaml and .j2',
    ],
    [
      'a later version without files that asks for the policy of the project',
      use('jsonValidator').replace('v1', 'v4').replace('{', '{policyType: api, '),
      {},
      '',
      'error api.yaml:13: data.apiPolicies.request[0].policyVersion = "v4": is no version of jsonValidator',
    ],
    [
      'a later version whose template names a Java class',
      use('jsonValidator').replace('v1', 'v4'),
      {
        'jsonValidator_v4.yaml': specification('jsonValidator', ''),
        'jsonValidator_v4.j2': '<class name="org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator"/>',
      },
      '',
      'error Policies/jsonValidator_v4.j2:1: class/name = org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator: is a Java class',
    ],
    [
      'the version that the platform ships, with files',
      use('addHeader', H),
      { 'addHeader_v1.yaml': specification('addHeader', ''), 'addHeader_v1.j2': '<drop/>' },
      'addHeader_v1: constant',
      'warning Policies: has files without effect: addHeader_v1 (the gateway runs policies of its own',
    ],
    [
      'the version that the platform ships, with files that the use asks for',
      use('addHeader').replace('{', '{policyType: api, '),
      { 'addHeader_v1.yaml': specification('addHeader', ''), 'addHeader_v1.j2': '<drop/>' },
      'addHeader_v1: heads',
      '',
    ],
  ]
describe('D255: a use of a built-in name with', () => {
  for (const [what, uses, files, flow, said] of OF_A_BUILT_IN_NAME) {
    test(`${what} is ${flow === '' ? 'an error' : flow}`, async t => {
      const inFolder = Object.fromEntries(Object.entries(files).map(([name, text]) => [`Policies/${name}`, text]))
      const apis = await load(t, { 'api.yaml': HEAD + policies('request', uses), ...inFolder })
      if (said === '') assert.deepEqual(apis.said, [])
      else assert.ok(apis.said.length === 1 && apis.said[0]!.startsWith(said), apis.said.join('\n'))
      if (flow === '') assert.deepEqual(apis.apis, [])
      else assert.equal(flowsOf(apis)[0], flow)
    })
  }
})
