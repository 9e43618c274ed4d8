/** Flows of APIs: which sequences run in which order, and what they need. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ApiDefinition, FlowNames, MediationDefinition } from '../../src/apis/api-definition.ts'
import type { FlowsPlan } from '../../src/mediation/flow-plan.ts'
import { loadSequences, type SequenceSet, sequencesOfFlows } from '../../src/mediation/sequence-files.ts'
import {
  checkAggregates,
  checkEventStreams,
  checkFaultSequences,
  checkHandshakes,
  mediationPlan,
  NO_NEEDS,
} from '../../src/plan/mediation-planning.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import { DEFAULT_ENDPOINT_SETTINGS, NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import { file, planOf } from '../mediation/test-sequences.ts'
import type { TestContext } from 'node:test'

const NONE: FlowNames = { request: [], response: [], fault: [] }
const CONSTANT = '<property name="x-a" value="1" scope="transport"/>'
const HEADS = '<property name="a" expression="$trp:x-a"/>'
const WORKER = '<payloadFactory media-type="json"><format>{}</format><args/></payloadFactory>'

function api(mediation: MediationDefinition | null, provider = ''): ApiDefinition {
  const access = { ...PLAIN_DEFINITION.access, provider }
  const parts = { name: 'Pets', context: '/pets', version: '1.0.0', isDefaultVersion: false, endpoints: NO_ENDPOINTS }
  return { ...PLAIN_DEFINITION, ...parts, access, mediation }
}

/** Sequences of a home besides the default ones. */
function home(t: TestContext, sequences: Readonly<Record<string, string>>): Promise<SequenceSet> {
  const files = Object.entries(sequences).map(([name, steps]) => [
    `synapse-configs/default/sequences/${name}.xml`,
    file(steps, name),
  ])
  return loadSequences(temporaryHome(t, Object.fromEntries(files)))
}

const names = (flows: FlowsPlan | undefined) =>
  flows && [flows.request, flows.response, flows.fault].map(({ sequences }) => sequences.join(' '))

test('an API without sequences and policies has no mediation', async t => {
  assert.equal(mediationPlan(api(null), await home(t, {}), NO_NEEDS), null)
})

/** [what, sequences of the home, provider, names of the request flow]. */
const OF_THE_HOME: readonly (readonly [string, readonly string[], string, string])[] = [
  ['a sequence of every API', ['WSO2AM--Ext--In'], '', 'WSO2AM--Ext--In'],
  ['a sequence of every API under its own prefix', ['Sluice--Ext--In'], '', 'Sluice--Ext--In'],
  ['a sequence of one API', ['Pets:v1.0.0--In'], '', 'Pets:v1.0.0--In'],
  ['no sequence of another API', ['Pets:v2.0.0--In', 'Dogs:v1.0.0--In'], '', ''],
  ['a sequence of one API and its provider', ['admin--Pets:v1.0.0--In'], 'admin', 'admin--Pets:v1.0.0--In'],
  ['no sequence of another provider', ['ann--Pets:v1.0.0--In'], 'admin', ''],
  [
    'a provider of a tenant, as names of files write it',
    ['ann-AT-b.org--Pets:v1.0.0--In'],
    'ann@b.org',
    'ann-AT-b.org--Pets:v1.0.0--In',
  ],
  [
    'the sequence of every API before that of one',
    ['Pets:v1.0.0--In', 'WSO2AM--Ext--In'],
    '',
    'WSO2AM--Ext--In Pets:v1.0.0--In',
  ],
]
describe('extension sequences of the home', () => {
  for (const [what, sequences, provider, expected] of OF_THE_HOME) {
    test(what, async t => {
      const set = await home(t, Object.fromEntries(sequences.map(name => [name, CONSTANT])))
      const plan = mediationPlan(api(null, provider), set, needsOf)
      assert.equal(plan?.flows.request.sequences.join(' ') ?? '', expected)
    })
  }
})

async function ofProject(): Promise<MediationDefinition> {
  const steps = { own: CONSTANT, policy: CONSTANT, ofGet: HEADS, out: CONSTANT, make: WORKER }
  const sequences = await Promise.all(Object.entries(steps).map(([name, text]) => planOf(text, name)))
  return {
    sequences,
    extensions: { request: ['own'], response: ['out'], fault: ['own'] },
    policies: { request: ['policy'], response: ['policy'], fault: ['policy'] },
    byOperation: { 'GET /a': { ...NONE, request: ['ofGet'], response: ['make'] } },
  }
}

test('D720: every flow runs sequences of all APIs, of the API, policies of the API and of the operation', async t => {
  const all = ['WSO2AM--Ext--In', 'WSO2AM--Ext--Out', 'WSO2AM--Ext--Fault', 'Pets:v1.0.0--Out']
  const plan = mediationPlan(
    api(await ofProject()),
    await home(t, Object.fromEntries(all.map(n => [n, CONSTANT]))),
    needsOf,
  )
  assert.deepEqual(names(plan?.flows), [
    'WSO2AM--Ext--In own policy',
    'WSO2AM--Ext--Out out policy',
    'WSO2AM--Ext--Fault own policy fault',
  ])
  assert.deepEqual(names(plan?.byOperation['GET /a']), [
    'WSO2AM--Ext--In own policy ofGet',
    'WSO2AM--Ext--Out out policy make',
    'WSO2AM--Ext--Fault own policy fault',
  ])
})

/** [what, changes of the API, `apim.ai.custom_error_response_sequence`, last sequence of the fault flow]. */
const LAST: readonly (readonly [string, Partial<ApiDefinition>, string, string])[] = [
  ['an API', {}, '_ai_error_response_', 'fault'],
  ['an AI API', { isAi: true }, '_ai_error_response_', '_ai_error_response_'],
  ['an AI API without a sequence of its own', { isAi: true }, '', 'fault'],
  ['an AI API whose sequence is missing', { isAi: true }, 'missing', 'fault'],
  ['the token API', { name: '_TokenAPI_' }, '', '_token_fault_'],
  ['the revoke API', { name: '_RevokeAPI_', isAi: true }, '_ai_error_response_', '_token_fault_'],
]
test('D825: a fault flow ends with the sequence that words the faults of its API', async t => {
  const set = await home(t, { 'WSO2AM--Ext--Fault': CONSTANT })
  for (const [what, changes, aiSequence, last] of LAST) {
    const plan = mediationPlan({ ...api(null), ...changes }, set, needsOf, aiSequence)
    assert.deepEqual(plan?.flows.fault.sequences, ['WSO2AM--Ext--Fault', last], what)
  }
})

test('each flow needs what its sequences need', async t => {
  const plan = mediationPlan(api(await ofProject()), await home(t, {}), needsOf)!
  const needs = ({ request, response, fault }: FlowsPlan) => [request.needs, response.needs, fault.needs]
  assert.deepEqual(needs(plan.flows), ['constant', 'constant', 'heads'])
  assert.deepEqual(needs(plan.byOperation['GET /a']!), ['heads', 'worker', 'heads'])
})

test('only sequences that flows alone run are free of the limit of captured fields', async t => {
  const call = (name: string) => `<sequence key="${name}"/>`
  const set = await home(t, {
    'Pets:v1.0.0--In': call('shared') + call('ofFlows'),
    'Pets:v1.0.0--Fault': HEADS,
    fault: call('shared'),
    shared: HEADS,
    ofFlows: HEADS,
  })
  assert.deepEqual(set.errors, [])
  assert.deepEqual([...sequencesOfFlows(set.files)].sort(), ['Pets:v1.0.0--In', 'ofFlows'])
})

test('sequences of flows may read more fields than fault sequences', async t => {
  const reads = Array.from({ length: 80 }, (_, i) => `<property name="p" expression="$trp:x-${i}"/>`).join('')
  assert.deepEqual((await home(t, { 'WSO2AM--Ext--In': reads })).errors, [])
  assert.equal((await home(t, { other: reads })).errors.length, 1)
})

/** [URL, sequence of the response flow, whether a warning names it]. */
const HANDSHAKES: readonly (readonly [string, string, boolean])[] = [
  ['ws://backend.test', WORKER, true],
  ['wss://backend.test', WORKER, true],
  ['ws://backend.test', HEADS, false],
  ['ws://backend.test', CONSTANT, false],
  ['http://backend.test', WORKER, false],
]

for (const [url, steps, isWarned] of HANDSHAKES) {
  test(`D269: a response flow ${steps} of an API at ${url} is ${isWarned ? '' : 'no '}warning`, async t => {
    const sequences = await home(t, { 'Pets:v1.0.0--Out': steps })
    const endpoints = { ...NO_ENDPOINTS, endpoints: [{ url, settings: DEFAULT_ENDPOINT_SETTINGS }] }
    const warnings = await checkHandshakes([{ ...api(null), endpoints }], sequences)
    assert.deepEqual(
      warnings.map(({ where, given }) => [where, given]),
      isWarned ? [['API Pets:1.0.0', 'Pets:v1.0.0--Out']] : [],
    )
  })
}

/** [steps of the response flow, place of the warning; '' for none]. */
const STREAMS: readonly (readonly [string, string])[] = [
  [`${HEADS}\n${WORKER}`, 'synapse-configs/default/sequences/Pets:v1.0.0--Out.xml:2'],
  [`<filter source="$trp:x-a" regex="b">\n<then>\n${WORKER}</then></filter>`, 'Out.xml:1'],
  [HEADS, ''],
  [CONSTANT, ''],
]
for (const [steps, place] of STREAMS) {
  test(`D900: a response flow ${steps} of an API of the type SSE is ${place === '' ? 'no ' : ''}warning`, async t => {
    const sequences = await home(t, { 'Pets:v1.0.0--Out': steps })
    const warnings = await checkEventStreams([{ ...api(null), isEventStream: true }], sequences)
    assert.equal(warnings.length, place === '' ? 0 : 1)
    assert.ok(warnings.every(({ where, given }) => where.endsWith(place) && given === 'Pets:v1.0.0--Out'))
    assert.deepEqual(await checkEventStreams([api(null)], sequences), [])
  })
}

test('D802: responses of WebSocket APIs are not checked for SOAP Faults, whoever asks for it', async t => {
  const asks = '<property name="FORCE_ERROR_ON_SOAP_FAULT" value="true"/>'
  const sequences = await home(t, { 'WSO2AM--Ext--In': asks })
  for (const [url, checks] of [
    ['wss://backend.test', ''],
    ['http://backend.test', '--soap-fault-check--'],
  ] as const) {
    const endpoints = { ...NO_ENDPOINTS, endpoints: [{ url, settings: DEFAULT_ENDPOINT_SETTINGS }] }
    const own = { ...api(null), endpoints }
    assert.equal(names(mediationPlan(own, sequences, needsOf)?.flows)?.[1], checks)
    assert.deepEqual(await checkHandshakes([own], sequences), [])
  }
})

const TARGET = '<target><sequence><send/></sequence></target>'
const ASKING =
  '<target><sequence><send receive="all"><endpoint><address uri="http://h"/></endpoint></send></sequence></target>'
const AGGREGATE = '<aggregate><onComplete expression="json-eval($)"/></aggregate>'
/** [request sequence, response sequence, whether the response flow gathers, whether a warning says that it cannot]. */
const AGGREGATES: readonly (readonly [string, string, boolean, boolean])[] = [
  [HEADS, AGGREGATE, true, true],
  [`<clone>${TARGET}</clone>`, AGGREGATE, true, false],
  [`<filter source="$trp:a" regex="b"><then><clone>${TARGET}</clone></then></filter>`, AGGREGATE, true, false],
  [HEADS, `<clone>${TARGET}</clone>${AGGREGATE}`, false, false],
  [HEADS, `<clone>${ASKING}</clone>`, true, false],
  [HEADS, HEADS, false, false],
]

for (const [request, response, gathers, isWarned] of AGGREGATES) {
  test(`an aggregate of a response flow gathers what ${request} sends: ${response}`, async t => {
    const plans = [await planOf(request, 'in'), await planOf(response, 'out'), await planOf(AGGREGATE, 'all')]
    const used = plans.filter(({ name }) => name !== 'all' || response.includes(name))
    const own = { sequences: used, byOperation: {} }
    const extensions = { ...NONE, request: ['in'], response: ['out'] }
    const definition = api({ ...own, extensions, policies: NONE })
    const sequences = await home(t, {})
    assert.equal(mediationPlan(definition, sequences, needsOf)!.flows.response.gathers === true, gathers)
    const warnings = await checkAggregates([definition, api(null)], sequences)
    assert.deepEqual(
      warnings.map(({ where, given }) => [where, given]),
      isWarned ? [['API Pets:1.0.0', 'out']] : [],
    )
  })
}

test('D825: a sequence of a code that only a worker can run is a warning', async t => {
  const script = '<script language="js">mc.setProperty("a", "b")</script>'
  const set = await home(t, {
    _auth_failure_handler_: `<sequence key="shared"/>`,
    _throttle_out_handler_: WORKER,
    _threat_fault_: '<payloadFactory media-type="json"><format key="conf/a.json"/></payloadFactory>',
    fault: '<payloadFactory media-type="text" template-type="freemarker"><format>x</format></payloadFactory>',
    shared: script,
    'Pets:v1.0.0--Fault': script,
  })
  const warned = checkFaultSequences(set).map(({ given, expected }) => [given, expected])
  const expected = 'has a mediator that only a worker runs: refusals get the default body instead'
  assert.deepEqual(
    warned,
    ['_auth_failure_handler_', '_threat_fault_', 'fault'].map(name => [name, expected]),
  )
})
