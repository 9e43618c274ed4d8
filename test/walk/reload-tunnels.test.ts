/** Tunnels whose API is gone: they go on, are shown while they do, and leave nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { startGateway } from '../harness/gateway.ts'
import { eventually, ScriptedBackend } from '../harness/peers.ts'
import { proxyAt } from '../harness/proxied-gateway.ts'
import { SECURED, SecuredBackend, clientPlan } from '../harness/secured-peers.ts'
import { openTunnel } from '../harness/tunnels.ts'

const WORDS = ['some', 'more', 'x'.repeat(300_000)]

async function securedBackend(): Promise<Pick<ScriptedBackend, 'port' | 'next' | 'close'>> {
  const backend = await SecuredBackend.listen()
  return { port: backend.port, next: async () => (await backend.next()).peer, close: () => backend.close() }
}

for (const kind of ['directly', 'through a forward proxy', 'on TLS'] as const) {
  test(`a tunnel ${kind} goes on over reloads that remove its API`, async t => {
    const backend = kind === 'on TLS' ? await securedBackend() : await ScriptedBackend.listen()
    const proxy = await ConnectProxy.listen()
    const routes = {
      directly: {},
      'through a forward proxy': { proxy: proxyAt(proxy.port), connectsThroughProxy: true },
      'on TLS': SECURED,
    }
    const host = kind === 'on TLS' ? 'localhost' : '127.0.0.1'
    const api = { context: '/echo', host, port: backend.port, route: routes[kind] }
    const gateway = await startGateway([api], {}, null, [], { tlsClients: { default: clientPlan() } })
    t.after(() => {
      gateway.stop()
      proxy.close()
      backend.close()
    })
    const { client, peer } = await openTunnel(gateway, backend)
    await gateway.deploy({ removed: ['/echo'], tlsClients: {} })
    for (const word of WORDS) {
      client.send(word)
      await peer.untilText(word)
      peer.take()
      peer.send(word)
      await client.untilText(word)
      client.take()
      await gateway.deploy({ http: { 'http.socket.timeout': 100_000 + word.length } })
    }
    assert.equal(gateway.metrics().counts.tunnelsOpen, 1)
    assert.equal(gateway.heldRows(), 1)
    client.end()
    await peer.untilEnd()
    peer.end()
    await client.untilEnd()
    await eventually('nothing', () => gateway.metrics().counts.targetsOpen === 0)
    assert.equal(gateway.metrics().counts.tunnelsOpen, 0)
    assert.equal(gateway.heldRows(), 0)
  })
}
