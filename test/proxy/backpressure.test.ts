/**
 * Backpressure: a receiver that reads slowly stops the sender, and the gateway buffers a bounded number of bytes in
 * between. Bodies of 160 MiB, of 2 GiB in the long run (SLUICE_LONG=1).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { type Framing, framingLine, Sink, Source } from '../harness/bulk.ts'
import { startGateway } from '../harness/gateway.ts'
import { eventually, turn } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'

const MIB = 1024 * 1024
const BODY_BYTES = IS_LONG ? 2048 * MIB : 160 * MIB
/** How often the receiver stops reading. */
const STOPS = IS_LONG ? 8 : 4
/** Most bytes in flight: buffers of the kernel for both connections, and of the gateway. */
const IN_FLIGHT_MAX = 32 * MIB
const RSS_GROWTH_MAX = 128 * MIB
/** Most bytes that one exchange reserves in the arena: a 64 KiB chunk per direction, heads, and a pending write. */
const ARENA_MAX = 1 * MIB
/** Most chunks that a stopped exchange holds: pending reads, and composed heads. */
const CHUNKS_MAX = 8
/** A sender without progress for so many turns of the event loop has stopped. */
const STILL_TURNS = 300

/** Handles each backend connection; set by the test. */
let serve: (socket: Socket) => void = () => {}
const server = createServer({ allowHalfOpen: true }, socket => {
  socket.on('error', () => {})
  serve(socket)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as { port: number }
const gateway = await startGateway([{ context: '/t', port }])
const chunksAtRest = arena.acquiredChunks
after(() => {
  gateway.stop()
  server.close()
})

async function dial(): Promise<Socket> {
  const socket = connect(gateway.port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

/** Waits until the sender makes no progress. */
async function stopped(source: Source): Promise<void> {
  let last = -1
  for (let still = 0; still < STILL_TURNS; still++) {
    if (source.sent !== last) still = 0
    last = source.sent
    await turn()
  }
}

/** Receives the body and pauses the receiver several times, each time until the sender has stopped as well. */
async function receiveWithStops(source: Source, sink: Sink): Promise<void> {
  // Excludes the warm-up of the kernel's buffers, the test's buffers and code.
  await sink.stopAt(8 * MIB)
  await stopped(source)
  const rss = process.memoryUsage.rss()
  const { unreservedBytes } = arena
  for (let stop = 1; stop < STOPS; stop++) {
    await sink.stopAt((BODY_BYTES / STOPS) * stop)
    await stopped(source)
    const inFlight = source.sent - sink.received
    assert.ok(inFlight < IN_FLIGHT_MAX, `${inFlight} bytes in flight`)
    assert.ok(source.sent < BODY_BYTES, 'the sender is stopped')
    const growth = process.memoryUsage.rss() - rss
    assert.ok(growth < RSS_GROWTH_MAX, `grew by ${growth} bytes`)
    const reserved = unreservedBytes - arena.unreservedBytes
    assert.ok(reserved < ARENA_MAX, `${reserved} bytes more of the arena`)
    const chunks = arena.acquiredChunks - chunksAtRest
    assert.ok(chunks <= CHUNKS_MAX, `${chunks} chunks`)
  }
  sink.socket.resume()
  await sink.done
  assert.equal(sink.received, BODY_BYTES)
}

/** Waits for the end of all connections and checks that their chunks are released. */
async function assertReleased(): Promise<void> {
  await eventually('the end of all connections', () => {
    const { connectionsOpen, targetsOpen } = gateway.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
  const chunks = arena.acquiredChunks - chunksAtRest
  assert.ok(chunks <= 0, `${chunks} chunks are not released`)
}

const FRAMINGS: readonly (readonly [Framing, string])[] = [
  ['length', 'with Content-Length'],
  ['chunked', 'in chunks'],
  ['close', 'that ends with its connection'],
]

for (const [framing, name] of FRAMINGS) {
  test(`a client that reads a response body of ${BODY_BYTES / MIB} MiB ${name} slowly stops the backend`, async () => {
    const sources: Source[] = []
    serve = socket => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${framingLine(framing, BODY_BYTES)}\r\n`)
        sources.push(new Source(socket, BODY_BYTES, framing))
      })
    }
    const before = arena.unreservedBytes
    const client = await dial()
    const sink = new Sink(client, BODY_BYTES)
    client.write('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
    await sink.begun
    await receiveWithStops(sources[0]!, sink)
    assert.ok(before - arena.unreservedBytes < ARENA_MAX)
    client.destroy()
    await assertReleased()
  })

  if (framing === 'close') continue
  test(`a backend that reads a request body of ${BODY_BYTES / MIB} MiB ${name} slowly stops the client`, async () => {
    const accepted = Promise.withResolvers<Sink>()
    serve = socket => accepted.resolve(new Sink(socket, BODY_BYTES))
    const client = await dial()
    client.write(`POST /t/ HTTP/1.1\r\nHost: a\r\n${framingLine(framing, BODY_BYTES)}\r\n`)
    const source = new Source(client, BODY_BYTES, framing)
    const sink = await accepted.promise
    await receiveWithStops(source, sink)
    await source.done
    sink.socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok')
    const [response] = (await once(client, 'data')) as [Buffer]
    assert.ok(response.toString().startsWith('HTTP/1.1 200 OK\r\n'))
    client.destroy()
    await assertReleased()
  })
}

test('100 clients that read slowly get their whole bodies, and another client is served at the same time', async () => {
  const CLIENTS = 100
  const LENGTH = 8 * MIB
  const backends: Socket[] = []
  serve = socket => {
    backends.push(socket)
    socket.on('data', (request: Buffer) => {
      if (request.includes('GET /quick ')) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        return
      }
      socket.write(`HTTP/1.1 200 OK\r\n${framingLine('length', LENGTH)}\r\n`)
      new Source(socket, LENGTH, 'length')
    })
  }
  const rss = process.memoryUsage.rss()
  const sinks: Sink[] = []
  for (let index = 0; index < CLIENTS; index++) {
    const socket = await dial()
    sinks.push(new Sink(socket, LENGTH))
    socket.write('GET /t/slow HTTP/1.1\r\nHost: a\r\n\r\n')
  }
  await Promise.all(sinks.map(sink => sink.stopAt(1)))
  const quick = await dial()
  for (let request = 0; request < 50; request++) {
    quick.write('GET /t/quick HTTP/1.1\r\nHost: a\r\n\r\n')
    const [response] = (await once(quick, 'data')) as [Buffer]
    assert.ok(response.toString().endsWith('\r\n\r\nok'))
  }
  assert.ok(process.memoryUsage.rss() - rss < RSS_GROWTH_MAX)
  for (const { socket } of sinks) socket.resume()
  await Promise.all(sinks.map(({ done }) => done))
  for (const socket of [...sinks.map(sink => sink.socket), quick, ...backends]) socket.destroy()
  await assertReleased()
})
