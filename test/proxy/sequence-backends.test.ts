/** APIs whose backend is a sequence (`endpoint_type: sequence_backend`), from the project to the client. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { NO_SEQUENCES } from '../../src/mediation/sequence-files.ts'
import { ApiPlanner } from '../../src/plan/api-planning.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { callTo, says, startBackend } from '../harness/sequence-calls.ts'

const owner = { after }
const OUT = '<header name="X-Out" value="out" scope="transport"/>'
const MADE =
  '<payloadFactory media-type="json"><format>{"id":$1}</format><args><arg evaluator="json" expression="$.n"/></args>' +
  '</payloadFactory><property name="HTTP_SC" value="201" scope="axis2"/>'
const { port } = await startBackend(owner, {
  '/good': says(203, '{"a":1}', 'X-Back: b\r\n'),
  '/lost': (_, peer) => {
    peer.reset()
    return null
  },
})
const sendTo = `<send><endpoint><address uri="http://127.0.0.1:${port}/good"/></endpoint></send>`

interface Case {
  readonly sequence: string
  readonly status: number
  readonly body: RegExp
  /** The response flow has run. */
  readonly isMediated: boolean
  readonly warning?: RegExp
}

const CASES: Readonly<Record<string, Case>> = {
  'what the sequence makes is the response': { sequence: MADE, status: 201, body: /^{"id":5}$/, isMediated: true },
  'an empty sequence returns the request': { sequence: '', status: 200, body: /^{"n":5}$/, isMediated: true },
  'a call answers': { sequence: callTo(port, '/good'), status: 203, body: /^{"a":1}$/, isMediated: true },
  'a script answers': {
    sequence: '<script language="js">mc.setPayloadJSON({ n: mc.getPayloadJSON().n + 1 })</script>',
    status: 200,
    body: /^{"n":6}$/,
    isMediated: true,
  },
  '<respond> leaves the response flow out': {
    sequence: `${MADE}<respond/>`,
    status: 201,
    body: /^{"id":5}$/,
    isMediated: false,
  },
  '<drop> is accepted': { sequence: '<drop/>', status: 202, body: /^$/, isMediated: false },
  '<send> goes to its endpoint': {
    sequence: callTo(port, '/good').replace(/<call>.*/, sendTo),
    status: 203,
    body: /^{"a":1}$/,
    isMediated: true,
  },
  '<send> without an endpoint has no destination': {
    sequence: '<send/>',
    status: 500,
    body: /"code":102532/,
    isMediated: false,
    warning: /^the API has no endpoint, and the <send> of a flow names none$/,
  },
  '<send> with receive answers through that sequence': {
    sequence: callTo(port, '/good').replace(/<call>.*/, sendTo.replace('<send>', '<send receive="out">')),
    status: 203,
    body: /^{"a":1}$/,
    isMediated: true,
  },
  '<send> with receive and without an endpoint has no destination': {
    sequence: '<send receive="out"/>',
    status: 500,
    body: /"code":102551/,
    isMediated: false,
  },
  'a backend that is lost is a fault': {
    sequence: callTo(port, '/lost'),
    status: 502,
    body: /"code":10150\d/,
    isMediated: false,
  },
  '<throwError> is a fault': {
    sequence: '<throwError type="E" errorMessage="boom"/>',
    status: 500,
    body: /boom/,
    isMediated: false,
  },
}

const API = (context: string) => `type: api
version: v4.3.0
data:
  name: ${context}
  context: /${context}
  version: "1"
  securityScheme: [none]
  endpointConfig:
    endpoint_type: sequence_backend
    sequence: backend
`
const sequence = (name: string, elements: string) =>
  `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">${elements}</sequence>`

const files = Object.values(CASES).flatMap(({ sequence: elements }, at) => [
  [`apis/b${at}/api.yaml`, API(`b${at}`)] as const,
  [`apis/b${at}/Sequences/backend.xml`, sequence('backend', elements)] as const,
  [`apis/b${at}/Sequences/out-sequence/out.xml`, sequence('out', OUT)] as const,
])
const projects = new ApiProjects(temporaryHome(owner, Object.fromEntries(files)))
const loaded = projects.load(undefined, undefined, undefined, await projects.read())
assert.deepEqual(loaded.errors, [])
const proxies = { proxyFor: () => null, errors: [], warnings: [] }
const planned = new ApiPlanner(1, 64).plan({
  ...{ definitions: loaded.apis, proxies, cors: OPEN_CORS, allowedScopes: [] },
  ...{ sequences: NO_SEQUENCES, needsOf },
})
const gateway = await startGateway([], { apis: planned.apis, sequenceEndpoints: planned.ofSequences.plans })
after(() => gateway.stop())

for (const [at, [title, { sequence: _, status, body, isMediated, warning }]] of Object.entries(CASES).entries()) {
  test(`a sequence as backend: ${title}`, async t => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const before = gateway.reports.length
    client.send(
      `POST /b${at}/1/x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":5}`,
    )
    const response = await takeResponse(client)
    assert.equal(response.status, status, response.body)
    assert.match(response.body, body)
    assert.deepEqual(response.fields.get('x-out'), isMediated ? ['out'] : undefined)
    const causes = gateway.reports.slice(before).map(({ fields }) => String(fields.CAUSE_OF_ERROR))
    if (warning !== undefined)
      assert.ok(
        causes.some(cause => warning.test(cause)),
        causes.join(', '),
      )
  })
}
