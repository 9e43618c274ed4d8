/**
 * How many requests two gateways let pass beyond a limit that a traffic manager decides: a table over rate and
 * `publishing_interval`. Needs RabbitMQ on this machine. About two minutes:
 *
 *     node bench/throttle-overshoot.ts [rounds] [requests per second,...] [intervals in ms,...]
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageBroker } from '../test/harness/message-broker.ts'
import { openProject } from '../test/harness/open-project.ts'
import { type Home, launch, makeHome, freePort, type Program, startProgram } from '../test/harness/program.ts'
import { put } from '../test/harness/reloading.ts'
import { MeasuredTable } from './measured-table.ts'

const LIMIT = 2000
const [rounds = '3', rates = '400,1000,2000,4000', intervals = '10,100,500'] = process.argv.slice(2)
const ROUNDS = Number(rounds)
/** Requests per second at both gateways together. */
const RATES = rates.split(',').map(Number)
const INTERVALS_MS = intervals.split(',').map(Number)
const CONNECTIONS = 8
const STEP_MS = 10

const broker = await messageBroker()
if (typeof broker === 'string') throw new Error(broker)

// The virtual host would stay in the broker.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void broker.remove().finally(() => process.exit(130)))
}

const backend = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
await once(backend, 'listening')
const { port: backendPort } = backend.address() as AddressInfo

const account = ['apim.throttling.receiver_username=gateways', 'apim.throttling.receiver_password=of the bench']
const sets = [
  ...account,
  `apim.throttling.throttle_decision_endpoints=["tcp://127.0.0.1:${broker.port}/${broker.vhost}"]`,
  `apim.throttling.jms.username=${broker.username}`,
  `apim.throttling.jms.password=${broker.password}`,
]
const homes: Home[] = []
const programs: Program[] = []

function newHome(deployment = ''): Home {
  const home = makeHome(backendPort, deployment)
  homes.push(home)
  return home
}

async function startGateway(receiver: number, intervalMs: number): Promise<number> {
  const urls = `["tcp://127.0.0.1:${receiver}"]`
  const home = newHome(
    `[[apim.throttling.url_group]]\ntraffic_manager_urls = ${urls}\ntraffic_manager_auth_urls = ${urls}\n`,
  )
  const quota = `{ timeUnit: days, unitTime: 1, requestCount: ${LIMIT} }`
  put(
    home,
    'policies/advanced/L.yaml',
    `policyName: L\ndefaultLimit: { type: REQUESTCOUNTLIMIT, requestCount: ${quota} }\n`,
  )
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backendPort}` } }
  for (const rate of RATES) {
    for (let round = 0; round < ROUNDS; round++) {
      const name = `R${rate}N${round}I${intervalMs}`
      const project = { name, context: `/${name}`, apiThrottlingPolicy: 'L', endpointConfig }
      put(home, `apis/${name}/api.yaml`, openProject(project))
    }
  }
  const running = await startProgram(home, [...sets, `apim.throttling.publishing_interval=${intervalMs}ms`])
  programs.push(running.program)
  await running.program.said.until(/^broker connected$/m)
  await running.program.said.until(/^traffic manager connected$/m)
  return running.port
}

/** Sends at an even rate and resolves with how many requests have passed. */
async function load(port: number, path: string, perSecond: number, seconds: number): Promise<number> {
  let passed = 0
  const request = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let rest = ''
    socket.on('data', chunk => {
      const text = rest + chunk.toString('latin1')
      passed += text.split('HTTP/1.1 200 ').length - 1
      rest = text.slice(-12).includes('HTTP/1.1 200 ') ? '' : text.slice(-12)
    })
    socket.on('error', () => {})
    return socket
  })
  const started = performance.now()
  let sent = 0
  while (performance.now() - started < seconds * 1000) {
    const due = Math.floor(((performance.now() - started) / 1000) * perSecond)
    for (; sent < due; sent++) sockets[sent % CONNECTIONS]!.write(request)
    await sleep(STEP_MS)
  }
  await sleep(500)
  for (const socket of sockets) socket.destroy()
  return passed
}

try {
  const receiver = await freePort()
  const manager = launch(newHome(), [
    'server.server_role=traffic-manager',
    `apim.throttling.receiver_url=tcp://127.0.0.1:${receiver}`,
    ...sets,
  ])
  programs.push(manager)
  await manager.said.until(/^broker connected$/m)
  const title = `Requests beyond a limit of ${LIMIT}, two gateways; ${ROUNDS} rounds in ascending order`
  const table = new MeasuredTable(title, Object.fromEntries(RATES.map(rate => [`at ${rate}/s`, 0])))
  for (const intervalMs of INTERVALS_MS) {
    const ports = [await startGateway(receiver, intervalMs), await startGateway(receiver, intervalMs)]
    const row: string[] = []
    for (const rate of RATES) {
      const beyond: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const path = `/R${rate}N${round}I${intervalMs}/1.0.0/x`
        const loads = ports.map(port => load(port, path, rate / 2, LIMIT / rate + 1.5))
        beyond.push((await Promise.all(loads)).reduce((sum, passed) => sum + passed) - LIMIT)
      }
      row.push(beyond.sort((a, b) => a - b).join(' '))
    }
    table.row(`publishing_interval ${intervalMs} ms`, ...row)
    for (const program of programs.splice(1)) await program.kill()
  }
} finally {
  for (const program of programs) await program.kill()
  for (const home of homes) home.remove()
  backend.closeAllConnections()
  backend.close()
  await broker.remove()
}
