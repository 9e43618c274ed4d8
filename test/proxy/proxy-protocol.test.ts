/** The PROXY protocol on listeners that ask for it, with real sockets, plain and on TLS. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { CA, SERVER } from '../harness/certificates.ts'
import { startGateway, type GatewayOptions, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, ScriptedBackend, quiet } from '../harness/peers.ts'
import { BAD_HEADERS, GOOD_HEADERS, version2, V4_BODY } from '../harness/proxy-headers.ts'
import { takeResponse } from '../harness/responses.ts'
import { clientPlan, SECURED, serverPlan } from '../harness/secured-peers.ts'
import { readProxyHeader } from '../../src/socket/proxy-header.ts'

const REQUEST = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const V1 = 'PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n'
const V2 = version2(0x21, 0x11, V4_BODY)
const OWN = ['127.0.0.0/8']
/** A second virtual host: SNI selects the context, so the gateway reads the ClientHello itself. */
const NAMED = { identity: SERVER, verifyClient: 'none', ca: [], names: ['other.example'] } as const
/** [what, kind of the listener, TLS plan] */
const LISTENERS = [
  ['plain', 'http', null],
  ['TLS', 'https', serverPlan()],
  ['TLS with virtual hosts', 'https', serverPlan({ hosts: [NAMED] })],
] as const
type Kind = (typeof LISTENERS)[number][1]

async function start(
  t: TestContext,
  options: GatewayOptions,
): Promise<{ gateway: TestGateway; backend: ScriptedBackend }> {
  const backend = await ScriptedBackend.listen(peer => {
    void (async () => {
      for (;;) {
        await peer.untilText('\r\n\r\n')
        heads.push(peer.take())
        peer.send(OK)
      }
    })().catch(() => undefined)
  })
  const gateway = await startGateway([{ context: '/a', port: backend.port }], { proxies: OWN, ...options })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  return { gateway, backend }
}

/** Heads of requests at the backend. */
const heads: string[] = []

/** Sends all that is written to it through `send`; gets what arrives on the socket. */
class Through extends Duplex {
  readonly #socket: Socket
  readonly #send: (bytes: Buffer) => void

  constructor(socket: Socket, send: (bytes: Buffer) => void) {
    super()
    this.#socket = socket
    this.#send = send
    socket.on('data', (bytes: Buffer) => this.push(bytes))
    socket.on('end', () => this.push(null))
    socket.on('error', error => this.destroy(error))
  }

  setNoDelay(): void {}

  override _read(): void {}

  override _destroy(_error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(null)
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.#send(bytes)
    done()
  }
}

/** A client behind `header`; its first bytes follow the header in one write where `pipelined`. */
async function dial(gateway: TestGateway, kind: Kind, header: string, pipelined: boolean): Promise<Peer> {
  const socket = connectTcp(gateway.port, '127.0.0.1')
  socket.setNoDelay(true)
  await once(socket, 'connect')
  let held = Buffer.from(header, 'latin1')
  if (!pipelined) {
    socket.write(held)
    held = Buffer.alloc(0)
  }
  const send = (bytes: Buffer): void => {
    socket.write(Buffer.concat([held, bytes]))
    held = Buffer.alloc(0)
  }
  const through = new Through(socket, send)
  if (kind === 'http') return new Peer(through as unknown as Socket)
  return new Peer(connectTls({ socket: through, servername: 'localhost', ca: [CA.cert] }))
}

/** The client address that the backend was told with the last request. */
function toldAddress(): string {
  return /^X-Forwarded-For: (.*)\r$/m.exec(heads.at(-1)!)?.[1] ?? ''
}

for (const [what, kind, tlsServer] of LISTENERS) {
  for (const pipelined of [false, true]) {
    const how = pipelined ? 'in one write with what follows it' : 'by itself'
    test(`a PROXY header ${how} names the client, listener ${what}`, async t => {
      const { gateway } = await start(t, { kinds: [kind], tlsServer, accessLog: 'json' })
      for (const [name, header, client] of GOOD_HEADERS) {
        const peer = await dial(gateway, kind, header, pipelined)
        peer.send(REQUEST)
        assert.equal((await takeResponse(peer)).status, 200, name)
        assert.equal(toldAddress(), client ?? '127.0.0.1', name)
        // The connection goes on.
        peer.send(REQUEST)
        assert.equal((await takeResponse(peer)).status, 200, name)
        peer.destroy()
      }
      await eventually('the end of all', () => gateway.metrics().counts.connectionsOpen === 0)
      await eventually('an access line', () => gateway.accessLines.length > 0)
      assert.match(gateway.accessLines[0]!, /"203\.0\.113\.7"/)
    })
  }

  test(`malformed PROXY headers are reset, counted and logged, listener ${what}`, async t => {
    const { gateway } = await start(t, { kinds: [kind], tlsServer })
    for (const [name, bytes, cause] of BAD_HEADERS) {
      const peer = new Peer(connectTcp(gateway.port, '127.0.0.1'))
      peer.send(bytes + REQUEST)
      assert.equal(await peer.untilEnd(), 'RST', name)
      assert.equal(peer.text, '', name)
      const { fields } = gateway.reports.findLast(({ event }) => event === 'PROXY header refused')!
      assert.match(String(fields.CAUSE_OF_ERROR), cause, name)
      assert.equal(fields.CLIENT_ADDRESS, '127.0.0.1')
    }
    const { counts } = gateway.metrics()
    assert.deepEqual([counts.proxyHeadersRefused, counts.connectionsAccepted], [BAD_HEADERS.length, 0])
  })

  test(`malformed PROXY headers byte by byte are reset, listener ${what}`, async t => {
    const { gateway } = await start(t, { kinds: [kind], tlsServer })
    for (const [name, bytes] of BAD_HEADERS) {
      const peer = await connectPeer(gateway.port)
      await peer.sendBytewise(bytes)
      assert.equal(await peer.untilEnd(), 'RST', name)
    }
  })

  test(`PROXY headers from other networks are reset unread, listener ${what}`, async t => {
    const { gateway } = await start(t, { kinds: [kind], tlsServer, proxies: ['10.0.0.0/8', '::1'] })
    for (const header of [V1, V2, REQUEST]) {
      const peer = new Peer(connectTcp(gateway.port, '127.0.0.1'))
      peer.send(header + REQUEST)
      assert.equal(await peer.untilEnd(), 'RST')
    }
    assert.equal(gateway.metrics().counts.proxyHeadersRefused, 3)
    const { level, fields } = gateway.reports.at(-1)!
    assert.equal(level, 'warn')
    assert.match(String(fields.CAUSE_OF_ERROR), /no network of listener\.proxy_protocol\.networks/)
  })

  test(`a listener that asks for no PROXY header takes none, listener ${what}`, async t => {
    const { gateway } = await start(t, { kinds: [kind], tlsServer, proxies: null })
    for (const header of [V1, V2]) {
      const peer = await connectPeer(gateway.port)
      peer.send(header + REQUEST)
      await peer.untilEnd()
      assert.doesNotMatch(peer.text, / 200 /)
    }
    const peer = await dial(gateway, kind, '', false)
    peer.send(REQUEST)
    assert.equal((await takeResponse(peer)).status, 200)
    assert.equal(toldAddress(), '127.0.0.1')
    peer.destroy()
  })
}

for (const [name, header, client] of GOOD_HEADERS.filter(([, header]) => header.length < 200)) {
  test(`PROXY header and request byte by byte: ${name}`, async t => {
    const { gateway } = await start(t, {})
    const peer = await connectPeer(gateway.port)
    await peer.sendBytewise(header + REQUEST)
    assert.equal((await takeResponse(peer)).status, 200)
    assert.equal(toldAddress(), client ?? '127.0.0.1')
    peer.destroy()
  })
}

test('a request whose start comes with its PROXY header is read to its end, beside other connections', async t => {
  const { gateway } = await start(t, {})
  for (let cut = 1; cut < REQUEST.length; cut += 5) {
    const [peer, other] = [await connectPeer(gateway.port), await connectPeer(gateway.port)]
    peer.send(V2 + REQUEST.slice(0, cut))
    await quiet()
    other.send(V2 + REQUEST)
    assert.equal((await takeResponse(other)).status, 200)
    peer.send(REQUEST.slice(cut))
    assert.equal((await takeResponse(peer)).status, 200, `cut at ${cut}`)
    peer.destroy()
    other.destroy()
  }
})

test('a PROXY header with pipelined requests: all are answered in order', async t => {
  const { gateway } = await start(t, {})
  const peer = await connectPeer(gateway.port)
  peer.send(V2 + REQUEST.repeat(5))
  for (let i = 0; i < 5; i++) assert.equal((await takeResponse(peer)).status, 200)
  peer.send(V2)
  assert.equal((await takeResponse(peer)).status, 400)
})

test('a body behind a PROXY header, longer than one read, arrives whole', async t => {
  const { gateway, backend: _ } = await start(t, {})
  const length = 300_000
  const peer = await connectPeer(gateway.port)
  const body = 'b'.repeat(length)
  peer.send(`${V1}POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${body}`)
  assert.equal((await takeResponse(peer)).status, 200)
  peer.destroy()
})

test('a connection that ends within its PROXY header is refused; one that sends nothing is no failure', async t => {
  const { gateway } = await start(t, {})
  const silent = connectTcp(gateway.port, '127.0.0.1')
  silent.end()
  silent.resume()
  await once(silent, 'close')
  assert.equal(gateway.metrics().counts.proxyHeadersRefused, 0)
  for (const length of [1, V1.length - 1]) {
    const peer = await connectPeer(gateway.port)
    peer.send(V1.slice(0, length))
    peer.end()
    await peer.untilEnd()
  }
  assert.equal(gateway.metrics().counts.proxyHeadersRefused, 2)
})

test('a PROXY header has the time of a request head', async t => {
  const { gateway } = await start(t, { http: { 'header.read_timeout': 300 } })
  const started = performance.now()
  const slow = await connectPeer(gateway.port)
  slow.send('PROX')
  const silent = await connectPeer(gateway.port)
  for (const peer of [slow, silent]) assert.equal(await peer.untilEnd(), 'RST')
  assert.ok(performance.now() - started < 5000)
  assert.match(String(gateway.reports.at(-1)!.fields.CAUSE_OF_ERROR), /within 300 ms/)
})

test('max_connections_per_client counts an IPv6 client by its /64 network', async t => {
  const { gateway } = await start(t, { http: { max_connections_per_client: 1 } })
  const open = async (address: string): Promise<Peer> => {
    const peer = await connectPeer(gateway.port)
    t.after(() => peer.destroy())
    peer.send(`PROXY TCP6 ${address} 2001:db8::1 4711 443\r\n${REQUEST}`)
    return peer
  }
  assert.equal((await takeResponse(await open('2001:db8:1:2::1'))).status, 200)
  assert.equal(await (await open('2001:db8:1:2:ffff::1')).untilEnd(), 'RST')
  assert.equal((await takeResponse(await open('2001:db8:1:3::1'))).status, 200)
})

test('max_connections_per_client counts clients of PROXY headers, max_open_connections connections', async t => {
  const limits = { max_connections_per_client: 1, max_open_connections: 3 }
  const { gateway } = await start(t, { http: limits })
  const open = async (header: string): Promise<Peer> => {
    const peer = await connectPeer(gateway.port)
    peer.send(header + REQUEST)
    return peer
  }
  const first = await open(V2)
  assert.equal((await takeResponse(first)).status, 200)
  assert.equal(await (await open(V1)).untilEnd(), 'RST')
  assert.equal(gateway.metrics().counts.connectionsRefusedPerClient, 1)
  const other = await open('PROXY TCP4 203.0.113.8 192.0.2.1 4711 443\r\n')
  assert.equal((await takeResponse(other)).status, 200)
  // A connection that waits for its header counts.
  const waiting = await connectPeer(gateway.port)
  waiting.send('P')
  assert.equal(await new Peer(connectTcp(gateway.port, '127.0.0.1')).untilEnd(), 'RST')
  assert.equal(gateway.metrics().counts.connectionsRefusedAtLimit, 1)
  for (const peer of [first, other, waiting]) peer.destroy()
  await eventually('the end of all', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.equal((await takeResponse(await open(V2))).status, 200)
})

test('trusted_proxies is asked about the client of the PROXY header, not about the proxy', async t => {
  const { gateway } = await start(t, { http: { trusted_proxies: ['127.0.0.1', '203.0.113.7'] } })
  const forged = 'GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.99\r\n\r\n'
  for (const [client, expected] of [
    ['203.0.113.7', '192.0.2.99, 203.0.113.7'],
    ['203.0.113.8', '203.0.113.8'],
  ]) {
    const peer = await connectPeer(gateway.port)
    peer.send(`PROXY TCP4 ${client} 192.0.2.1 4711 443\r\n${forged}`)
    assert.equal((await takeResponse(peer)).status, 200)
    assert.equal(toldAddress(), expected)
    peer.destroy()
  }
})

test('a stop resets connections that wait for their PROXY header', async t => {
  const { gateway } = await start(t, {})
  const peer = await connectPeer(gateway.port)
  peer.send('PROXY ')
  await new Promise(resolve => setTimeout(resolve, 50))
  gateway.stop()
  assert.equal(await peer.untilEnd(), 'RST')
})

// ---- towards backends ----------------------------------------------------------------------------------------------

const SENDS = { sendsProxyHeader: true }

/** The addresses in the header of version 2 at the start of `text`, and the rest. */
function split(text: string): { readonly source: string; readonly port: number; readonly rest: string } {
  const read = readProxyHeader(Buffer.from(text, 'latin1'))
  assert.ok(read !== null && typeof read === 'object', String(read))
  assert.ok(text.startsWith('\r\n\r\n\0\r\nQUIT\n\x21'))
  return { source: read.addresses?.source ?? '', port: read.addresses?.sourcePort ?? 0, rest: text.slice(read.length) }
}

test('an endpoint that asks for the PROXY protocol gets version 2, a connection per request', async t => {
  const backend = await ScriptedBackend.listen()
  const gateway = await startGateway([{ context: '/a', port: backend.port, route: SENDS }])
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  const client = connectTcp(gateway.port, '127.0.0.1')
  const peer = new Peer(client)
  for (let round = 0; round < 3; round++) {
    peer.send(REQUEST)
    const connection = await backend.next()
    await connection.untilText('activityid')
    const { source, port, rest } = split(connection.take())
    assert.deepEqual([source, port], ['127.0.0.1', client.localPort])
    assert.match(rest, /^GET \/ HTTP/)
    assert.match(rest, /^Connection: close\r$/m)
    connection.send(OK)
    assert.equal((await takeResponse(peer)).status, 200)
    assert.equal(await connection.untilEnd(), 'FIN')
  }
  peer.destroy()
})

test('a PROXY header that came in goes on to the endpoint with addresses and ports', async t => {
  const backend = await ScriptedBackend.listen()
  const gateway = await startGateway([{ context: '/a', port: backend.port, route: SENDS }], { proxies: OWN })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  for (const [name, header, client] of GOOD_HEADERS) {
    const peer = await connectPeer(gateway.port)
    peer.send(header + REQUEST)
    const connection = await backend.next()
    await connection.untilText('activityid')
    const { source, port } = split(connection.take())
    assert.equal(source, client ?? '127.0.0.1', name)
    if (client !== null) assert.equal(port, 4711, name)
    connection.send(OK)
    assert.equal((await takeResponse(peer)).status, 200)
    peer.destroy()
  }
})

test('requests of two clients never share a connection that names one of them', async t => {
  const backend = await ScriptedBackend.listen()
  const gateway = await startGateway([{ context: '/a', port: backend.port, route: SENDS }], { proxies: OWN })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  for (const client of ['203.0.113.7', '203.0.113.8', '203.0.113.7']) {
    const peer = await connectPeer(gateway.port)
    peer.send(`PROXY TCP4 ${client} 192.0.2.1 4711 443\r\n${REQUEST}`)
    const connection = await backend.next()
    await connection.untilText('activityid')
    assert.equal(split(connection.take()).source, client)
    connection.send(OK)
    assert.equal((await takeResponse(peer)).status, 200)
    peer.destroy()
  }
})

test('towards a backend on TLS the PROXY header is in front of the handshake', async t => {
  const seen: Buffer[] = []
  const secure = createSecureServer(SERVER, (_, response) => response.end('ok'))
  const server = createTcpServer(socket => {
    socket.once('data', (bytes: Buffer) => {
      const header = readProxyHeader(bytes)
      assert.ok(header !== null && typeof header === 'object')
      seen.push(bytes.subarray(0, header.length))
      socket.pause()
      if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length))
      secure.emit('connection', socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const route = { ...SECURED, ...SENDS }
  const gateway = await startGateway([{ context: '/a', host: 'localhost', port, route }], {
    tlsClients: { default: clientPlan() },
  })
  t.after(() => {
    gateway.stop()
    server.close()
    secure.closeAllConnections()
  })
  const peer = await connectPeer(gateway.port)
  for (let round = 1; round <= 2; round++) {
    peer.send(REQUEST)
    assert.equal((await takeResponse(peer)).status, 200)
    assert.equal(seen.length, round)
  }
  peer.destroy()
})

for (const secured of [false, true]) {
  test(`through a forward proxy the PROXY header is in the tunnel, ${secured ? 'TLS' : 'plain'}`, async t => {
    const backend = await ScriptedBackend.listen()
    const gateway = await startGateway(
      [
        {
          context: '/a',
          port: 443,
          host: 'backend.example',
          route: {
            ...(secured ? SECURED : {}),
            ...SENDS,
            proxy: { host: '127.0.0.1', port: backend.port, authorization: '' },
          },
        },
      ],
      secured ? { tlsClients: { default: clientPlan() } } : {},
    )
    t.after(() => {
      gateway.stop()
      backend.close()
    })
    const peer = await connectPeer(gateway.port)
    peer.send(REQUEST)
    const proxy = await backend.next()
    await proxy.untilText('\r\n\r\n')
    assert.match(proxy.take(), /^CONNECT backend\.example:443 HTTP/)
    proxy.send('HTTP/1.1 200 OK\r\n\r\n')
    await eventually('bytes in the tunnel', () => proxy.length > 28)
    const { source, rest } = split(proxy.take())
    assert.equal(source, '127.0.0.1')
    assert.match(rest, secured ? /^\x16\x03/ : /^GET /)
    peer.destroy()
  })
}
