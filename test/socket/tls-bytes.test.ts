/** Bytes over TLS: order, backpressure and ends; a truncated stream never looks whole. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createTcp, connect as connectTcp, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { createServer, type TLSSocket } from 'node:tls'
import { WRITE } from '../../src/socket/byte-socket.ts'
import { SERVER } from '../harness/certificates.ts'
import { eventually, quiet, turn } from '../harness/peers.ts'
import { clientPlan, dialSecured, level, nodeClient, SecuredListener, serverPlan, tls } from './secured.ts'

const open: { close(): unknown }[] = []
after(() => {
  for (const each of open) each.close()
})

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const
const MEBIBYTE = 1024 * 1024
/** Two releases of OpenSSL, one fault. */
const BAD_RECORD = /^LOST TLS: .*\(ERR_SSL_(?:DECRYPTION_FAILED_OR_BAD_RECORD_MAC|CIPHER_OPERATION_FAILED)\)$/

/** A connection: our server's end, and the client of Node with the TCP socket below it. */
async function connected(version: (typeof VERSIONS)[number] = 'TLSv1.3', viewBytes = 65_536) {
  const listener = await SecuredListener.open(serverPlan({ maxVersion: version }), { viewBytes })
  open.push(listener)
  const tcp: Socket = connectTcp({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
  const client = nodeClient(listener.port, { socket: tcp, maxVersion: version })
  await once(client.socket, 'secureConnect')
  const owner = await listener.next()
  client.socket.write('hello')
  await eventually('the first bytes', () => owner.text === 'hello')
  owner.calls.length = 0
  return { owner, client, tcp, listener }
}

/** `length` bytes that differ by their position. */
function pattern(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; at++) bytes[at] = (at * 31 + (at >> 9)) & 0xff
  return bytes
}

for (const version of VERSIONS) {
  test(`${version}: 8 MiB in one write arrive whole, and the owner hears onDrained`, async () => {
    const { owner, client } = await connected(version)
    const bytes = pattern(8 * MEBIBYTE)
    assert.equal(owner.socket.write(bytes), WRITE.PENDING)
    await owner.called('DRAINED')
    await eventually('all bytes', () => client.text.length === bytes.length)
    assert.ok(Buffer.from(client.text, 'latin1').equals(bytes))
    assert.deepEqual(owner.calls, ['DRAINED'])
    client.socket.destroy()
  })

  test(`${version}: many small writes of one turn arrive in order`, async () => {
    const { owner, client } = await connected(version)
    const texts = Array.from({ length: 200 }, (_, at) => `${at};`)
    const answers = texts.map(text => {
      const bytes = Buffer.from(text)
      const answer = owner.socket.write(bytes)
      // The memory of a write that is done is free at once.
      if (answer === WRITE.DONE) bytes.fill(0)
      return answer
    })
    assert.ok(!answers.includes(WRITE.FAILED))
    await owner.called('DRAINED')
    await eventually('all of them', () => client.text.length === texts.join('').length)
    assert.equal(client.text, texts.join(''))
    assert.deepEqual(owner.calls, ['DRAINED'])
    client.socket.destroy()
  })

  test(`${version}: after end or destroy right behind writes, all bytes arrive and then the end`, async () => {
    for (const last of ['end', 'destroy', 'end and destroy'] as const) {
      for (const writes of [1, 2]) {
        const { owner, client, tcp } = await connected(version)
        let isPending = false
        for (let i = 0; i < writes; i++) isPending = owner.socket.write(pattern(1000)) === WRITE.PENDING || isPending
        // A write that waits is given up by `destroy`, and waited for by `end`.
        if (last !== 'destroy' && isPending) {
          owner.socket.end()
          await owner.called('DRAINED')
        } else if (isPending) await owner.called('DRAINED')
        if (last !== 'destroy') owner.socket.end()
        if (last !== 'end') owner.socket.destroy()
        await eventually(`the end after ${last}`, () => client.socket.readableEnded || client.isClosed)
        assert.equal(client.text.length, writes * 1000, last)
        assert.deepEqual(client.errors, [])
        client.socket.destroy()
        tcp.destroy()
        owner.socket.destroy()
      }
    }
  })

  for (const when of ['at once', 'later'] as const) {
    test(`${version}, RFC 8446 6.1: destroy ${when} after a write is an end of TLS too, no truncation`, async () => {
      const listener = await SecuredListener.open(serverPlan({ maxVersion: version }))
      open.push(listener)
      const client = await dialSecured(tls.client(clientPlan()), listener.port)
      client.socket.write(Buffer.from('hello'))
      const owner = await listener.next()
      await eventually('the first bytes', () => owner.text === 'hello')
      if (owner.socket.write(Buffer.from('answer')) === WRITE.PENDING) await owner.called('DRAINED')
      if (when === 'later') await quiet()
      owner.socket.destroy()
      await eventually('the end', () => client.has('END') || client.has('LOST'))
      assert.equal(client.text, 'answer')
      assert.equal(client.calls.at(-1), 'END')
      client.socket.destroy()
    })
  }

  test(`${version}: writes to a peer that takes nothing wait, within a bound`, async () => {
    const { owner, client, tcp } = await connected(version)
    client.socket.pause()
    tcp.pause()
    const chunk = pattern(64 * 1024)
    let written: number = WRITE.DONE
    let bytes = 0
    while (written === WRITE.DONE) {
      written = owner.socket.write(chunk)
      bytes += chunk.length
      for (let i = 0; i < 5; i++) await turn()
    }
    assert.equal(written, WRITE.PENDING)
    let refused: number = WRITE.PENDING
    for (let i = 0; i < 200 && refused === WRITE.PENDING; i++) {
      refused = owner.socket.write(chunk)
      if (refused === WRITE.PENDING) bytes += chunk.length
    }
    if (level.name === 'handles') assert.equal(refused, WRITE.FAILED)
    await quiet()
    assert.deepEqual(
      owner.calls.filter(call => call !== 'DRAINED'),
      [],
    )
    client.socket.resume()
    tcp.resume()
    await eventually('all that was taken', () => client.text.length === bytes)
    client.socket.destroy()
  })

  test(`${version}: destroy while a write waits cuts the connection, without a callback`, async () => {
    for (const how of ['destroy', 'reset'] as const) {
      const { owner, client, tcp } = await connected(version)
      client.socket.pause()
      tcp.pause()
      assert.equal(owner.socket.write(pattern(16 * MEBIBYTE)), WRITE.PENDING)
      await quiet()
      owner.socket[how]()
      owner.calls.length = 0
      client.socket.resume()
      tcp.resume()
      await eventually('the end', () => client.isClosed || client.socket.readableEnded)
      assert.ok(client.text.length < 16 * MEBIBYTE)
      assert.deepEqual(owner.calls, [])
    }
  })

  test(`${version}: reset resets the TCP connection`, async () => {
    const { owner, client } = await connected(version)
    owner.socket.reset()
    await eventually('the reset', () => client.errors.length > 0)
    assert.equal(client.errors[0]!.code, 'ECONNRESET')
  })

  // ---- reading ------------------------------------------------------------------------------------------------------

  test(`${version}: no byte is delivered while reading is off, and the sender is held back`, async () => {
    const { owner, client } = await connected(version, 5000)
    const bytes = pattern(16 * MEBIBYTE)
    const before = owner.length
    owner.onData = () => owner.socket.setReading(false)
    client.socket.write(bytes)
    await eventually('the first of it', () => owner.length > before)
    const first = owner.length
    await quiet()
    assert.equal(owner.length, first)
    assert.ok(client.socket.writableLength > 0)
    // One read at a time from now on: each stops reading, and the test starts it again.
    for (let i = 0; i < 20; i++) {
      const { length } = owner
      owner.socket.setReading(true)
      await eventually('a further read', () => owner.length > length)
      assert.ok(owner.length - length <= 5000)
    }
    owner.onData = () => undefined
    owner.socket.setReading(true)
    await eventually('the rest', () => owner.length === before + bytes.length)
    assert.ok(Buffer.from(owner.text, 'latin1').subarray(before).equals(bytes))
    client.socket.destroy()
  })

  test(`${version}: the end is reported behind waiting bytes, and only while reading is on`, async () => {
    const { owner, client } = await connected(version, 1000)
    owner.onData = () => owner.socket.setReading(false)
    client.socket.end(pattern(2500))
    await eventually('the first of it', () => owner.length > 5)
    await quiet()
    assert.equal(owner.length, 1005)
    owner.onData = () => undefined
    owner.socket.setReading(true)
    await owner.called('END')
    assert.equal(owner.length, 2505)
    assert.deepEqual(owner.calls, ['END'])
    owner.socket.destroy()
  })

  test(`${version}: a peer that has ended its side still gets bytes`, async () => {
    const { owner, client } = await connected(version)
    client.socket.end('bye')
    await owner.called('END')
    assert.equal(owner.text, 'hellobye')
    assert.notEqual(owner.socket.write(Buffer.from('answer')), WRITE.FAILED)
    owner.socket.end()
    await eventually('the answer', () => client.text === 'answer')
    owner.socket.destroy()
  })

  test(`${version}: after a close inside onBytes the view is not written to, though more bytes have come`, async () => {
    for (const how of ['destroy', 'reset', 'throw'] as const) {
      const { owner, client } = await connected(version)
      owner.onData = () => {
        if (how === 'throw') throw new Error('of the owner')
        owner.socket[how]()
        owner.view.fill(0)
      }
      client.socket.write(pattern(60_000))
      await eventually('the end', () => client.isClosed || client.socket.readableEnded)
      assert.ok(owner.length <= 5 + 60_000)
      assert.deepEqual(owner.calls, how === 'throw' ? ['ERROR Error: of the owner'] : [])
      if (how !== 'throw') assert.ok(owner.view.every(byte => byte === 0))
      client.socket.destroy()
    }
  })

  // ---- cut short ----------------------------------------------------------------------------------------------------

  test(`${version}, RFC 8446 6.1: FIN without close_notify is a loss, with or without bytes in front`, async () => {
    for (const before of [0, 10, 40_000]) {
      const { owner, client, tcp } = await connected(version)
      if (before > 0) {
        client.socket.write(pattern(before))
        await eventually('the bytes', () => owner.length === 5 + before)
      }
      tcp.end()
      assert.equal(await owner.called('LOST'), 'LOST ERR_TLS_TRUNCATED')
      assert.deepEqual(owner.calls, ['LOST ERR_TLS_TRUNCATED'])
      client.socket.destroy()
    }
  })

  test(`${version}: FIN within a record is reported as a loss behind the bytes in front`, async () => {
    const relay = await cuttingRelay()
    const listener = await SecuredListener.open(serverPlan({ maxVersion: version }))
    open.push(listener)
    relay.to = listener.port
    const client = nodeClient(relay.port, { maxVersion: version })
    await once(client.socket, 'secureConnect')
    client.socket.write('hello')
    const owner = await listener.next()
    await eventually('the first bytes', () => owner.text === 'hello')
    relay.cutNext = 20
    client.socket.write(pattern(1000))
    assert.equal(await owner.called('LOST'), 'LOST ERR_TLS_TRUNCATED')
    assert.equal(owner.text, 'hello')
    client.socket.destroy()
  })

  test(`${version}: a reset is a loss`, async () => {
    const { owner, tcp } = await connected(version)
    tcp.resetAndDestroy()
    assert.equal(await owner.called('LOST'), 'LOST ECONNRESET')
    assert.deepEqual(owner.calls, ['LOST ECONNRESET'])
  })

  test(`${version}: a byte that was changed on the way is a failure of kind tls`, async () => {
    const relay = await cuttingRelay()
    const listener = await SecuredListener.open(serverPlan({ maxVersion: version }))
    open.push(listener)
    relay.to = listener.port
    const client = nodeClient(relay.port, { maxVersion: version })
    await once(client.socket, 'secureConnect')
    client.socket.write('hello')
    const owner = await listener.next()
    await eventually('the first bytes', () => owner.text === 'hello')
    relay.changesNext = true
    client.socket.write('more')
    assert.match(await owner.called('LOST'), BAD_RECORD)
    assert.equal(owner.text, 'hello')
    client.socket.destroy()
  })

  test(`${version}: a truncated response of a backend is no end of a message`, async () => {
    const sockets: TLSSocket[] = []
    const server = createServer({ ...SERVER, maxVersion: version, allowHalfOpen: true }, socket => {
      socket.on('error', () => undefined)
      sockets.push(socket)
    })
    const raw: Socket[] = []
    server.on('connection', socket => raw.push(socket))
    server.listen(0, '127.0.0.1')
    open.push(server)
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const client = tls.client(clientPlan())
    for (const isClean of [true, false]) {
      const count = sockets.length
      const owner = await dialSecured(client, port)
      await eventually('the end of the backend', () => sockets.length > count)
      const socket = sockets.at(-1)!
      socket.write('HTTP/1.1 200 OK\r\n\r\nhalf of it')
      await eventually('the bytes', () => owner.text.endsWith('half of it'))
      if (isClean) socket.end()
      else raw.at(-1)!.end()
      await owner.called(isClean ? 'END' : 'LOST ERR_TLS_TRUNCATED')
      assert.deepEqual(owner.calls, ['CONNECTED', isClean ? 'END' : 'LOST ERR_TLS_TRUNCATED'])
      owner.socket.destroy()
      socket.destroy()
    }
  })
}

interface Relay {
  readonly port: number
  to: number
  /** Hands on so many bytes of the next piece of the client, then FIN. */
  cutNext: number
  /** Changes the last byte of the next piece of the client. */
  changesNext: boolean
}

async function cuttingRelay(): Promise<Relay> {
  const relay = { port: 0, to: 0, cutNext: 0, changesNext: false }
  const server = createTcp(from => {
    const to = connectTcp(relay.to, '127.0.0.1')
    for (const socket of [from, to]) socket.on('error', () => undefined)
    to.pipe(from)
    from.on('data', (bytes: Buffer) => {
      if (relay.changesNext) bytes[bytes.length - 1]! ^= 1
      if (relay.cutNext > 0) to.end(bytes.subarray(0, relay.cutNext))
      else to.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  open.push(server)
  await once(server, 'listening')
  relay.port = (server.address() as { port: number }).port
  return relay
}
