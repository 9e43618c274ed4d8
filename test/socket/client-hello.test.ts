/** The host name in a ClientHello, whole and in pieces, and bytes that are no ClientHello. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { HELLO_MAX, serverNameIn } from '../../src/socket/client-hello.ts'

/** The first bytes that OpenSSL sends. */
async function helloOf(servername: string, options: object = {}): Promise<Buffer> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect({ port: (server.address() as { port: number }).port, servername, ...options })
  client.on('error', () => undefined)
  const [socket] = await once(server, 'connection')
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  server.close()
  return bytes
}

/** The same handshake message in records of `size` bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const pieces: Buffer[] = []
  for (let at = 5; at < hello.length; at += size) {
    const piece = hello.subarray(at, at + size)
    pieces.push(Buffer.of(22, 3, 1, piece.length >> 8, piece.length & 255), piece)
  }
  return Buffer.concat(pieces)
}

const HELLOS: readonly (readonly [what: string, name: string, options: object])[] = [
  ['all versions', 'shop.example.test', {}],
  ['TLS 1.2', 'shop.example.test', { maxVersion: 'TLSv1.2' }],
  ['TLS 1.3', 'SHOP.example.test', { minVersion: 'TLSv1.3' }],
  ['ALPN', 'shop.example.test', { ALPNProtocols: ['h2', 'http/1.1'] }],
  ['no name', '', {}],
]
for (const [what, name, options] of HELLOS) {
  test(`a hello with ${what}: "${name}" in every complete prefix, and in no other`, async () => {
    const hello = await helloOf(name, options)
    for (let length = 0; length < hello.length; length++) assert.equal(serverNameIn(hello.subarray(0, length)), null)
    assert.equal(serverNameIn(hello), name.toLowerCase())
    assert.equal(serverNameIn(Buffer.concat([hello, Buffer.alloc(100, 20)])), name.toLowerCase())
    const halves = inRecords(hello, Math.ceil(hello.length / 3))
    for (let length = 0; length < halves.length; length++) assert.equal(serverNameIn(halves.subarray(0, length)), null)
    assert.equal(serverNameIn(halves), name.toLowerCase())
    assert.equal(serverNameIn(inRecords(hello, 10)), '', 'in many records')
  })
}

test('a hello with any one byte changed is read without an exception', async () => {
  const hello = await helloOf('shop.example.test', { maxVersion: 'TLSv1.2' })
  for (let at = 0; at < hello.length; at++) {
    for (const value of [0, 1, 127, 255]) {
      const changed = Buffer.from(hello)
      changed[at] = value
      const name = serverNameIn(changed)
      assert.ok(name === null || name.length < hello.length)
    }
  }
})

const NO_HELLOS: readonly (readonly [string, Buffer, string | null])[] = [
  ['nothing', Buffer.alloc(0), null],
  ['plain HTTP', Buffer.from('GET / HTTP/1.1'), ''],
  ['an alert', Buffer.from('15030100020228', 'hex'), ''],
  ['a record of another message', Buffer.from('160301000402000000', 'hex'), ''],
  [
    'a hello that promises more than fits',
    Buffer.concat([Buffer.from('1603014000' + '01ffffff', 'hex'), Buffer.alloc(HELLO_MAX)]),
    '',
  ],
  ['records of no bytes', Buffer.from('1603010000'.repeat(9), 'hex'), ''],
]
for (const [what, bytes, expected] of NO_HELLOS) {
  test(`${what} has ${expected === null ? 'no name yet' : 'no name'}`, () => {
    assert.equal(serverNameIn(bytes), expected)
  })
}
