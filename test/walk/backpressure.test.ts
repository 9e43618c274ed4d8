/**
 * Backpressure: whoever takes bytes slowly slows down whoever sends them, and nothing piles up in between. 256 MiB by
 * default, 2 GiB in the long run (SLUICE_LONG=1).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { type Framing, framingLine, Sink, Source } from '../harness/bulk.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { turn } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'

const MIB = 1024 * 1024
const BODY_BYTES = IS_LONG ? 2048 * MIB : 256 * MIB
/** How often the slow side stops altogether. */
const STOPS = 8
/** What the kernel may hold of both connections, and the program on top of it. */
const UNDER_WAY_MAX = 32 * MIB
const RSS_GROWTH_MAX = 128 * MIB
/** What one exchange may take from the arena: a 64 KiB chunk per direction, heads, and a held write. */
const ARENA_MAX = 1 * MIB
/** Turns of the event loop without progress after which a sender is taken to be stopped. */
const STILL_TURNS = 300

const servers: Server[] = []
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  for (const server of servers) server.close()
})

/** A backend for one connection after the other. */
async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, onSocket).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as { port: number }).port
}

async function start(port: number, http: Record<string, unknown> = {}): Promise<TestGateway> {
  const gateway = await startGateway([{ context: '/t', port }], http)
  gateways.push(gateway)
  return gateway
}

async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

/** Waits until a sender gets nothing off any more. */
async function stopped(source: Source): Promise<void> {
  let last = -1
  for (let still = 0; still < STILL_TURNS; still++) {
    if (source.sent !== last) still = 0
    last = source.sent
    await turn()
  }
}

/** Lets the body through, stopping the receiver again and again until the sender has stopped as well. */
async function crawl(source: Source, sink: Sink): Promise<void> {
  // What warms up does not count: buffers of the kernel, of the test, code.
  await sink.stopAt(8 * MIB)
  await stopped(source)
  const rss = process.memoryUsage.rss()
  const { uncut } = arena
  for (let stop = 1; stop < STOPS; stop++) {
    await sink.stopAt((BODY_BYTES / STOPS) * stop)
    await stopped(source)
    const underWay = source.sent - sink.received
    assert.ok(underWay < UNDER_WAY_MAX, `${underWay} bytes under way`)
    assert.ok(source.sent < BODY_BYTES, 'the sender was held back')
    const growth = process.memoryUsage.rss() - rss
    assert.ok(growth < RSS_GROWTH_MAX, `grew by ${growth} bytes`)
    assert.ok(uncut - arena.uncut < ARENA_MAX, `${uncut - arena.uncut} bytes more of the arena`)
  }
  sink.socket.resume()
  await sink.done
  assert.equal(sink.received, BODY_BYTES)
}

for (const framing of ['length', 'chunked'] as const satisfies Framing[]) {
  test(`${BODY_BYTES / MIB} MiB through a slow client, ${framing}`, async () => {
    const sources: Source[] = []
    const port = await listen(socket => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${framingLine(framing, BODY_BYTES)}\r\n`)
        sources.push(new Source(socket, BODY_BYTES, framing))
      })
      socket.on('error', () => {})
    })
    const gateway = await start(port)
    const before = arena.uncut
    const client = await dial(gateway.port)
    const sink = new Sink(client, BODY_BYTES)
    client.write('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
    await sink.begun
    await crawl(sources[0]!, sink)
    assert.ok(before - arena.uncut < ARENA_MAX)
    client.destroy()
  })

  test(`${BODY_BYTES / MIB} MiB into a slow backend, ${framing}`, async () => {
    const accepted = Promise.withResolvers<Sink>()
    const port = await listen(socket => accepted.resolve(new Sink(socket, BODY_BYTES)))
    const gateway = await start(port)
    const client = await dial(gateway.port)
    client.write(`POST /t/ HTTP/1.1\r\nHost: a\r\n${framingLine(framing, BODY_BYTES)}\r\n`)
    const source = new Source(client, BODY_BYTES, framing)
    const sink = await accepted.promise
    await crawl(source, sink)
    await source.done
    sink.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    const [answer] = (await once(client, 'data')) as [Buffer]
    assert.ok(answer.toString().startsWith('HTTP/1.1 200 OK\r\n'))
    client.destroy()
  })
}

test('many slow clients at once: each gets its bytes, and the others are served meanwhile', async () => {
  const CLIENTS = 100
  const LENGTH = 8 * MIB
  const port = await listen(socket => {
    socket.on('data', (request: Buffer) => {
      if (request.includes('GET /quick ')) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        return
      }
      socket.write(`HTTP/1.1 200 OK\r\n${framingLine('length', LENGTH)}\r\n`)
      new Source(socket, LENGTH, 'length')
    })
    socket.on('error', () => {})
  })
  const gateway = await start(port)
  const rss = process.memoryUsage.rss()
  const sinks: Sink[] = []
  for (let index = 0; index < CLIENTS; index++) {
    const socket = await dial(gateway.port)
    sinks.push(new Sink(socket, LENGTH))
    socket.write('GET /t/slow HTTP/1.1\r\nHost: a\r\n\r\n')
  }
  await Promise.all(sinks.map(sink => sink.stopAt(1)))
  const quick = await dial(gateway.port)
  for (let request = 0; request < 50; request++) {
    quick.write('GET /t/quick HTTP/1.1\r\nHost: a\r\n\r\n')
    const [answer] = (await once(quick, 'data')) as [Buffer]
    assert.ok(answer.toString().endsWith('\r\n\r\nok'))
  }
  assert.ok(process.memoryUsage.rss() - rss < RSS_GROWTH_MAX)
  for (const { socket } of sinks) socket.resume()
  await Promise.all(sinks.map(({ done }) => done))
  for (const { socket } of [...sinks, { socket: quick }]) socket.destroy()
})
