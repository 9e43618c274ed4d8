/**
 * A thousand reloads under load without one failed request: lasting and new connections, uploads, long responses,
 * pipelines, WebSocket and tunnels through a proxy, while APIs, endpoints, routes and settings change.
 */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import type { ConnectionList } from '../../src/observe/connection-row.ts'
import { takeAnswer } from '../harness/answers.ts'
import { ConnectProxy } from '../harness/connect-proxy.ts'
import { type Changes, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, turn } from '../harness/peers.ts'
import { proxyAt } from '../harness/proxied-gateway.ts'
import { takeSwitch } from '../harness/tunnels.ts'

const RELOADS = 1000
/** Loads of each kind at the same time. */
const EACH = 2
const LONG_BYTES = 150_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

interface Backend {
  readonly port: number
  readonly name: string
  close(): void
}

/** Answers with its name, what it was sent, or much of it; takes upgrades and says everything back. */
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
  // In two pieces, so that a reload can come between.
  response.write(body.slice(0, body.length / 2))
  await turn()
  response.end(body.slice(body.length / 2))
}

// ---- loads ----------------------------------------------------------------------------------------------------------

interface Load {
  readonly gateway: TestGateway
  /** What may answer. */
  readonly names: ReadonlySet<string>
  isOver: boolean
  asked: number
}

type Kind = (load: Load) => Promise<void>

async function ask(client: Peer, { names }: Load, path = '/t/it'): Promise<void> {
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  const { status, body } = await takeAnswer(client)
  assert.equal(status, 200, body)
  assert.ok(names.has(body), body)
}

const lasting: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  while (!load.isOver) {
    await ask(client, load)
    load.asked++
  }
  assert.equal(client.ending, '')
  client.destroy()
}

const passing: Kind = async load => {
  while (!load.isOver) {
    const client = await connectPeer(load.gateway.port)
    await ask(client, load)
    load.asked++
    client.destroy()
  }
}

const pipelining: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  while (!load.isOver) {
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4))
    for (let i = 0; i < 4; i++) {
      const { status, body } = await takeAnswer(client)
      assert.equal(status, 200, body)
      assert.ok(load.names.has(body), body)
    }
    load.asked += 4
  }
  client.destroy()
}

/** Without a body that could be sent again: whatever breaks is seen. */
const uploading: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  const half = 'y'.repeat(LONG_BYTES / 2)
  while (!load.isOver) {
    client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * half.length}\r\n\r\n${half}`)
    await turn()
    client.send(half)
    const { status, body } = await takeAnswer(client)
    assert.equal(status, 200, body)
    assert.equal(body, half + half)
    load.asked++
  }
  client.destroy()
}

const downloading: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  while (!load.isOver) {
    client.send('GET /t/long HTTP/1.1\r\nHost: a\r\n\r\n')
    const { status, body } = await takeAnswer(client)
    assert.equal(status, 200)
    assert.equal(body.length, LONG_BYTES)
    load.asked++
  }
  client.destroy()
}

/** One tunnel for all the time, in which every word comes back. */
function tunnelled(path: string): Kind {
  return async load => {
    const client = await connectPeer(load.gateway.port)
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    await takeSwitch(client)
    for (let word = 0; !load.isOver; word++) {
      client.send(`<${word}>`)
      await client.untilText(`<${word}>`)
      client.take()
      load.asked++
    }
    assert.equal(client.ending, '')
    client.destroy()
  }
}

/** Tunnels that come and go. */
const upgrading: Kind = async load => {
  while (!load.isOver) {
    const client = await connectPeer(load.gateway.port)
    client.send('GET /ws/it HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await takeSwitch(client)
    client.send('hello')
    await client.untilText('hello')
    client.end()
    await client.untilEnd()
    load.asked++
  }
}

const KINDS: readonly Kind[] = [
  ...[lasting, passing, pipelining, uploading, downloading, upgrading],
  ...[tunnelled('/ws/it'), tunnelled('/proxied/it')],
]

// ---- changes --------------------------------------------------------------------------------------------------------

/** Everything that a reload can change here, by its number. */
function changesOf(number: number, backends: readonly Backend[], proxy: ConnectProxy): Changes {
  const { port } = backends[number % backends.length]!
  const route = { proxy: proxyAt(proxy.port), connectsThroughProxy: true }
  return {
    http: {
      'http.socket.timeout': 100_000 + (number % 7),
      'sender.keepalive.timeout': 100_000 - (number % 50) * 1000,
      'http.headers.preserve': number % 3 === 0 ? ['Host'] : ['Server'],
      'http.user.agent.preserve': number % 2 === 0,
      'forwarded.headers': (['both', 'none', 'forwarded'] as const)[number % 3],
      trusted_proxies: number % 5 === 0 ? ['127.0.0.1'] : [],
    },
    // Paths that differ, and routes that do, or do not.
    apis: [
      { context: '/t', port, ...(number % 4 === 0 ? { basePath: '/base' } : {}) },
      { context: `/extra-${number % 10}`, port },
      // There one time, not there the other; the tunnels stay.
      ...(number % 2 === 0 ? [{ context: '/proxied', port: backends[0]!.port, route }] : []),
      { context: '/ws', port, ...(number % 5 === 0 ? { route } : {}) },
    ],
    removed: [`/extra-${(number + 5) % 10}`, ...(number % 2 === 1 ? ['/proxied'] : [])],
  }
}

async function targets(gateway: TestGateway): Promise<number> {
  const query = { side: 'target', state: '', limit: 0 } as const
  const { left } = (await gateway.reactor.answers.answer({ kind: 'connections', query })) as ConnectionList
  return left
}

test(`${RELOADS} reloads under load without one failed request`, { timeout: 180_000 }, async t => {
  const backends = await Promise.all(['a', 'b', 'c'].map(startBackend))
  const proxy = await ConnectProxy.listen()
  const gateway = await startGateway([])
  t.after(() => {
    gateway.stop()
    proxy.close()
    for (const backend of backends) backend.close()
  })
  await gateway.deploy(changesOf(0, backends, proxy))
  const load: Load = { gateway, names: new Set(['a', 'b', 'c']), isOver: false, asked: 0 }
  const loads = Array.from({ length: EACH }, () => KINDS.map(kind => kind(load))).flat()
  const all = Promise.all(loads)
  // The lasting tunnels are open before anything changes.
  await eventually('the tunnels', () => gateway.metrics().counts.tunnelsOpened >= 2 * EACH && load.asked > 100)
  let mostTargets = 0
  for (let number = 1; number <= RELOADS; number++) {
    await gateway.deploy(changesOf(number, backends, proxy))
    const before = load.asked
    // Something is asked under each of them.
    while (load.asked === before) await Promise.race([turn(), all])
    mostTargets = Math.max(mostTargets, await targets(gateway))
  }
  load.isOver = true
  await all
  assert.deepEqual(
    gateway.reports.filter(({ level }) => level !== 'debug'),
    [],
  )
  // Each load has one exchange at a time; a few connections are on their way out.
  assert.ok(mostTargets <= 4 * loads.length, `${mostTargets} connections to back ends at a time`)
  await eventually('all tunnels to end', () => gateway.metrics().counts.tunnelsOpen === 0)
  await gateway.deploy({ removed: ['/t', '/ws', '/proxied', ...Array.from({ length: 10 }, (_, n) => `/extra-${n}`)] })
  await eventually('nothing', () => gateway.metrics().counts.targetsOpen === 0)
  assert.equal(gateway.heldRows(), 0)
  assert.equal(await targets(gateway), 0)
})

test(`nothing is left of ${RELOADS} APIs that came and went with a route of their own`, async t => {
  const backend = await startBackend('a')
  const gateway = await startGateway([{ context: '/t', port: backend.port }])
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  const load: Load = { gateway, names: new Set(['a']), isOver: false, asked: 0 }
  const client = await connectPeer(gateway.port)
  const routes: WeakRef<object>[] = []
  for (let number = 0; number < RELOADS; number++) {
    routes.push(await deployBriefly(gateway, number, backend.port))
    if (number % 10 === 0) await ask(client, load, '/brief/it')
  }
  await gateway.deploy({ removed: ['/brief'] })
  await ask(client, load)
  await eventually('one connection', () => gateway.metrics().counts.targetsOpen === 1)
  assert.equal(gateway.heldRows(), 1)
  await turn()
  collect()
  // What a pool was made of lives as long as the pool does.
  assert.equal(routes.filter(route => route.deref() !== undefined).length, 0)
  client.destroy()
})

/** `/brief`, each time with another way to the backend; answers what is collected when nobody needs it any more. */
async function deployBriefly(gateway: TestGateway, number: number, port: number): Promise<WeakRef<object>> {
  const route = {
    ...{ row: 2 + (number % 8), secured: false, host: '127.0.0.1', port },
    ...{ tlsClient: `number ${number}`, proxy: null, connectsThroughProxy: false },
  }
  const url = `http://127.0.0.1:${port}`
  const endpoint = { row: 1 + (number % 8), url, route, basePath: '', settings: DEFAULT_SETTINGS }
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [endpoint] } as const
  await gateway.deploy({ planned: [{ ...PLAIN_API, name: 'brief', paths: ['/brief'], endpoints }] })
  return new WeakRef(route)
}
