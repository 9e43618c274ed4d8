/**
 * A backend that fails after its response has begun (RFC 9112 8). The client must see that the response is incomplete:
 * it gets the received bytes and nothing else, and its connection is reset.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { countedFailures } from '../harness/failures.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'

const TIMEOUT_MS = 500

const backend = await ScriptedBackend.listen()
const apis = [{ context: '/t', port: backend.port }]
const patient = await startGateway(apis, { accessLog: 'json' })
const impatient = await startGateway(apis, { http: { 'http.socket.timeout': TIMEOUT_MS }, accessLog: 'json' })

after(() => {
  patient.stop()
  impatient.stop()
  backend.close()
})

const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n'
const GET_1_0 = 'GET /t/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'
/** A request with half of its body. */
const POST = 'POST /t/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234'

const LENGTH = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const UNTIL_CLOSE = 'HTTP/1.1 200 OK\r\n\r\n'

/** The beginning of a response, and the encoded body that reaches an HTTP/1.1 client and an HTTP/1.0 client. */
const BEGINNINGS: readonly (readonly [name: string, sent: string, wire: string, wire10: string])[] = [
  ['a head with Content-Length', LENGTH, '', ''],
  ['a part of a body with Content-Length', `${LENGTH}12345`, '12345', '12345'],
  ['a head with chunked', CHUNKED, '', ''],
  ['a complete chunk', `${CHUNKED}5\r\n12345\r\n`, '5\r\n12345\r\n', '12345'],
  ['a part of a chunk', `${CHUNKED}a\r\n12345`, '5\r\n12345\r\n', '12345'],
  ['a part of a chunk size line', `${CHUNKED}5\r\n12345\r\n1`, '5\r\n12345\r\n', '12345'],
  ['a part of the last chunk', `${CHUNKED}5\r\n12345\r\n0\r\n`, '5\r\n12345\r\n', '12345'],
  ['a part of the trailers', `${CHUNKED}5\r\n12345\r\n0\r\nX-Sum: 1`, '5\r\n12345\r\n', '12345'],
]
const WITHOUT_END: (typeof BEGINNINGS)[number] = [
  'a part of a body without framing',
  `${UNTIL_CLOSE}12345`,
  '5\r\n12345\r\n',
  '12345',
]

interface Failure {
  readonly name: string
  readonly fail: (peer: Peer) => void
  readonly base: number
  readonly timesOut?: true
  readonly beginnings: typeof BEGINNINGS
}

const FAILURES: readonly Failure[] = [
  { name: 'closes', fail: peer => peer.end(), base: 101505, beginnings: BEGINNINGS },
  { name: 'resets', fail: peer => peer.reset(), base: 101501, beginnings: [...BEGINNINGS, WITHOUT_END] },
  {
    name: 'is silent',
    fail: () => {},
    base: 101504,
    timesOut: true,
    beginnings: [BEGINNINGS[1]!, BEGINNINGS[4]!, WITHOUT_END],
  },
  {
    name: 'sends an invalid chunk',
    fail: peer => peer.send('zz\r\n'),
    base: 101506,
    beginnings: [BEGINNINGS[2]!, BEGINNINGS[3]!],
  },
]

interface Variant {
  readonly name: string
  readonly request: string
  readonly is10: boolean
}
const VARIANTS: readonly Variant[] = [
  { name: '', request: GET, is10: false },
  { name: ' to an HTTP/1.0 client', request: GET_1_0, is10: true },
  { name: ' during an upload', request: POST, is10: false },
]

for (const { name: failure, fail, base, timesOut, beginnings } of FAILURES) {
  for (const [beginning, sent, wire, wire10] of beginnings) {
    for (const { name, request, is10 } of VARIANTS) {
      test(`a backend that ${failure} after ${beginning}${name} causes ${base + 5} and a client reset`, async () => {
        const gateway = timesOut ? impatient : patient
        const from = gateway.reports.length
        const before = countedFailures(gateway, base, 5)
        backend.skip()
        const client = await connectPeer(gateway.port)
        client.send(request)
        const peer = await backend.next()
        await peer.untilText(request === POST ? '01234' : '\r\n\r\n')
        peer.send(sent)
        const expected = is10 ? wire10 : wire
        await client.until('the beginning', () => client.text.includes('\r\n\r\n') && client.text.endsWith(expected))
        fail(peer)

        assert.equal(await client.untilEnd(), 'RST')
        const [head, body] = client.text.split(/(?<=\r\n\r\n)/)
        assert.match(head!, /^HTTP\/1\.1 200 OK\r\n/)
        assert.equal(client.text.slice(head!.length), expected, `body ${body}`)
        const [line, ...others] = gateway.reports.slice(from).filter(({ event }) => event === 'backend failed')
        assert.equal(others.length, 0)
        assert.equal(line?.level, 'warn')
        assert.equal(line.fields.ERROR_CODE, base + 5)
        assert.equal(line.fields.INTERNAL_STATE, 5)
        assert.equal(line.fields.DIRECTION, 'RESPONSE')
        assert.equal(countedFailures(gateway, base, 5), before + 1)
        await peer.untilEnd()
      })
    }
  }
}

test('the access log records the failure of an incomplete response', async () => {
  backend.skip()
  const client = await connectPeer(patient.port)
  client.send('GET /t/cut?1 HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send(`${LENGTH}123`)
  await client.untilText('123')
  peer.end()
  await client.untilEnd()
  patient.stop()
  const line = patient.accessLines.find(it => it.includes('/t/cut?1'))
  const record = JSON.parse(line!)
  assert.equal(record.status, 200)
  assert.equal(record.response_body_bytes, 3)
  assert.equal(record.error_base, 101505)
  assert.equal(record.error_state, 5)
  assert.equal(record.source_state, 'RESPONSE_BODY')
  assert.equal(record.target_state, 'RESPONSE_BODY')
})
