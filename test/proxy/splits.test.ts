/**
 * Property: a valid exchange in any pieces reaches the other side unchanged, in both directions. Many connections at
 * once, with several exchanges each, pipelined or sequential.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { type RandomMessage, randomRequest, randomResponse } from '../harness/random-messages.ts'
import { clientPlan, connectSecured, SECURED, SecuredBackend, serverPlan } from '../harness/secured-peers.ts'
import { parseRequest, parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const CONNECTIONS = IS_LONG ? 20_000 : 150
const AT_ONCE = 16

interface Exchange {
  readonly request: RandomMessage
  readonly response: RandomMessage
  readonly responseCuts: readonly number[]
}

const exchanges = new Map<string, Exchange>()
const failures: string[] = []
const begin = (peer: Peer) => void serve(peer).catch(error => failures.push(String(error)))
const backend = await ScriptedBackend.listen(begin)
const securedBackend = await SecuredBackend.listen({}, begin)
/** The smallest buffers, which are full most of the time. */
const SMALL = {
  io_buffer_size: 4096,
  'header.max_bytes': 4096,
  'target.max_bytes': 4096,
  'response.header.max_bytes': 4096,
  'pipeline.max_bytes': 1024,
  'trailer.max_bytes': 4096,
}
const ON_TLS = { kinds: ['https'], tlsServer: serverPlan(), tlsClients: { default: clientPlan() } } as const
const plainApis = [{ context: '/echo', port: backend.port }]
const securedApis = [{ context: '/echo', host: 'localhost', port: securedBackend.port, route: SECURED }]
/** Gateways without TLS and with TLS on both sides, each with default and with the smallest buffers. */
const plain = await Promise.all([startGateway(plainApis), startGateway(plainApis, { http: SMALL })])
const secured = await Promise.all([
  startGateway(securedApis, { ...ON_TLS }),
  startGateway(securedApis, { http: SMALL, ...ON_TLS }),
])
const gateways = [...plain, ...secured]
/** Chunks and parsers that the idle thread holds. */
const atRest = { chunks: arena.acquiredChunks, parsers: Parser.inUse }
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
  securedBackend.close()
})

function check(side: string, got: StrictMessage, sent: RandomMessage): void {
  const addedAt = side === 'request' ? got.lines.indexOf('Via: 1.1 sluice') : got.lines.findIndex(isId)
  const first = side === 'request' ? 1 : 0
  assert.equal(got.start, sent.start, `${side} line`)
  assert.deepEqual(got.lines.slice(first, addedAt), sent.fields, `${side} fields`)
  assert.ok(got.body.equals(Buffer.from(sent.body, 'latin1')), `${side} body of ${sent.body.length} bytes`)
  assert.deepEqual(got.trailers, sent.trailers, `${side} trailers`)
}

const isId = (line: string) => line.startsWith('activityid: ')

/** Serves a backend connection: checks each request and sends the planned response. */
async function serve(peer: Peer): Promise<void> {
  while (!peer.isClosed) {
    const request = parseRequest(peer.received, 0)
    if (request === undefined) {
      if (peer.ending !== '') {
        peer.end()
        return
      }
      await peer.changed()
      continue
    }
    peer.take(request.end)
    const key = request.target.split('/')[1]!
    const exchange = exchanges.get(key)
    assert.ok(exchange !== undefined, `a request that no client sent: ${request.start}`)
    exchanges.delete(key)
    check('request', request, exchange.request)
    await peer.sendCut(exchange.response.raw, exchange.responseCuts)
    if (exchange.response.framing === 'close') peer.end()
  }
}

async function receive(client: Peer, { request, response }: Exchange): Promise<void> {
  const method = request.start.slice(0, request.start.indexOf(' '))
  for (const interim of response.interims) {
    await client.untilLength(interim.length)
    assert.equal(client.take(interim.length), interim, 'interim response')
  }
  let got: StrictMessage | undefined
  await client.until(`a response to ${method}`, () => {
    got = parseResponse(client.received, 0, method, false)
    return got !== undefined || client.ending !== ''
  })
  assert.ok(got !== undefined, `ended by ${client.ending} within a response`)
  check('response', got, response)
  client.take(got.end)
}

/** Runs several exchanges on one client connection; `name` is the prefix of their keys. */
async function converse(random: Random, name: string): Promise<void> {
  const plans = Array.from({ length: random.between(1, 5) }, (_, i): Exchange => {
    const request = randomRequest(random, `${name}.${i}`)
    const response = randomResponse(random, request.start.slice(0, request.start.indexOf(' ')))
    const exchange = { request, response, responseCuts: random.cuts(response.raw.length) }
    exchanges.set(`${name}.${i}`, exchange)
    return exchange
  })
  const isPipelined = random.once(2)
  const through = random.pick(gateways)
  const client = secured.includes(through) ? (await connectSecured(through.port)).peer : await connectPeer(through.port)
  try {
    const raws = plans.map(({ request }) => request.raw)
    const parts = isPipelined ? [raws.join('')] : raws
    for (const [i, raw] of parts.entries()) {
      const sent = client.sendCut(raw, random.cuts(raw.length))
      for (const plan of isPipelined ? plans : [plans[i]!]) await receive(client, plan)
      await sent
    }
    if (random.once(2)) {
      client.end()
      assert.equal(await client.untilEnd(), 'FIN')
    }
    assert.equal(client.text, '', 'nothing follows the last response')
  } finally {
    client.destroy()
  }
}

test(`a valid exchange in any pieces reaches the other side unchanged (seed ${SEED})`, async () => {
  let started = 0
  const worker = async () => {
    while (started < CONNECTIONS) {
      const number = started++
      try {
        await converse(new Random(SEED + number), `c${number}`)
      } catch (error) {
        throw new Error(`SLUICE_SEED=${SEED + number} begins with this connection: ${error}`)
      }
      assert.deepEqual(failures, [])
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  assert.equal(exchanges.size, 0, 'every request reached the backend')
})

test('all chunks and parsers are released after the exchanges', async () => {
  for (const gateway of gateways) gateway.stop()
  await eventually('the end of every connection', () =>
    backend.peers.every(({ isClosed, ending }) => isClosed || ending !== ''),
  )
  assert.ok(arena.acquiredChunks <= atRest.chunks, `${arena.acquiredChunks - atRest.chunks} chunks are not released`)
  assert.equal(Parser.inUse, atRest.parsers)
})
