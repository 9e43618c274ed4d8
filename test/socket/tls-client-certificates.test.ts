/** Client certificates: which clients are accepted, in full and in resumed handshakes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import type { ConnectionOptions, SecureVersion } from 'node:tls'
import type { TlsHost, TlsIdentity, TlsServerPlan } from '../../src/socket/tls.ts'
import {
  CA,
  CLIENT,
  EXPIRED_CLIENT,
  INTERMEDIATE,
  INTERMEDIATE_CLIENT,
  OTHER_CA,
  OTHER_CLIENT,
  SELF_SIGNED,
  SERVER,
  VIRTUAL,
} from '../harness/certificates.ts'
import { eventually } from '../harness/peers.ts'
import { nodeClient, PONG, SecuredListener, serverPlan } from './secured.ts'

const open: SecuredListener[] = []
after(() => {
  for (const listener of open) listener.close()
})

async function listen(changes: Partial<TlsServerPlan>): Promise<SecuredListener> {
  const listener = await SecuredListener.open(serverPlan(changes), PONG)
  open.push(listener)
  return listener
}

interface Visit {
  readonly isServed: boolean
  readonly isResumed: boolean
  readonly session: Buffer | undefined
}

/** One connection from its handshake to an answer, or to its end. */
async function visit(port: number, options: ConnectionOptions): Promise<Visit> {
  const client = nodeClient(port, options)
  client.socket.on('secureConnect', () => client.socket.write('ping'))
  await eventually('an answer or an end', () => client.text === 'pong' || client.isClosed)
  const isResumed = !client.isClosed && client.socket.isSessionReused()
  client.socket.destroy()
  return { isServed: client.text === 'pong', isResumed, session: client.session }
}

const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3']
const IN = ''
type Case = readonly [who: string, identity: TlsIdentity | null, required: string, optional: string, noneAsked: string]
const CASES: readonly Case[] = [
  ['nobody', null, 'the client showed no certificate', IN, IN],
  ['a client of the authority', CLIENT, IN, IN, IN],
  ['a client by an intermediate', INTERMEDIATE_CLIENT, IN, IN, IN],
  ...(
    [
      [
        'a client of another authority',
        OTHER_CLIENT,
        'certificate of client Other Client: a certificate of its chain is',
      ],
      ['one that expired', EXPIRED_CLIENT, 'Expired Client: has expired (CERT_HAS_EXPIRED, valid to 2021-01-01)'],
      ['one by itself', SELF_SIGNED, 'self-signed, not in the trust store (DEPTH_ZERO_SELF_SIGNED_CERT)'],
      ['the certificate of a server', SERVER, 'is not meant for this use (INVALID_PURPOSE)'],
    ] as const
  ).map(([who, identity, cause]): Case => [who, identity, cause, cause, IN]),
]

for (const version of VERSIONS) {
  for (const [who, identity, required, optional, none] of CASES) {
    for (const [verifyClient, cause] of [
      ['require', required],
      ['optional', optional],
      ['none', none],
    ] as const) {
      test(`${version}, certificate ${verifyClient}: ${who} ${cause === IN ? 'comes in' : 'does not'}`, async () => {
        const listener = await listen({ verifyClient, ca: [CA.cert] })
        const { isServed } = await visit(listener.port, { ...identity, maxVersion: version })
        assert.equal(isServed, cause === IN)
        const owner = await listener.next()
        if (cause !== IN) assert.ok((await owner.called('REFUSED')).includes(cause), owner.calls.join())
        else assert.ok(!owner.has('REFUSED'))
      })
    }
  }
}

test('a trusted certificate needs no root above it', async () => {
  const { port } = await listen({ verifyClient: 'require', ca: [INTERMEDIATE.cert] })
  assert.equal((await visit(port, INTERMEDIATE_CLIENT)).isServed, true)
  assert.equal((await visit(port, CLIENT)).isServed, false)
})

test('public roots do not make client certificates valid', async () => {
  const { port } = await listen({ verifyClient: 'require', ca: [OTHER_CA.cert] })
  assert.equal((await visit(port, CLIENT)).isServed, false)
})

// ---- by virtual host ------------------------------------------------------------------------------------------------

const HOSTS: readonly (TlsHost & { readonly names: readonly string[] })[] = [
  { identity: VIRTUAL, verifyClient: 'require', ca: [OTHER_CA.cert], names: ['shop.example.test'] },
  { identity: VIRTUAL, verifyClient: 'none', ca: [], names: ['open.test'] },
]
for (const version of VERSIONS) {
  test(`${version}: client verification depends on the host in SNI`, async () => {
    const { port } = await listen({ verifyClient: 'require', ca: [CA.cert], hosts: HOSTS })
    const served = async (servername: string, identity: TlsIdentity | null) =>
      (await visit(port, { ...identity, servername, rejectUnauthorized: false, maxVersion: version })).isServed
    assert.equal(await served('localhost', CLIENT), true)
    assert.equal(await served('localhost', OTHER_CLIENT), false)
    assert.equal(await served('shop.example.test', OTHER_CLIENT), true)
    assert.equal(await served('shop.example.test', CLIENT), false)
    assert.equal(await served('shop.example.test', null), false)
    assert.equal(await served('open.test', null), true)
  })
}

// ---- resumed sessions -----------------------------------------------------------------------------------------------

for (const version of VERSIONS) {
  const options = { ...CLIENT, maxVersion: version }

  test(`${version}: a session is resumed by another server with the same keys`, async () => {
    const first = await listen({})
    const second = await listen({})
    const { session } = await visit(first.port, { maxVersion: version })
    const again = await visit(second.port, { maxVersion: version, session: session! })
    assert.deepEqual([again.isServed, again.isResumed], [true, true])
  })

  test(`${version}: a session is not resumed with other keys, and a full handshake follows`, async () => {
    const first = await listen({})
    const second = await listen({ ticketKeys: new Uint8Array(48).fill(8) })
    const { session } = await visit(first.port, { maxVersion: version })
    const again = await visit(second.port, { maxVersion: version, session: session! })
    assert.deepEqual([again.isServed, again.isResumed], [true, false])
  })

  for (const verifyClient of ['require', 'optional'] as const) {
    test(`${version}, certificate ${verifyClient}: a session with a certificate is resumed`, async () => {
      const first = await listen({ verifyClient, ca: [CA.cert] })
      const second = await listen({ verifyClient, ca: [CA.cert] })
      const { session } = await visit(first.port, options)
      const again = await visit(second.port, { maxVersion: version, session: session! })
      assert.deepEqual([again.isServed, again.isResumed], [true, true])
    })
  }

  test(`${version}: a session whose certificate has expired since is refused`, async context => {
    const listener = await listen({ verifyClient: 'require', ca: [CA.cert] })
    const { session } = await visit(listener.port, options)
    await listener.next()
    // Only what is judged here sees the other time: OpenSSL has its own.
    context.mock.method(Date, 'now', () => Date.parse('2057-01-01'))
    const again = await visit(listener.port, { ...options, session: session! })
    assert.equal(again.isServed, false)
    const owner = await listener.next()
    assert.match(await owner.called('REFUSED'), /Test Client: has expired \(CERT_HAS_EXPIRED, valid to 2056-01-01\)/)
  })

  test(`${version}: a session is not resumed once its certificate authority is no longer trusted`, async () => {
    const listener = await listen({ verifyClient: 'require', ca: [CA.cert] })
    const { session } = await visit(listener.port, options)
    listener.server.replace(serverPlan({ verifyClient: 'require', ca: [OTHER_CA.cert] }))
    const [, bare, shown] = [
      await listener.next(),
      await visit(listener.port, { maxVersion: version, session: session! }),
      await visit(listener.port, { ...options, session: session! }),
    ]
    assert.equal(bare.isServed, false)
    assert.equal(shown.isServed, false)
    const other = await visit(listener.port, { ...OTHER_CLIENT, maxVersion: version, session: session! })
    assert.deepEqual([other.isServed, other.isResumed], [true, false])
  })

  test(`${version}: a session without a certificate is refused by a host that requires one`, async () => {
    const hosts = [{ ...HOSTS[0]!, ca: [CA.cert] }, HOSTS[1]!]
    const { port } = await listen({ verifyClient: 'optional', ca: [CA.cert], hosts })
    for (const from of ['localhost', 'open.test']) {
      const any = { servername: from, rejectUnauthorized: false, maxVersion: version }
      const { session } = await visit(port, any)
      assert.ok(session, from)
      const there = await visit(port, { ...any, servername: 'shop.example.test', session })
      assert.equal(there.isServed, false, from)
    }
  })

  test(`${version}: a session is not resumed at a host with other certificate authorities`, async () => {
    const { port } = await listen({ verifyClient: 'require', ca: [CA.cert], hosts: HOSTS })
    const any = { ...CLIENT, rejectUnauthorized: false, maxVersion: version }
    const { session } = await visit(port, { ...any, servername: 'localhost' })
    assert.equal((await visit(port, { ...any, servername: 'shop.example.test', session: session! })).isServed, false)
  })
}

test('a session whose certificate was refused cannot be resumed', async () => {
  const listener = await listen({ verifyClient: 'require', ca: [CA.cert] })
  const client = nodeClient(listener.port, { ...OTHER_CLIENT, maxVersion: 'TLSv1.2' })
  await once(client.socket, 'close').catch(() => undefined)
  assert.equal(client.text, '')
  const { session } = client
  if (session !== undefined) assert.equal((await visit(listener.port, { ...OTHER_CLIENT, session })).isServed, false)
})
