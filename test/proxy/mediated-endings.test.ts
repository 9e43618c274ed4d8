/**
 * Mediated exchanges that do not end as they should: a client that leaves, or a backend that dies, in each state of the
 * exchange; workers that are late or never answer; and random interleavings of all of them.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { WorkerFailure } from '../../src/mediation/worker-service.ts'
import type { FlowResult, FlowTask } from '../../src/mediation/worker-task.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  going,
  raising,
  ScriptedWorker,
  textBody,
  unchanged,
  uppercase,
  workerFlows,
} from '../harness/scripted-worker.ts'

const MIB = 1024 * 1024
const LIMITS = { bytesMax: 32 * MIB, memoryMax: 50_000, pieceBytes: 3072 }
const LONG = 16 * MIB

/** A worker whose tasks wait until the test lets them go on. */
class HeldWorker extends ScriptedWorker {
  readonly waiting: { readonly task: FlowTask; readonly finish: PromiseWithResolvers<FlowResult> }[] = []
  /** Flows whose tasks wait. */
  held: readonly FlowTask['flow'][] = []
  constructor() {
    super()
    this.script = task => this.decide(task)
  }
  decide(task: FlowTask): FlowResult | Promise<FlowResult> {
    if (!this.held.includes(task.flow)) return unchanged(task)
    const finish = Promise.withResolvers<FlowResult>()
    this.waiting.push({ task, finish })
    return finish.promise
  }
  /** Resolves all waiting tasks. */
  finishAll(): void {
    for (const { task, finish } of this.waiting.splice(0)) finish.resolve(unchanged(task))
  }
}

const worker = new HeldWorker()
const backend = await ScriptedBackend.listen()
const gateway = await startGateway(
  [
    { context: '/both', port: backend.port, overrides: workerFlows('request', 'response', 'fault') },
    { context: '/in', port: backend.port, overrides: workerFlows('request') },
    { context: '/out', port: backend.port, overrides: workerFlows('response') },
    { context: '/dead', port: 1, overrides: workerFlows('request', 'fault') },
  ],
  { worker, bodies: LIMITS, http: { 'body.read_timeout': 1 } },
)
after(() => {
  gateway.stop()
  backend.close()
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function post(path: string, length: number): string {
  return `POST ${path}/x HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`
}

async function headOf(peer: Peer): Promise<string> {
  await peer.untilText('\r\n\r\n')
  return peer.take()
}

/** Brings an exchange into a state; returns its client. */
type Reach = (client: Peer) => Promise<void>

const STATES: Readonly<Record<string, Reach>> = {
  'the client waits for 100': async client => {
    client.send(`POST /both/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n`)
    await client.untilText('100 Continue')
  },
  'the request is collected in memory': async client => {
    client.send(`${post('/both', 100)}part`)
    await quiet()
  },
  'the request is collected in a file': async client => {
    client.send(`${post('/both', LONG)}${'a'.repeat(2 * MIB)}`)
    await eventually('a file', () => files().length > 0)
  },
  'the request is at the worker': async client => {
    worker.held = ['request']
    client.send(`${post('/both', 5)}hello`)
    await eventually('a task', () => worker.waiting.length === 1)
  },
  'a long request is at the worker': async client => {
    worker.held = ['request']
    client.send(`${post('/both', 200_000)}${'a'.repeat(200_000)}`)
    await eventually('a task', () => worker.waiting.length === 1)
  },
  'the request is fed to a backend that does not read': async client => {
    client.send(`${post('/both', LONG)}${'a'.repeat(LONG)}`)
    const peer = await backend.next()
    peer.pause()
    await quiet()
  },
  'the backend has the request': async client => {
    client.send(`${post('/both', 5)}hello`)
    await headOf(await backend.next())
  },
  'the response is collected': async client => {
    client.send(`${post('/both', 5)}hello`)
    const peer = await backend.next()
    await headOf(peer)
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${'a'.repeat(100_000)}`)
    await eventually('a file', () => files().length > 0)
  },
  'the response is at the worker': async client => {
    worker.held = ['response']
    client.send(`${post('/both', 5)}hello`)
    const peer = await backend.next()
    await headOf(peer)
    peer.send(OK)
    await eventually('a task', () => worker.waiting.length === 1)
  },
  'the response is fed to a client that does not read': async client => {
    client.pause()
    client.send(`${post('/both', 5)}hello`)
    const peer = await backend.next()
    await headOf(peer)
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG}\r\n\r\n${'a'.repeat(LONG)}`)
    await eventually('a response flow', () => worker.tasks.at(-1)?.flow === 'response')
    await quiet()
  },
  'the fault is at the worker': async client => {
    worker.held = ['fault']
    client.send(`${post('/dead', 5)}hello`)
    await eventually('a task', () => worker.waiting.length === 1)
  },
  'the response passes behind a mediated request': async client => {
    client.send(`${post('/in', 5)}hello`)
    const peer = await backend.next()
    await headOf(peer)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart')
    await client.untilText('part')
  },
}

function files(): string[] {
  return readdirSync(tmpdir()).filter(name => name.startsWith(`sluice-body-${process.pid}-`))
}

/** Nothing of an exchange is left: no connection of a client, chunk, parser, file or bug. */
async function assertClean(chunks: number): Promise<void> {
  worker.held = []
  worker.finishAll()
  await eventually('the end of all connections', () => {
    // A client that has sent FIN still gets its response: the request goes on to a backend, which dies here.
    for (const peer of backend.peers) peer.destroy()
    const { connectionsOpen, targetsOpen } = gateway.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
  backend.skip()
  await eventually('the end of all files', () => files().length === 0)
  await quiet()
  assert.equal(arena.acquiredChunks, chunks)
  assert.equal(Parser.inUse, 0)
  assert.deepEqual(
    gateway.reports.filter(({ event }) => event === 'bug'),
    [],
  )
}

async function chunksAtRest(): Promise<number> {
  const client = await connectPeer(gateway.port)
  client.send('GET /out/x HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await backend.next()
  await headOf(peer)
  peer.send(OK)
  await takeResponse(client)
  client.destroy()
  peer.destroy()
  await eventually('the end of all connections', () => gateway.metrics().counts.connectionsOpen === 0)
  return arena.acquiredChunks
}

const rest = await chunksAtRest()

for (const [state, reach] of Object.entries(STATES)) {
  for (const ending of ['reset', 'FIN'] as const) {
    test(`the client leaves (${ending}) while ${state}: nothing is left, and a late result is dropped`, async () => {
      const client = await connectPeer(gateway.port)
      await reach(client)
      if (ending === 'reset') client.reset()
      else client.destroy()
      await assertClean(rest)
    })
  }
}

const DEATHS: readonly (readonly [state: string, answer: RegExp])[] = [
  ['the request is fed to a backend that does not read', /^HTTP\/1\.1 502 /],
  ['the backend has the request', /^HTTP\/1\.1 502 /],
  ['the response is collected', /^HTTP\/1\.1 502 /],
]
for (const [state, answer] of DEATHS) {
  test(`the backend dies while ${state}: the fault flow words the fault`, async () => {
    const client = await connectPeer(gateway.port)
    await STATES[state]!(client)
    for (const peer of backend.peers) peer.reset()
    await client.untilText('\r\n\r\n')
    assert.match(client.text, answer)
    assert.equal(worker.tasks.at(-1)!.flow, 'fault')
    client.destroy()
    await assertClean(rest)
  })
}

test('the backend dies while its response passes: the client gets a reset, and no second response', async () => {
  const client = await connectPeer(gateway.port)
  await STATES['the response passes behind a mediated request']!(client)
  for (const peer of backend.peers) peer.reset()
  assert.equal(await client.untilEnd(), 'RST')
  await assertClean(rest)
})

test('an early response of the backend is collected while the rest of the request is still fed', async () => {
  const client = await connectPeer(gateway.port)
  client.send(`${post('/both', LONG)}${'a'.repeat(LONG)}`)
  const peer = await backend.next()
  peer.pause()
  await quiet()
  peer.send(OK)
  const { status, body } = await takeResponse(client)
  assert.deepEqual([status, body], [200, 'ok'])
  client.destroy()
  await assertClean(rest)
})

test('a body that stops is 408 although its start is collected; the time of a worker does not count', async () => {
  const client = await connectPeer(gateway.port)
  client.send(`${post('/both', 100)}part`)
  const { status } = await takeResponse(client)
  assert.equal(status, 408)
  client.destroy()
  worker.held = ['request']
  const other = await connectPeer(gateway.port)
  other.send(`${post('/both', 5)}hello`)
  await eventually('a task', () => worker.waiting.length === 1)
  // Longer than body.read_timeout, by the ticks of the reactor.
  await new Promise(resolve => setTimeout(resolve, 2500))
  assert.equal(other.text, '')
  worker.waiting.pop()!.finish.reject(new WorkerFailure('late', 'the test'))
  assert.equal((await takeResponse(other)).status, 504)
  other.destroy()
  await assertClean(rest)
})

// ---- random interleavings -------------------------------------------------------------------------------------------

/** One exchange with random lengths, cuts, results and endings on all sides. */
async function randomExchange(random: Random): Promise<void> {
  const path = random.pick(['/both', '/in', '/out', '/dead'])
  const length = random.pick([0, 1, 3000, 49_999, 60_000, 300_000])
  const client = await connectPeer(gateway.port)
  const request = post(path, length) + 'r'.repeat(length)
  worker.script = task => randomResult(task, random)
  const leaves = random.below(4) === 0 ? random.below(request.length) : -1
  const cuts = Array.from({ length: random.below(4) }, () => random.below(request.length)).sort((a, b) => a - b)
  const known = backend.peers.length
  const ending = { done: false }
  const serving = serve(random, known, ending)
  if (leaves >= 0) {
    await client.sendCut(request.slice(0, leaves), cuts)
    client.reset()
  } else {
    await client.sendCut(request, cuts)
    await client.until('a response or the end', () => isAnswered(client) || client.ending !== '')
    assert.match(client.text === '' ? 'HTTP/1.1 200 ' : client.text, /^HTTP\/1\.1 (?:200|202|500|502|503|504|429|202) /)
    client.destroy()
  }
  ending.done = true
  await serving
}

function isAnswered({ text }: Peer): boolean {
  const head = text.indexOf('\r\n\r\n')
  const length = /\r\ncontent-length: (\d+)/i.exec(text)
  return head >= 0 && length !== null && text.length >= head + 4 + Number(length[1])
}

/** Answers, or dies at a random place. */
async function serve(random: Random, known: number, ending: { readonly done: boolean }): Promise<void> {
  await eventually('a connection or the end', () => backend.peers.length > known || ending.done)
  const peer = backend.peers[known]
  if (peer === undefined) return
  const body = 'b'.repeat(random.pick([0, 2, 49_000, 200_000]))
  const response = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const fate = random.below(5)
  await eventually(
    'a head or the end',
    () => peer.text.includes('\r\n\r\n') || peer.isClosed || peer.ending !== '' || ending.done,
  )
  if (fate === 0) peer.reset()
  else if (fate === 1) {
    peer.send(response.slice(0, random.below(response.length)))
    peer.end()
  } else await peer.sendCut(response, [random.below(response.length)])
}

function randomResult(task: FlowTask, random: Random): FlowResult | Promise<FlowResult> {
  const result: FlowResult = [
    () => unchanged(task),
    () => uppercase(task),
    () => going(task.message, { body: textBody('n'.repeat(random.below(100_000))) }),
    () => raising(task, random.pick([0, 900800, 77])),
    () => ({ kind: 'drops' }) as const,
  ][random.below(5)]!()
  const failure = random.below(8) === 0 ? new WorkerFailure('died', 'the test') : null
  const delay = random.below(3)
  return new Promise((resolve, reject) => {
    const settle = () => (failure === null ? resolve(result) : reject(failure))
    if (delay === 0) settle()
    else if (delay === 1) setImmediate(settle)
    else setTimeout(settle, random.below(5))
  })
}

test(`random interleavings leave nothing behind (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  for (let round = 0; round < (IS_LONG ? 2000 : 150); round++) {
    await randomExchange(random)
    for (const peer of backend.peers) peer.destroy()
    if (round % 10 === 0) await assertClean(rest)
  }
  worker.script = task => worker.decide(task)
  await assertClean(rest)
})
