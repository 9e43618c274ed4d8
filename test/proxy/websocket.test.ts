/**
 * WebSocket with a library on both ends (RFC 6455, RFC 7692): subprotocols, ping and pong, fragments, long messages,
 * compression, close codes and resets, on every kind of listener, with plain and TLS backends.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import { CA, SERVER } from '../harness/certificates.ts'
import { startGateway } from '../harness/gateway.ts'
import { eventually } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'
import { clientPlan, SECURED, serverPlan } from '../harness/secured-peers.ts'

const SUBPROTOCOLS = ['chat.v2', 'chat.v1']
const OPTIONS = {
  perMessageDeflate: { threshold: 0 },
  handleProtocols: (offered: Set<string>) => SUBPROTOCOLS.find(name => offered.has(name)) ?? (false as const),
}

const plainServer = new WebSocketServer({ ...OPTIONS, port: 0, host: '127.0.0.1' })
const https = createServer({ cert: SERVER.cert, key: SERVER.key })
const securedServer = new WebSocketServer({ ...OPTIONS, server: https })
await once(plainServer, 'listening')
https.listen(0, '127.0.0.1')
await once(https, 'listening')

/** The backend side of the last connection. */
let served: WebSocket
for (const server of [plainServer, securedServer]) {
  server.on('connection', socket => {
    served = socket
    socket.on('error', () => undefined)
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
}

const gateway = await startGateway(
  [
    { context: '/plain', port: (plainServer.address() as AddressInfo).port, basePath: '/base' },
    { context: '/secured', host: 'localhost', port: (https.address() as AddressInfo).port, route: SECURED },
  ],
  {
    accessLog: 'json',
    kinds: ['http', 'ws', 'https', 'wss'],
    tlsServer: serverPlan(),
    tlsClients: { default: clientPlan() },
  },
)
after(() => {
  for (const server of [plainServer, securedServer]) {
    for (const socket of server.clients) socket.terminate()
    server.close()
  }
  https.close()
  gateway.stop()
})

const SETTINGS = ['ws', 'ws', 'wss', 'wss'].flatMap((scheme, listener) =>
  ['plain', 'secured'].map(api => ({
    name: `listener ${['http', 'ws', 'https', 'wss'][listener]}, ${api} backend`,
    url: `${scheme}://localhost:${gateway.ports[listener]}/${api}/x?q=1`,
  })),
)

async function open(url: string, protocols: string[] = [], options = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, protocols, { ca: CA.cert, ...OPTIONS, ...options })
  await once(socket, 'open')
  return socket
}

function nextMessage(socket: WebSocket): Promise<[RawData, boolean]> {
  return once(socket, 'message') as Promise<[RawData, boolean]>
}

async function untilNoTunnel(): Promise<void> {
  await eventually('the end of all tunnels', () => gateway.metrics().counts.tunnelsOpen === 0)
}

for (const { name, url } of SETTINGS) {
  describe(name, () => {
    test('RFC 6455 5.6: text and binary messages pass in both directions', async () => {
      const socket = await open(url)
      for (const message of ['hello', '', 'ünïcödé ✓', 'x'.repeat(70_000)]) {
        socket.send(message)
        const [data, isBinary] = await nextMessage(socket)
        assert.equal(String(data), message)
        assert.equal(isBinary, false)
      }
      const binary = randomBytes(1024 * 1024)
      socket.send(binary)
      const [data, isBinary] = await nextMessage(socket)
      assert.ok(binary.equals(data as Buffer))
      assert.equal(isBinary, true)
      socket.close()
      await once(socket, 'close')
      await untilNoTunnel()
    })

    test('RFC 6455 1.9: client and backend negotiate the subprotocol', async () => {
      const socket = await open(url, ['chat.v1', 'chat.v2'])
      assert.equal(socket.protocol, 'chat.v2')
      socket.terminate()
      await untilNoTunnel()
    })

    test('RFC 7692 7: client and backend negotiate compression', async () => {
      for (const perMessageDeflate of [{ threshold: 0 }, false] as const) {
        const socket = await open(url, [], { perMessageDeflate })
        assert.equal(socket.extensions, perMessageDeflate === false ? '' : 'permessage-deflate')
        const message = 'the same again and again '.repeat(10_000)
        socket.send(message)
        assert.equal(String((await nextMessage(socket))[0]), message)
        socket.terminate()
        await untilNoTunnel()
      }
    })

    test('RFC 6455 5.5: ping and pong pass in both directions', async () => {
      const socket = await open(url)
      const clientPong = once(socket, 'pong')
      socket.ping('from the client')
      assert.equal(String((await clientPong)[0]), 'from the client')
      const backendPong = once(served, 'pong')
      served.ping('from the backend')
      assert.equal(String((await backendPong)[0]), 'from the backend')
      socket.terminate()
      await untilNoTunnel()
    })

    test('RFC 6455 5.4: fragments with a ping between them pass', async () => {
      const socket = await open(url)
      const parts = ['one, ', 'two, ', 'three']
      const pinged = once(served, 'ping')
      parts.forEach((part, at) => {
        socket.send(part, { fin: at === parts.length - 1, compress: false })
        if (at === 0) socket.ping()
      })
      assert.equal(String((await nextMessage(socket))[0]), parts.join(''))
      await pinged
      socket.terminate()
      await untilNoTunnel()
    })

    test('RFC 6455 7.4: close codes and reasons pass in both directions', async () => {
      for (const [code, reason] of [
        [1000, ''],
        [1001, 'going'],
        [4999, 'ünd tschüß'],
      ] as const) {
        const first = await open(url)
        const backendClose = once(served, 'close')
        first.close(code, reason)
        const [backendCode, backendReason] = (await backendClose) as [number, Buffer]
        assert.deepEqual([backendCode, String(backendReason)], [code, reason])

        const second = await open(url)
        const clientClose = once(second, 'close')
        served.close(code, reason)
        const [clientCode, clientReason] = (await clientClose) as [number, Buffer]
        assert.deepEqual([clientCode, String(clientReason)], [code, reason])
      }
      await untilNoTunnel()
    })

    test('RFC 6455 7.1.5: an abnormal closure of one side is 1006 for the other side', async () => {
      const first = await open(url)
      const backendClose = once(served, 'close')
      first.terminate()
      assert.equal((await backendClose)[0], 1006)
      const second = await open(url)
      const clientClose = once(second, 'close')
      served.terminate()
      assert.equal((await clientClose)[0], 1006)
      await untilNoTunnel()
    })
  })
}

test('120 concurrent tunnels do not mix up their messages', async () => {
  const rounds = IS_LONG ? 200 : 8
  const exchangeMessages = async (url: string, id: number): Promise<void> => {
    const socket = await open(url, [], { perMessageDeflate: false })
    for (let round = 0; round < rounds; round++) {
      const message = `${id}/${round}/${'x'.repeat((id * 977 + round * 4099) % 40_000)}`
      socket.send(message)
      assert.equal(String((await nextMessage(socket))[0]), message)
    }
    socket.close(1000)
    await once(socket, 'close')
  }
  await Promise.all(Array.from({ length: 120 }, (_, id) => exchangeMessages(SETTINGS[id % SETTINGS.length]!.url, id)))
  await untilNoTunnel()
})

test('only the aborted connections were logged', () => {
  const events = new Set(gateway.reports.map(({ level, event }) => `${level} ${event}`))
  events.delete('debug client left its tunnel')
  events.delete('warn backend failed')
  assert.deepEqual([...events], [])
})
