/** Sequences and policies of projects: what runs in which flow, and what is refused. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { ApiProjects, type LoadedApis } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadApis } from '../../src/apis/api-loading.ts'
import { mediationSummaries } from '../../src/apis/project-mediation.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { planOf } from '../mediation/test-sequences.ts'
import { NO_SEQUENCES } from '../../src/mediation/sequence-files.ts'
import { mediationPlan } from '../../src/plan/mediation-planning.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'

type Files = Readonly<Record<string, string>>

async function load(t: TestContext, files: Files): Promise<LoadedApis & { readonly said: readonly string[] }> {
  const home = temporaryHome(
    t,
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`apis/A/${name}`, text])),
  )
  return loaded(home)
}

async function loaded(home: string, projects = new ApiProjects(home), active?: LoadedApis) {
  const read = await projects.read()
  const apis = projects.load(undefined, active?.projects, undefined, read)
  const shown = (kind: string, list: LoadedApis['errors']) =>
    list.map(it => `${kind} ${formatDiagnostic(it).replaceAll(`${home}/apis/A/`, '')}`)
  return { ...apis, said: [...shown('error', apis.errors), ...shown('warning', apis.warnings)] }
}

/** Sequences of each flow with what they need, as `NAME NAME: needs`. */
function flowsOf({ apis }: LoadedApis, operation = ''): readonly string[] {
  const plan = mediationPlan(apis[0]!, NO_SEQUENCES, needsOf)
  if (plan === null) return []
  const flows = operation === '' ? plan.flows : plan.byOperation[operation]!
  return [flows.request, flows.response, flows.fault].map(({ sequences, needs }) => `${sequences.join(', ')}: ${needs}`)
}

const NOTHING = ': nothing'

function sequence(name: string, steps = '<property name="x-a" value="1" scope="transport"/>'): string {
  return `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">${steps}</sequence>`
}

/** [what, files of the project, further lines of api.yaml, request flow]. */
const SEQUENCES: readonly (readonly [string, Files, string, string])[] = [
  ['the only file of in-sequence', { 'Sequences/in-sequence/a.xml': sequence('a') }, '', 'a: constant'],
  ['a file of Custom below it', { 'Sequences/in-sequence/Custom/a.xml': sequence('a') }, '', 'a: constant'],
  [
    'a file named after the API and the flow',
    { 'Sequences/A:v1--In.xml': sequence('A:v1--In') },
    '',
    'A:v1--In: constant',
  ],
  [
    'a file named after provider, API and flow',
    { 'Sequences/admin--A:v1--In.xml': sequence('admin--A:v1--In') },
    '',
    'admin--A:v1--In: constant',
  ],
  [
    'the one that inSequence names',
    { 'Sequences/in-sequence/a.xml': sequence('a'), 'Sequences/in-sequence/b.xml': sequence('b') },
    '  inSequence: b\n',
    'b: constant',
  ],
  [
    'the one that mediationPolicies names',
    { 'Sequences/in-sequence/a.xml': sequence('a'), 'Sequences/in-sequence/b.xml': sequence('b') },
    '  mediationPolicies: [{name: a, type: in, shared: false}]\n',
    'a: constant',
  ],
  [
    'a sequence that calls another of the project',
    { 'Sequences/in-sequence/a.xml': sequence('a', '<sequence key="b"/>'), 'Sequences/b.xml': sequence('b') },
    '',
    'a: constant',
  ],
  [
    'a sequence whose file has another name',
    { 'Sequences/in-sequence/x.xml': sequence('other') },
    '',
    'other: constant',
  ],
]
describe('the request flow runs', () => {
  for (const [what, files, lines, expected] of SEQUENCES) {
    test(what, async t => {
      const apis = await load(t, { 'api.yaml': HEAD + lines, ...files })
      assert.deepEqual(apis.said, [])
      assert.deepEqual(flowsOf(apis), [expected, NOTHING, NOTHING])
    })
  }
})

test('an API of the endpoint type default sends each request to the address that its sequences set', async t => {
  const yaml = HEAD.replace('endpoint_type: http', 'endpoint_type: default').replace(/production_[\s\S]*$/, '\n')
  const to = sequence('a', '<header name="To" value="http://other.example/base"/>')
  const apis = await load(t, { 'api.yaml': yaml, 'Sequences/in-sequence/a.xml': to })
  assert.deepEqual(apis.said, [])
  assert.deepEqual(flowsOf(apis), ['a, (to the destination): worker', NOTHING, NOTHING])
})

const BACKED = (more: string, type = 'sequence_backend') =>
  HEAD.replace('endpoint_type: http', `endpoint_type: ${type}`).replace(/ {4}production_[\s\S]*$/, more)

test('an API whose backend is a sequence ends its request flow with it', async t => {
  for (const type of ['sequence_backend', 'sequence']) {
    const files = { 'Sequences/in-sequence/a.xml': sequence('a'), 'Sequences/backend.xml': sequence('backend') }
    const apis = await load(t, { 'api.yaml': BACKED('    sequence: backend\n', type), ...files })
    assert.deepEqual(apis.said, [])
    assert.deepEqual(flowsOf(apis), ['a, (to the destination): worker', NOTHING, NOTHING])
    assert.equal(mediationSummaries(apis.apis)[0]!.expected, 'runs request a; the sequence backend as backend')
  }
})

/** [lines of endpointConfig, type, error]. */
const WRONG_BACKENDS = [
  ['', 'sequence_backend', 'error api.yaml:7: data.endpointConfig.sequence: is missing (add it)'],
  [
    '    sequence: a\n    production_endpoints: {url: "http://p"}\n',
    'http',
    'error api.yaml:9: data.endpointConfig.sequence: belongs to the type sequence (write endpoint_type: sequence_backend)',
  ],
] as const

for (const [more, type, error] of WRONG_BACKENDS) {
  test(`${error} is said of a backend that is a sequence`, async t => {
    const { said } = await load(t, { 'api.yaml': BACKED(more, type) })
    assert.ok(
      said.some(one => one.startsWith(error)),
      said.join('\n'),
    )
  })
}

test('out-sequence and fault-sequence run in their flows', async t => {
  const files = { 'Sequences/out-sequence/o.xml': sequence('o'), 'Sequences/fault-sequence/f.xml': sequence('f') }
  assert.deepEqual(flowsOf(await load(t, { 'api.yaml': HEAD, ...files })), [NOTHING, 'o: constant', 'f: constant'])
})

/** [what, files, further lines of api.yaml, diagnostic]. */
const REFUSED: readonly (readonly [string, Files, string, string])[] = [
  [
    'a faulty sequence',
    { 'Sequences/in-sequence/a.xml': sequence('a', '<nonsense/>') },
    '',
    'error Sequences/in-sequence/a.xml:1: nonsense: is not a mediator',
  ],
  [
    'two sequences of one flow',
    { 'Sequences/in-sequence/a.xml': sequence('a'), 'Sequences/in-sequence/b.xml': sequence('b') },
    '',
    'error Sequences/in-sequence/a.xml: is one of 2 sequences of the request flow',
  ],
  [
    'two sequences of one name',
    { 'Sequences/in-sequence/a.xml': sequence('a'), 'Sequences/b.xml': sequence('a') },
    '',
    'error Sequences/in-sequence/a.xml: sequence/name',
  ],
  [
    'the sequence of another API',
    { 'Sequences/B:v1--In.xml': sequence('B:v1--In') },
    '',
    'error Sequences/B:v1--In.xml: is the sequence of B:v1, and not of A:v1',
  ],
  [
    'a mediation policy without its flow',
    { 'Sequences/in-sequence/a.xml': sequence('a') },
    '  mediationPolicies: [{name: a}]\n',
    'error api.yaml:11: data.mediationPolicies[0].type: is missing',
  ],
  ['a folder with a misspelt name', { 'Sequence/a.xml': sequence('a') }, '', 'error Sequence: is not read'],
]
describe('the project is refused for', () => {
  for (const [what, files, lines, expected] of REFUSED) {
    test(what, async t => {
      const apis = await load(t, { 'api.yaml': HEAD + lines, ...files })
      assert.ok(
        apis.said.some(line => line.startsWith(expected)),
        apis.said.join('\n'),
      )
      assert.deepEqual(apis.apis, [])
    })
  }
})

test('a folder Sequences that appears at a reload is read', async t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': HEAD })
  const projects = new ApiProjects(home)
  assert.deepEqual(flowsOf(await loaded(home, projects)), [])
  mkdirSync(join(home, 'apis/A/Sequences'))
  writeFileSync(join(home, 'apis/A/Sequences/A:v1--In.xml'), sequence('A:v1--In'))
  assert.equal(flowsOf(await loaded(home, projects))[0], 'A:v1--In: constant')
})

test('a changed sequence is read again, and one with errors keeps the deployed API', async t => {
  const path = 'apis/A/Sequences/in-sequence/a.xml'
  const home = temporaryHome(t, { 'apis/A/api.yaml': HEAD, [path]: sequence('a') })
  const projects = new ApiProjects(home)
  const first = await loaded(home, projects)
  writeFileSync(join(home, path), sequence('a', '<nonsense/>'))
  const second = await loaded(home, projects, first)
  assert.deepEqual(second.kept, first.apis)
  writeFileSync(join(home, path), sequence('a', '<log level="full"/>'))
  assert.deepEqual(flowsOf(await loaded(home, projects, second)), ['a: worker', NOTHING, NOTHING])
})

// ---- policies -------------------------------------------------------------------------------------------------------

function policies(flow: string, ...uses: readonly string[]): string {
  return `  apiPolicies:\n    ${flow}:\n${uses.map(use => `      - ${use}\n`).join('')}`
}

function use(name: string, parameters: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(parameters).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  return `{policyName: ${name}, policyVersion: v1, policyId: x, parameters: {${given.join(', ')}}}`
}

const H = { headerName: 'x-a', headerValue: 'b "c" <d>' }
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
  ['rewriteResourcePath', 'request', { newResourcePath: '/new/{id}', includeQueryParams: 'false' }, 'heads'],
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

test('D253: the address that setToHeader sets acts with the endpoint type default, and is a warning with others', async t => {
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
  assert.equal(summary!.expected, 'runs request i, addHeader_v1; response o, addHeader_v1#2')
  const ran = flowsOf(apis).map(flow => flow.split(': ')[0])
  assert.deepEqual(ran, ['i, addHeader_v1', 'o, addHeader_v1#2', ''])
})

test('equal uses share a sequence, others have names of their own, and order is obeyed', async t => {
  const ordered = (name: string, order: number) =>
    use(name, { headerName: `x-${order}` }).replace('{', `{order: ${order}, `)
  const uses = [ordered('removeHeader', 2), ordered('removeHeader', 1), use('removeHeader', { headerName: 'x-2' })]
  const apis = await load(t, { 'api.yaml': HEAD + policies('request', ...uses) })
  assert.deepEqual(flowsOf(apis)[0], 'removeHeader_v1, removeHeader_v1#2, removeHeader_v1#2: constant')
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

// ---- sequences of the home ------------------------------------------------------------------------------------------

const CALLING = { 'Sequences/in-sequence/a.xml': sequence('a', '<sequence key="shared"/>') }
const ABSENT = 'there is no such sequence in the project or the home'
/** [what, files, further lines of api.yaml, sequences of the home, its request flow or the error]. */
const OF_THE_HOME: readonly (readonly [string, Files, string, readonly string[], string | RegExp])[] = [
  ['a sequence that runs one of the home', CALLING, '', ['shared'], 'a: constant'],
  [
    'a sequence that runs an unknown one',
    CALLING,
    '',
    [],
    /^Sequences\/in-sequence\/a\.xml: sequence key = "shared": there is no sequence of this name/,
  ],
  [
    'a shared mediation policy of the home',
    {},
    '  mediationPolicies: [{name: log_in_message, type: in, shared: true}]\n',
    ['log_in_message'],
    'log_in_message: constant',
  ],
  [
    'a shared mediation policy that nobody has',
    {},
    '  mediationPolicies: [{name: log_in_message, type: in, shared: true}]\n',
    ['log_out_message'],
    `api.yaml:11: data.mediationPolicies[0].name = "log_in_message": ${ABSENT} (add Sequences/in-sequence/log_in_message.xml or`,
  ],
  ['an inSequence of the home', {}, '  inSequence: shared\n', ['shared'], 'shared: constant'],
  [
    'an inSequence that resembles one of the project',
    { 'Sequences/in-sequence/enrich.xml': sequence('enrich') },
    '  inSequence: enrch\n',
    ['shared'],
    `api.yaml:11: data.inSequence = "enrch": ${ABSENT} (did you mean enrich?)`,
  ],
]
describe('D723: sequences of the home run for a project with', () => {
  for (const [what, files, lines, names, expected] of OF_THE_HOME) {
    test(what, async t => {
      const inProject = Object.entries({ 'api.yaml': HEAD + lines, ...files })
      const project = Object.fromEntries(inProject.map(([name, text]) => [`apis/A/${name}`, text]))
      const home = temporaryHome(t, { 'deployment.toml': '', ...project })
      const steps = '<property name="x-a" value="1" scope="transport"/>'
      const plans = await Promise.all(names.map(async name => [name, await planOf(steps, name)] as const))
      const ofHome = new Map(plans.map(([name, plan]) => [name, { label: '', text: '', plan }]))
      const { configuration } = loadConfiguration(home, [])
      const loaded = await loadApis(new ApiProjects(home), configuration, true, new Map(), undefined, ofHome)
      const said = loaded.errors.map(it => formatDiagnostic(it).replaceAll(`${home}/apis/A/`, ''))
      if (loaded.apis.length > 0) {
        assert.deepEqual(said, [])
        const { request } = mediationPlan(loaded.apis[0]!, { ...NO_SEQUENCES, files: ofHome }, needsOf)!.flows
        assert.equal(`${request.sequences.join(', ')}: ${request.needs}`, expected)
      } else if (typeof expected === 'string')
        assert.ok(said.length === 1 && said[0]!.startsWith(expected), said.join())
      else assert.match(said.join(), expected)
    })
  }
})
