/**
 * Settings of `[transport.passthru_https]`: listener keys act on the listeners on TLS, sender keys on backends on TLS,
 * and what is not set there is as in `[transport.passthru_http]`.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { loadConfiguration } from '../harness/configuration.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, ScriptedBackend } from '../harness/peers.ts'
import { clientPlan, connectSecured, SECURED, SecuredBackend, serverPlan } from '../harness/secured-peers.ts'
import { settingsOf } from '../../src/reactor/settings.ts'

/** A time limit that expires in the test; several ticks of the gateway's clock. */
const LIMIT_MS = 400
const OK = 'HTTP/1.1 200 OK\r\nServer: b/1\r\nContent-Length: 2\r\n\r\nok'

/** Keys of a section. */
type Keys = Readonly<Record<string, unknown>>
type Transport = 'plain' | 'secured'
const TRANSPORTS: readonly Transport[] = ['plain', 'secured']

/** A gateway with both listeners; the API `/plain` has a plain backend, `/secured` one on TLS. */
class Both {
  readonly gateway: TestGateway
  readonly #backends: Readonly<Record<Transport, { next(): Promise<Peer> }>>
  readonly #t: TestContext

  private constructor(t: TestContext, gateway: TestGateway, plain: ScriptedBackend, secured: SecuredBackend) {
    this.gateway = gateway
    this.#t = t
    this.#backends = { plain, secured: { next: async () => (await secured.next()).peer } }
    t.after(() => {
      gateway.stop()
      plain.close()
      secured.close()
    })
  }

  static async start(t: TestContext, http: Keys, https: Keys): Promise<Both> {
    const plain = await ScriptedBackend.listen()
    const secured = await SecuredBackend.listen()
    const apis = [
      { context: '/plain', port: plain.port },
      { context: '/secured', host: 'localhost', port: secured.port, route: SECURED },
    ]
    const tls = { tlsServer: serverPlan(), tlsClients: { default: clientPlan() } }
    const gateway = await startGateway(apis, { http, https, kinds: ['http', 'https'], ...tls })
    return new Both(t, gateway, plain, secured)
  }

  async dial(transport: Transport): Promise<Peer> {
    const [plain, secured] = this.gateway.ports as readonly [number, number]
    const peer = transport === 'plain' ? await connectPeer(plain) : (await connectSecured(secured)).peer
    this.#t.after(() => peer.destroy())
    return peer
  }

  /** The connection of the next request to the backend, with its head. */
  async request(transport: Transport): Promise<{ readonly peer: Peer; readonly head: string }> {
    const peer = await this.#backends[transport].next()
    await peer.untilText('\r\n\r\n')
    return { peer, head: peer.take() }
  }

  /** One exchange over a new client connection and a new backend connection. */
  async exchange(client: Transport, backend: Transport, fields = ''): Promise<{ head: string; response: string }> {
    const peer = await this.dial(client)
    peer.send(get(backend, fields))
    const request = await this.request(backend)
    request.peer.send(OK)
    await peer.untilText('ok')
    const response = peer.take()
    request.peer.destroy()
    return { head: request.head, response }
  }
}

function get(backend: Transport, fields = ''): string {
  return `GET /${backend}/x HTTP/1.1\r\nHost: client.example\r\nUser-Agent: c/1\r\n${fields}\r\n`
}

for (const own of TRANSPORTS) {
  const other = own === 'plain' ? 'secured' : 'plain'
  // Both sections are set, so that the section of the other transport decides nothing.
  const keysOf = (key: string, value: unknown, otherValue: unknown): readonly [Keys, Keys] => {
    const [http, https] = own === 'plain' ? [value, otherValue] : [otherValue, value]
    return [{ [key]: http }, { [key]: https }]
  }

  test(`http.socket.timeout of ${own} connections: a backend that is silent gets 504 after it`, async t => {
    const both = await Both.start(t, ...keysOf('http.socket.timeout', LIMIT_MS, 60_000))
    const [late, waiting] = [await both.dial(other), await both.dial(own)]
    late.send(get(own))
    waiting.send(get(other))
    const slow = await both.request(other)
    assertFault(await takeResponse(late), 504, 101504, 3, false)
    slow.peer.send(OK)
    assert.equal((await takeResponse(waiting)).status, 200)
  })

  test(`http.socket.timeout of ${own} connections: a client that sends no more of its body gets 408`, async t => {
    const both = await Both.start(t, ...keysOf('http.socket.timeout', LIMIT_MS, 60_000))
    const peer = await both.dial(own)
    peer.send(`POST /${other}/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel`)
    assert.equal((await takeResponse(peer)).status, 408)
  })

  test(`http.headers.preserve and http.user.agent.preserve: requests to ${own} backends`, async t => {
    const both = await Both.start(t, ...keysOf('http.user.agent.preserve', false, true))
    assert.match((await both.exchange(other, own)).head, /^User-Agent: Sluice\r$/m)
    assert.match((await both.exchange(own, other)).head, /^User-Agent: c\/1\r$/m)
    const hosts = await Both.start(t, ...keysOf('http.headers.preserve', ['Host'], []))
    assert.match((await hosts.exchange(other, own)).head, /^Host: client\.example\r$/m)
    assert.doesNotMatch((await hosts.exchange(own, other)).head, /^Host: client/m)
  })

  test(`preserve_http_server_name: responses to clients of the ${own} listener`, async t => {
    const both = await Both.start(t, ...keysOf('preserve_http_server_name', true, false))
    assert.match((await both.exchange(own, other)).response, /^Server: b\/1\r$/m)
    assert.doesNotMatch((await both.exchange(other, own)).response, /^Server:/m)
  })

  test(`disable_connection_keepalive: connections to ${own} backends end with their request`, async t => {
    const both = await Both.start(t, ...keysOf('disable_connection_keepalive', true, false))
    assert.match((await both.exchange(other, own)).head, /^Connection: close\r$/m)
    assert.doesNotMatch((await both.exchange(own, other)).head, /^Connection:/m)
  })

  test(`http.max.connection.per.host.port: connections to ${own} backends`, async t => {
    const both = await Both.start(t, ...keysOf('http.max.connection.per.host.port', 1, 2))
    const clients = await Promise.all([own, own, other, other].map(() => both.dial(own)))
    const [first, refused, ...others] = clients as [Peer, Peer, ...Peer[]]
    first.send(get(own))
    await both.request(own)
    refused.send(get(own))
    assert.equal((await takeResponse(refused)).status, 503)
    for (const peer of others) {
      peer.send(get(other))
      const { peer: backend } = await both.request(other)
      backend.send('HTTP/1.1 100 Continue\r\n\r\n')
      await peer.untilText('100 Continue')
    }
  })

  test(`max_open_connections: clients of the ${own} listener, which the other listener does not count`, async t => {
    const both = await Both.start(t, ...keysOf('max_open_connections', 1, 2))
    const open = [await both.dial(other), await both.dial(other), await both.dial(own)]
    await eventually('three clients', () => both.gateway.metrics().counts.connectionsOpen === 3)
    const port = both.gateway.ports[own === 'plain' ? 0 : 1]!
    assert.equal(await new Peer(connect(port, '127.0.0.1')).untilEnd(), 'RST')
    assert.equal(both.gateway.metrics().counts.connectionsRefusedAtLimit, 1)
    open[2]!.end()
    await eventually('the end of one', () => both.gateway.metrics().counts.connectionsOpen === 2)
    await both.dial(own)
  })

  test(`io_buffer_size: heads to the ${own} listener may be as long as its buffers`, async t => {
    const [http, https] = keysOf('io_buffer_size', 32_768, 4096)
    const [ofHttp, ofHttps] = keysOf('header.max_bytes', 16_384, 4096)
    const both = await Both.start(t, { ...http, ...ofHttp }, { ...https, ...ofHttps })
    const long = `X: ${'x'.repeat(8000)}\r\n`
    assert.match((await both.exchange(own, other, long)).head, /^X: x{8000}\r$/m)
    const peer = await both.dial(other)
    peer.send(get(own, long))
    assert.equal((await takeResponse(peer)).status, 431)
  })
}

test('a reload changes the settings of one transport, for open connections too', async t => {
  const both = await Both.start(t, {}, {})
  const [plain, secured] = [await both.dial('plain'), await both.dial('secured')]
  await both.gateway.deploy({ https: { preserve_http_server_name: true, 'http.socket.timeout': LIMIT_MS } })
  for (const peer of [plain, secured]) {
    peer.send(get('plain'))
    const { peer: backend } = await both.request('plain')
    backend.send(OK)
    const { fields } = await takeResponse(peer)
    assert.deepEqual(fields.get('server'), peer === secured ? ['b/1'] : undefined)
    backend.destroy()
  }
  plain.send(get('secured'))
  assert.equal((await takeResponse(plain)).status, 504)
})

test('a lower sender.keepalive.timeout of TLS closes no idle connection to a plain backend', async t => {
  const both = await Both.start(t, {}, {})
  const client = await both.dial('plain')
  const backends = new Map<Transport, Peer>()
  for (const transport of TRANSPORTS) {
    client.send(get(transport))
    const { peer } = await both.request(transport)
    peer.send(OK)
    await takeResponse(client)
    backends.set(transport, peer)
  }
  await both.gateway.deploy({ https: { 'sender.keepalive.timeout': 1000 } })
  await backends.get('secured')!.untilEnd()
  client.send(get('plain'))
  await backends.get('plain')!.untilText('\r\n\r\n')
})

// ---- configuration -------------------------------------------------------------------------------------------------

test('what passthru_https does not set follows passthru_http, each limit within its own buffer', t => {
  const home = mkdtempSync(join(tmpdir(), 'sluice-transport-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  writeFileSync(join(home, 'deployment.toml'), '')
  const load = (...sets: string[]) => {
    const { configuration } = loadConfiguration(
      home,
      sets.map(set => `transport.${set}`),
    )
    const http = configuration['transport.passthru_http']
    return { plain: settingsOf(http, http, 1), secured: settingsOf(configuration['transport.passthru_https'], http, 1) }
  }
  const same = load('passthru_http.http.socket.timeout=1234', 'passthru_http.keepalive.timeout=77')
  assert.deepEqual(same.secured, same.plain)
  assert.equal(same.secured.socketTimeoutMs, 1234)
  const { plain, secured } = load('passthru_http.header.max_bytes=10000', 'passthru_https.io_buffer_size=4096')
  assert.deepEqual([plain.headerBytesMax, secured.headerBytesMax, secured.targetBytesMax], [10_000, 4096, 4096])
  assert.throws(
    () => load('passthru_https.io_buffer_size=4096', 'passthru_https.header.max_bytes=8192'),
    /header\.max_bytes must not exceed io_buffer_size/,
  )
})
