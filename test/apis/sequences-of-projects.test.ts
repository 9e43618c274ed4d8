/** Sequences of projects: what runs in which flow, and what is refused. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, test } from 'node:test'
import { loadApis } from '../../src/apis/api-loading.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { mediationSummaries } from '../../src/apis/project-mediation.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { NO_SEQUENCES } from '../../src/mediation/sequence-files.ts'
import { mediationPlan } from '../../src/plan/mediation-planning.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { planOf } from '../mediation/test-sequences.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { type Files, flowsOf, load, loaded, NOTHING, sequence } from './loaded-projects.ts'

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

/** [what, files of the project, whether the project is deployed]. */
const OF_HANDSHAKES: readonly (readonly [string, Files, boolean])[] = [
  ['makes a body', { 'Sequences/out-sequence/o.xml': sequence('o', '<log level="full"/>') }, false],
  [
    'calls a sequence of the project that makes a body',
    {
      'Sequences/out-sequence/o.xml': sequence('o', '<sequence key="p"/>'),
      'Sequences/p.xml': sequence('p', '<log level="full"/>'),
    },
    false,
  ],
  ['reads heads', { 'Sequences/out-sequence/o.xml': sequence('o', '<log level="headers"/>') }, true],
]
describe('D269: a project with a WebSocket endpoint, whose response flow', () => {
  for (const [what, files, isDeployed] of OF_HANDSHAKES) {
    test(`${what}, is ${isDeployed ? 'deployed' : 'refused'} beside other projects`, async t => {
      const yaml = HEAD.replace(/http:\/\/(?=[a-z])/, 'ws://')
      const other = HEAD.replace('name: A', 'name: B').replace('context: /a', 'context: /b')
      const project = Object.fromEntries(Object.entries(files).map(([name, text]) => [`apis/A/${name}`, text]))
      const home = temporaryHome(t, { 'apis/A/api.yaml': yaml, 'apis/B/api.yaml': other, ...project })
      const { apis, errors } = await loaded(home, new ApiProjects(home))
      assert.deepEqual(
        apis.map(({ name }) => name),
        isDeployed ? ['A', 'B'] : ['B'],
      )
      const expected = isDeployed ? [] : [['Sequences/out-sequence/o.xml', 'response flow', '"o"']]
      assert.deepEqual(
        errors.map(({ where, key, given }) => [relative(join(home, 'apis/A'), where), key, given]),
        expected,
      )
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
    `api.yaml:11: data.mediationPolicies[0].name = "log_in_message": ${ABSENT} (name the policy addLogMessage `.concat(
      'in data.apiPolicies.request in its place, or add Sequences/in-sequence/',
    ),
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

test('D838: an aggregate whose id no clone or iterate has is a warning with file and line', async t => {
  const gather = (id: string) =>
    `<aggregate id="${id}"><onComplete expression="json-eval($)"><respond/></onComplete></aggregate>`
  const split = (id: string) =>
    `<iterate id="${id}" expression="json-eval($)"><target><sequence><log/></sequence></target></iterate>`
  const home = temporaryHome(t, {
    'deployment.toml': '',
    'apis/A/api.yaml': `${HEAD}  inSequence: in\n  outSequence: out\n`,
    'apis/A/Sequences/in-sequence/in.xml': sequence('in', `${split('orders')}${gather('orders')}`),
    'apis/A/Sequences/out-sequence/out.xml': sequence(
      'out',
      `${gather('itmes')}\n${gather('other')}\n${gather('items')}`,
    ),
  })
  const plan = await planOf(`${split('items')}\n${gather('far')}`, 'shared')
  const ofHome = new Map([['shared', { label: 'one.xml', text: '', plan }]])
  const { configuration } = loadConfiguration(home, [])
  const loaded = await loadApis(new ApiProjects(home), configuration, true, new Map(), undefined, ofHome)
  const idle = 'is no id of a <clone> or <iterate>, so that only copies without an id are gathered'
  const remedy = 'give the <clone> or <iterate> this id, or remove it here'
  assert.deepEqual(
    loaded.warnings.map(it => formatDiagnostic(it).replaceAll(`${home}/apis/A/`, '')),
    [
      `shared.xml:2: aggregate/id = "far": ${idle} (${remedy})`,
      `Sequences/out-sequence/out.xml:1: aggregate/id = "itmes": ${idle} (did you mean items?)`,
      `Sequences/out-sequence/out.xml:2: aggregate/id = "other": ${idle} (${remedy})`,
    ],
  )
})
