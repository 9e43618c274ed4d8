/**
 * Property: whatever a backend sends, a client never gets two responses to one request, an incomplete response that
 * looks complete, or the response to another request. After each mutated response another client sends a request, which
 * must get its own response on whatever backend connection.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { FRAMING_RESPONSES } from '../corpus/framing-responses.ts'
import { HEAD_RESPONSES } from '../corpus/head-responses.ts'
import { startGateway } from '../harness/gateway.ts'
import { mutate } from '../harness/mutation.ts'
import { runMutations } from '../harness/mutation-run.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG, type Random, SEED } from '../harness/random.ts'
import { parseRequest, parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const MUTATIONS = IS_LONG ? 300_000 : 1200
const AT_ONCE = 12
/** After so many turns without a complete response, the backend closes its connection. */
const CLOSE_AFTER_TURNS = 12
const TURNS_MAX = 20_000

const SAMPLES = [...FRAMING_RESPONSES, ...HEAD_RESPONSES].map(({ raw }) => raw)

/** Responses of the backend by target; the response to any other request has the target as its body. */
const planned = new Map<string, string>()
const backend = await ScriptedBackend.listen(peer => void serve(peer))
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
/** Chunks and parsers that the idle thread holds. */
const atRest = { chunks: arena.acquiredChunks, parsers: Parser.inUse }
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
    // In one write: bytes that arrive after the end of a response could reach the next request.
    if (plan !== undefined) peer.send(plan)
    else peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${request.target.length}\r\n\r\n${request.target}`)
  }
  peer.destroy()
  backend.forget(peer)
}

/** Waits for the final response; undefined when the connection is reset instead. */
async function final(client: Peer, method: string, closeBackend: () => void): Promise<StrictMessage | undefined> {
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
      assert.equal(client.ending, 'RST', `an incomplete response that ends with FIN: ${JSON.stringify(client.text)}`)
      return undefined
    }
    // A retried request is on another backend connection, which has to be closed as well.
    if (++turns % CLOSE_AFTER_TURNS === 0) closeBackend()
    assert.ok(turns < TURNS_MAX, `neither a response nor a reset: ${JSON.stringify(client.text)}`)
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
    // An incomplete response ends with its connection.
    const got = await final(client, method, () => servedBy.get(`/${key}`)?.end())
    if (got !== undefined) assert.ok(!got.lines.some(line => /^(keep-alive|upgrade|te):/i.test(line)))
    const own = `/own-${key}`
    other.send(`GET /echo${own} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const response = await final(other, 'GET', () => {})
    assert.equal(response?.body.toString('latin1'), own, 'the next request gets its own response')
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

test(`a mutated response never reaches the client as two responses (seed ${SEED})`, async () => {
  await runMutations(gateway, MUTATIONS, AT_ONCE, (random, seed) => attack(random, `${seed}`))
})

test('after mutated responses the gateway releases all memory', async () => {
  gateway.stop()
  await eventually('the end of every connection', () => backend.peers.length === 0)
  assert.ok(arena.acquiredChunks <= atRest.chunks, `${arena.acquiredChunks - atRest.chunks} chunks are not released`)
  assert.equal(Parser.inUse, atRest.parsers)
})
