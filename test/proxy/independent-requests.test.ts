/**
 * Requests of one connection are independent: many kinds of requests on one connection, pipelined or sequential, get
 * the same responses as each on its own connection.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { OPEN_CORS, operation } from '../harness/filter-chain.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

/** Responds with the request; adds a CORS field for paths with `/own`. */
const backend = await StrictBackend.listen(({ start, lines }) => {
  const body = start.startsWith('HEAD ') ? '' : `${start} ${lines.join()}`.replace(/activityid: \S*/i, '')
  const own = start.includes('/own') ? 'Access-Control-Allow-Origin: https://backend.test\r\n' : ''
  const length = start.startsWith('HEAD ') ? 9 : body.length
  return `HTTP/1.1 200 OK\r\n${own}Content-Length: ${length}\r\n\r\n${body}`
})

function api(context: string, overrides: Partial<ApiPlan>): TestApi {
  return { context, port: backend.port, basePath: `/at${context}`, overrides }
}

const NAMED = { ...OPEN_CORS, origins: ['https://a.test', 'https://*.b.test'], credentials: true }
const DATES = { deprecatedAtMs: 1_700_000_000_000, sunsetMs: 1_900_000_000_000 }
const APIS = [
  api('/open', { cors: OPEN_CORS, resources: ['GET /*', 'POST /x', 'OPTIONS /o'].map(operation) }),
  api('/named', { cors: NAMED, resources: ['GET /x', 'GET /own', '* /any/{a}.{b}'].map(operation) }),
  api('/silent', { resources: ['GET /x', 'PUT /*'].map(operation) }),
  api('/old', { cors: NAMED, lifecycle: { state: 'DEPRECATED', ...DATES } }),
  api('/blocked', { cors: OPEN_CORS, lifecycle: { state: 'BLOCKED', ...DATES } }),
  api('/secret', { cors: NAMED, transports: ['https'] }),
  api('/hosted', { cors: OPEN_CORS, hosts: ['own.test'] }),
]

/** Delays some requests, so that others overtake them. */
const delay: Filter = {
  name: 'delay',
  request({ canonicalTarget }) {
    return canonicalTarget.includes('wait') ? turn().then(() => undefined) : undefined
  },
}
const gateway = await startGateway(APIS, {
  filters: [delay],
  hasFilterChain: true,
  cors: { ...NAMED, origins: ['null'] },
})
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

/** Takes a response, without the fields that differ each time. */
async function takeText(peer: Peer, { method }: Request): Promise<string> {
  await peer.untilText('\r\n\r\n')
  const head = peer.take(peer.text.indexOf('\r\n\r\n') + 4)
  const length = Number(/\r\nContent-Length: (\d+)/.exec(head)?.[1] ?? 0)
  const body = method === 'HEAD' ? 0 : length
  await peer.untilLength(body)
  return head.replace(/\r\n(?:activityid|Date): [^\r]*/gi, '') + peer.take(body)
}

test(`requests of one connection get the same responses as on separate connections (seed ${SEED})`, async () => {
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
      const response = await takeText(shared, request)
      assert.equal(response, alone.get(request.text), JSON.stringify(requests.slice(0, at + 1)))
      const status = response.slice(9, 12)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      // A refusal with an unread body ends the connection.
      if (response.includes('\r\nConnection: close\r\n')) break
    }
    shared.destroy()
  }
  const seen = [...statuses].filter(([, times]) => times > 10).map(([status]) => status)
  assert.deepEqual(seen.sort(), ['200', '400', '403', '404', '405', '503'])
})
