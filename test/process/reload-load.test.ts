/**
 * A hundred reloads of the real program (a thousand in the long run) under load: lasting and new connections, uploads,
 * a tunnel and a download go on while APIs, endpoints and keys change. No request fails.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { StrictBackend } from '../harness/strict-backend.ts'
import { takeResponse } from '../harness/responses.ts'
import { home, leave, start } from '../harness/operator.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'
import { ask, freePort, type Home, type RunningGateway } from '../harness/program.ts'
import { put, putApi, reload, removeApi } from '../harness/reloading.ts'
import { takeHead } from '../harness/tunnels.ts'

after(leave)

const RELOADS = IS_LONG ? 1000 : 100
const EACH = 2
/** Reloads per piece of the download. */
const PIECE_EVERY = 20

/** State that the loads share. */
interface Load {
  readonly gateway: RunningGateway
  isOver: boolean
  answered: number
  /** Resolves when the next reload begins. */
  next: Promise<void>
}

type Kind = (load: Load) => Promise<void>

async function answered(client: Peer, load: Load, request: string, expected: RegExp): Promise<void> {
  client.send(request)
  const { status, body } = await takeResponse(client)
  assert.equal(status, 200, body)
  assert.match(body, expected)
  load.answered++
}

/** One request during each reload, so that a thousand reloads end soon. */
async function again(load: Load, ask: () => Promise<void>): Promise<void> {
  while (!load.isOver) {
    const { next } = load
    await ask()
    await next
  }
}

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'

const lasting: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  await again(load, () => answered(client, load, GET, /^[ab]$/))
  assert.equal(client.ending, '')
  client.destroy()
}

const passing: Kind = async load => {
  await again(load, async () => {
    const client = await connectPeer(load.gateway.port)
    await answered(client, load, GET, /^[ab]$/)
    client.destroy()
  })
}

/** No request is retried, so that each failure shows. */
const uploading: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  await again(load, () => answered(client, load, POST, /^[ab]$/))
  client.destroy()
}

const tunnelled: Kind = async load => {
  const client = await connectPeer(load.gateway.port)
  client.send('GET /ws/it HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await takeHead(client)
  let word = 0
  await again(load, async () => {
    client.send(`<${++word}>`)
    await client.untilText(`<${word}>`)
    client.take()
  })
  assert.equal(client.ending, '')
  client.destroy()
}

async function named(name: string): Promise<StrictBackend> {
  const backend = await StrictBackend.listen(() => {
    // The log of thousands of reloads is not kept.
    backend.requests.length = 0
    return `HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${name}`
  })
  return backend
}

/** Accepts the upgrade and echoes everything. */
async function echo(peer: Peer): Promise<void> {
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  while (peer.ending === '' && !peer.isClosed) {
    await peer.changed()
    if (peer.length > 0) peer.send(peer.take())
  }
  peer.end()
}

/** The change of each reload, by its number. */
function change(at: Home, number: number, urls: readonly string[], elsewhere: string): void {
  const [a, b] = number % 2 === 0 ? urls : [...urls].reverse()
  if (number % 3 === 0) putApi(at, 'Test', 't', a!)
  else putApi(at, 'Test', 't', a!, b!)
  const other = `other${number % 7}`
  if (number % 5 < 3) putApi(at, other, other, `${a}/${number}`, `${elsewhere}/${number}`)
  else if (number >= 7) removeApi(at, other)
  // The tunnel and the download have outlived every reload.
  if (number % 10 === 0) putApi(at, 'Long', 'long', urls[0]!)
  if (number % 10 === 1) putApi(at, 'Long', 'long', `${elsewhere}/base`)
  if (number % 10 === 5) putApi(at, 'Ws', 'ws', urls[1]!)
  if (number % 10 === 1) putApi(at, 'Ws', 'ws', `${elsewhere}/ws`)
  const keys = `"http.socket.timeout" = ${100_000 + number}\n"http.user.agent.preserve" = ${number % 2 === 0}\n`
  if (number % 4 === 0) put(at, 'deployment.toml', `[transport.passthru_http]\n${keys}`)
}

test(`${RELOADS} reloads under load, and no request fails`, async t => {
  const backends = [await named('a'), await named('b')]
  const elsewhere = await ScriptedBackend.listen(peer => void serve(peer))
  const download = Promise.withResolvers<Peer>()
  async function serve(peer: Peer): Promise<void> {
    await peer.untilText('\r\n')
    if (peer.text.startsWith('GET /base/')) download.resolve(peer)
    else await echo(peer)
  }
  t.after(() => {
    for (const backend of [...backends, elsewhere]) backend.close()
  })
  const urls = backends.map(({ port }) => `http://127.0.0.1:${port}`)
  const other = `http://127.0.0.1:${elsewhere.port}`
  const at = home()
  change(at, 1, urls, other)
  const port = await freePort()
  const sets = ['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`]
  const gateway = await start(at, sets)
  let begun = Promise.withResolvers<void>()
  const load: Load = { gateway, isOver: false, answered: 0, next: begun.promise }
  const kinds = [lasting, passing, uploading, tunnelled]
  const loads = kinds.flatMap(kind => Array.from({ length: EACH }, () => kind(load)))
  const client = await connectPeer(port)
  client.send('GET /long/it HTTP/1.1\r\nHost: a\r\n\r\n')
  const source = await download.promise
  const length = (RELOADS / PIECE_EVERY) * 1000
  source.send(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)

  const failed = Promise.all(loads)
  for (let number = 2; number < 2 + RELOADS; number++) {
    change(at, number, urls, other)
    begun.resolve()
    begun = Promise.withResolvers()
    load.next = begun.promise
    const { outcome, errors, failures, restart } = await Promise.race([
      reload(gateway),
      failed.then(() => assert.fail()),
    ])
    assert.deepEqual([outcome, errors, failures, restart], ['applied', [], [], []])
    if (number % PIECE_EVERY === 0) source.send('x'.repeat(1000))
  }
  load.isOver = true
  begun.resolve()
  await failed
  const answer = await takeResponse(client)
  assert.deepEqual([answer.status, answer.body.length], [200, length])
  client.destroy()
  assert.ok(load.answered > RELOADS, `${load.answered} requests`)
  assert.deepEqual(
    gateway.program.events.filter(({ level }) => level !== 'info'),
    [],
  )
  const metrics = await ask(gateway.healthPort, 'GET', '/metrics')
  assert.doesNotMatch(metrics, /sluice_faults_total\{/)
  for (const backend of backends) assert.deepEqual(backend.violations, [])
  gateway.program.signal('SIGTERM')
  assert.deepEqual(await gateway.program.exited, { code: 0, signal: null })
})
