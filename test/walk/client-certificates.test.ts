/** What handlers know of the certificate that a client has shown: its thumbprint, in resumed handshakes as well. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import type { Handler } from '../../src/exchange/contract.ts'
import type { TlsIdentity, TlsServerPlan } from '../../src/socket/tls.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { CA, CLIENT, INTERMEDIATE_CLIENT, OTHER_CA, OTHER_CLIENT } from '../harness/certificates.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { eventually } from '../harness/peers.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'

const seen: string[] = []
const looks: Handler = {
  name: 'looks',
  request({ peer }) {
    seen.push(peer.peerThumbprint)
    return undefined
  },
}
const backend = await AnsweringBackend.listen()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})

async function listen(changes: Partial<TlsServerPlan>, kinds: readonly ('http' | 'https')[] = ['https']) {
  const plan = { kinds, tlsServer: serverPlan({ ca: [CA.cert, OTHER_CA.cert], ...changes }) }
  const gateway = await startGateway([{ context: '/t', port: backend.port }], {}, null, [looks], plan)
  gateways.push(gateway)
  return gateway
}

const GET = 'GET /t/a HTTP/1.1\r\nHost: localhost\r\n\r\n'

async function ask(port: number, options: ConnectionOptions): Promise<{ readonly session?: Buffer }> {
  const { peer, tls } = await connectSecured(port, options)
  // Of TLS 1.2 it came with the handshake.
  let session: Buffer | undefined = options.maxVersion === 'TLSv1.2' ? tls.getSession() : undefined
  tls.on('session', (kept: Buffer) => {
    session = kept
  })
  for (let i = 0; i < 2; i++) {
    peer.send(GET)
    await peer.untilText('\r\n\r\nok')
    peer.take()
  }
  if (options.session === undefined) await eventually('a session', () => session !== undefined)
  else assert.equal(tls.isSessionReused(), true)
  tls.destroy()
  return session === undefined ? {} : { session }
}

function thumbprintOf({ cert }: TlsIdentity): string {
  return Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const identity of [CLIENT, OTHER_CLIENT, INTERMEDIATE_CLIENT]) {
    const expected = thumbprintOf(identity)
    test(`RFC 8705 3.1, ${maxVersion}: ${expected} is known, resumed as well`, async () => {
      const { port } = await listen({ verifyClient: 'optional' })
      seen.length = 0
      const { session } = await ask(port, { ...identity, maxVersion })
      await ask(port, { maxVersion, session: session! })
      assert.deepEqual(seen, [expected, expected, expected, expected])
    })
  }
}

test('a client without a certificate, and one that shows one unasked, are not known', async () => {
  seen.length = 0
  await ask((await listen({ verifyClient: 'optional' })).port, {})
  await ask((await listen({ verifyClient: 'none', ca: [] })).port, CLIENT)
  assert.deepEqual(seen, ['', '', '', ''])
})

test('nobody is known without TLS', async () => {
  const { ports } = await listen({ verifyClient: 'optional' }, ['http', 'https'])
  seen.length = 0
  const response = await fetch(`http://127.0.0.1:${ports[0]}/t/a`)
  await response.text()
  assert.deepEqual(seen, [''])
})
