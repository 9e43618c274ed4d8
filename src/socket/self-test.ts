/**
 * Are Node's internal handles what we take them for? Run as a program of its own, because a wrong call on a handle can
 * abort the process: exit 0 says yes. Listens, dials, moves bytes both ways (some of them too many for one write), sees
 * both ends.
 */
import type { ByteSocket, ConnectingOwner, SocketOwner } from './byte-socket.ts'
import { handleLevel } from './handle-socket.ts'

const LENGTH = 8 * 1024 * 1024
const DEADLINE_MS = 5000

const level = handleLevel()
const view = new Uint8Array(65_536)

function fail(why: string): never {
  process.stderr.write(`${why}\n`)
  process.exit(1)
}

setTimeout(() => fail('no answer in time'), DEADLINE_MS).unref()

const IGNORE: SocketOwner = {
  onBytes: () => undefined,
  onEnd: () => {},
  onLost: code => fail(`lost: ${code}`),
  onHandshakeFailed: cause => fail(`handshake failed: ${cause}`),
  onWriteFailed: code => fail(`write failed: ${code}`),
  onDrained: () => {},
  onBug: error => fail(String(error)),
}

let received = 0
let drained = 0

function serve(socket: ByteSocket): void {
  if (socket.remoteAddress !== '127.0.0.1') fail('no peer address')
  const owner: SocketOwner = {
    ...IGNORE,
    onBytes(length) {
      if (length !== 4 || view[0] !== 112) fail('bytes are not where they should be')
      socket.write(new Uint8Array(LENGTH))
      socket.end()
      return undefined
    },
    onDrained() {
      drained++
    },
    onEnd() {
      if (received !== LENGTH || drained !== 1) fail('bytes or callbacks are missing')
      process.exit(0)
    },
  }
  socket.attach(owner, view)
}

const listening = await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, serve)
const other = new Uint8Array(65_536)
const caller: ConnectingOwner = {
  ...IGNORE,
  onConnected() {
    if (client.write(Buffer.from('ping')) !== 0) fail('a small write did not complete')
  },
  onBytes(length) {
    received += length
    return other
  },
  onEnd() {
    client.end()
  },
}
const client = level.dial('127.0.0.1', listening.port, caller, other)
