/**
 * Property: whatever a backend sends, a client never gets two responses to one request, nor half of one that looks
 * whole, nor somebody else's; and the gateway serves on. Each mutated response is followed by a request of another
 * client, which must get its own answer whatever connection it goes out on.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { FRAMING_RESPONSES } from '../corpus/framing-responses.ts'
import { HEAD_RESPONSES } from '../corpus/head-responses.ts'
import { startGateway } from '../harness/gateway.ts'
import { mutate } from '../harness/mutation.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { parseRequest, parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const MUTATIONS = IS_LONG ? 300_000 : 1200
const AT_ONCE = 12
/** Longer than this the backend does not wait for a client that waits for more. */
const PATIENCE_TURNS = 12
const TURNS_MAX = 20_000

const SAMPLES = [...FRAMING_RESPONSES, ...HEAD_RESPONSES].map(({ raw }) => raw)

/** What the backend answers to a target; the body of everything else is its target. */
const planned = new Map<string, string>()
const backend = await ScriptedBackend.listen(peer => void serve(peer))
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
/** What the thread itself holds. */
const atRest = { chunks: arena.lentChunks, parsers: Parser.inUse }
after(() => {
  gateway.stop()
  backend.close()
})
const servedBy = new Map<string, Peer>()

async function serve(peer: Peer): Promise<void> {
  while (peer.ending === '' && !peer.isClosed) {
    const request = parseRequest(peer.received, 0)
    if (request === undefined) {
      await peer.changed()
      continue
    }
    peer.take(request.end)
    servedBy.set(request.target, peer)
    const plan = planned.get(request.target)
    // Whole: bytes that come after a response has ended may meet the next request, and nobody can tell them apart.
    if (plan !== undefined) peer.send(plan)
    else peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${request.target.length}\r\n\r\n${request.target}`)
  }
  peer.destroy()
  backend.forget(peer)
}

/** The final response to a client, or undefined when its connection is cut. */
async function final(client: Peer, method: string, patience: () => void): Promise<StrictMessage | undefined> {
  let at = 0
  let turns = 0
  for (;;) {
    const message = parseResponse(client.received, at, method, false)
    if (message !== undefined) {
      at = message.end
      if (message.status < 200) continue
      assert.equal(client.length, at, `something follows: ${JSON.stringify(client.text.slice(at))}`)
      return message
    }
    if (client.ending !== '') {
      assert.equal(client.ending, 'RST', `half a response with a clean end: ${JSON.stringify(client.text)}`)
      return undefined
    }
    // A request that is sent again on another connection is waited for anew.
    if (++turns % PATIENCE_TURNS === 0) patience()
    assert.ok(turns < TURNS_MAX, `neither answered nor cut: ${JSON.stringify(client.text)}`)
    await turn()
  }
}

async function attack(random: Random, key: string): Promise<void> {
  const raw = mutate(random, SAMPLES)
  const method = random.once(6) ? 'HEAD' : 'GET'
  planned.set(`/${key}`, raw)
  const [client, other] = await Promise.all([connectPeer(gateway.port), connectPeer(gateway.port)])
  try {
    client.send(`${method} /echo/${key} HTTP/1.1\r\nHost: a\r\n\r\n`)
    // A response that is not complete ends with its connection.
    const got = await final(client, method, () => servedBy.get(`/${key}`)?.end())
    if (got !== undefined) assert.ok(!got.lines.some(line => /^(keep-alive|upgrade|te):/i.test(line)))
    const own = `/own-${key}`
    other.send(`GET /echo${own} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const answer = await final(other, 'GET', () => {})
    assert.equal(answer?.body.toString('latin1'), own, 'the next request gets its own answer')
  } catch (error) {
    throw new Error(`${JSON.stringify(raw)}: ${error}`)
  } finally {
    client.reset()
    other.destroy()
    planned.delete(`/${key}`)
    servedBy.delete(`/${key}`)
    servedBy.delete(`/own-${key}`)
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

test(`mutated responses never become two (seed ${SEED})`, async () => {
  let started = 0
  const worker = async () => {
    while (started < MUTATIONS) {
      const seed = SEED + started++
      if (started % 1000 === 0) checkReports()
      try {
        await attack(new Random(seed), `${seed}`)
      } catch (error) {
        throw new Error(`SLUICE_SEED=${seed} begins with this: ${error}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  checkReports()
})

test('nothing stays with anybody', async () => {
  gateway.stop()
  await eventually('the end of every connection', () => backend.peers.length === 0)
  assert.ok(arena.lentChunks <= atRest.chunks, `${arena.lentChunks - atRest.chunks} chunks are still lent`)
  assert.equal(Parser.inUse, atRest.parsers)
})
