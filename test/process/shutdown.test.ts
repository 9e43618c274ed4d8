/** Stopping: exchanges in flight are finished, nothing new is accepted, and the wait has a limit. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { takeResponse } from '../harness/responses.ts'
import { connectPeer, type Peer, pollPause, ScriptedBackend } from '../harness/peers.ts'
import { ask, type Home, makeHome, type RunningGateway, startProgram } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

const backend = await ScriptedBackend.listen()
const homes: Home[] = []
const started: RunningGateway[] = []
const clients: Peer[] = []
after(async () => {
  for (const client of clients) client.destroy()
  for (const { program } of started) await program.kill()
  for (const home of homes) home.remove()
  backend.close()
})

async function start(sets: readonly string[] = [], flow = ''): Promise<RunningGateway> {
  const home = makeHome(backend.port)
  homes.push(home)
  const name = 'WSO2AM--Ext--In'
  const sequence = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="${name}">${flow}</sequence>`
  if (flow !== '') put(home, `synapse-configs/default/sequences/${name}.xml`, sequence)
  const running = await startProgram(home, sets)
  started.push(running)
  backend.skip()
  return running
}

async function dial({ port }: RunningGateway): Promise<Peer> {
  const client = await connectPeer(port)
  clients.push(client)
  return client
}

const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Sends the signal and waits until the reactors have closed their idle connections. */
async function drain(gateway: RunningGateway, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  const idle = await dial(gateway)
  idle.send('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(idle)).status, 404)
  gateway.program.signal(signal)
  assert.equal(await idle.untilEnd(), 'FIN')
  assert.equal(idle.text, '')
}

/** A connection that the kernel had accepted is served once; later ones are refused. */
async function assertRefused({ port }: RunningGateway): Promise<void> {
  for (;;) {
    const refusal = await connectPeer(port).then(
      peer => {
        peer.destroy()
        return ''
      },
      (error: NodeJS.ErrnoException) => error.code,
    )
    if (refusal === 'ECONNREFUSED') return
    await pollPause()
  }
}

test('SIGTERM: exchanges in flight are finished with Connection: close, then exit 0', async () => {
  const gateway = await start()
  const waiting = await dial(gateway)
  waiting.send(GET)
  const slow = await backend.next()
  await slow.untilText('\r\n\r\n')

  const uploading = await dial(gateway)
  uploading.send('POST /t/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234')
  const taking = await backend.next()
  await taking.untilText('01234')

  const streaming = await dial(gateway)
  streaming.send(GET)
  const giving = await backend.next()
  await giving.untilText('\r\n\r\n')
  giving.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234')
  await streaming.untilText('01234')

  await drain(gateway)
  await assertRefused(gateway)
  assert.match(await ask(gateway.healthPort, 'GET', '/healthz'), /^HTTP\/1\.1 200 /)
  assert.match(await ask(gateway.healthPort, 'GET', '/readyz'), /^HTTP\/1\.1 503 /)

  slow.send(OK)
  const waited = await takeResponse(waiting)
  assert.equal(waited.body, 'ok')
  assert.deepEqual(waited.fields.get('connection'), ['close'])
  assert.equal(await waiting.untilEnd(), 'FIN')

  uploading.send('56789')
  await taking.untilText('0123456789')
  taking.send(OK)
  const uploaded = await takeResponse(uploading)
  assert.equal(uploaded.body, 'ok')
  assert.deepEqual(uploaded.fields.get('connection'), ['close'])

  giving.send('56789')
  assert.equal((await takeResponse(streaming)).body, '0123456789')
  assert.equal(await streaming.untilEnd(), 'FIN')

  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})

test('SIGINT: a request with a partial head is still served', async () => {
  const gateway = await start()
  const client = await dial(gateway)
  client.send(GET.slice(0, 10))
  // The bytes must arrive before the signal.
  await metric(gateway, 'sluice_bytes_total{peer="client",direction="in"}', 10)
  await drain(gateway, 'SIGINT')
  client.send(GET.slice(10))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(OK)
  const answer = await takeResponse(client)
  assert.equal(answer.body, 'ok')
  assert.deepEqual(answer.fields.get('connection'), ['close'])
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})

/** Waits until the metric has this value. */
async function metric(gateway: RunningGateway, name: string, value: number): Promise<void> {
  for (;;) {
    const text = await ask(gateway.healthPort, 'GET', '/metrics')
    if (text.includes(`\n${name} ${value}\n`)) return
    await pollPause()
  }
}

test('transport.listener.shutdown.wait.sec: longer exchanges are cut off, and the exit code is 0', async () => {
  const gateway = await start(['transport.listener.shutdown.wait.sec=1'])
  const client = await dial(gateway)
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234')
  await client.untilText('01234')
  await drain(gateway)
  assert.equal(await client.untilEnd(), 'RST')
  await peer.untilEnd()
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})

test('a second signal ends the program at once', async () => {
  const gateway = await start()
  const client = await dial(gateway)
  client.send(GET)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  await drain(gateway)
  gateway.program.signal('SIGTERM')
  assert.deepEqual(await gateway.program.exited, { code: 1, signal: null })
  await client.untilEnd()
  assert.equal(client.text, '')
})

const ACCEPTED = '<property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>'
/** Of requests that got 202 one is sent at once; the others wait. */
const ONE_AT_ONCE = ['core_threads=1', 'max_threads=1', 'threads_queue_length=-1'].map(
  key => `mediation.synapse.${key}`,
)
const CLOSED_OK = OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')

async function accepted(gateway: RunningGateway): Promise<void> {
  const client = await dial(gateway)
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 202)
}

test('D941: requests whose clients got 202 are sent before the end, also those that wait', async () => {
  const gateway = await start(ONE_AT_ONCE, ACCEPTED)
  for (let n = 0; n < 3; n++) await accepted(gateway)
  const first = await backend.next()
  await first.untilText('\r\n\r\n')
  await drain(gateway)
  await assertRefused(gateway)
  // Longer than reactors without connections of clients take to end.
  await delay(500)
  first.send(CLOSED_OK)
  for (let n = 0; n < 2; n++) {
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(CLOSED_OK)
  }
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
  assert.doesNotMatch(gateway.program.err.text, /given up/)
})

test('D941: the log tells how many such requests a stop gives up after shutdown.wait.sec', async () => {
  const gateway = await start([...ONE_AT_ONCE, 'transport.listener.shutdown.wait.sec=1'], ACCEPTED)
  for (let n = 0; n < 3; n++) await accepted(gateway)
  await (await backend.next()).untilText('\r\n\r\n')
  await drain(gateway)
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
  assert.match(gateway.program.err.text, /"MESSAGES":3,.*"msg":"messages in the background given up"/)
})
