/**
 * Ends of a tunnel: FIN in each direction, resets, `tunnel.idle_timeout`, a peer that does not read, and the end of the
 * process. With plain connections and with TLS on both sides. Reloads do not end a tunnel.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { proxyAt } from '../harness/proxied-gateway.ts'
import { clientPlan, connectSecured, SECURED, SecuredBackend, serverPlan } from '../harness/secured-peers.ts'
import { openTunnel, switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'

/** An entry of the access log. */
interface Line {
  readonly status: number
  readonly request_body_bytes: number
  readonly response_body_bytes: number
  readonly source_state: string
  readonly target_state: string
  readonly error_base: number
  readonly error_state: number
}

interface TunnelEnds {
  readonly client: Peer
  readonly peer: Peer
  /** Resets the TCP connection. */
  cutClient(): void
  cutPeer(): void
}

interface Setting {
  readonly name: string
  open(gateway: TestGateway): Promise<TunnelEnds>
  gateway(http?: Readonly<Record<string, unknown>>): Promise<TestGateway>
}

const backend = await ScriptedBackend.listen()
const secured = await SecuredBackend.listen()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
  secured.close()
})

function stoppedLater(gateway: TestGateway): TestGateway {
  gateways.push(gateway)
  return gateway
}

async function switchProtocols(client: Peer, next: () => Promise<Peer>): Promise<{ client: Peer; peer: Peer }> {
  client.send(upgradeRequest())
  const peer = await next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(switchingProtocols())
  await takeHead(client)
  return { client, peer }
}

const SETTINGS: readonly Setting[] = [
  {
    name: 'plain connections',
    gateway: async (http = {}) =>
      stoppedLater(await startGateway([{ context: '/echo', port: backend.port }], { http, accessLog: 'json' })),
    async open(gateway) {
      const ends = await switchProtocols(await connectPeer(gateway.port), () => backend.next())
      return { ...ends, cutClient: () => ends.client.reset(), cutPeer: () => ends.peer.reset() }
    },
  },
  {
    name: 'TLS connections',
    gateway: async (http = {}) =>
      stoppedLater(
        await startGateway([{ context: '/echo', host: 'localhost', port: secured.port, route: SECURED }], {
          http,
          accessLog: 'json',
          kinds: ['https'],
          tlsServer: serverPlan(),
          tlsClients: { default: clientPlan() },
        }),
      ),
    async open(gateway) {
      const end = await connectSecured(gateway.port, { allowHalfOpen: true } as object)
      let resetTcp: (() => void) | undefined
      const ends = await switchProtocols(end.peer, async () => {
        const { peer, tcp } = await secured.next()
        resetTcp = () => tcp.resetAndDestroy()
        return peer
      })
      return { ...ends, cutClient: () => end.tcp.resetAndDestroy(), cutPeer: () => resetTcp!() }
    },
  },
]

/** Waits for the end of both connections; returns the entry of the access log. */
async function accessLogEntry(gateway: TestGateway): Promise<Line> {
  const { metrics, reactor, accessLines } = gateway
  await eventually('the end of the tunnel', () => {
    const { counts } = metrics()
    return counts.connectionsOpen === 0 && counts.targetsOpen === 0 && counts.tunnelsOpen === 0
  })
  reactor.stop()
  return JSON.parse(accessLines.at(-1)!) as Line
}

for (const setting of SETTINGS) {
  describe(setting.name, () => {
    test('after a FIN of the client the backend can still send', async () => {
      const gateway = await setting.gateway()
      const { client, peer } = await setting.open(gateway)
      client.send('question')
      client.end()
      assert.equal(await peer.untilEnd(), 'FIN')
      assert.equal(peer.text, 'question')
      await quiet()
      assert.equal(client.ending, '', 'the other direction stays open')
      for (const part of ['one ', 'two ', 'three']) {
        peer.send(part)
        await client.untilText(part)
      }
      peer.end()
      assert.equal(await client.untilEnd(), 'FIN')
      assert.equal(client.text, 'one two three')
      const line = await accessLogEntry(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.request_body_bytes, 8)
      assert.equal(line.response_body_bytes, 13)
      assert.equal(line.source_state, 'CLOSING')
      assert.equal(line.target_state, 'CLOSING')
      assert.equal(line.error_base, 0)
      assert.deepEqual(gateway.reports, [])
    })

    test('after a FIN of the backend the client can still send', async () => {
      const gateway = await setting.gateway({ abort_on_half_close: true })
      const { client, peer } = await setting.open(gateway)
      peer.send('goodbye')
      peer.end()
      assert.equal(await client.untilEnd(), 'FIN')
      assert.equal(client.text, 'goodbye')
      await quiet()
      assert.equal(peer.ending, '', 'the other direction stays open')
      client.send('I am not')
      await peer.untilText('I am not')
      client.send(' done')
      client.end()
      assert.equal(await peer.untilEnd(), 'FIN')
      assert.equal(peer.text, 'I am not done')
      const line = await accessLogEntry(gateway)
      assert.equal(line.error_base, 0)
      assert.deepEqual(gateway.reports, [])
    })

    test('bytes in flight arrive when both sides send FIN', async () => {
      const gateway = await setting.gateway()
      const { client, peer } = await setting.open(gateway)
      const long = 'x'.repeat(300_000)
      client.send(long)
      client.end()
      peer.send(long)
      peer.end()
      await Promise.all([client.untilEnd(), peer.untilEnd()])
      assert.equal(client.text, long)
      assert.equal(peer.text, long)
      const line = await accessLogEntry(gateway)
      assert.equal(line.request_body_bytes, long.length)
      assert.equal(line.response_body_bytes, long.length)
    })

    test('a FIN waits for bytes that a slow peer has not yet read', async () => {
      const gateway = await setting.gateway()
      const { client, peer } = await setting.open(gateway)
      const long = Buffer.alloc(6 * 1024 * 1024, 'abcdefg')
      client.pause()
      client.end()
      await peer.untilEnd()
      peer.send(long)
      peer.end()
      await quiet()
      client.resume()
      assert.equal(await client.untilEnd(), 'FIN')
      assert.ok(client.received.equals(long))
      await accessLogEntry(gateway)
    })

    test('a reset of the client resets the backend', async () => {
      const gateway = await setting.gateway()
      const { client, peer, cutClient } = await setting.open(gateway)
      client.send('half a frame')
      await peer.untilText('half a frame')
      cutClient()
      assert.equal(await peer.untilEnd(), 'RST')
      assert.equal(peer.text, 'half a frame')
      const line = await accessLogEntry(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.error_base, 101000)
      assert.equal(line.error_state, 5)
      const [report] = gateway.reports
      assert.equal(report?.level, 'debug')
      assert.equal(report?.event, 'client left its tunnel')
    })

    test('a reset of the backend resets the client', async () => {
      const gateway = await setting.gateway()
      const { client, peer, cutPeer } = await setting.open(gateway)
      peer.send('half a frame')
      await client.untilText('half a frame')
      cutPeer()
      assert.equal(await client.untilEnd(), 'RST')
      assert.equal(client.text, 'half a frame')
      const line = await accessLogEntry(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.error_base, 101501)
      assert.equal(line.error_state, 5)
      const [report] = gateway.reports
      assert.equal(report?.level, 'warn')
      assert.equal(report?.event, 'backend failed')
      assert.equal(report?.fields.INTERNAL_STATE, 5)
    })

    test('a reset of the backend after a FIN of the client ends the tunnel', async () => {
      const gateway = await setting.gateway()
      const { client, peer, cutPeer } = await setting.open(gateway)
      client.end()
      await peer.untilEnd()
      cutPeer()
      assert.equal(await client.untilEnd(), setting.name === 'plain connections' ? 'RST' : client.ending)
      await accessLogEntry(gateway)
    })

    test('tunnel.idle_timeout: an idle tunnel ends with FIN on both sides', async () => {
      const gateway = await setting.gateway({ 'tunnel.idle_timeout': 300 })
      const { client, peer } = await setting.open(gateway)
      client.send('some bytes')
      await peer.untilText('some bytes')
      assert.equal(await client.untilEnd(), 'FIN')
      assert.equal(await peer.untilEnd(), 'FIN')
      const line = await accessLogEntry(gateway)
      assert.equal(line.status, 101)
      assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1)
      assert.deepEqual(
        gateway.reports.map(({ level, event }) => `${level} ${event}`),
        ['debug idle tunnel closed'],
      )
    })

    test('tunnel.idle_timeout: bytes in either direction keep the tunnel open', async () => {
      const gateway = await setting.gateway({ 'tunnel.idle_timeout': 1000 })
      const ways: [TunnelEnds, 'client' | 'peer'][] = [
        [await setting.open(gateway), 'client'],
        [await setting.open(gateway), 'peer'],
      ]
      const { client: idle } = await setting.open(gateway)
      // The idle tunnel, opened last, shows when the time is over for all.
      while (idle.ending === '') {
        for (const [{ client, peer }, from] of ways) {
          const [sender, receiver] = from === 'client' ? [client, peer] : [peer, client]
          sender.send('.')
          await receiver.untilText('.')
          receiver.take()
        }
      }
      assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1)
      assert.equal(gateway.metrics().counts.tunnelsOpen, 2)
      gateway.stop()
    })

    for (const [name, which] of [
      ['a client', 'client'],
      ['a backend', 'peer'],
    ] as const) {
      test(`http.socket.timeout: ${name} that does not read is reset, and so is the other side`, async () => {
        const gateway = await setting.gateway({ 'http.socket.timeout': 500 })
        const ends = await setting.open(gateway)
        const receiver = ends[which]
        const sender = which === 'client' ? ends.peer : ends.client
        receiver.pause()
        sender.send(Buffer.alloc(24 * 1024 * 1024))
        assert.equal(await sender.untilEnd(), 'RST')
        const line = await accessLogEntry(gateway)
        assert.equal(line.error_base, which === 'client' ? 101000 : 101504)
        assert.equal(line.error_state, 5)
        const { counts } = gateway.metrics()
        assert.equal(which === 'client' ? counts.timeoutSourceStalled : counts.timeoutTarget, 1)
        receiver.destroy()
      })
    }

    test('a drain keeps an open tunnel until it is cut off', async () => {
      const gateway = await setting.gateway()
      const { client, peer } = await setting.open(gateway)
      gateway.reactor.drain()
      await quiet()
      client.send('still')
      await peer.untilText('still')
      peer.send('here')
      await client.untilText('here')
      gateway.reactor.cutOff()
      assert.deepEqual(await Promise.all([client.untilEnd(), peer.untilEnd()]), ['RST', 'RST'])
      const line = await accessLogEntry(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.request_body_bytes, 5)
      assert.deepEqual([line.error_base, line.error_state, line.target_state], [101000, 5, 'RESPONSE_BODY'])
      const { event, fields } = gateway.reports.at(-1)!
      assert.deepEqual([event, fields.CAUSE_OF_ERROR], ['cut off', 'the gateway stops'])
    })

    test('a tunnel that was reset has no timeout left', async () => {
      const gateway = await setting.gateway({ 'tunnel.idle_timeout': 300 })
      const { peer, cutClient } = await setting.open(gateway)
      cutClient()
      await peer.untilEnd()
      const { client } = await setting.open(gateway)
      await client.untilEnd()
      assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1, 'only the second tunnel timed out')
    })
  })
}

test('RFC 8446 6.1: a TCP FIN without close_notify resets the other side of a tunnel', async () => {
  const setting = SETTINGS[1]!
  const gateway = await setting.gateway()
  const end = await connectSecured(gateway.port, { allowHalfOpen: true } as object)
  const { peer } = await switchProtocols(end.peer, async () => (await secured.next()).peer)
  end.tcp.end()
  assert.equal(await peer.untilEnd(), 'RST')
  const line = await accessLogEntry(gateway)
  assert.equal(line.error_base, 101000)
  assert.equal(gateway.reports[0]?.fields.CAUSE_OF_ERROR, 'ERR_TLS_TRUNCATED')
})

// ---- reloads -------------------------------------------------------------------------------------------------------

const MESSAGES = ['some', 'more', 'x'.repeat(300_000)]

for (const kind of ['to a plain backend', 'through a forward proxy', 'to a TLS backend'] as const) {
  test(`a tunnel ${kind} stays open over reloads that remove its API`, async t => {
    const isSecured = kind === 'to a TLS backend'
    const tlsBackend = await SecuredBackend.listen()
    const plainBackend = await ScriptedBackend.listen()
    const backendPort = isSecured ? tlsBackend.port : plainBackend.port
    const next = async () => (isSecured ? (await tlsBackend.next()).peer : plainBackend.next())
    const proxy = await ConnectProxy.listen()
    const routes = {
      'to a plain backend': {},
      'through a forward proxy': { proxy: proxyAt(proxy.port), connectsThroughProxy: true },
      'to a TLS backend': SECURED,
    }
    const host = isSecured ? 'localhost' : '127.0.0.1'
    const api = { context: '/echo', host, port: backendPort, route: routes[kind] }
    const gateway = await startGateway([api], { tlsClients: { default: clientPlan() } })
    t.after(() => {
      gateway.stop()
      proxy.close()
      plainBackend.close()
      tlsBackend.close()
    })
    const { client, peer } = await openTunnel(gateway, { next })
    await gateway.deploy({ removed: ['/echo'], tlsClients: {} })
    for (const message of MESSAGES) {
      client.send(message)
      await peer.untilText(message)
      peer.take()
      peer.send(message)
      await client.untilText(message)
      client.take()
      await gateway.deploy({ http: { 'http.socket.timeout': 100_000 + message.length } })
    }
    assert.equal(gateway.metrics().counts.tunnelsOpen, 1)
    assert.equal(gateway.countedTargets(), 1)
    client.end()
    await peer.untilEnd()
    peer.end()
    await client.untilEnd()
    await eventually('the end of all backend connections', () => gateway.metrics().counts.targetsOpen === 0)
    assert.equal(gateway.metrics().counts.tunnelsOpen, 0)
    assert.equal(gateway.countedTargets(), 0)
  })
}
