/** Certificates that change while requests are served: nothing fails, and new connections see the new one. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { CA, SELF_SIGNED, SERVER } from '../harness/certificates.ts'
import { startGateway } from '../harness/gateway.ts'
import { IS_LONG } from '../harness/random.ts'
import { type Peer, turn } from '../harness/peers.ts'
import {
  clientPlan,
  connectSecured,
  SECURED,
  SecuredBackend,
  type SecuredPeer,
  serverPlan,
} from '../harness/secured-peers.ts'

const CHANGES = IS_LONG ? 1000 : 100
const LASTING_CLIENTS = 8
const PASSING_CLIENTS = 4
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const TRUST = { ca: [CA.cert, SELF_SIGNED.cert] }
const IDENTITIES = [SERVER, SELF_SIGNED] as const

async function serve(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    if (peer.text.includes('\r\n\r\n')) {
      peer.take()
      peer.send(OK)
    }
    await peer.changed()
  }
}

const backend = await SecuredBackend.listen({}, peer => void serve(peer))
const gateway = await startGateway(
  [{ context: '/t', host: 'localhost', port: backend.port, route: SECURED }],
  {},
  null,
  [],
  { kinds: ['https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } },
)
after(() => {
  gateway.stop()
  backend.close()
})

async function ask({ peer }: SecuredPeer): Promise<void> {
  peer.send(GET)
  const { status, body } = await takeAnswer(peer)
  assert.deepEqual([status, body], [200, 'ok'])
}

function serialOf({ tls }: SecuredPeer): string {
  return tls.getPeerCertificate().serialNumber
}

async function newClient(): Promise<SecuredPeer> {
  // A second certificate with one and the same host.
  return connectSecured(gateway.port, TRUST)
}

for (const side of ['listener', 'backends', 'both'] as const) {
  test(`${CHANGES} changes of the ${side}'s TLS under load without a failed request`, {
    timeout: 120_000,
  }, async () => {
    const lasting = await Promise.all(Array.from({ length: LASTING_CLIENTS }, newClient))
    const seen = new Set<string>()
    let isOver = false
    let asked = 0
    const loads = [
      ...lasting.map(async client => {
        while (!isOver) {
          await ask(client)
          asked++
        }
      }),
      ...Array.from({ length: PASSING_CLIENTS }, async () => {
        while (!isOver) {
          const client = await newClient()
          seen.add(serialOf(client))
          await ask(client)
          asked++
          client.peer.destroy()
        }
      }),
    ]
    const all = Promise.all(loads)
    for (let change = 1; change <= CHANGES; change++) {
      const server = serverPlan(side === 'backends' ? {} : { identity: IDENTITIES[change % 2]! })
      const client = clientPlan(side === 'listener' || change % 2 === 0 ? {} : TRUST)
      await gateway.deploy({ tlsServer: server, tlsClients: { default: client } })
      const before = asked
      // Something is asked under each of them.
      while (asked === before && change % 10 === 0) await Promise.race([turn(), all])
      await turn()
    }
    isOver = true
    await all
    for (const { peer } of lasting) {
      assert.equal(peer.ending, '')
      peer.destroy()
    }
    assert.equal(seen.size, side === 'backends' ? 1 : 2)
    assert.deepEqual(
      gateway.reports.filter(({ level }) => level !== 'debug'),
      [],
    )
  })
}

test('a new connection sees the new certificate at once, an open one goes on', async () => {
  await gateway.deploy({ tlsServer: serverPlan(), tlsClients: { default: clientPlan() } })
  const old = await newClient()
  await gateway.deploy({ tlsServer: serverPlan({ identity: SELF_SIGNED }) })
  const young = await newClient()
  assert.notEqual(serialOf(old), serialOf(young))
  await ask(old)
  await ask(young)
  for (const { peer } of [old, young]) peer.destroy()
})

test('a change of the listener alone leaves the connections to backends as they are', async () => {
  const client = await newClient()
  await ask(client)
  const { targetsOpened } = gateway.metrics().counts
  await gateway.deploy({ tlsServer: serverPlan(), tlsClients: { default: clientPlan() } })
  await ask(client)
  assert.equal(gateway.metrics().counts.targetsOpened, targetsOpened)
  client.peer.destroy()
})

test('a plan that OpenSSL refuses changes nothing, whichever side it is for', async () => {
  const client = await newClient()
  await ask(client)
  const { targetsOpened } = gateway.metrics().counts
  const wrong = { cert: 'x', key: 'y' }
  const ofListener = { tlsServer: serverPlan({ identity: wrong }), tlsClients: { default: clientPlan(TRUST) } }
  await assert.rejects(gateway.deploy(ofListener))
  const ofBackends = { tlsServer: serverPlan({ identity: SELF_SIGNED }), tlsClients: { default: clientPlan() } }
  await assert.rejects(
    gateway.deploy({ ...ofBackends, tlsClients: { ...ofBackends.tlsClients, odd: clientPlan({ identity: wrong }) } }),
  )
  await ask(client)
  assert.equal(gateway.metrics().counts.targetsOpened, targetsOpened)
  const young = await newClient()
  await ask(young)
  assert.equal(serialOf(young), serialOf(client))
  for (const { peer } of [client, young]) peer.destroy()
})
