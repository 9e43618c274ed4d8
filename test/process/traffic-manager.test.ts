/** Two gateways, one traffic manager and one real broker: what one gateway lets pass counts for the other. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readCounterFile } from '../../src/throttle/counter-file.ts'
import { messageBroker } from '../harness/message-broker.ts'
import { openProject } from '../harness/open-project.ts'
import { pollPause } from '../harness/peers.ts'
import { backend, home, leave, sluice } from '../harness/operator.ts'
import {
  ask,
  freePort,
  type Home,
  launch,
  type Program,
  type RunningGateway,
  startProgram,
} from '../harness/program.ts'
import { put } from '../harness/reloading.ts'
import { TcpGate } from '../harness/tcp-gate.ts'

const broker = await messageBroker()
const skip = typeof broker === 'string' ? broker : false
const programs: Program[] = []
const gates: TcpGate[] = []
const successors: number[] = []
after(async () => {
  for (const pid of successors) process.kill(pid, 'SIGKILL')
  for (const program of programs) await program.kill()
  for (const gate of gates) await gate.shut()
  await leave()
  if (typeof broker !== 'string') await broker.remove()
})

const LIMIT = 10
/** Requests per day, so that no window ends within the test. */
const POLICY = `policyName: Ten
defaultLimit: { type: REQUESTCOUNTLIMIT, requestCount: { timeUnit: days, unitTime: 1, requestCount: ${LIMIT} } }
`
const ACCOUNT = ['apim.throttling.receiver_username=gateways', 'apim.throttling.receiver_password=of this test']

function limitedHome(): Home {
  const at = home()
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
  put(at, 'policies/advanced/Ten.yaml', POLICY)
  const project = { name: 'Test', context: '/t', apiThrottlingPolicy: 'Ten', endpointConfig }
  put(at, 'apis/Test/api.yaml', openProject(project))
  return at
}

function brokerSets(port: number): readonly string[] {
  if (typeof broker === 'string') throw new Error(broker)
  return [
    `apim.throttling.throttle_decision_endpoints=["tcp://127.0.0.1:${port}/${broker.vhost}"]`,
    `apim.throttling.jms.username=${broker.username}`,
    `apim.throttling.jms.password=${broker.password}`,
    'qpid.heartbeat.delay=1',
  ]
}

/** Home of the last traffic manager. */
let managerHome: Home

async function trafficManager(
  port: number,
  brokerPort: number,
  at = home(),
  more: readonly string[] = [],
): Promise<Program> {
  managerHome = at
  const program = launch(managerHome, [
    ...more,
    'server.server_role=traffic-manager',
    `apim.throttling.receiver_url=tcp://127.0.0.1:${port}`,
    ...ACCOUNT,
    ...brokerSets(brokerPort),
  ])
  programs.push(program)
  await program.said.until(/^ready$/m)
  await program.said.until(/^broker connected$/m)
  return program
}

async function gateway(port: number, brokerPort: number, more: readonly string[] = []): Promise<RunningGateway> {
  const at = limitedHome()
  put(
    at,
    'deployment.toml',
    `[[apim.throttling.url_group]]
traffic_manager_urls = ["tcp://127.0.0.1:${port}"]
traffic_manager_auth_urls = ["tcp://127.0.0.1:${port}"]
`,
  )
  const running = await startProgram(at, [
    ...ACCOUNT,
    ...brokerSets(brokerPort),
    'apim.throttling.publishing_interval=20ms',
    ...more,
  ])
  programs.push(running.program)
  await running.program.said.until(/^broker connected$/m)
  await running.program.said.until(/^traffic manager connected$/m)
  return running
}

async function status({ port }: RunningGateway): Promise<number> {
  return Number((await ask(port, 'GET', '/t/1.0.0/x')).slice(9, 12))
}

async function metric({ healthPort }: RunningGateway, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text()
  const line = text.split('\n').find(each => each.startsWith(`sluice_${name} `))
  return Number(line?.slice(line.lastIndexOf(' ')))
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pollPause()
}

async function gateTo(target: number): Promise<TcpGate> {
  const gate = new TcpGate(await freePort(), target)
  gates.push(gate)
  await gate.open()
  return gate
}

test('the decision of the traffic manager refuses requests at a gateway that has passed none', { skip }, async () => {
  const receiver = await freePort()
  await trafficManager(receiver, 5672)
  const [one, two] = [await gateway(receiver, 5672), await gateway(receiver, 5672)]
  for (let n = 0; n < LIMIT; n++) assert.equal(await status(one), 200)
  assert.equal(await status(one), 429)
  await until(async () => (await metric(two, 'throttle_decision_messages_total{direction="in"}')) > 0)
  const refused = await ask(two.port, 'GET', '/t/1.0.0/x')
  assert.match(refused, /^HTTP\/1\.1 429 /)
  assert.match(refused, /"code":900800/)
  assert.match(refused, /\r\nRetry-After: \d+\r\n/i)
})

test('broker and traffic manager may end: every request is answered, and both are found again', { skip }, async () => {
  const receiver = await freePort()
  const [toManager, toBroker] = [await gateTo(receiver), await gateTo(5672)]
  await trafficManager(receiver, 5672)
  const [one, two] = [await gateway(toManager.port, toBroker.port), await gateway(receiver, 5672)]
  for (const gate of [toManager, toBroker]) await gate.shut()
  await one.program.said.until(/^broker lost; messages wait until it answers$/m)
  await one.program.said.until(/^traffic manager lost$/m)
  // The own counters go on: exactly as many as the limit.
  for (let n = 0; n < LIMIT; n++) assert.equal(await status(one), 200)
  assert.equal(await status(one), 429)
  assert.equal(await metric(one, 'broker_down'), 1)
  assert.equal(await metric(one, 'traffic_managers_down'), 1)
  for (const gate of [toManager, toBroker]) await gate.open()
  // What passed meanwhile is reported then, and the decision reaches the other gateway.
  await until(async () => (await metric(two, 'throttle_decision_messages_total{direction="in"}')) > 0)
  assert.equal(await status(two), 429)
  await until(async () => (await metric(one, 'broker_down')) === 0)
  const lost = one.program.events.filter(({ msg }) => /^(broker|traffic manager) lost/.test(String(msg)))
  assert.equal(lost.length, 2)
})

test('wrong credentials of the receiver are refused, and requests pass', { skip }, async () => {
  const receiver = await freePort()
  await trafficManager(receiver, 5672)
  const at = limitedHome()
  const urls = `["tcp://127.0.0.1:${receiver}"]`
  put(
    at,
    'deployment.toml',
    `[[apim.throttling.url_group]]\ntraffic_manager_urls = ${urls}\ntraffic_manager_auth_urls = ${urls}\n`,
  )
  const running = await startProgram(at, [...brokerSets(5672), 'apim.throttling.receiver_password=a wrong secret'])
  programs.push(running.program)
  await running.program.said.until(/^traffic manager lost$/m)
  assert.equal(await status(running), 200)
  assert.match(running.program.err.text, /receiver_username or receiver_password is wrong/)
  assert.doesNotMatch(running.program.err.text, /a wrong secret/)
})

test('without enable_decision_connection a gateway reports, and obeys its own counters alone', { skip }, async () => {
  const receiver = await freePort()
  await trafficManager(receiver, 5672)
  const one = await gateway(receiver, 5672)
  const two = await gateway(receiver, 5672, ['apim.throttling.enable_decision_connection=false'])
  for (let n = 0; n < LIMIT; n++) assert.equal(await status(two), 200)
  await until(async () => (await metric(one, 'throttle_decision_messages_total{direction="in"}')) > 0)
  assert.equal(await status(one), 429)
  assert.equal(await metric(two, 'throttle_decision_messages_total{direction="in"}'), 0)
})

test('with enable_persistence a traffic manager that was killed goes on with its counts', { skip }, async () => {
  const receiver = await freePort()
  const persistent = ['apim.throttling.enable_persistence=true']
  const first = await trafficManager(receiver, 5672, home(), persistent)
  const one = await gateway(receiver, 5672)
  for (let n = 0; n < LIMIT - 2; n++) assert.equal(await status(one), 200)
  await until(async () => counted(managerHome) === LIMIT - 2)
  first.child.kill('SIGKILL')
  await first.exited
  await trafficManager(receiver, 5672, managerHome, persistent)
  // Two more use up the limit: this gateway has passed none before.
  const two = await gateway(receiver, 5672)
  for (let n = 0; n < 2; n++) assert.equal(await status(two), 200)
  await until(async () => (await status(two)) === 429)
})

/** What the file of the traffic manager has counted. */
function counted({ data }: Home): number {
  return readCounterFile(join(data, 'traffic-counters')).entries.reduce((sum, { used }) => sum + used, 0)
}

test('an upgraded traffic manager receives reports again', { skip }, async () => {
  const receiver = await freePort()
  await trafficManager(receiver, 5672)
  const one = await gateway(receiver, 5672)
  const { code, out, err } = await sluice(managerHome, 'upgrade')
  assert.equal(code, 0, err)
  const [, successor] = /process (\d+) serves/.exec(out)!
  // It has the output of the process that it replaces, so the test waits for its end.
  successors.push(Number(successor))
  await one.program.said.until(/^traffic manager lost$[\s\S]*^traffic manager connected$/m)
  for (let n = 0; n < LIMIT; n++) await status(one)
  await until(async () => (await metric(one, 'throttle_decision_messages_total{direction="in"}')) > 0)
})
