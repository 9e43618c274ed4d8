/** Handlers that have to wait: the request is held back whole and in order; nothing of it is lost or sent twice. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Handler, Verdict } from '../../src/exchange/contract.ts'
import { refusal } from '../../src/exchange/outcome.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'

const backend = await AnsweringBackend.listen()
let verdict: () => Verdict
const handler: Handler = { name: 'waits', request: () => verdict() }
const gateway = await startGateway([{ context: '/echo', port: backend.port }], {}, null, [handler])
after(() => {
  gateway.stop()
  backend.close()
})

/** Lets the test decide when the handler answers; `asked` says that it was called. */
function held() {
  const decision = Promise.withResolvers<ReturnType<typeof refusal> | undefined>()
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  verdict = () => {
    ask()
    return decision.promise
  }
  return { ...decision, asked }
}

const HEAD = 'POST /echo/a HTTP/1.1\r\nHost: h.test\r\n'
const REQUESTS: readonly (readonly [string, string, string])[] = [
  ['no body', 'GET /echo/a HTTP/1.1\r\nHost: h.test\r\n\r\n', ''],
  ['Content-Length', `${HEAD}Content-Length: 5\r\n\r\nhello`, 'hello'],
  ['an empty body', `${HEAD}Content-Length: 0\r\n\r\n`, ''],
  ['chunks', `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n`, 'hello'],
  ['a long body', `${HEAD}Content-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`, 'x'.repeat(200_000)],
]

describe('a request that waits for a handler', () => {
  for (const [name, raw, body] of REQUESTS) {
    for (const how of ['whole', 'head first', 'in small pieces']) {
      test(`${name}, sent ${how}, reaches the backend once and whole`, async () => {
        const before = backend.requests.length
        const decision = held()
        const client = await connectPeer(gateway.port)
        const headEnd = raw.indexOf('\r\n\r\n') + 4
        if (how === 'whole') client.send(raw)
        else if (how === 'head first') await client.sendCut(raw, [headEnd])
        else
          await client.sendCut(
            raw,
            [3, 20, headEnd - 1, headEnd, headEnd + 2].filter(cut => cut < raw.length),
          )
        await decision.asked
        assert.equal(backend.requests.length, before, 'nothing is sent before the handler has decided')
        decision.resolve(undefined)
        await client.untilText('\r\n\r\nok')
        assert.equal(backend.requests.length, before + 1)
        assert.equal(backend.requests.at(-1)!.body.toString('latin1'), body)
        client.destroy()
      })
    }
  }
})

test('pipelined requests behind one that waits are answered in order', async () => {
  const decision = held()
  const client = await connectPeer(gateway.port)
  client.send('GET /echo/1 HTTP/1.1\r\nHost: h\r\n\r\nGET /echo/2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  await decision.asked
  const before = backend.requests.length
  decision.resolve(undefined)
  verdict = () => undefined
  await client.untilEnd()
  assert.deepEqual(
    backend.requests.slice(before).map(({ start }) => start),
    ['GET /1 HTTP/1.1', 'GET /2 HTTP/1.1'],
  )
})

test('a refusal that was waited for is answered', async () => {
  const decision = held()
  const client = await connectPeer(gateway.port)
  client.send(`${HEAD}Content-Length: 5\r\n\r\nhel`)
  await decision.asked
  decision.resolve(refusal(404))
  await client.untilText('"code":404')
  client.destroy()
})

test('a handler that fails is a fault, not a hang', async () => {
  const decision = held()
  const client = await connectPeer(gateway.port)
  client.send('GET /echo/a HTTP/1.1\r\nHost: h.test\r\n\r\n')
  await decision.asked
  decision.reject(new Error('a bug'))
  await client.untilText('"code":500')
  client.destroy()
})

test('requests that one promise releases together go out each as its own', async () => {
  const decision = held()
  const clients = await Promise.all(Array.from({ length: 20 }, () => connectPeer(gateway.port)))
  backend.answer = ({ target }) => `HTTP/1.1 200 OK\r\nContent-Length: ${target.length}\r\n\r\n${target}`
  // Twice, so that the second time every request finds a pooled connection.
  for (let round = 0; round < 2; round++) {
    const shared = round === 0 ? decision : held()
    let asked = 0
    verdict = () => {
      asked++
      return shared.promise
    }
    for (const [i, client] of clients.entries())
      client.send(`GET /echo/round-${round}-client-${i} HTTP/1.1\r\nHost: h\r\n\r\n`)
    await eventually('all of them wait', () => asked === clients.length)
    shared.resolve(undefined)
    await Promise.all(clients.map((client, i) => client.untilText(`\r\n\r\n/round-${round}-client-${i}`)))
    for (const client of clients) client.take()
  }
  for (const client of clients) client.destroy()
  backend.answer = () => 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
})

test('a body that came whole before the client ended its side is passed on', async () => {
  const first = held()
  const before = backend.requests.length
  const client = await connectPeer(gateway.port)
  client.send(`GET /echo/1 HTTP/1.1\r\nHost: h\r\n\r\n${HEAD}Content-Length: 5\r\n\r\nhello`)
  client.end()
  await first.asked
  const second = held()
  first.resolve(undefined)
  await second.asked
  second.resolve(undefined)
  await client.untilEnd()
  assert.equal(backend.requests.length, before + 2)
  assert.equal(backend.requests.at(-1)!.body.toString('latin1'), 'hello')
})

test('a client that leaves meanwhile takes its request along', async () => {
  const decision = held()
  const before = backend.requests.length
  const lost = gateway.metrics().counts.connectionsReset
  const client = await connectPeer(gateway.port)
  client.send('GET /echo/a HTTP/1.1\r\nHost: h.test\r\n\r\n')
  await decision.asked
  client.reset()
  await eventually('the connection is gone', () => gateway.metrics().counts.connectionsReset > lost)
  decision.resolve(undefined)
  const other = await connectPeer(gateway.port)
  verdict = () => undefined
  other.send('GET /echo/b HTTP/1.1\r\nHost: h.test\r\n\r\n')
  await other.untilText('\r\n\r\nok')
  assert.equal(backend.requests.length, before + 1)
  other.destroy()
})
