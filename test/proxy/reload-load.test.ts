/**
 * Reloads under load without a failed request: persistent and new connections, uploads, long responses, pipelined
 * requests, WebSocket tunnels and tunnels through a proxy, while APIs, endpoints, routes and settings change.
 */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { DEFAULT_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import type { ConnectionList } from '../../src/observe/connection-list.ts'
import { takeResponse } from '../harness/responses.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { type Changes, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, turn } from '../harness/peers.ts'
import { proxyAt } from '../harness/proxied-gateway.ts'
import { LEVEL } from '../harness/socket-level.ts'
import { takeHead } from '../harness/tunnels.ts'

/** Sockets of the other level end and pass bytes in other ways, which fewer reloads show. */
const RELOADS = LEVEL === 'handles' ? 1000 : 250
/** Number of concurrent loads of each kind. */
const EACH = 2
const LONG_BYTES = 150_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

interface Backend {
  readonly port: number
  readonly name: string
  close(): void
}

/** Responds with its name, the request body or a long body; accepts upgrades and echoes the bytes of the tunnel. */
async function startBackend(name: string): Promise<Backend> {
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => void serve(name, request, response))
  server.keepAliveTimeout = 600_000
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => undefined)
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.pipe(socket)
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    name,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function serve(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const piece of request.setEncoding('latin1')) body += piece
  if (request.url!.endsWith('/long')) body = 'x'.repeat(LONG_BYTES)
  else if (body === '') body = name
  response.setHeader('content-length', body.length)
  // In two pieces, so that a reload can happen in between.
  response.write(body.slice(0, body.length / 2))
  await turn()
  response.end(body.slice(body.length / 2))
}

// ---- loads ----------------------------------------------------------------------------------------------------------

interface Load {
  readonly gateway: TestGateway
  /** Names of the backends that may respond. */
  readonly names: ReadonlySet<string>
  isOver: boolean
  served: number
}

type Kind = (load: Load) => Promise<void>

async function request(client: Peer, { names }: Load, path = '/t/it'): Promise<void> {
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  const { status, body } = await takeResponse(client)
  assert.equal(status, 200, body)
  assert.ok(names.has(body), body)
}

const persistent: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  while (!load.isOver) {
    await request(client, load)
    load.served++
  }
  assert.equal(client.ending, '')
  client.destroy()
}

const shortLived: Kind = async load => {
  while (!load.isOver) {
    const client = await connectPeer(load.gateway.port)
    await request(client, load)
    load.served++
    client.destroy()
  }
}

const pipelining: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  while (!load.isOver) {
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4))
    for (let i = 0; i < 4; i++) {
      const { status, body } = await takeResponse(client)
      assert.equal(status, 200, body)
      assert.ok(load.names.has(body), body)
    }
    load.served += 4
  }
  client.destroy()
}

/** Uploads with POST, which is not retried, so that every failure is seen. */
const uploading: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  const half = 'y'.repeat(LONG_BYTES / 2)
  while (!load.isOver) {
    client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * half.length}\r\n\r\n${half}`)
    await turn()
    client.send(half)
    const { status, body } = await takeResponse(client)
    assert.equal(status, 200, body)
    assert.equal(body, half + half)
    load.served++
  }
  client.destroy()
}

const downloading: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  while (!load.isOver) {
    client.send('GET /t/long HTTP/1.1\r\nHost: a\r\n\r\n')
    const { status, body } = await takeResponse(client)
    assert.equal(status, 200)
    assert.equal(body.length, LONG_BYTES)
    load.served++
  }
  client.destroy()
}

/** One tunnel for the whole test, whose bytes are echoed. */
function tunnelling(path: string): Kind {
  return async load => {
    const client = await connectPeer(load.gateway.port)
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    await takeHead(client)
    for (let word = 0; !load.isOver; word++) {
      client.send(`<${word}>`)
      await client.untilText(`<${word}>`)
      client.take()
      load.served++
    }
    assert.equal(client.ending, '')
    client.destroy()
  }
}

/** A sequence of short tunnels. */
const upgrading: Kind = async load => {
  while (!load.isOver) {
    const client = await connectPeer(load.gateway.port)
    client.send('GET /ws/it HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await takeHead(client)
    client.send('hello')
    await client.untilText('hello')
    client.end()
    await client.untilEnd()
    load.served++
  }
}

const KINDS: readonly Kind[] = [
  ...[persistent, shortLived, pipelining, uploading, downloading, upgrading],
  ...[tunnelling('/ws/it'), tunnelling('/proxied/it')],
]

// ---- changes --------------------------------------------------------------------------------------------------------

/** The changes of the reload with this number. */
function changesOf(number: number, backends: readonly Backend[], proxy: ConnectProxy): Changes {
  const { port } = backends[number % backends.length]!
  const route = { proxy: proxyAt(proxy.port), connectsThroughProxy: true }
  return {
    http: {
      'http.socket.timeout': 100_000 + (number % 5),
      'sender.keepalive.timeout': 100_000 - (number % 50) * 1000,
      'http.headers.preserve': number % 3 === 0 ? ['Host'] : ['Server'],
      'http.user.agent.preserve': number % 2 === 0,
      'forwarded.headers': (['both', 'none', 'forwarded'] as const)[number % 3],
      trusted_proxies: number % 5 === 0 ? ['127.0.0.1'] : [],
    },
    // Changed paths, with changed and with unchanged routes.
    apis: [
      { context: '/t', port, ...(number % 4 === 0 ? { basePath: '/base' } : {}) },
      { context: `/extra-${number % 10}`, port },
      // Deployed by every second reload; its tunnels stay open.
      ...(number % 2 === 0 ? [{ context: '/proxied', port: backends[0]!.port, route }] : []),
      { context: '/ws', port, ...(number % 5 === 0 ? { route } : {}) },
    ],
    removed: [`/extra-${(number + 5) % 10}`, ...(number % 2 === 1 ? ['/proxied'] : [])],
  }
}

async function targets(gateway: TestGateway): Promise<number> {
  const query = { side: 'target', state: '', limit: 0 } as const
  const { omitted } = (await gateway.reactor.inspector.serve({ kind: 'connections', query })) as ConnectionList
  return omitted
}

test(`${RELOADS} reloads under load cause no failed request`, { timeout: 180_000 }, async t => {
  const backends = await Promise.all(['a', 'b', 'c'].map(startBackend))
  const proxy = await ConnectProxy.listen()
  const gateway = await startGateway([])
  t.after(() => {
    gateway.stop()
    proxy.close()
    for (const backend of backends) backend.close()
  })
  await gateway.deploy(changesOf(0, backends, proxy))
  const load: Load = { gateway, names: new Set(['a', 'b', 'c']), isOver: false, served: 0 }
  const loads = Array.from({ length: EACH }, () => KINDS.map(kind => kind(load))).flat()
  const all = Promise.all(loads)
  // The long tunnels are open before the first reload.
  await eventually('the tunnels', () => gateway.metrics().counts.tunnelsOpened >= 2 * EACH && load.served > 100)
  let mostTargets = 0
  for (let number = 1; number <= RELOADS; number++) {
    await gateway.deploy(changesOf(number, backends, proxy))
    const before = load.served
    // At least one request is served under each plan.
    while (load.served === before) await Promise.race([turn(), all])
    mostTargets = Math.max(mostTargets, await targets(gateway))
  }
  load.isOver = true
  await all
  assert.deepEqual(
    gateway.reports.filter(({ level }) => level !== 'debug'),
    [],
  )
  // Each load has one exchange at a time; some connections are closing.
  assert.ok(mostTargets <= 4 * loads.length, `${mostTargets} connections to backends at a time`)
  await eventually('the end of all tunnels', () => gateway.metrics().counts.tunnelsOpen === 0)
  await gateway.deploy({ removed: ['/t', '/ws', '/proxied', ...Array.from({ length: 10 }, (_, n) => `/extra-${n}`)] })
  await eventually('the end of all backend connections', () => gateway.metrics().counts.targetsOpen === 0)
  assert.equal(gateway.countedTargets(), 0)
  assert.equal(await targets(gateway), 0)
})

test(`the routes of ${RELOADS} APIs that were deployed and removed are garbage-collected`, async t => {
  const backend = await startBackend('a')
  const gateway = await startGateway([{ context: '/t', port: backend.port }])
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  const load: Load = { gateway, names: new Set(['a']), isOver: false, served: 0 }
  const client = await connectPeer(gateway.port)
  const routes: WeakRef<object>[] = []
  for (let number = 0; number < RELOADS; number++) {
    routes.push(await deployBriefly(gateway, number, backend.port))
    if (number % 10 === 0) await request(client, load, '/brief/it')
  }
  await gateway.deploy({ removed: ['/brief'] })
  await request(client, load)
  await eventually('one backend connection', () => gateway.metrics().counts.targetsOpen === 1)
  assert.equal(gateway.countedTargets(), 1)
  await turn()
  collect()
  // A connection pool references its route.
  assert.equal(routes.filter(route => route.deref() !== undefined).length, 0)
  client.destroy()
})

/** Deploys /brief with a new route to the backend; returns a weak reference to the route. */
async function deployBriefly(gateway: TestGateway, number: number, port: number): Promise<WeakRef<object>> {
  const route = {
    ...{ slot: 3 + (number % 8), secured: false, host: '127.0.0.1', port },
    ...{ tlsClient: `number ${number}`, proxy: null, connectsThroughProxy: false },
  }
  const url = `http://127.0.0.1:${port}`
  const endpoint = { slot: 1 + (number % 8), url, route, basePath: '', settings: DEFAULT_ENDPOINT_SETTINGS }
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [endpoint] } as const
  await gateway.deploy({ planned: [{ ...PLAIN_API, name: 'brief', paths: ['/brief'], endpoints }] })
  return new WeakRef(route)
}
