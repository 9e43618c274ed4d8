/** Reloads of reactor threads: every reactor applies them in order and reports the result. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { FromReactor } from '../../src/plan/reactor-messages.ts'
import type { LivePlan, ReactorPlan } from '../../src/plan/reactor-plan.ts'
import { ReactorPool } from '../../src/primary/reactor-pool.ts'
import { takeResponse } from '../harness/responses.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { planGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { clientPlan, SECURED, SecuredBackend } from '../harness/secured-peers.ts'

/** The compile cache of the program. */
const COMPILE_CACHE = join(import.meta.dirname, '../../node_modules/.cache/sluice')

const REACTORS = 2

interface Threads {
  readonly plan: ReactorPlan
  readonly port: number
  readonly events: string[]
  deploy(live: Partial<LivePlan>, apis?: readonly TestApi[]): Promise<readonly string[]>
}

async function start(t: TestContext, apis: readonly TestApi[]): Promise<Threads> {
  const port = await freePort()
  const listeners = [{ kind: 'http', host: '127.0.0.1', port, proxies: null }] as const
  const { plan, slots } = planGateway(apis, { reactors: REACTORS, listeners, logLevel: 'error' })
  const events: string[] = []
  const receive = (_reactor: number, message: FromReactor): void => {
    if (message.kind === 'event') events.push(`${message.event.level} ${message.event.event}`)
  }
  const plans = Array.from({ length: REACTORS }, (_, reactor) => ({ ...plan, reactor }))
  const pool = new ReactorPool(COMPILE_CACHE)
  t.after(() => pool.abort())
  await pool.start(plans, { receive, died: () => {}, replaced: () => {}, printed: () => {}, fatal: assert.fail })
  const deploy: Threads['deploy'] = async (live, changed = []) => {
    const changes = { removed: [], deployed: slots.plan(changed) }
    return (await pool.deploy({ ...plan, ...live }, plan.apis, changes)).refusals
  }
  return { plan, port, events, deploy }
}

async function request(client: Peer): Promise<string> {
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const { status, body } = await takeResponse(client)
  return status === 200 ? body : String(status)
}

/** Opens connections, which the kernel distributes over all reactors. */
async function connectClients({ port }: Threads): Promise<readonly Peer[]> {
  return Promise.all(Array.from({ length: 8 }, () => connectPeer(port)))
}

async function named(t: TestContext, body: string): Promise<StrictBackend> {
  const backend = await StrictBackend.listen(() => `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n${body}`)
  t.after(() => backend.close())
  return backend
}

test('the last of many concurrent reloads is active, although the first has to load TLS', async t => {
  const [one, two] = [await named(t, 'one'), await named(t, 'two')]
  const secured = await SecuredBackend.listen()
  t.after(() => secured.close())
  const threads = await start(t, [{ context: '/t', port: one.port }])
  const clients = await connectClients(threads)
  for (const client of clients) assert.equal(await request(client), 'one')
  const api = { context: '/t', host: 'localhost', port: secured.port, route: SECURED }
  const all = [threads.deploy({ tlsClients: { default: clientPlan() } }, [api])]
  for (let i = 0; i < 20; i++)
    all.push(threads.deploy({}, [{ context: '/t', port: i % 2 === 0 ? one.port : two.port }]))
  assert.deepEqual((await Promise.all(all)).flat(), [])
  for (const client of clients) assert.equal(await request(client), 'two')
  for (const client of await connectClients(threads)) {
    assert.equal(await request(client), 'two')
    client.destroy()
  }
  for (const client of clients) client.destroy()
})

test('each reactor that refuses a reload reports the cause and keeps its plan', async t => {
  const backend = await named(t, 'one')
  const threads = await start(t, [{ context: '/t', port: backend.port }])
  const tlsClients = { default: clientPlan({ ca: ['not a certificate'] }) }
  const causes = await threads.deploy({ tlsClients, logLevel: 'debug' }, [{ context: '/t', port: 1 }])
  assert.equal(causes.length, REACTORS)
  for (const cause of causes) assert.match(cause, /PEM/i)
  const client = await connectPeer(threads.port)
  assert.equal(await request(client), 'one')
  assert.deepEqual(threads.events, [])
  client.destroy()
})

test('logging.level: a reload changes which events are reported', async t => {
  const backend = await ScriptedBackend.listen(peer => void peer.untilText('\r\n\r\n').then(() => peer.end()))
  t.after(() => backend.close())
  const threads = await start(t, [{ context: '/t', port: backend.port }])
  const client = await connectPeer(threads.port)
  assert.equal(await request(client), '502')
  await threads.deploy({ logLevel: 'warn' })
  assert.deepEqual(threads.events, [])
  assert.equal(await request(client), '502')
  await eventually('the warning', () => threads.events.length === 1)
  assert.deepEqual(threads.events, ['warn backend failed'])
  await threads.deploy({ logLevel: 'error' })
  assert.equal(await request(client), '502')
  // Events of the last request have arrived when this reload is confirmed.
  await threads.deploy({ logLevel: 'error' })
  assert.equal(threads.events.length, 1)
  client.destroy()
})

test('http.max.connection.per.host.port: a reload with a lower limit applies to all reactors together', async t => {
  const backend = await ScriptedBackend.listen()
  t.after(() => backend.close())
  const threads = await start(t, [{ context: '/t', port: backend.port }])
  const clients = await connectClients(threads)
  for (const client of clients) client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const peers = await Promise.all(clients.map(() => backend.next()))
  await Promise.all(peers.map(peer => peer.untilText('\r\n\r\n')))
  const http = { ...threads.plan.http, 'http.max.connection.per.host.port': 3 }
  await threads.deploy({ http })
  for (const peer of peers) peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  for (const client of clients) assert.equal((await takeResponse(client)).status, 200)
  const gauge = new Int32Array(threads.plan.gauge)
  const sum = () => Array.from({ length: REACTORS }, (_, at) => gauge[(at * gauge.length) / REACTORS + 1]!)
  await eventually('at most three backend connections', () => sum().reduce((all, each) => all + each, 0) <= 3)
  for (const client of clients) client.destroy()
})
