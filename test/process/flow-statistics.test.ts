/** `flow.statistics.*`, from the key to the lines of the log: of worker threads that are idle afterwards, and end. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { backend, home, leave, start } from '../harness/operator.ts'
import { openProject } from '../harness/open-project.ts'
import { ask, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

const ENDPOINT = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
/** Needs a worker, because it makes a body. */
const MADE = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="made">
  <payloadFactory media-type="json"><format>{}</format></payloadFactory><respond/></sequence>`

async function counting(keys: readonly string[]): Promise<RunningGateway> {
  const at = home()
  put(at, 'deployment.toml', ['[mediation]', 'flow.statistics.enable = true', ...keys].join('\n'))
  put(at, 'apis/Mine/api.yaml', openProject({ name: 'Mine', context: '/mine', endpointConfig: ENDPOINT }))
  put(at, 'apis/Mine/Sequences/in-sequence/made.xml', MADE)
  return start(at)
}

/** Steps and runs of the reports so far. */
function reported({ program }: RunningGateway): readonly (readonly [step: unknown, runs: unknown])[] {
  return program.events
    .filter(({ msg }) => msg === 'flow statistics')
    .map(each => [String(each.FLOW_STEP).replace(/^.*\//, ''), each.RUNS])
}

test('the counts of a worker that is idle afterwards are logged once the interval is over', async () => {
  const gateway = await counting(['flow.statistics.capture_all = true', 'statistics.clean_interval = 50'])
  await ask(gateway.port, 'GET', '/mine/1.0.0/x')
  await gateway.program.err.until(/"FLOW_STEP":"made"/)
  assert.deepEqual(
    reported(gateway)
      .map(([step]) => step)
      .toSorted(),
    ['made', 'made.xml:2 payloadFactory', 'made.xml:2 respond'],
  )
  assert.ok(reported(gateway).every(([, runs]) => runs === 1))
})

test('the counts of threads that a reload ends, and those of the last interval, are logged at the end', async () => {
  const gateway = await counting(['statistics.clean_interval = "1d"'])
  await ask(gateway.port, 'GET', '/mine/1.0.0/x')
  put(gateway.home, 'apis/Mine/Sequences/in-sequence/made.xml', MADE.replace('{}', '{"a":1}'))
  assert.equal((await reload(gateway)).outcome, 'applied')
  await ask(gateway.port, 'GET', '/mine/1.0.0/x')
  assert.deepEqual(reported(gateway), [])
  gateway.program.signal('SIGTERM')
  assert.equal((await gateway.program.exited).code, 0)
  assert.deepEqual(reported(gateway), [['made', 2]])
})
