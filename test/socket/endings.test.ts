/**
 * A socket whose FIN and reset come close together: its handle is closed, and the peer never takes a part for the
 * whole.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { connect } from 'node:tls'
import { WRITE } from '../../src/socket/byte-socket.ts'
import { CA } from '../harness/certificates.ts'
import { eventually } from '../harness/peers.ts'
import { level, Recorder, SecuredListener, serverPlan } from './secured.ts'

const open: { close(): unknown }[] = []
after(() => {
  for (const each of open) each.close()
})

/** Connections of this process, both ends of each. */
function openSockets(): number {
  return process.getActiveResourcesInfo().filter(kind => kind === 'TCPSocketWrap').length
}

interface Pair {
  readonly ours: Recorder
  readonly client: Socket
}

async function plainPair(): Promise<Pair> {
  const ours = new Recorder()
  const listener = await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, socket => {
    ours.socket = socket
    socket.attach(ours, ours.view)
  })
  open.push(listener)
  const client = connectTcp(listener.port, '127.0.0.1')
  client.write('x')
  await eventually('the first byte', () => ours.text === 'x')
  return { ours, client }
}

async function securedPair(): Promise<Pair> {
  const listener = await SecuredListener.open(serverPlan())
  open.push(listener)
  const client = connect({ port: listener.port, host: '127.0.0.1', servername: 'localhost', ca: CA.cert })
  client.write('x')
  const ours = await listener.next()
  await eventually('the first byte', () => ours.text === 'x')
  return { ours, client }
}

const PAIRS = { plain: plainPair, secured: securedPair }

for (const [kind, pair] of Object.entries(PAIRS)) {
  test(`a ${kind} socket that is ended and reset in one turn closes its handle`, async () => {
    const before = openSockets()
    const { ours, client } = await pair()
    client.on('error', () => {}).resume()
    ours.socket.end()
    ours.socket.reset()
    await eventually('both handles to be closed', () => openSockets() === before)
  })

  test(`a ${kind} socket that is reset while FIN waits behind bytes: handle closed, peer reset`, async () => {
    const before = openSockets()
    const { ours, client } = await pair()
    const bytes = Buffer.alloc(65_536, 'y')
    while (ours.socket.write(bytes) !== WRITE.PENDING);
    ours.socket.end()
    ours.socket.reset()
    let hasEnded = false
    client.on('end', () => {
      hasEnded = true
    })
    const lost = once(client, 'error')
    client.resume()
    const [error] = (await lost) as [NodeJS.ErrnoException]
    assert.equal(error.code, 'ECONNRESET')
    assert.ok(!hasEnded)
    await eventually('both handles to be closed', () => openSockets() === before)
  })
}
