/**
 * Limits over real sockets on all reactors of the real program: admitted is what the model says, to the request. The
 * long run sends a million requests.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import { openProject } from '../harness/open-project.ts'
import { IS_LONG } from '../harness/random.ts'
import { freePort, makeHome, startProgram } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

const REACTORS = 4
const ADDRESSES = Array.from({ length: 8 }, (_, at) => `127.0.0.${at + 1}`)
const APIS = ['one', 'two'] as const
const CONNECTIONS = 4
/** Requests of one connection. */
const REQUESTS = IS_LONG ? 16_000 : 400
/** Requests that a connection sends before it waits for their responses. */
const BATCH = 20
const DEMAND = REQUESTS * CONNECTIONS
/** Of an address at one API; of an address at both; of everybody at one API. */
const VISITOR = Math.floor(DEMAND * 0.6)
const CUSTOM = DEMAND
const WHOLE = DEMAND * 4

const backend = createServer(socket => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  let ends = 0
  socket.on('data', bytes => {
    let answers = ''
    for (const byte of bytes) {
      ends = byte === 13 || byte === 10 ? ends + 1 : 0
      if (ends === 4) answers += 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
    }
    if (answers !== '') socket.write(answers)
  })
})
backend.listen(0, '127.0.0.1')
await once(backend, 'listening')
const { port: backendPort } = backend.address() as { port: number }

/** Passed and refused requests by code. */
class Counts {
  passed = 0
  refused = 0
}

/** Sends all requests of one connection. */
async function demand(port: number, address: string, api: string, counts: Counts): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address, noDelay: true })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const batch = `GET /${api}/1.0.0/x HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(BATCH)
  let answered = 0
  let tail = ''
  socket.on('error', reject).on('close', () => reject(new Error(`closed after ${answered} responses`)))
  socket.setEncoding('latin1').on('data', (piece: string) => {
    const text = tail + piece
    let from = 0
    for (let at = text.indexOf('HTTP/1.1 '); at >= 0 && at + 12 <= text.length; at = text.indexOf('HTTP/1.1 ', from)) {
      const status = text.slice(at + 9, at + 12)
      if (status === '200') counts.passed++
      else if (status === '429') counts.refused++
      else reject(new Error(`status ${status}`))
      from = at + 12
      answered++
      if (answered === REQUESTS) resolve()
      else if (answered % BATCH === 0) socket.write(batch)
    }
    tail = text.slice(Math.max(from, text.length - 20))
  })
  socket.write(batch)
  await promise
  socket.removeAllListeners('close')
  socket.destroy()
}

function policyFile(level: string, data: object): readonly [string, string] {
  const { policyName } = data as { policyName: string }
  return [`policies/${level}/${policyName}.yaml`, JSON.stringify({ data })]
}

function daily(requestCount: number) {
  return { type: 'REQUESTCOUNTLIMIT', requestCount: { timeUnit: 'days', unitTime: 1, requestCount } }
}

const ALL = DEMAND * ADDRESSES.length * APIS.length

test(`${ALL} requests on ${REACTORS} reactors, a reload in the middle: admitted is the model`, async () => {
  const home = makeHome(backendPort)
  for (const name of APIS) {
    const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backendPort}` } }
    const project = { name, context: `/${name}`, apiThrottlingPolicy: 'Whole', endpointConfig }
    put(home, `apis/${name}/api.yaml`, openProject(project))
  }
  const files = [
    policyFile('subscription', { policyName: 'Visitor', defaultLimit: daily(VISITOR) }),
    policyFile('advanced', { policyName: 'Whole', userLevel: 'PER_API', defaultLimit: daily(WHOLE) }),
    policyFile('custom', { policyName: 'Both', keyTemplate: '$clientIp', defaultLimit: daily(CUSTOM) }),
  ]
  for (const [path, text] of files) put(home, path, text)
  const port = await freePort()
  const running = await startProgram(home, [
    `transport.passthru_http.reactors=${REACTORS}`,
    `transport.passthru_http.listener.parameters.port=${port}`,
    'apim.throttling.unauthenticated_tier="Visitor"',
  ])
  after(async () => {
    await running.program.kill()
    home.remove()
    backend.close()
  })
  const counts = new Map<string, Counts>()
  const all = ADDRESSES.flatMap(address =>
    APIS.flatMap(api => {
      const own = new Counts()
      counts.set(`${address} ${api}`, own)
      return Array.from({ length: CONNECTIONS }, () => demand(running.port, address, api, own))
    }),
  )
  await reload(running)
  await Promise.all(all)
  const of = (address: string, api: string): number => counts.get(`${address} ${api}`)!.passed
  const total = (api: string): number => ADDRESSES.reduce((sum, address) => sum + of(address, api), 0)
  // What is left of the limits is taken to the last request, and by nobody else.
  await Promise.all(
    ADDRESSES.flatMap(address => APIS.map(api => demand(running.port, address, api, counts.get(`${address} ${api}`)!))),
  )
  for (const address of ADDRESSES) {
    for (const api of APIS) {
      const both = of(address, 'one') + of(address, 'two')
      const used = [of(address, api), both, total(api)]
      const limits = [VISITOR, CUSTOM, WHOLE]
      assert.ok(
        used.every((count, at) => count <= limits[at]!),
        `${address} ${api}: ${used}`,
      )
      // Demand has gone on, so that some limit is used to the last request.
      assert.ok(
        used.some((count, at) => count === limits[at]),
        `${address} ${api}: ${used} of ${limits}`,
      )
    }
  }
  const sent = [...counts.values()].reduce((sum, { passed, refused }) => sum + passed + refused, 0)
  assert.equal(sent, ADDRESSES.length * APIS.length * (CONNECTIONS + 1) * REQUESTS)
})
