/**
 * Property: whatever a client sends, the backend never receives a smuggled request or bytes that a strict parser
 * refuses, and the gateway responds or closes, and still serves. 2,500 seeded mutations; a million in the long run.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { CHUNKED_REQUESTS } from '../corpus/chunked-requests.ts'
import { FIELD_REQUESTS } from '../corpus/field-requests.ts'
import { FRAMING_REQUESTS } from '../corpus/framing-requests.ts'
import { HOP_BY_HOP_REQUESTS } from '../corpus/hop-by-hop-requests.ts'
import { START_LINE_REQUESTS } from '../corpus/start-line-requests.ts'
import { startGateway } from '../harness/gateway.ts'
import { mutate } from '../harness/mutation.ts'
import { runMutations } from '../harness/mutation-run.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { IS_LONG, type Random, SEED } from '../harness/random.ts'
import { Malformed, parseRequest, parseResponse, type StrictMessage, valuesOf } from '../harness/strict-http.ts'

const MUTATIONS = IS_LONG ? 1_000_000 : 2500
const AT_ONCE = 24
/** The correlation id that the gateway generates; a client cannot guess one, so a smuggled request has none. */
const ID = /^[a-z0-9]{12}-[0-9a-z]+$/

const SAMPLES = [CHUNKED_REQUESTS, FIELD_REQUESTS, FRAMING_REQUESTS, HOP_BY_HOP_REQUESTS, START_LINE_REQUESTS]
  .flat()
  // The gateway would forward a correlation id of the client.
  .map(({ raw }) => raw.replaceAll('activityid', 'other'))

const seenIds = new Set<string>()
const violations: string[] = []
const backend = await ScriptedBackend.listen(peer => void serve(peer))
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
/** Chunks and parsers that the idle thread holds. */
const atRest = { chunks: arena.acquiredChunks, parsers: Parser.inUse }
after(() => {
  gateway.stop()
  backend.close()
})

/** Checks that the gateway composed the request: it has one new correlation id of the gateway. */
function checkRequest({ start, lines }: StrictMessage): void {
  const ids = valuesOf(lines, 'activityid')
  if (ids.length !== 1 || !ID.test(ids[0]!) || seenIds.has(ids[0]!)) violations.push(`${start}: ids ${ids.join(', ')}`)
  if (valuesOf(lines, 'host')[0] !== `127.0.0.1:${backend.port}`) violations.push(`${start}: host`)
  if (!lines.some(line => /^Via: 1\.[01] sluice$/.test(line))) violations.push(`${start}: no Via`)
  seenIds.add(ids[0] ?? '')
}

async function serve(peer: Peer): Promise<void> {
  try {
    while (!peer.isClosed) {
      const request = parseRequest(peer.received, 0)
      if (request === undefined) {
        if (peer.ending !== '') break
        await peer.changed()
        continue
      }
      peer.take(request.end)
      checkRequest(request)
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${request.method === 'HEAD' ? 0 : 2}\r\n\r\n`)
      if (request.method !== 'HEAD') peer.send('ok')
    }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    violations.push(`${error.message} in ${JSON.stringify(peer.text)}`)
  }
  peer.destroy()
  backend.forget(peer)
}

/** Checks that the client received complete responses, one after the other, and nothing else. */
function checkResponses(client: Peer, raw: string): void {
  const methods = [...raw.matchAll(/\bHEAD /g)].length
  let at = 0
  while (at < client.length) {
    // The test does not know which of several requests was HEAD; a body may be missing only if there was a HEAD.
    const response = parseResponse(client.received, at, 'GET', false)
    if (response === undefined && methods > 0) return
    assert.ok(response !== undefined, `an incomplete response: ${JSON.stringify(client.text.slice(at))}`)
    at = response.end
  }
}

/** Sends one mutated request, then FIN; the gateway must close the connection in any case. */
async function attack(random: Random): Promise<void> {
  const raw = mutate(random, SAMPLES)
  const client = await connectPeer(gateway.port)
  try {
    if (random.once(10)) await client.sendCut(raw, random.cuts(raw.length))
    else client.send(raw)
    client.end()
    const ending = await client.untilEnd()
    assert.deepEqual(violations, [])
    if (ending === 'FIN') checkResponses(client, raw)
  } catch (error) {
    throw new Error(`${JSON.stringify(raw)}: ${error}`)
  } finally {
    client.destroy()
  }
}

test(`a mutated request never reaches the backend as two requests (seed ${SEED})`, async () => {
  await runMutations(gateway, MUTATIONS, AT_ONCE, attack)
  assert.ok(seenIds.size > MUTATIONS / 10, `only ${seenIds.size} requests reached the backend`)
})

test('after mutated requests the gateway still serves and releases all memory', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  await client.untilText('ok')
  client.destroy()
  gateway.stop()
  await eventually('the end of every connection', () =>
    backend.peers.every(({ isClosed, ending }) => isClosed || ending !== ''),
  )
  assert.ok(arena.acquiredChunks <= atRest.chunks, `${arena.acquiredChunks - atRest.chunks} chunks are not released`)
  assert.equal(Parser.inUse, atRest.parsers)
})
