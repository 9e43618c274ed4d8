/** Memory of TLS connections: all chunks and parsers are released. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { takeResponse } from '../harness/responses.ts'
import { startGateway } from '../harness/gateway.ts'
import { eventually, type Peer } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'
import {
  clientPlan,
  connectSecured,
  SECURED,
  SecuredBackend,
  serverPlan,
  startSecured,
} from '../harness/secured-peers.ts'

const CONNECTIONS = IS_LONG ? 20_000 : 500
const AT_ONCE = 16
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'

const backend = await SecuredBackend.listen({}, respond)
const gateway = await startGateway([{ context: '/t', host: 'localhost', port: backend.port, route: SECURED }], {
  kinds: ['https'],
  tlsServer: serverPlan(),
  tlsClients: { default: clientPlan() },
})
after(() => {
  gateway.stop()
  backend.close()
})

function respond(peer: Peer): void {
  void peer.untilText('\r\n\r\n').then(
    () => {
      peer.send(OK)
      peer.end()
    },
    () => undefined,
  )
}

test(`${CONNECTIONS} TLS connections that end in four different ways release all memory`, async () => {
  const atRest = { chunks: arena.acquiredChunks, parsers: Parser.inUse }
  let started = 0
  const worker = async () => {
    while (started < CONNECTIONS) {
      const way = started++ % 4
      const { peer, tls, tcp } = way === 3 ? await startSecured(gateway.port) : await connectSecured(gateway.port)
      if (way === 3) tls.on('error', () => undefined)
      else peer.send(GET)
      if (way === 0) assert.equal((await takeResponse(peer)).body, 'ok')
      if (way === 1) tcp.resetAndDestroy()
      else peer.destroy()
      if (started % 100 === 0) backend.connections.splice(0, backend.connections.length - 100)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  await eventually('the end of all connections', () => {
    const { connectionsOpen, targetsOpen } = gateway.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
  // The chunk of the composer may have been handed to a write; it is replaced with the next message.
  assert.ok(arena.acquiredChunks <= atRest.chunks, `${arena.acquiredChunks} of ${atRest.chunks} chunks`)
  assert.equal(Parser.inUse, atRest.parsers)
  assert.deepEqual(
    gateway.reports.filter(({ event }) => event === 'bug'),
    [],
  )
})
