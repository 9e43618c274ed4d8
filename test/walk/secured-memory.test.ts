/** What connections on TLS leave behind: nothing. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { takeAnswer } from '../harness/answers.ts'
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

const backend = await SecuredBackend.listen({}, answer)
const gateway = await startGateway(
  [{ context: '/t', host: 'localhost', port: backend.port, route: SECURED }],
  {},
  null,
  [],
  { kinds: ['https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } },
)
after(() => {
  gateway.stop()
  backend.close()
})

function answer(peer: Peer): void {
  void peer.untilText('\r\n\r\n').then(
    () => {
      peer.send(OK)
      peer.end()
    },
    () => undefined,
  )
}

test(`${CONNECTIONS} handshakes on both sides, each with a request, each ended in one of four ways`, async () => {
  const atRest = { chunks: arena.lentChunks, parsers: Parser.inUse }
  let started = 0
  const worker = async () => {
    while (started < CONNECTIONS) {
      const way = started++ % 4
      const { peer, tls, tcp } = way === 3 ? await startSecured(gateway.port) : await connectSecured(gateway.port)
      if (way === 3) tls.on('error', () => undefined)
      else peer.send(GET)
      if (way === 0) assert.equal((await takeAnswer(peer)).body, 'ok')
      if (way === 1) tcp.resetAndDestroy()
      else peer.destroy()
      if (started % 100 === 0) backend.connections.splice(0, backend.connections.length - 100)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  await eventually('all to be over', () => {
    const { connectionsOpen, targetsOpen } = gateway.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
  // The composer's own chunk may have left with a write; another one is taken with the next message.
  assert.ok(arena.lentChunks <= atRest.chunks, `${arena.lentChunks} of ${atRest.chunks} chunks`)
  assert.equal(Parser.inUse, atRest.parsers)
  assert.deepEqual(
    gateway.reports.filter(({ event }) => event === 'bug'),
    [],
  )
})
