/** Flows of different needs in one exchange: on the reactor in one direction, on a worker in the other, for faults. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowTask } from '../../src/mediation/worker-task.ts'
import { type FlowTexts, flowsOf, set, startFlows, takeHead } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, quiet } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { going, ScriptedWorker, unchanged, uppercase } from '../harness/scripted-worker.ts'
import { clientPlan, connectSecured, SECURED, SecuredBackend, serverPlan } from '../harness/secured-peers.ts'
import { switchingProtocols, upgradeRequest } from '../harness/tunnels.ts'

/** A flow that needs a worker; what it does is scripted. */
const BUILT = '<payloadFactory media-type="json"><format>{}</format><args/></payloadFactory>'
const OF_HEADS = `<property name="seen" expression="$trp:X-Seen"/>${set('X-Own', 'own')}`
const BACK = '<property name="X-Back" expression="get-property(\'seen\')" scope="transport"/>'

const MIXES: readonly (readonly [name: string, texts: FlowTexts, flows: readonly FlowTask['flow'][]])[] = [
  ['heads, then worker', { request: OF_HEADS, response: BUILT }, ['response']],
  ['worker, then heads', { request: BUILT, response: BACK }, ['request']],
  ['worker, then constant', { request: BUILT, response: set('X-Back', 's') }, ['request']],
  ['constant, then worker', { request: set('X-Own', 'own'), response: BUILT }, ['response']],
]

for (const [name, texts, flows] of MIXES) {
  test(`${name}: both flows run, with one state`, async t => {
    const worker = new ScriptedWorker()
    worker.script = task => {
      const { message } = task
      if (task.flow === 'response') return uppercase(task)
      const [, seen = ''] = message.fields.find(([field]) => field === 'X-Seen') ?? []
      const state = { ...message.state, default: [...message.state.default, ['seen', seen] as const] }
      return going(message, { state, body: { kind: 'untouched' } })
    }
    const { gateway, backend } = await startFlows(t, [await flowsOf(texts)], { worker })
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send('POST /a/x HTTP/1.1\r\nHost: h\r\nX-Seen: s\r\nContent-Length: 4\r\n\r\nbody')
    const peer = await backend.next()
    const sent = await takeHead(peer)
    await peer.untilText('body')
    if (texts.request !== BUILT) assert.match(sent, /\r\nX-Own: own\r\n/)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    const { fields, body } = await takeResponse(client)
    assert.deepEqual(
      worker.tasks.map(({ flow }) => flow),
      flows,
    )
    if (texts.response === BUILT) assert.equal(body, 'OK')
    else assert.deepEqual(fields.get('x-back'), ['s'])
    const { state } = worker.tasks[0]!.message
    if (texts.request === OF_HEADS) assert.ok(state.default.some(([key, value]) => key === 'seen' && value === 's'))
  })
}

test('flows of an operation replace those of its API', async t => {
  const worker = new ScriptedWorker()
  const mediation = await flowsOf({}, { 'POST /built': { request: BUILT } })
  const resource = (template: string) =>
    ({ template, verb: 'POST', authType: 'None', tier: 'Unlimited', scopes: [] }) as const
  const resources = [resource('/built'), resource('/plain')]
  const { gateway, backend } = await startFlows(t, [mediation], { worker }, { overrides: { resources } })
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (const [path, tasks] of [
    ['/built', 1],
    ['/plain', 1],
  ] as const) {
    client.send(`POST /a${path} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`)
    if (backend.peers.length === 0) await backend.next()
    const peer = backend.peers[0]!
    await takeHead(peer)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    assert.equal((await takeResponse(client)).status, 200)
    assert.equal(worker.tasks.length, tasks, path)
  }
})

test('a fault flow of heads words faults on the reactor, and sees the state of the request flow', async t => {
  const worker = new ScriptedWorker()
  const fault = `${BACK}<property name="HTTP_SC" value="499" scope="axis2"/>`
  const { gateway, backend } = await startFlows(t, [await flowsOf({ request: OF_HEADS, fault })], { worker })
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /a/x HTTP/1.1\r\nHost: h\r\nX-Seen: s\r\n\r\n')
  const peer = await backend.next()
  await takeHead(peer)
  peer.reset()
  const { status, fields } = await takeResponse(client)
  assert.deepEqual([status, fields.get('x-back')], [499, ['s']])
  assert.equal(worker.tasks.length, 0)
})

test('a WebSocket handshake passes its request flow on a worker, and the tunnel opens', async t => {
  const worker = new ScriptedWorker()
  worker.script = task => going(task.message, { fields: [...task.message.fields, ['X-Added', 'yes']] })
  const mediation = await flowsOf({ request: BUILT, response: BUILT })
  const { gateway, backend } = await startFlows(t, [mediation], { worker })
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(upgradeRequest().replace(/^GET \S+/, 'GET /a/x'))
  const peer = await backend.next()
  const head = await takeHead(peer)
  assert.match(head, /\r\nX-Added: yes\r\n/)
  assert.match(head, /\r\nUpgrade: websocket\r\n/i)
  peer.send(switchingProtocols())
  await client.untilText('101 Switching')
  assert.equal(worker.tasks.length, 1, 'no response flow runs on 101')
  assert.deepEqual(
    gateway.reports.flatMap(({ event, fields }) => (event === 'response flow not run' ? [fields.CAUSE_OF_ERROR] : [])),
    ['a response 101 has no body'],
  )
  client.take()
  await quiet()
  client.send('up')
  await peer.untilText('up')
  peer.send('down')
  await client.untilText('down')
})

test('interim responses pass a response flow on a worker', async t => {
  const worker = new ScriptedWorker()
  worker.script = unchanged
  const { gateway, backend } = await startFlows(t, [await flowsOf({ response: BUILT })], { worker })
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n')
  const peer = await backend.next()
  await takeHead(peer)
  peer.send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
  await client.untilText('103 Early Hints')
  assert.match(client.take(), /\r\nLink: <\/a>\r\n/)
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeResponse(client)).body, 'ok')
})

test('clients and backends on TLS are mediated as others are', async t => {
  const worker = new ScriptedWorker()
  worker.script = uppercase
  const backend = await SecuredBackend.listen()
  const mediation = await flowsOf({ request: BUILT, response: BUILT })
  const api = { context: '/a', host: 'localhost', port: backend.port, route: SECURED, overrides: { mediation } }
  const tls = { kinds: ['https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } } as const
  const bodies = { bytesMax: 10_000_000, memoryMax: 100_000, pieceBytes: 3072 }
  const gateway = await startGateway([api], { worker, bodies, ...tls })
  const { peer: client } = await connectSecured(gateway.port)
  t.after(() => {
    client.destroy()
    gateway.stop()
    backend.close()
  })
  const body = 'b'.repeat(300_000)
  client.send(`POST /a/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await eventually('a connection to the backend', () => backend.connections.length === 1)
  const { peer } = backend.connections[0]!
  await takeHead(peer)
  await peer.untilLength(body.length)
  assert.equal(peer.take(), body.toUpperCase())
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  assert.equal((await takeResponse(client)).body, body.toUpperCase())
})
