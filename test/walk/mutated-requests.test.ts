/**
 * Property: whatever a client sends, the backend never receives two requests where the gateway meant one, nor anything
 * that a strict parser refuses; the gateway answers or closes, and serves on. 20,000 seeded mutations, a million in the
 * long run.
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
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { Malformed, parseRequest, parseResponse, type StrictMessage, valuesOf } from '../harness/strict-http.ts'

const MUTATIONS = IS_LONG ? 1_000_000 : 2500
const AT_ONCE = 24
/** The id that the gateway gives; no client can guess one, so a smuggled request has none. */
const ID = /^[a-z0-9]{12}-[0-9a-z]+$/

const SAMPLES = [CHUNKED_REQUESTS, FIELD_REQUESTS, FRAMING_REQUESTS, HOP_BY_HOP_REQUESTS, START_LINE_REQUESTS]
  .flat()
  // An id that a client brings along passes.
  .map(({ raw }) => raw.replaceAll('activityid', 'other'))

const seenIds = new Set<string>()
const violations: string[] = []
const backend = await ScriptedBackend.listen(peer => void serve(peer))
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
/** What the thread itself holds. */
const atRest = { chunks: arena.lentChunks, parsers: Parser.inUse }
after(() => {
  gateway.stop()
  backend.close()
})

/** Every request at the backend is one that the gateway composed: with one id of its own, used for no other. */
function judge({ start, lines }: StrictMessage): void {
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
      judge(request)
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

/** Answers to the client are whole messages, one behind the other, and nothing else. */
function checkAnswers(client: Peer, raw: string): void {
  const methods = [...raw.matchAll(/\bHEAD /g)].length
  let at = 0
  while (at < client.length) {
    // Which of several requests was HEAD is not ours to say: a body may be missing only if there was one.
    const answer = parseResponse(client.received, at, 'GET', false)
    if (answer === undefined && methods > 0) return
    assert.ok(answer !== undefined, `half an answer: ${JSON.stringify(client.text.slice(at))}`)
    at = answer.end
  }
}

/** Sends one mutation, then FIN: whatever the gateway makes of it, it must come to an end. */
async function attack(random: Random): Promise<void> {
  const raw = mutate(random, SAMPLES)
  const client = await connectPeer(gateway.port)
  try {
    if (random.once(10)) await client.sendCut(raw, random.cuts(raw.length))
    else client.send(raw)
    client.end()
    const ending = await client.untilEnd()
    assert.deepEqual(violations, [])
    if (ending === 'FIN') checkAnswers(client, raw)
  } catch (error) {
    throw new Error(`${JSON.stringify(raw)}: ${error}`)
  } finally {
    client.destroy()
  }
}

/** Nothing that happened was a bug of ours; reports that were looked at are forgotten. */
function checkReports(): void {
  const reports = gateway.reports as unknown as { level: string }[]
  assert.deepEqual(
    reports.splice(0).filter(({ level }) => level === 'error'),
    [],
  )
}

test(`mutated requests never become two (seed ${SEED})`, async () => {
  let started = 0
  const worker = async () => {
    while (started < MUTATIONS) {
      const seed = SEED + started++
      if (started % 1000 === 0) checkReports()
      try {
        await attack(new Random(seed))
      } catch (error) {
        throw new Error(`SLUICE_SEED=${seed} begins with this: ${error}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  assert.ok(seenIds.size > MUTATIONS / 10, `only ${seenIds.size} requests reached the back end`)
  checkReports()
})

test('the gateway serves on, and nothing stays with anybody', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  await client.untilText('ok')
  client.destroy()
  gateway.stop()
  await eventually('the end of every connection', () =>
    backend.peers.every(({ isClosed, ending }) => isClosed || ending !== ''),
  )
  assert.ok(arena.lentChunks <= atRest.chunks, `${arena.lentChunks - atRest.chunks} chunks are still lent`)
  assert.equal(Parser.inUse, atRest.parsers)
})
