/** The order of flows, from the files of a home to the wire, with expectations that the gateway does not compute. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { operation } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, refusingPort } from '../harness/peers.ts'
import { loadProject } from '../harness/project-flows.ts'
import { takeResponse } from '../harness/responses.ts'
import { says, startBackend } from '../harness/sequence-calls.ts'
import { file } from '../mediation/test-sequences.ts'

const FLOWS = ['request', 'response', 'fault'] as const
const FLOW_OF = { In: 'request', Out: 'response', Fault: 'fault' } as const
const ENDS = ['In', 'Out', 'Fault'] as const

/** Appends a name to the list that the message carries, and sends the list so far. */
function mark(name: string, more: string): string {
  const order = `<property name="order" expression="fn:concat($ctx:order, '${name};')"/>`
  return `${more}${order}<property name="X-Order" expression="$ctx:order" scope="transport"/>`
}

const POLICY = `type: operation_policy_specification
version: v4.1.0
data:
  category: Mediation
  name: mark
  version: v1
  applicableFlows: [request, response, fault]
  policyAttributes: [{name: name, type: String, required: true}]
`

const ENDPOINT = { endpoint_type: 'http', production_endpoints: { url: 'http://backend.example' } }

/** Uses of a policy in every flow. */
function policies(use: (flow: string) => object) {
  return Object.fromEntries(FLOWS.map(flow => [flow, [use(flow)]]))
}

function marks(prefix: string) {
  return policies(flow => ({
    policyName: 'mark',
    policyVersion: 'v1',
    parameters: { name: `${prefix}-${flow}` },
  }))
}

/** Sequences of the three flows in a folder, with the steps of their names. */
function sequences(folder: string, owner: string, prefix: string, steps: (name: string) => string) {
  const files = ENDS.map(end => {
    const name = `${owner}--${end}`
    return [`${folder}/${name}.xml`, file(steps(`${prefix}-${FLOW_OF[end]}`), name)] as const
  })
  return Object.fromEntries(files)
}

/**
 * A gateway with an API at `/a`, and at `/refused`, where no backend listens. Its sequences and those of every API run
 * `steps` of their names. `uses`: of policies; `template`: of the policy `mark`.
 */
async function startHome(t: TestContext, steps: (name: string) => string, uses: object, template = '') {
  const data = { endpointConfig: ENDPOINT, ...uses }
  const policy = template === '' ? {} : { 'Policies/mark_v1.yaml': POLICY, 'Policies/mark_v1.j2': template }
  const ofAll = sequences('synapse-configs/default/sequences', 'WSO2AM--Ext', 'all', steps)
  const ofApi = sequences('Sequences', 'A:v1.0.0', 'api', steps)
  return startLoaded(t, await loadProject(t, data, { ...ofApi, ...policy }, ofAll))
}

async function startLoaded(t: TestContext, loaded: Awaited<ReturnType<typeof loadProject>>) {
  assert.deepEqual(loaded.said, [])
  const backend = await startBackend(t, { '/x': says(200, '{"own":1}'), '/y': says(200, '{"own":1}') })
  const refusing = await refusingPort()
  t.after(() => refusing.close())
  const overrides = { mediation: loaded.mediation, resources: ['GET /x', 'GET /y'].map(operation) }
  const at = (context: string, port: number) => ({ context, port, overrides })
  const faults = { sequences: [...loaded.sequences.files.values()].map(({ plan }) => plan), aiSequence: '' }
  const gateway = await startGateway([at('/a', backend.port), at('/refused', refusing.port)], { faults })
  t.after(() => gateway.stop())
  const ask = async (path: string) => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
    return takeResponse(client)
  }
  return { backend, ask }
}

const REQUEST = 'all-request;api-request;policy-request;'
const RESPONSE = 'all-response;api-response;policy-response;'
const FAULT = 'all-fault;api-fault;policy-fault;'
/** [path, X-Order of the backend, null where it gets no request; X-Order of the client]. */
const ORDERS: readonly (readonly [path: string, backend: string | null, client: string])[] = [
  ['/a/x', `${REQUEST}operation-request;`, `${REQUEST}operation-request;${RESPONSE}operation-response;`],
  ['/a/y', REQUEST, REQUEST + RESPONSE],
  ['/refused/x', null, `${REQUEST}operation-request;${FAULT}operation-fault;`],
  ['/refused/y', null, REQUEST + FAULT],
]

for (const isOnWorker of [false, true]) {
  const where = isOnWorker ? 'a worker' : 'the reactor'
  test(`D720: sequences of all APIs and of the API, its policies, those of the operation: ${where}`, async t => {
    const more = isOnWorker ? '<property name="p" expression="json-eval($.own)"/>' : ''
    const operations = [
      { target: '/x', verb: 'GET', operationPolicies: marks('operation') },
      { target: '/y', verb: 'GET' },
    ]
    const uses = { apiPolicies: marks('policy'), operations }
    const { backend, ask } = await startHome(t, name => mark(name, more), uses, mark('{{ name }}', more))
    for (const [path, sent, got] of ORDERS) {
      backend.received.length = 0
      const { fields } = await ask(path)
      const order = /^x-order: (.*)\r$/im.exec(backend.received[0]?.head ?? '')?.[1]
      assert.deepEqual(
        [order ?? null, fields.get('x-order')?.join()],
        [sent?.trimStart() ?? null, got.trimStart()],
        path,
      )
    }
  })
}

test('D720: of a sequence of all APIs and a policy that set one field, the policy wins in every flow', async t => {
  const uses = policies(flow => ({
    policyName: 'setHeader',
    policyVersion: 'v1',
    parameters: { headerName: 'X-Both', headerValue: `policy-${flow}` },
  }))
  const set = (name: string) => `<property name="X-Both" value="${name}" scope="transport"/>`
  const { backend, ask } = await startHome(t, set, { apiPolicies: uses })
  const got = await ask('/a/x')
  assert.match(backend.received[0]!.head, /^x-both: policy-request\r$/im)
  assert.deepEqual(got.fields.get('x-both'), ['policy-response'])
  assert.deepEqual((await ask('/refused/x')).fields.get('x-both'), ['policy-fault'])
})

test('D723: a shared mediation policy without a file runs the sequence of the home', async t => {
  const name = 'log_in_message'
  const steps = '<property name="X-Shared" value="yes" scope="transport"/>'
  const shared = { [`synapse-configs/default/sequences/${name}.xml`]: file(steps, name) }
  const data = { endpointConfig: ENDPOINT, mediationPolicies: [{ name, type: 'in', shared: true }] }
  const { backend, ask } = await startLoaded(t, await loadProject(t, data, {}, shared))
  await ask('/a/x')
  assert.match(backend.received[0]!.head, /^x-shared: yes\r$/im)
})

const LOG = '<log level="simple"/>'
/** Reads the body, so that its flow runs on a worker. */
const LOG_ALL = '<log level="full"/>'
const ONLY_HOME = { 'synapse-configs/default/sequences/fault.xml': file(LOG, 'fault') }
/** [what, fault sequence of the project, files of the home]. */
const SILENT = [
  ['an API on the reactor', LOG, {}],
  ['an API on a worker', LOG_ALL, {}],
  ['an API on the reactor, as that of the home does', LOG, ONLY_HOME],
  ['an API on a worker, as that of the home does', LOG_ALL, ONLY_HOME],
] as const
for (const [what, steps, home] of SILENT) {
  test(`D81: a fault sequence of ${what} that only logs is answered by the default body`, async t => {
    const data = { endpointConfig: ENDPOINT }
    const { ask } = await startLoaded(
      t,
      await loadProject(t, data, { 'Sequences/fault-sequence/f.xml': file(steps, 'f') }, home),
    )
    const { status, body } = await ask('/refused/x')
    const description = 'Connecting to the backend failed'
    const fault = { code: 101503, type: 'Status report', message: 'Error connecting to the backend', description }
    assert.deepEqual([status, JSON.parse(body)], [502, { fault }])
  })
}

test('a fault flow that makes a body and ends without <respond> is answered by that body', async t => {
  const made = '<payloadFactory media-type="json"><format>{"own":true}</format><args/></payloadFactory>'
  const files = { 'Sequences/fault-sequence/f.xml': file(made, 'f') }
  const { ask } = await startLoaded(t, await loadProject(t, { endpointConfig: ENDPOINT }, files, ONLY_HOME))
  assert.equal((await ask('/refused/x')).body, '{"own":true}')
})
