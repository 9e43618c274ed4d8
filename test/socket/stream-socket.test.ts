/** Accepted sockets on streams: no byte is delivered while reading is off, and no end overtakes waiting bytes. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ByteSocket, SocketOwner } from '../../src/socket/byte-socket.ts'
import { streamLevel } from '../../src/socket/stream-socket.ts'

const VIEW_BYTES = 4

/** An accepted connection whose owner records every call, and calls `onBytes` after each read. */
async function accepted(onBytes: (socket: ByteSocket, count: number) => void) {
  const view = Buffer.alloc(VIEW_BYTES)
  const calls: string[] = []
  const { promise, resolve } = Promise.withResolvers<ByteSocket>()
  const listening = await streamLevel.listen({ host: '127.0.0.1', port: 0, reusePort: false }, resolve)
  const client: Socket = connect(listening.port, '127.0.0.1')
  client.on('error', () => undefined)
  const socket = await promise
  const owner: SocketOwner = {
    onBytes: length => {
      calls.push(view.latin1Slice(0, length))
      onBytes(socket, calls.length)
      return undefined
    },
    onEnd: () => calls.push('END'),
    onLost: code => calls.push(code),
    onTlsFailed: ({ cause }) => calls.push(cause),
    onWriteFailed: code => calls.push(code),
    onBlocked: () => undefined,
    onDrained: () => undefined,
    onError: error => {
      calls.push(`ERROR ${error}`)
      socket.destroy()
    },
  }
  socket.attach(owner, view)
  const close = () => {
    socket.destroy()
    client.destroy()
    listening.close()
  }
  return { socket, client, calls, close, view }
}

/** What a peer on this machine sent has long been read after so many turns. */
async function settle(): Promise<void> {
  for (let i = 0; i < 200; i++) await nextTurn()
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await nextTurn()
}

const pauseOnFirst = (socket: ByteSocket, count: number) => {
  if (count === 1) socket.setReading(false)
}

test('FIN is reported behind waiting bytes, and only while reading is on', async () => {
  const { socket, client, calls, close } = await accepted(pauseOnFirst)
  client.end('abcdefghij')
  await until(() => calls.length > 0)
  await settle()
  assert.deepEqual(calls, ['abcd'])
  socket.setReading(true)
  await until(() => calls.includes('END'))
  assert.deepEqual(calls, ['abcd', 'efgh', 'ij', 'END'])
  close()
})

test('FIN is not reported while reading is off, even without waiting bytes', async () => {
  const { socket, client, calls, close } = await accepted(pauseOnFirst)
  client.end('abcd')
  await until(() => calls.length > 0)
  await settle()
  assert.deepEqual(calls, ['abcd'])
  socket.setReading(true)
  await until(() => calls.length > 1)
  await settle()
  assert.deepEqual(calls, ['abcd', 'END'])
  close()
})

test('a connection that both sides ended reports no loss before waiting bytes are read', async () => {
  const { socket, client, calls, close } = await accepted(pauseOnFirst)
  client.resume()
  client.end('abcdef')
  await until(() => calls.length > 0)
  socket.end()
  await settle()
  socket.setReading(true)
  await until(() => calls.length > 2)
  assert.deepEqual(calls, ['abcd', 'ef', 'END'])
  close()
})

const CHANGES: readonly (readonly [name: string, changes: readonly boolean[], delivered: readonly string[]])[] = [
  ['on', [true], ['abcd', 'efgh', 'ij']],
  ['on twice', [true, true], ['abcd', 'efgh', 'ij']],
  ['on and off', [true, false], ['abcd']],
  ['on, off and on', [true, false, true], ['abcd', 'efgh', 'ij']],
  ['on twice and off', [true, true, false], ['abcd']],
]
for (const [name, changes, delivered] of CHANGES) {
  test(`reading that is turned ${name} in one turn, while bytes wait`, async () => {
    const { socket, client, calls, close } = await accepted(pauseOnFirst)
    client.write('abcdefghij')
    await until(() => calls.length > 0)
    for (const on of changes) socket.setReading(on)
    await settle()
    assert.deepEqual(calls, delivered)
    if (delivered.length === 1) {
      client.write('kl')
      await settle()
      assert.deepEqual(calls, delivered)
      socket.setReading(true)
      await until(() => calls.at(-1) === 'kl')
      assert.deepEqual(calls, ['abcd', 'efgh', 'ij', 'kl'])
    }
    close()
  })
}

test('an exception while waiting bytes are delivered reaches the owner, not the thread', async () => {
  const { socket, client, calls, close, view } = await accepted(pauseOnFirst)
  client.write('abcdefghij')
  await until(() => calls.length > 0)
  view.buffer.transfer()
  socket.setReading(true)
  await settle()
  assert.equal(calls.length, 2)
  assert.match(calls[1]!, /^ERROR /)
  close()
})
