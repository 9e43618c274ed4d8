/** D825: which faults the fault flow of an API words, on the reactor and on a worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import type { FaultSequence } from '../../src/faults/error-codes.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { endpointsAt } from '../harness/fault-cases.ts'
import { flowsOf, set, setAxis2 } from '../harness/flows.ts'
import { going, ScriptedWorker } from '../harness/scripted-worker.ts'
import { refusing, startCalls } from '../harness/sequence-calls.ts'
import { advanced, operation, quota, securedApi, ThrottledGateway } from '../harness/throttled-gateway.ts'

const WHERE = ['reactor', 'worker'] as const
/** The status of a fault that a flow has worded. */
const WORDED = 499
const WORDS = {
  reactor: `${setAxis2('HTTP_SC', `${WORDED}`)}${set('X-Seen', 'flow')}`,
  worker: '<payloadFactory media-type="json"><format>{}</format></payloadFactory><respond/>',
}
/** The request flow does what the field X-Do asks for. */
const FAILS = `<switch source="$trp:X-Do">
  <case regex="threat">
    <regexThreatProtection name="t" pattern="threat" headers="true" path="false" query="false" body="false"/>
  </case>
  <case regex="claim"><accessClaim name="level" value="gold"/></case>
  <case regex="throw"><throwError type="900902" errorMessage="m"/></case>
</switch>`

type Worded = FaultSequence | 'flow'

/** [what, path behind that of the flow, caller, X-Do, status of the code, what words the fault]. */
const FAULTS: readonly (readonly [string, string, string, string, number, Worded])[] = [
  ['missing credentials', '/any', '', 'nothing', 401, '_auth_failure_handler_'],
  ['an unknown resource', '/unknown', 'shop', 'nothing', 403, '_resource_mismatch_handler_'],
  ['a limit', '/limited', 'shop', 'nothing', 429, '_throttle_out_handler_'],
  ['a key type without endpoint', '-unbacked/any', 'shop', 'nothing', 401, '_production_key_error_'],
  ['a blocked API', '-blocked/any', 'shop', 'nothing', 503, 'fault'],
  ['a threat', '/any', 'shop', 'threat', 400, '_threat_fault_'],
  ['a claim of the token', '/any', 'shop', 'claim', 403, '_auth_failure_handler_'],
  ['a fault that a sequence throws', '/any', 'shop', 'throw', 500, 'flow'],
  ['a failed backend', '-dead/any', 'shop', 'nothing', 502, 'flow'],
]

const worker = new ScriptedWorker()
worker.script = ({ message }) =>
  going(message, { status: WORDED, fields: [['X-Seen', 'flow']], body: { kind: 'none' } })
const sequences = new Set(FAULTS.map(([, , , , , by]) => by).filter(by => by !== 'flow'))
const edited = Object.fromEntries(Array.from(sequences, name => [name, `${set('X-Seen', name)}<respond/>`]))
const NONE = { ...NO_ENDPOINTS, endpoints: [] }
const BLOCKED = { state: 'BLOCKED', deprecatedAtMs: 0, sunsetMs: 0 } as const
const mediations = await Promise.all(
  WHERE.map(async where => [where, await flowsOf({ request: FAILS, fault: WORDS[where] })] as const),
)
const running = await ThrottledGateway.start(
  port =>
    mediations.flatMap(([where, mediation]) => {
      const resources = [operation('/any'), operation('/limited', 'One')]
      const own = { resources, mediation }
      return [
        securedApi(port, where, own),
        securedApi(port, `${where}-blocked`, { ...own, lifecycle: BLOCKED }),
        securedApi(port, `${where}-unbacked`, { ...own, endpoints: NONE, sandbox: endpointsAt(port, 0) }),
        securedApi(1, `${where}-dead`, own),
      ]
    }),
  {},
  { worker, faults: await faultsWith(edited) },
)
const names = WHERE.flatMap(where => ['', '-blocked', '-unbacked', '-dead'].map(kind => where + kind))
running.token('shop', {}, ...names)
running.apply([advanced('One', quota(1))])
for (const where of WHERE) await running.request(`/${where}/limited`, 'shop')

for (const where of WHERE) {
  for (const [what, path, caller, action, status, by] of FAULTS) {
    const words = by === 'flow' ? 'the fault flow' : by
    test(`${what} is worded by ${words} where the API has a fault flow on ${where}`, async () => {
      worker.tasks.length = 0
      const response = await running.request(`/${where}${path}`, caller, `X-Do: ${action}\r\n`)
      assert.deepEqual([response.status, response.fields.get('x-seen')], [by === 'flow' ? WORDED : status, [by]])
      assert.equal(worker.tasks.length, by === 'flow' && where === 'worker' ? 1 : 0)
    })
  }
}

const CHOSEN = '<property name="CUSTOM_HTTP_SC" expression="$trp:X-Status"/>'
const WORDS_CHOSEN = '<property name="HTTP_SC" expression="$ctx:CUSTOM_HTTP_SC" scope="axis2"/>'
const READS_BODY = '<property name="b" expression="json-eval($.a)"/>'
for (const request of [CHOSEN, CHOSEN + READS_BODY]) {
  for (const fault of [`${WORDS_CHOSEN + set('X-Seen', 'flow')}<respond/>`, `${READS_BODY}${WORDS_CHOSEN}<respond/>`]) {
    test(`D904: CUSTOM_HTTP_SC of ${request} is the status of a failed backend that ${fault} words`, async t => {
      const { ask } = await startCalls(t, { request, fault }, await refusing(t))
      for (const [given, status] of [
        ['418', 418],
        ['99', 502],
        ['', 502],
      ] as const) {
        assert.equal((await ask('GET /a/x', '', `X-Status: ${given}\r\n`))[0], status, given)
      }
    })
  }
}
