/**
 * Checks that Node's internal handles work as handle-socket.ts and tls-handle-socket.ts expect. Runs as a program of
 * its own, because a wrong call on a handle can abort the process; exit code 0 means that they do. Listens, dials,
 * moves bytes both ways (some too many for one write) and sees both ends, plain and over TLS; tells the end of TLS from
 * a mere FIN.
 */
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type ByteSocket, type ConnectingOwner, type SocketOwner, WRITE } from './byte-socket.ts'
import { handleLevel } from './handle-socket.ts'
import { SELF_TEST_HOST, SELF_TEST_IDENTITY } from './self-test-identity.ts'
import { handleTls } from './tls-handle.ts'
import { TRUNCATED } from './tls-errors.ts'

const LENGTH = 8 * 1024 * 1024
const DEADLINE_MS = 5000

const level = handleLevel()
const view = new Uint8Array(65_536)
const other = new Uint8Array(65_536)

function fail(why: string): never {
  process.stderr.write(`${why}\n`)
  process.exit(1)
}

setTimeout(() => fail('the test took too long'), DEADLINE_MS).unref()

const IGNORE: SocketOwner = {
  onBytes: () => undefined,
  onEnd: () => {},
  onLost: code => fail(`lost: ${code}`),
  onTlsFailed: ({ cause }) => fail(`TLS failed: ${cause}`),
  onWriteFailed: code => fail(`write failed: ${code}`),
  onBlocked: () => {},
  onDrained: () => {},
  onError: error => fail(String(error)),
}

type Wrap = (socket: ByteSocket) => ByteSocket

/** Exchanges bytes: a few to the server, many back, both ends. */
async function exchange(accept: Wrap, dial: (owner: ConnectingOwner, port: number) => ByteSocket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let received = 0
  let drained = 0
  const listening = await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, accepted => {
    const socket = accept(accepted)
    if (socket.remoteAddress !== '127.0.0.1') fail('no peer address')
    const owner: SocketOwner = {
      ...IGNORE,
      onBytes(length) {
        if (length !== 4 || view[0] !== 112) fail('bytes are not in the view')
        if (socket.write(new Uint8Array(LENGTH)) !== WRITE.PENDING) fail('a large write did not wait')
        socket.end()
        return undefined
      },
      onDrained() {
        drained++
      },
      onEnd() {
        if (received !== LENGTH || drained !== 1) fail('bytes or callbacks are missing')
        socket.destroy()
        resolve()
      },
    }
    socket.attach(owner, view)
  })
  const client = dial(
    {
      ...IGNORE,
      onConnected() {
        if (client.write(Buffer.from('ping')) !== WRITE.DONE) fail('a small write did not complete')
      },
      onBytes(length) {
        received += length
        return other
      },
      onEnd() {
        client.end()
      },
    },
    listening.port,
  )
  await promise
  client.destroy()
  listening.close()
}

await exchange(
  socket => socket,
  (owner, port) => level.dial('127.0.0.1', port, owner, other),
)

const tls = handleTls()
const VERSIONS = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' } as const
const host = { identity: SELF_TEST_IDENTITY, verifyClient: 'optional', ca: [SELF_TEST_IDENTITY.cert] } as const
const server = tls.server({ ...VERSIONS, ...host, hosts: [], ticketKeys: new Uint8Array(48) })
const backend = { ca: host.ca, identity: null, hostname: 'strict' } as const

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  const client = tls.client({ ...VERSIONS, maxVersion, ...backend })
  await exchange(
    socket => server.wrap(socket),
    (owner, port) => {
      let secured: ByteSocket
      const plain = level.dial(
        '127.0.0.1',
        port,
        {
          ...IGNORE,
          onConnected: () => {
            secured = client.wrap(plain, SELF_TEST_HOST, owner, other)
          },
        },
        other,
      )
      return {
        remoteAddress: '',
        addresses: null,
        peerThumbprint: '',
        attach: () => fail('unexpected call'),
        serves: () => fail('unexpected call'),
        setReading: () => fail('unexpected call'),
        reset: () => secured.reset(),
        write: bytes => secured.write(bytes),
        end: () => secured.end(),
        destroy: () => secured.destroy(),
      }
    },
  )
}

/** A peer by Node's own `tls` that ends TCP without the end of TLS. */
async function testTruncation(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const listening = await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, accepted => {
    const socket = server.wrap(accepted)
    const onBytes = () => {
      if (socket.write(Buffer.from('one')) === WRITE.FAILED) fail('a write failed')
      if (socket.write(Buffer.from('two')) !== WRITE.PENDING) fail('a second write did not wait')
      return undefined
    }
    socket.attach({ ...IGNORE, onBytes, onLost: resolve }, view)
  })
  const tcp = connectTcp(listening.port, '127.0.0.1')
  const client = connectTls({ socket: tcp, servername: SELF_TEST_HOST, ca: [SELF_TEST_IDENTITY.cert] })
  let text = ''
  client.on('secureConnect', () => client.write('ping'))
  client.on('data', (bytes: Buffer) => {
    text += bytes.toString()
    if (text === 'onetwo') tcp.end()
  })
  client.on('error', () => undefined)
  if ((await promise) !== TRUNCATED) fail('the end of TLS and a FIN look alike')
  client.destroy()
  listening.close()
}

await testTruncation()
process.exit(0)
