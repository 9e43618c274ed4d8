/** Access log to syslog: messages of RFC 5424 over UDP, TCP and TLS, and receivers that are gone. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { accessLogSyslog } from '../../src/observe/access-log-syslog.ts'
import { CA, SERVER } from '../harness/certificates.ts'
import { eventually } from '../harness/peers.ts'

const MESSAGE = /^<190>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [!-~]+ sluice \d+ access - (.*)$/
/** local7 */
const FACILITY = 23

interface Sink {
  readonly dropped: number[]
  readonly failures: string[]
}

function sinkOf(): Sink & Parameters<typeof accessLogSyslog>[1] {
  const dropped: number[] = []
  const failures: string[] = []
  return {
    dropped,
    failures,
    onDropped: lines => void dropped.push(lines),
    onFailed: ({ message }) => void failures.push(message),
    onRecovered: () => void failures.push('recovered'),
  }
}

/** A receiver on TCP that collects what it gets. */
class Receiver {
  received = ''
  readonly sockets = new Set<Socket>()
  readonly #waiting: (() => void)[] = []

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => this.sockets.add(socket))
  }

  read(socket: Socket): void {
    socket.on('error', () => undefined)
    socket.setEncoding('latin1').on('data', (piece: string) => {
      this.received += piece
      for (const look of this.#waiting.splice(0)) look()
    })
  }

  /** Resolves once so many messages are here. */
  async messages(count: number): Promise<readonly string[]> {
    for (;;) {
      const messages = framesOf(this.received)
      if (messages.length >= count) return messages
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(resolve)
      await promise
    }
  }
}

/** Octet counting (RFC 6587 3.4.1). */
function framesOf(bytes: string): string[] {
  const frames: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(' ', at)
    const length = Number(bytes.slice(at, space))
    if (space < 0 || bytes.length < space + 1 + length) break
    assert.ok(Number.isInteger(length) && length > 0)
    frames.push(bytes.slice(space + 1, space + 1 + length))
    at = space + 1 + length
  }
  return frames
}

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

function lines(...texts: readonly string[]): Uint8Array {
  return Buffer.from(texts.map(text => `${text}\n`).join(''))
}

test('each line is one datagram', async t => {
  const receiver = createSocket('udp4')
  t.after(() => receiver.close())
  receiver.bind(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address()
  const log = accessLogSyslog({ protocol: 'udp', host: '127.0.0.1', port, facility: FACILITY, ca: null }, sinkOf())
  const received: string[] = []
  const both = new Promise<void>(resolve => {
    receiver.on('message', message => {
      if (received.push(message.toString()) === 2) resolve()
    })
  })
  log.write(lines('{"status":200}', '{"status":404}'))
  await both
  assert.deepEqual(
    received.map(message => MESSAGE.exec(message)?.[1]),
    ['{"status":200}', '{"status":404}'],
  )
  await log.close()
})

test('messages on TCP are framed by octet counting, and wait for the first connection', async t => {
  const server = createServer()
  const receiver = new Receiver(server)
  server.on('connection', socket => receiver.read(socket))
  const port = await listen(t, server)
  const log = accessLogSyslog({ protocol: 'tcp', host: '127.0.0.1', port, facility: FACILITY, ca: null }, sinkOf())
  log.write(lines('one', 'two'))
  await receiver.messages(2)
  log.write(lines('three'))
  const texts = (await receiver.messages(3)).map(message => MESSAGE.exec(message)?.[1])
  assert.deepEqual(texts, ['one', 'two', 'three'])
  await log.close()
})

test('a receiver that comes back gets the lines of the time between', async t => {
  const server = createServer()
  const receiver = new Receiver(server)
  server.on('connection', socket => receiver.read(socket))
  const port = await listen(t, server)
  const sink = sinkOf()
  const log = accessLogSyslog({ protocol: 'tcp', host: '127.0.0.1', port, facility: FACILITY, ca: null }, sink)
  log.write(lines('before'))
  await receiver.messages(1)
  const again = once(server, 'connection')
  const [first] = receiver.sockets
  const gone = once(first!, 'close')
  first!.destroy()
  await gone
  await again
  log.write(lines('after'))
  const messages = await receiver.messages(2)
  assert.equal(MESSAGE.exec(messages[1]!)?.[1], 'after')
  assert.match(sink.failures.join(), /^[^,]+,recovered$/)
  await log.close()
})

test('a receiver on TLS is verified', async t => {
  const server = createTlsServer({ key: SERVER.key, cert: SERVER.cert })
  const receiver = new Receiver(server)
  server.on('secureConnection', socket => receiver.read(socket))
  server.on('tlsClientError', () => undefined)
  const port = await listen(t, server)
  const trusting = { protocol: 'tls', host: 'localhost', port, facility: FACILITY, ca: CA.cert } as const
  const log = accessLogSyslog(trusting, sinkOf())
  log.write(lines('secured'))
  assert.equal(MESSAGE.exec((await receiver.messages(1))[0]!)?.[1], 'secured')
  await log.close()
  const { promise, resolve } = Promise.withResolvers<Error>()
  const strict = accessLogSyslog(
    { ...trusting, ca: null },
    { onDropped: () => undefined, onFailed: resolve, onRecovered: assert.fail },
  )
  assert.match((await promise).message, /certificate/)
  await strict.close()
})

test('lines beyond 8 MiB that wait for a receiver are dropped and counted', async t => {
  // Its port refuses connections.
  const server = createServer()
  const port = await listen(t, server)
  server.close()
  const sink = sinkOf()
  const log = accessLogSyslog({ protocol: 'tcp', host: '127.0.0.1', port, facility: FACILITY, ca: null }, sink)
  const line = 'x'.repeat(1024 * 1024 - 1)
  for (let i = 0; i < 9; i++) log.write(lines(line))
  assert.deepEqual(sink.dropped, [1])
  await log.close()
  assert.deepEqual(sink.dropped, [1, 8])
})

const MEGABYTE = `${'x'.repeat(1024 * 1024 - 1)}`

for (const protocol of ['tcp', 'tls'] as const) {
  test(`a receiver on ${protocol} that accepts and takes no byte is told, left, and tried again`, async t => {
    const server = protocol === 'tcp' ? createServer() : createTlsServer({ key: SERVER.key, cert: SERVER.cert })
    const receiver = new Receiver(server)
    const accepted = protocol === 'tcp' ? 'connection' : 'secureConnection'
    let hangs = true
    server.on(accepted, socket => {
      socket.on('error', () => undefined)
      if (!hangs) receiver.read(socket)
    })
    const port = await listen(t, server)
    const sink = sinkOf()
    const to = { protocol, host: 'localhost', port, facility: FACILITY, ca: CA.cert } as const
    // A busy machine may let the receiver wait for some time as well.
    const log = accessLogSyslog(to, sink, { stallMs: 2000 })
    const connected = once(server, accepted)
    await connected
    for (let i = 0; i < 30; i++) log.write(lines(MEGABYTE))
    const waiting = 30 - sink.dropped.length
    assert.ok(waiting <= 9, String(waiting))
    assert.match(sink.failures.join(), /^the receiver is too slow: \d+ bytes wait/)
    hangs = false
    await once(server, accepted)
    await eventually('the recovery', () => sink.failures.at(-1) === 'recovered')
    log.write(lines('last'))
    await eventually('the last line', () => receiver.received.endsWith('last'))
    const texts = (await receiver.messages(2)).map(message => MESSAGE.exec(message)?.[1])
    assert.equal(texts.pop(), 'last')
    for (const text of texts) assert.equal(text?.length, MEGABYTE.length)
    await log.close()
    for (const socket of receiver.sockets) socket.destroy()
  })
}

test('a receiver that takes no byte of a few lines is told by the time that it takes none', async t => {
  const server = createServer(socket => socket.on('error', () => undefined).pause())
  const port = await listen(t, server)
  const sink = sinkOf()
  const to = { protocol: 'tcp', host: '127.0.0.1', port, facility: FACILITY, ca: null } as const
  const log = accessLogSyslog(to, sink, { stallMs: 200 })
  // More than the sockets of both sides hold, less than may wait.
  for (let i = 0; i < 7; i++) log.write(lines(MEGABYTE))
  await eventually('the cause', () => sink.failures.length > 0)
  assert.equal(sink.failures[0], 'the receiver has taken no byte for 200 ms')
  assert.deepEqual(sink.dropped, [1], 'the line that was cut')
  await log.close()
})

test('a receiver on TLS that is silent is told', async t => {
  const server = createServer(socket => socket.on('error', () => undefined).resume())
  const port = await listen(t, server)
  const sink = sinkOf()
  const to = { protocol: 'tls', host: 'localhost', port, facility: FACILITY, ca: CA.cert } as const
  const log = accessLogSyslog(to, sink, { connectMs: 200 })
  await eventually('the cause', () => sink.failures.length > 0)
  assert.equal(sink.failures[0], 'no connection within 200 ms')
  await log.close()
})

test('the name of a receiver on UDP is looked up once for many lines, and its failure is told once', async t => {
  let asked = 0
  const { lookup } = dns
  t.mock.method(dns, 'lookup', (host: string, options: object, done: (error: Error | null) => void) => {
    if (!host.endsWith('.invalid')) return lookup(host, options, done)
    asked++
    setTimeout(done, 20, new Error(`no address of ${host}`))
  })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  const sink = sinkOf()
  const to = { protocol: 'udp', host: 'no-such-host.invalid', port: 514, facility: FACILITY, ca: null } as const
  const log = accessLogSyslog(to, sink)
  for (let i = 0; i < 100; i++) log.write(lines('one', 'two'))
  await eventually('the loss', () => sink.dropped.length === 200)
  log.write(lines('three'))
  await eventually('one more', () => sink.dropped.length === 201)
  assert.equal(asked, 1)
  assert.deepEqual(sink.failures, ['no address of no-such-host.invalid'])
  await log.close()
})

test('a line that no datagram holds is cut, not lost', async t => {
  const receiver = createSocket('udp4')
  t.after(() => receiver.close())
  receiver.bind(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address()
  const sink = sinkOf()
  const log = accessLogSyslog({ protocol: 'udp', host: '127.0.0.1', port, facility: FACILITY, ca: null }, sink)
  const received = once(receiver, 'message')
  log.write(lines('x'.repeat(100_000)))
  const [message] = (await received) as [Buffer]
  assert.equal(message.length, 65_507)
  assert.deepEqual([sink.dropped, sink.failures], [[], []])
  await log.close()
})
