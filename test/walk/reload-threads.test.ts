/** Reloads of reactors in threads: each has them in the order in which they were asked for, and answers how it went. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { FromReactor, LivePlan, ReactorPlan } from '../../src/plan.ts'
import { ReactorPool } from '../../src/primary/reactor-pool.ts'
import { ReactorThreads } from '../../src/primary/reactor-threads.ts'
import { takeAnswer } from '../harness/answers.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { planGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { clientPlan, SECURED, SecuredBackend } from '../harness/secured-peers.ts'

/** As the program has it, and in no folder of its own making. */
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
  const listeners = [{ kind: 'http', host: '127.0.0.1', port }] as const
  const { plan, rows } = planGateway(apis, {}, { reactors: REACTORS, listeners, logLevel: 'error' })
  const events: string[] = []
  const message = (_reactor: number, message: FromReactor): void => {
    if (message.kind === 'event') events.push(`${message.event.level} ${message.event.event}`)
  }
  const plans = Array.from({ length: REACTORS }, (_, reactor) => ({ ...plan, reactor }))
  const pool = new ReactorPool(plans, new ReactorThreads(COMPILE_CACHE), {
    message,
    replaced: () => {},
    hopeless: () => {},
  })
  t.after(() => pool.stop())
  await pool.start()
  const deploy: Threads['deploy'] = async (live, changed = []) => {
    const changes = { removed: [], deployed: rows.plan(changed) }
    return (await pool.deploy({ ...plan, ...live }, plan.apis, changes)).refusals
  }
  return { plan, port, events, deploy }
}

async function ask(client: Peer): Promise<string> {
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const { status, body } = await takeAnswer(client)
  return status === 200 ? body : String(status)
}

/** The kernel spreads them over all reactors. */
async function clientsOf({ port }: Threads): Promise<readonly Peer[]> {
  return Promise.all(Array.from({ length: 8 }, () => connectPeer(port)))
}

async function named(t: TestContext, body: string): Promise<AnsweringBackend> {
  const backend = await AnsweringBackend.listen(() => `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n${body}`)
  t.after(() => backend.close())
  return backend
}

test('the last of many reloads at once is in force, though the first has TLS to load', async t => {
  const [one, two] = [await named(t, 'one'), await named(t, 'two')]
  const secured = await SecuredBackend.listen()
  t.after(() => secured.close())
  const threads = await start(t, [{ context: '/t', port: one.port }])
  const clients = await clientsOf(threads)
  for (const client of clients) assert.equal(await ask(client), 'one')
  const api = { context: '/t', host: 'localhost', port: secured.port, route: SECURED }
  const all = [threads.deploy({ tlsClients: { default: clientPlan() } }, [api])]
  for (let i = 0; i < 20; i++)
    all.push(threads.deploy({}, [{ context: '/t', port: i % 2 === 0 ? one.port : two.port }]))
  assert.deepEqual((await Promise.all(all)).flat(), [])
  for (const client of clients) assert.equal(await ask(client), 'two')
  for (const client of await clientsOf(threads)) {
    assert.equal(await ask(client), 'two')
    client.destroy()
  }
  for (const client of clients) client.destroy()
})

test('each reactor says why it refuses, and goes on with what it has', async t => {
  const backend = await named(t, 'one')
  const threads = await start(t, [{ context: '/t', port: backend.port }])
  const tlsClients = { default: clientPlan({ ca: ['not a certificate'] }) }
  const causes = await threads.deploy({ tlsClients, logLevel: 'debug' }, [{ context: '/t', port: 1 }])
  assert.equal(causes.length, REACTORS)
  for (const cause of causes) assert.match(cause, /PEM/i)
  const client = await connectPeer(threads.port)
  assert.equal(await ask(client), 'one')
  assert.deepEqual(threads.events, [])
  client.destroy()
})

test('logging.level: what is less severe is told from now on, and not any more', async t => {
  const backend = await ScriptedBackend.listen(peer => void peer.untilText('\r\n\r\n').then(() => peer.end()))
  t.after(() => backend.close())
  const threads = await start(t, [{ context: '/t', port: backend.port }])
  const client = await connectPeer(threads.port)
  assert.equal(await ask(client), '502')
  await threads.deploy({ logLevel: 'warn' })
  assert.deepEqual(threads.events, [])
  assert.equal(await ask(client), '502')
  await eventually('the warning', () => threads.events.length === 1)
  assert.deepEqual(threads.events, ['warn back end failed'])
  await threads.deploy({ logLevel: 'error' })
  assert.equal(await ask(client), '502')
  // What was told before has come when this is answered.
  await threads.deploy({ logLevel: 'error' })
  assert.equal(threads.events.length, 1)
  client.destroy()
})

test('http.max.connection.per.host.port: lower for all reactors together', async t => {
  const backend = await ScriptedBackend.listen()
  t.after(() => backend.close())
  const threads = await start(t, [{ context: '/t', port: backend.port }])
  const clients = await clientsOf(threads)
  for (const client of clients) client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const peers = await Promise.all(clients.map(() => backend.next()))
  await Promise.all(peers.map(peer => peer.untilText('\r\n\r\n')))
  const http = { ...threads.plan.http, 'http.max.connection.per.host.port': 3 }
  await threads.deploy({ http })
  for (const peer of peers) peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  for (const client of clients) assert.equal((await takeAnswer(client)).status, 200)
  const held = new Int32Array(threads.plan.gauge)
  const sum = () => Array.from({ length: REACTORS }, (_, at) => held[(at * held.length) / REACTORS + 1]!)
  await eventually('at most three', () => sum().reduce((all, each) => all + each, 0) <= 3)
  for (const client of clients) client.destroy()
})
