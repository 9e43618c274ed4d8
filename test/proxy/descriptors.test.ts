/** Limits that follow from the open files of the process, and errors of a process without a free descriptor (D168). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Dialer } from '../../src/socket/byte-socket.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, ScriptedBackend } from '../harness/peers.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { connect } from 'node:net'
import { startEndpoints } from '../harness/unreliable-backend.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Respond to every request, but for `/slow`. */
const backends = [await quickBackend(), await quickBackend(), await quickBackend()]
const [first, second, third] = backends.map(({ port }) => port) as [number, number, number]
after(() => backends.forEach(backend => void backend.close()))

function quickBackend(): Promise<ScriptedBackend> {
  return ScriptedBackend.listen(peer => void respondToAll(peer))
}

async function respondToAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    const request = peer.take()
    if (request !== '' && !request.includes('/slow')) peer.send(OK)
  }
}

const APIS = [
  { context: '/a', port: first },
  { context: '/b', port: second },
  { context: '/c', port: third },
]

async function request(client: Peer, path: string): Promise<Awaited<ReturnType<typeof takeResponse>>> {
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  return takeResponse(client)
}

test('a client over the limit of the open files is reset and counted, on whichever listener', async t => {
  const gateway = await startGateway(APIS, {
    connectionLimits: { clients: 2, backends: -1 },
    kinds: ['http', 'http'],
  })
  t.after(() => gateway.stop())
  const clients = [await connectPeer(gateway.ports[0]!), await connectPeer(gateway.ports[1]!)]
  for (const client of clients) assert.equal((await request(client, '/a/')).status, 200)
  for (const [round, port] of gateway.ports.entries()) {
    const refused = new Peer(connect(port, '127.0.0.1'))
    assert.equal(await refused.untilEnd(), 'RST')
    assert.equal(gateway.metrics().counts.connectionsRefusedDescriptors, round + 1)
  }
  clients[0]!.destroy()
  await eventually('the end of one connection', () => gateway.metrics().counts.connectionsOpen === 1)
  const next = await connectPeer(gateway.port)
  assert.equal((await request(next, '/a/')).status, 200)
  for (const peer of [next, clients[1]!]) peer.destroy()
})

test('at the limit of backend connections an idle one to another backend gives up its place', async t => {
  const gateway = await startGateway(APIS, { connectionLimits: { clients: -1, backends: 2 } })
  t.after(() => gateway.stop())
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  for (const path of ['/a/', '/b/', '/c/', '/a/', '/c/']) assert.equal((await request(client, path)).status, 200)
  assert.equal(gateway.metrics().counts.targetsOpen, 2)
})

test('without an idle connection at that limit a request gets 503 with 101600, and blames no endpoint', async t => {
  const gateway = await startGateway(APIS, { connectionLimits: { clients: -1, backends: 1 } })
  t.after(() => gateway.stop())
  const busy = await connectPeer(gateway.port)
  busy.send('GET /a/slow HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('a busy connection', () => gateway.metrics().counts.targetsOpen === 1)
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const refused = await request(client, '/b/')
  assertFault(refused, 503, 101600, 0, false, 'The gateway cannot open another connection')
  busy.reset()
  await eventually('a free place', () => gateway.metrics().counts.targetsOpen === 0)
  assert.equal((await request(client, '/b/')).status, 200)
})

for (const code of ['EMFILE', 'ENFILE']) {
  test(`${code} at a backend connection is 503 with 101600, and suspends no endpoint`, async t => {
    let isShort = true
    const wrapDialer = (dialer: Dialer): Dialer => ({
      dial: (address, port, owner, view) => {
        if (!isShort) return dialer.dial(address, port, owner, view)
        queueMicrotask(() => owner.onLost(code))
        return dialer.dial(address, port, IGNORED, view)
      },
    })
    const gateway = await startEndpoints({ kind: 'single', ports: [first] }, {}, { wrapDialer })
    t.after(() => gateway.stop())
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    for (let round = 0; round < 3; round++) {
      const refused = await request(client, '/t/')
      assertFault(refused, 503, 101600, 0, false, 'The gateway cannot open another connection')
    }
    assert.deepEqual([gateway.states, gateway.table.read(0).failures], [['ACTIVE'], 0])
    assert.match(gateway.reports.map(({ fields }) => fields.CAUSE_OF_ERROR).join(), new RegExp(`${code}, ulimit -n`))
    isShort = false
    assert.equal((await request(client, '/t/')).status, 200)
  })
}

/** Owner of a socket that the test replaces by an error. */
const IGNORED: Parameters<Dialer['dial']>[2] = {
  onConnected: () => {},
  onBytes: () => undefined,
  onEnd: () => {},
  onLost: () => {},
  onTlsFailed: () => {},
  onWriteFailed: () => {},
  onBlocked: () => undefined,
  onDrained: () => {},
  onError: () => {},
}
