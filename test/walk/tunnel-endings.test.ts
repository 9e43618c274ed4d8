/**
 * How a tunnel ends: each direction by itself, abruptly where a peer ends abruptly, in silence after
 * `tunnel.idle_timeout`, behind a peer that takes nothing after `http.socket.timeout`, and when the process stops. On
 * plain sockets and behind TLS.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { clientPlan, connectSecured, SECURED, SecuredBackend, serverPlan } from '../harness/secured-peers.ts'
import { agreeing, asking, takeSwitch } from '../harness/tunnels.ts'

/** Of the access log. */
interface Line {
  readonly status: number
  readonly request_body_bytes: number
  readonly response_body_bytes: number
  readonly source_state: string
  readonly target_state: string
  readonly error_base: number
  readonly error_state: number
}

interface Ends {
  readonly client: Peer
  readonly peer: Peer
  /** Breaks off what is below. */
  cutClient(): void
  cutPeer(): void
}

interface Place {
  readonly name: string
  open(gateway: TestGateway): Promise<Ends>
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

function kept(gateway: TestGateway): TestGateway {
  gateways.push(gateway)
  return gateway
}

async function switched(client: Peer, next: () => Promise<Peer>): Promise<{ client: Peer; peer: Peer }> {
  client.send(asking())
  const peer = await next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(agreeing())
  await takeSwitch(client)
  return { client, peer }
}

const PLACES: readonly Place[] = [
  {
    name: 'plain',
    gateway: async (http = {}) => kept(await startGateway([{ context: '/echo', port: backend.port }], http, 'json')),
    async open(gateway) {
      const ends = await switched(await connectPeer(gateway.port), () => backend.next())
      return { ...ends, cutClient: () => ends.client.reset(), cutPeer: () => ends.peer.reset() }
    },
  },
  {
    name: 'behind TLS',
    gateway: async (http = {}) =>
      kept(
        await startGateway(
          [{ context: '/echo', host: 'localhost', port: secured.port, route: SECURED }],
          http,
          'json',
          [],
          { kinds: ['https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } },
        ),
      ),
    async open(gateway) {
      const end = await connectSecured(gateway.port, { allowHalfOpen: true } as object)
      let below: (() => void) | undefined
      const ends = await switched(end.peer, async () => {
        const { peer, tcp } = await secured.next()
        below = () => tcp.resetAndDestroy()
        return peer
      })
      return { ...ends, cutClient: () => end.tcp.resetAndDestroy(), cutPeer: () => below!() }
    },
  },
]

/** The gateway has given up both connections; its line in the access log. */
async function over(gateway: TestGateway): Promise<Line> {
  const { metrics, reactor, accessLines } = gateway
  await eventually('the end of the tunnel', () => {
    const { counts } = metrics()
    return counts.connectionsOpen === 0 && counts.targetsOpen === 0 && counts.tunnelsOpen === 0
  })
  reactor.stop()
  return JSON.parse(accessLines.at(-1)!) as Line
}

for (const place of PLACES) {
  describe(place.name, () => {
    test('the client ends first: the backend gets its end, goes on, and ends later', async () => {
      const gateway = await place.gateway()
      const { client, peer } = await place.open(gateway)
      client.send('question')
      client.end()
      assert.equal(await peer.untilEnd(), 'FIN')
      assert.equal(peer.text, 'question')
      await quiet()
      assert.equal(client.ending, '', 'the other direction is open')
      for (const part of ['one ', 'two ', 'three']) {
        peer.send(part)
        await client.untilText(part)
      }
      peer.end()
      assert.equal(await client.untilEnd(), 'FIN')
      assert.equal(client.text, 'one two three')
      const line = await over(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.request_body_bytes, 8)
      assert.equal(line.response_body_bytes, 13)
      assert.equal(line.source_state, 'CLOSING')
      assert.equal(line.target_state, 'CLOSING')
      assert.equal(line.error_base, 0)
      assert.deepEqual(gateway.reports, [])
    })

    test('the backend ends first: the client gets its end, goes on, and ends later', async () => {
      const gateway = await place.gateway({ abort_on_half_close: true })
      const { client, peer } = await place.open(gateway)
      peer.send('goodbye')
      peer.end()
      assert.equal(await client.untilEnd(), 'FIN')
      assert.equal(client.text, 'goodbye')
      await quiet()
      assert.equal(peer.ending, '', 'the other direction is open')
      client.send('I am not')
      await peer.untilText('I am not')
      client.send(' done')
      client.end()
      assert.equal(await peer.untilEnd(), 'FIN')
      assert.equal(peer.text, 'I am not done')
      const line = await over(gateway)
      assert.equal(line.error_base, 0)
      assert.deepEqual(gateway.reports, [])
    })

    test('both end at once, and what is still on its way arrives', async () => {
      const gateway = await place.gateway()
      const { client, peer } = await place.open(gateway)
      const long = 'x'.repeat(300_000)
      client.send(long)
      client.end()
      peer.send(long)
      peer.end()
      await Promise.all([client.untilEnd(), peer.untilEnd()])
      assert.equal(client.text, long)
      assert.equal(peer.text, long)
      const line = await over(gateway)
      assert.equal(line.request_body_bytes, long.length)
      assert.equal(line.response_body_bytes, long.length)
    })

    test('the end waits for what a slow peer has not taken', async () => {
      const gateway = await place.gateway()
      const { client, peer } = await place.open(gateway)
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
      await over(gateway)
    })

    test('a client that is lost: the backend is reset, nothing is made up', async () => {
      const gateway = await place.gateway()
      const { client, peer, cutClient } = await place.open(gateway)
      client.send('half a fra')
      await peer.untilText('half a fra')
      cutClient()
      assert.equal(await peer.untilEnd(), 'RST')
      assert.equal(peer.text, 'half a fra')
      const line = await over(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.error_base, 101000)
      assert.equal(line.error_state, 5)
      const [report] = gateway.reports
      assert.equal(report?.level, 'debug')
      assert.equal(report?.event, 'client left its tunnel')
    })

    test('a backend that is lost: the client is reset, nothing is made up', async () => {
      const gateway = await place.gateway()
      const { client, peer, cutPeer } = await place.open(gateway)
      peer.send('half a fra')
      await client.untilText('half a fra')
      cutPeer()
      assert.equal(await client.untilEnd(), 'RST')
      assert.equal(client.text, 'half a fra')
      const line = await over(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.error_base, 101501)
      assert.equal(line.error_state, 5)
      const [report] = gateway.reports
      assert.equal(report?.level, 'warn')
      assert.equal(report?.event, 'back end failed')
      assert.equal(report?.fields.INTERNAL_STATE, 5)
    })

    test('a peer that is lost after the other one has ended', async () => {
      const gateway = await place.gateway()
      const { client, peer, cutPeer } = await place.open(gateway)
      client.end()
      await peer.untilEnd()
      cutPeer()
      assert.equal(await client.untilEnd(), place.name === 'plain' ? 'RST' : client.ending)
      await over(gateway)
    })

    test('tunnel.idle_timeout: in silence both sides get an ordinary end', async () => {
      const gateway = await place.gateway({ 'tunnel.idle_timeout': 300 })
      const { client, peer } = await place.open(gateway)
      client.send('a last word')
      await peer.untilText('a last word')
      assert.equal(await client.untilEnd(), 'FIN')
      assert.equal(await peer.untilEnd(), 'FIN')
      const line = await over(gateway)
      assert.equal(line.status, 101)
      assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1)
      assert.deepEqual(
        gateway.reports.map(({ level, event }) => `${level} ${event}`),
        ['debug idle tunnel closed'],
      )
    })

    test('tunnel.idle_timeout: whatever moves, either way, keeps the tunnel', async () => {
      const gateway = await place.gateway({ 'tunnel.idle_timeout': 300 })
      const ways: [Ends, 'client' | 'peer'][] = [
        [await place.open(gateway), 'client'],
        [await place.open(gateway), 'peer'],
      ]
      const { client: silent } = await place.open(gateway)
      // The one in which nothing moves, opened last, shows that the time is over for all.
      while (silent.ending === '') {
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
      test(`http.socket.timeout: ${name} that takes nothing is cut off, and so is the other side`, async () => {
        const gateway = await place.gateway({ 'http.socket.timeout': 500 })
        const ends = await place.open(gateway)
        const stalled = ends[which]
        const sender = which === 'client' ? ends.peer : ends.client
        stalled.pause()
        sender.send(Buffer.alloc(24 * 1024 * 1024))
        assert.equal(await sender.untilEnd(), 'RST')
        const line = await over(gateway)
        assert.equal(line.error_base, which === 'client' ? 101000 : 101504)
        assert.equal(line.error_state, 5)
        const { counts } = gateway.metrics()
        assert.equal(which === 'client' ? counts.timeoutSourceStalled : counts.timeoutTarget, 1)
        stalled.destroy()
      })
    }

    test('draining: an open tunnel goes on, and is cut in the end', async () => {
      const gateway = await place.gateway()
      const { client, peer } = await place.open(gateway)
      gateway.reactor.drain()
      await quiet()
      client.send('still')
      await peer.untilText('still')
      peer.send('here')
      await client.untilText('here')
      gateway.reactor.cutOff()
      assert.deepEqual(await Promise.all([client.untilEnd(), peer.untilEnd()]), ['RST', 'RST'])
      const line = await over(gateway)
      assert.equal(line.status, 101)
      assert.equal(line.request_body_bytes, 5)
      assert.deepEqual([line.error_base, line.error_state, line.target_state], [101000, 5, 'RESPONSE_BODY'])
      const { event, fields } = gateway.reports.at(-1)!
      assert.deepEqual([event, fields.CAUSE_OF_ERROR], ['cut off', 'the gateway stops'])
    })

    test('a tunnel that was lost has no deadline left', async () => {
      const gateway = await place.gateway({ 'tunnel.idle_timeout': 300 })
      const { peer, cutClient } = await place.open(gateway)
      cutClient()
      await peer.untilEnd()
      const { client } = await place.open(gateway)
      await client.untilEnd()
      assert.equal(gateway.metrics().counts.timeoutTunnelIdle, 1, 'only that of the second one')
    })
  })
}

test('RFC 8446 6.1: behind TLS, the end of TCP alone is a loss: the other side is reset', async () => {
  const place = PLACES[1]!
  const gateway = await place.gateway()
  const end = await connectSecured(gateway.port, { allowHalfOpen: true } as object)
  const { peer } = await switched(end.peer, async () => (await secured.next()).peer)
  end.tcp.end()
  assert.equal(await peer.untilEnd(), 'RST')
  const line = await over(gateway)
  assert.equal(line.error_base, 101000)
  assert.equal(gateway.reports[0]?.fields.CAUSE_OF_ERROR, 'ERR_TLS_TRUNCATED')
})
