/** Reloads of TLS settings under load: no request fails, and new connections use the new settings. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
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
const PERSISTENT_CLIENTS = 8
const SHORT_LIVED_CLIENTS = 4
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
const gateway = await startGateway([{ context: '/t', host: 'localhost', port: backend.port, route: SECURED }], {
  kinds: ['https'],
  tlsServer: serverPlan(),
  tlsClients: { default: clientPlan() },
})
after(() => {
  gateway.stop()
  backend.close()
})

async function request({ peer }: SecuredPeer): Promise<void> {
  peer.send(GET)
  const { status, body } = await takeResponse(peer)
  assert.deepEqual([status, body], [200, 'ok'])
}

function serialOf({ tls }: SecuredPeer): string {
  return tls.getPeerCertificate().serialNumber
}

async function newClient(): Promise<SecuredPeer> {
  // Trusts both certificates, which have the same host.
  return connectSecured(gateway.port, TRUST)
}

for (const [target, side] of [
  ['the listener', 'listener'],
  ['the backends', 'backends'],
  ['listener and backends', 'both'],
] as const) {
  test(`${CHANGES} reloads of the TLS settings of ${target} under load cause no failed request`, {
    timeout: 120_000,
  }, async () => {
    const persistent = await Promise.all(Array.from({ length: PERSISTENT_CLIENTS }, newClient))
    const seen = new Set<string>()
    let isOver = false
    let served = 0
    const loads = [
      ...persistent.map(async client => {
        while (!isOver) {
          await request(client)
          served++
        }
      }),
      ...Array.from({ length: SHORT_LIVED_CLIENTS }, async () => {
        while (!isOver) {
          const client = await newClient()
          seen.add(serialOf(client))
          await request(client)
          served++
          client.peer.destroy()
        }
      }),
    ]
    const all = Promise.all(loads)
    for (let change = 1; change <= CHANGES; change++) {
      const server = serverPlan(side === 'backends' ? {} : { identity: IDENTITIES[change % 2]! })
      const client = clientPlan(side === 'listener' || change % 2 === 0 ? {} : TRUST)
      await gateway.deploy({ tlsServer: server, tlsClients: { default: client } })
      const before = served
      // At least one request is served under every tenth setting.
      while (served === before && change % 10 === 0) await Promise.race([turn(), all])
      await turn()
    }
    isOver = true
    await all
    for (const { peer } of persistent) {
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

test('a new connection gets the new certificate, and an open one is not affected', async () => {
  await gateway.deploy({ tlsServer: serverPlan(), tlsClients: { default: clientPlan() } })
  const old = await newClient()
  await gateway.deploy({ tlsServer: serverPlan({ identity: SELF_SIGNED }) })
  const next = await newClient()
  assert.notEqual(serialOf(old), serialOf(next))
  await request(old)
  await request(next)
  for (const { peer } of [old, next]) peer.destroy()
})

test('a change of the listener keeps the backend connections', async () => {
  const client = await newClient()
  await request(client)
  const { targetsOpened } = gateway.metrics().counts
  await gateway.deploy({ tlsServer: serverPlan(), tlsClients: { default: clientPlan() } })
  await request(client)
  assert.equal(gateway.metrics().counts.targetsOpened, targetsOpened)
  client.peer.destroy()
})

test('a reload that OpenSSL refuses changes neither the listener nor the backends', async () => {
  const client = await newClient()
  await request(client)
  const { targetsOpened } = gateway.metrics().counts
  const wrong = { cert: 'x', key: 'y' }
  const invalidListener = { tlsServer: serverPlan({ identity: wrong }), tlsClients: { default: clientPlan(TRUST) } }
  await assert.rejects(gateway.deploy(invalidListener))
  const invalidBackends = { tlsServer: serverPlan({ identity: SELF_SIGNED }), tlsClients: { default: clientPlan() } }
  await assert.rejects(
    gateway.deploy({
      ...invalidBackends,
      tlsClients: { ...invalidBackends.tlsClients, odd: clientPlan({ identity: wrong }) },
    }),
  )
  await request(client)
  assert.equal(gateway.metrics().counts.targetsOpened, targetsOpened)
  const next = await newClient()
  await request(next)
  assert.equal(serialOf(next), serialOf(client))
  for (const { peer } of [client, next]) peer.destroy()
})
