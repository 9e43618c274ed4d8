/**
 * Reactors of the real program that die or hang: a replacement starts, and only the exchanges of the dead one are lost.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { connectPeer, eventually, Peer, ScriptedBackend } from '../harness/peers.ts'
import { ask, freePort, type Home, makeHome, type RunningGateway, startProgram } from '../harness/program.ts'

const CLIENTS = 24
const HOOKS = { SLUICE_TEST_HOOKS: '1' }

/** Responses wait for this promise. */
let gate: Promise<void> = Promise.resolve()
let heard = 0
const backend = await ScriptedBackend.listen(peer => void answerAll(peer))

async function answerAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    if (peer.take() === '') continue
    heard++
    await gate
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  }
}

const homes: Home[] = []
const started: RunningGateway[] = []
const clients: Peer[] = []
after(async () => {
  for (const client of clients) client.destroy()
  for (const { program } of started) await program.kill()
  for (const home of homes) home.remove()
  backend.close()
})

async function start(more: readonly string[] = []): Promise<RunningGateway> {
  const home = makeHome(backend.port)
  homes.push(home)
  const port = await freePort()
  const sets = ['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`]
  const running = await startProgram(home, [...sets, ...more], HOOKS)
  started.push(running)
  return running
}

const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n'

async function dial({ port }: RunningGateway): Promise<Peer> {
  const client = await connectPeer(port)
  clients.push(client)
  return client
}

async function works(client: Peer): Promise<void> {
  client.send(GET)
  assert.equal((await takeResponse(client)).body, 'ok')
}

/** Connections over both reactors: the kernel spreads them by a hash of their ports. */
async function dialMany(gateway: RunningGateway): Promise<Peer[]> {
  const many: Peer[] = []
  while (many.length < CLIENTS) many.push(await dial(gateway))
  for (const client of many) await works(client)
  return many
}

/** The clients that get a response; the connections of the others end. */
async function survivors(many: readonly Peer[]): Promise<Peer[]> {
  const kept: Peer[] = []
  for (const client of many) {
    await client.until('an answer or the end', () => client.length > 0 || client.ending !== '' || client.isClosed)
    if (client.length === 0) continue
    assert.equal((await takeResponse(client)).body, 'ok')
    kept.push(client)
  }
  assert.ok(kept.length > 0 && kept.length < many.length, `${kept.length} of ${many.length} kept`)
  return kept
}

async function metric({ healthPort }: RunningGateway, name: string): Promise<number> {
  const text = await ask(healthPort, 'GET', '/metrics')
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

test('a reactor that dies loses only its own connections, and is replaced', async () => {
  const gateway = await start()
  const many = await dialMany(gateway)
  assert.equal(await metric(gateway, 'sluice_client_connections_open'), CLIENTS)
  assert.match(await ask(gateway.healthPort, 'POST', '/test/kill'), /^HTTP\/1\.1 200 /)
  await gateway.program.err.until(/"msg":"reactor replaced"/)

  for (const client of many) client.send(GET)
  const kept = await survivors(many)
  // Connections of the dead reactor no longer count; the requests that it served still do.
  assert.equal(await metric(gateway, 'sluice_client_connections_open'), kept.length)
  assert.equal(await metric(gateway, 'sluice_requests_total'), CLIENTS + kept.length)

  const fresh = await dialMany(gateway)
  assert.equal(await metric(gateway, 'sluice_client_connections_open'), kept.length + fresh.length)
  gateway.program.signal('SIGTERM')
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})

let gateway: RunningGateway

test('exchanges in flight on other reactors are finished', async () => {
  gateway = await start()
  const many = await dialMany(gateway)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  const before = heard
  for (const client of many) client.send(GET)
  await eventually('all requests', () => heard === before + many.length)
  await ask(gateway.healthPort, 'POST', '/test/kill')
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  resolve()
  await survivors(many)
})

test('a reactor that hangs is replaced within 10 seconds', async () => {
  const many = await dialMany(gateway)
  gateway.program.err.text = ''
  await ask(gateway.healthPort, 'POST', '/test/hang')
  await gateway.program.err.until(/"msg":"reactor replaced"/, 10_000)
  assert.match(gateway.program.err.text, /no heartbeat from reactor 0 for 5000 ms/)
  for (const client of many) client.send(GET)
  await survivors(many)
  await dialMany(gateway)
  gateway.program.signal('SIGTERM')
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})

test('max_open_connections counts over all reactors, without those of a dead one', async () => {
  const LIMIT = 24
  const gateway = await start([`transport.passthru_http.max_open_connections=${LIMIT}`])
  const admitted = async (attempts: number): Promise<Peer[]> => {
    const inside: Peer[] = []
    for (let attempt = 0; attempt < attempts; attempt++) {
      const client = await dialRefusable(gateway)
      client.send(GET)
      await client.until('an answer or a reset', () => client.length > 0 || client.ending !== '' || client.isClosed)
      if (client.length > 0) inside.push(client)
      client.take()
    }
    return inside
  }
  const many = await admitted(2 * LIMIT)
  assert.equal(many.length, LIMIT)
  assert.equal(await metric(gateway, 'sluice_client_connections_refused_total\\{limit="all"\\}'), LIMIT)

  await ask(gateway.healthPort, 'POST', '/test/kill')
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  for (const client of many) client.send(GET)
  const kept = await survivors(many)
  assert.equal((await admitted(2 * LIMIT)).length, LIMIT - kept.length)
})

/** A connection that may be reset before its connect event. */
async function dialRefusable({ port }: RunningGateway): Promise<Peer> {
  const client = new Peer(connect(port, '127.0.0.1'))
  clients.push(client)
  return client
}

test('a reactor that hangs does not keep the program from exiting', async () => {
  const gateway = await start(['transport.listener.shutdown.wait.sec=1'])
  await ask(gateway.healthPort, 'POST', '/test/hang')
  gateway.program.signal('SIGTERM')
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})

test('more than ten deaths of reactors within 30 s end the program with 1', async () => {
  const gateway = await start()
  for (let deaths = 1; deaths <= 10; deaths++) {
    await ask(gateway.healthPort, 'POST', '/test/kill')
    await gateway.program.err.until(new RegExp(`("msg":"reactor replaced"[^]*){${deaths}}`))
  }
  await ask(gateway.healthPort, 'POST', '/test/kill')
  assert.deepEqual(await gateway.program.exited, { code: 1, signal: null })
  assert.match(gateway.program.err.text, /reactors keep dying/)
})
