/** A dialled socket, plain or secured, whose owner is replaced: by a tunnel, or by TLS behind a proxy. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually, quiet } from '../harness/peers.ts'
import { clientPlan, level, Recorder, SecuredListener, serverPlan, tls } from './secured.ts'

const open: { close(): unknown }[] = []
after(() => {
  for (const each of open) each.close()
})

/** `length` bytes that differ by their position. */
function pattern(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => (at * 31) & 0xff))
}

for (const isSecured of [false, true]) {
  for (const when of ['in onConnected', 'in onBytes', 'later, with reading off'] as const) {
    const what = isSecured ? 'TLS' : 'plain'
    test(`attach of a dialled ${what} socket ${when}: the new owner gets the calls and the bytes`, async () => {
      const listener = isSecured
        ? await SecuredListener.open(serverPlan())
        : await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, socket => {
            const peer = new Recorder()
            peer.socket = socket
            peers.push(peer)
            socket.attach(peer, peer.view)
          })
      const peers: Recorder[] = isSecured ? (listener as SecuredListener).accepted : []
      open.push(listener)
      const first = new Recorder()
      const second = new Recorder(100)
      const take = () => {
        first.view.fill(0xee)
        second.socket = first.socket
        first.socket.attach(second, second.view)
      }
      if (when === 'in onConnected') first.onOpen = take
      if (when === 'in onBytes') first.onData = take
      if (isSecured) {
        const plain = new Recorder()
        const client = tls.client(clientPlan())
        plain.onOpen = () => {
          first.socket = client.wrap(plain.socket, 'localhost', first, first.view)
        }
        plain.socket = level.dial('127.0.0.1', listener.port, plain, plain.view)
      } else first.socket = level.dial('127.0.0.1', listener.port, first, first.view)
      await first.called('CONNECTED')
      await eventually('the other end', () => peers.length > 0)
      const [peer] = peers as [Recorder]
      first.socket.write(Buffer.from('x'))
      await eventually('its first byte', () => peer.text === 'x')
      if (when === 'in onBytes') {
        peer.socket.write(Buffer.from('1'))
        await eventually('a byte', () => first.text === '1')
      } else if (when !== 'in onConnected') {
        first.socket.setReading(false)
        peer.socket.write(pattern(2000))
        await quiet()
        take()
      }
      const { length } = second
      const bytes = pattern(5000)
      peer.socket.write(bytes)
      const earlier = when === 'later, with reading off' ? 2000 : 0
      await eventually('the bytes', () => second.length === length + earlier + 5000 || second.length === 7000)
      assert.ok(second.text.endsWith(bytes.toString('latin1')))
      assert.equal(first.length, when === 'in onBytes' ? 1 : 0)
      peer.socket.end()
      await second.called('END')
      assert.ok(!first.has('END'))
      second.socket.destroy()
    })
  }
}
