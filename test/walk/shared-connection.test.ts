/**
 * Nothing of a request is left for the next one of its connection: many kinds of requests, one behind the other and
 * waiting for each other, are answered as each is on a connection of its own.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { ApiPlan } from '../../src/plan.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { OPEN_CORS, operation } from '../harness/chained.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

/** Tells what it was asked; speaks of CORS itself where the path says so. */
const backend = await AnsweringBackend.listen(({ start, lines }) => {
  const body = start.startsWith('HEAD ') ? '' : `${start} ${lines.join()}`.replace(/activityid: \S*/i, '')
  const own = start.includes('/own') ? 'Access-Control-Allow-Origin: https://backend.test\r\n' : ''
  const length = start.startsWith('HEAD ') ? 9 : body.length
  return `HTTP/1.1 200 OK\r\n${own}Content-Length: ${length}\r\n\r\n${body}`
})

function api(context: string, unlike: Partial<ApiPlan>): TestApi {
  return { context, port: backend.port, basePath: `/at${context}`, unlike }
}

const NAMED = { ...OPEN_CORS, origins: ['https://a.test', 'https://*.b.test'], credentials: true }
const LIFE = { deprecatedAtMs: 1_700_000_000_000, sunsetMs: 1_900_000_000_000 }
const APIS = [
  api('/open', { cors: OPEN_CORS, resources: ['GET /*', 'POST /x', 'OPTIONS /o'].map(operation) }),
  api('/named', { cors: NAMED, resources: ['GET /x', 'GET /own', '* /any/{a}.{b}'].map(operation) }),
  api('/silent', { resources: ['GET /x', 'PUT /*'].map(operation) }),
  api('/old', { cors: NAMED, lifecycle: { state: 'DEPRECATED', ...LIFE } }),
  api('/blocked', { cors: OPEN_CORS, lifecycle: { state: 'BLOCKED', ...LIFE } }),
  api('/secret', { cors: NAMED, transports: ['https'] }),
  api('/hosted', { cors: OPEN_CORS, hosts: ['own.test'] }),
]

/** Some requests wait, so that others take their way meanwhile. */
const waits: Handler = {
  name: 'waits',
  request({ target }) {
    return target.includes('wait') ? turn().then(() => undefined) : undefined
  },
}
const gateway = await startGateway(APIS, {}, null, [waits], { isChained: true, cors: { ...NAMED, origins: ['null'] } })
after(() => {
  gateway.stop()
  backend.close()
})

const CONTEXTS = [
  '/open',
  '/named',
  '/silent',
  '/old',
  '/blocked',
  '/secret',
  '/hosted',
  '/none',
  '/none/../open',
  '//named',
]
const RESTS = ['/x', '/x/', '/own', '/any/a.b', '/any/a', '/o', '/wait', '/x?wait', '', '/%78', '/y/../x', '/;', '?q']
const FIELDS = [
  ...['', '', 'Origin: https://a.test\r\n', 'Origin: https://c.b.test\r\n', 'Origin: https://evil.test\r\n'],
  ...[
    'Origin: null\r\n',
    'Accept: application/xml\r\n',
    'TE: trailers\r\nConnection: TE\r\n',
    'X-Forwarded-Host: x\r\n',
  ],
  'Origin: https://a.test\r\nAccess-Control-Request-Method: GET\r\n',
]

interface Request {
  readonly method: string
  readonly text: string
}

function randomRequest(random: Random): Request {
  const method = random.pick(['GET', 'GET', 'GET', 'OPTIONS', 'OPTIONS', 'HEAD', 'POST', 'PUT'])
  const form = random.once(6) ? 'http://own.test' : ''
  const target = random.once(20)
    ? method === 'OPTIONS'
      ? '*'
      : '/'
    : form + random.pick(CONTEXTS) + random.pick(RESTS)
  const host = random.pick(['a.test', 'own.test', 'OWN.test:1'])
  const body = method === 'POST' || method === 'PUT' ? random.text(random.below(4), 'ab') : ''
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  return { method, text: `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${random.pick(FIELDS)}${length}\r\n${body}` }
}

/** Without what differs each time. */
async function takeText(peer: Peer, { method }: Request): Promise<string> {
  await peer.untilText('\r\n\r\n')
  const head = peer.take(peer.text.indexOf('\r\n\r\n') + 4)
  const length = Number(/\r\nContent-Length: (\d+)/.exec(head)?.[1] ?? 0)
  const body = method === 'HEAD' ? 0 : length
  await peer.untilLength(body)
  return head.replace(/\r\n(?:activityid|Date): [^\r]*/gi, '') + peer.take(body)
}

test(`requests of one connection are answered as each is alone (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  const alone = new Map<string, string>()
  const statuses = new Map<string, number>()
  for (let round = 0; round < (IS_LONG ? 5000 : 60); round++) {
    const requests = Array.from({ length: random.between(2, 12) }, () => randomRequest(random))
    for (const request of requests) {
      if (alone.has(request.text)) continue
      const peer = await connectPeer(gateway.port)
      peer.send(request.text)
      alone.set(request.text, await takeText(peer, request))
      peer.destroy()
    }
    const shared = await connectPeer(gateway.port)
    const isPipelined = random.once(2)
    if (isPipelined) shared.send(requests.map(({ text }) => text).join(''))
    for (const [at, request] of requests.entries()) {
      if (!isPipelined) shared.send(request.text)
      const answer = await takeText(shared, request)
      assert.equal(answer, alone.get(request.text), JSON.stringify(requests.slice(0, at + 1)))
      const status = answer.slice(9, 12)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      // A refusal in front of a body ends the connection.
      if (answer.includes('\r\nConnection: close\r\n')) break
    }
    shared.destroy()
  }
  const seen = [...statuses].filter(([, times]) => times > 10).map(([status]) => status)
  assert.deepEqual(seen.sort(), ['200', '400', '403', '404', '405', '503'])
})
