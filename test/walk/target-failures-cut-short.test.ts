/**
 * A backend that fails when its response has begun. It cannot be taken back, so the client must see that it is not
 * whole: what came is passed on, nothing is made up, and the connection is reset (RFC 9112 8).
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'

const TIMEOUT_MS = 200

const backend = await ScriptedBackend.listen()
const apis = [{ context: '/t', port: backend.port }]
const patient = await startGateway(apis, {}, 'json')
const hasty = await startGateway(apis, { 'http.socket.timeout': TIMEOUT_MS }, 'json')

after(() => {
  patient.stop()
  hasty.stop()
  backend.close()
})

const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n'
const GET_1_0 = 'GET /t/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'
/** Half of an upload. */
const POST = 'POST /t/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234'

const LENGTH = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const UNTIL_CLOSE = 'HTTP/1.1 200 OK\r\n\r\n'

/** What the backend sends, and the body bytes that reach a client, on the wire, in HTTP/1.1 and HTTP/1.0. */
const BEGINNINGS: readonly (readonly [name: string, sent: string, wire: string, wire10: string])[] = [
  ['a length, no byte of it', LENGTH, '', ''],
  ['a length, some of it', `${LENGTH}12345`, '12345', '12345'],
  ['chunks, none yet', CHUNKED, '', ''],
  ['chunks, one whole', `${CHUNKED}5\r\n12345\r\n`, '5\r\n12345\r\n', '12345'],
  ['chunks, within one', `${CHUNKED}a\r\n12345`, '5\r\n12345\r\n', '12345'],
  ['chunks, within a size line', `${CHUNKED}5\r\n12345\r\n1`, '5\r\n12345\r\n', '12345'],
  ['chunks, within the last one', `${CHUNKED}5\r\n12345\r\n0\r\n`, '5\r\n12345\r\n', '12345'],
  ['chunks, within the trailers', `${CHUNKED}5\r\n12345\r\n0\r\nX-Sum: 1`, '5\r\n12345\r\n', '12345'],
]
const WITHOUT_END: (typeof BEGINNINGS)[number] = ['no framing', `${UNTIL_CLOSE}12345`, '5\r\n12345\r\n', '12345']

interface Loss {
  readonly name: string
  readonly lose: (peer: Peer) => void
  readonly base: number
  readonly hasty?: true
  readonly beginnings: typeof BEGINNINGS
}

const LOSSES: readonly Loss[] = [
  { name: 'closed', lose: peer => peer.end(), base: 101505, beginnings: BEGINNINGS },
  { name: 'reset', lose: peer => peer.reset(), base: 101501, beginnings: [...BEGINNINGS, WITHOUT_END] },
  {
    name: 'silent',
    lose: () => {},
    base: 101504,
    hasty: true,
    beginnings: [BEGINNINGS[1]!, BEGINNINGS[4]!, WITHOUT_END],
  },
  {
    name: 'garbage where a chunk should be',
    lose: peer => peer.send('zz\r\n'),
    base: 101506,
    beginnings: [BEGINNINGS[2]!, BEGINNINGS[3]!],
  },
]

function counted(gateway: TestGateway, base: number): number {
  return gateway.metrics().faults.find(it => it.side === 'target' && it.base === base && it.state === 5)?.count ?? 0
}

interface Variant {
  readonly name: string
  readonly request: string
  readonly is10: boolean
}
const VARIANTS: readonly Variant[] = [
  { name: '', request: GET, is10: false },
  { name: ' to a 1.0 client', request: GET_1_0, is10: true },
  { name: ' with the request unfinished', request: POST, is10: false },
]

for (const { name: loss, lose, base, hasty: isHasty, beginnings } of LOSSES) {
  for (const [beginning, sent, wire, wire10] of beginnings) {
    for (const { name, request, is10 } of VARIANTS) {
      test(`${loss} after ${beginning}${name}: ${base + 5}, cut short by a reset`, async () => {
        const gateway = isHasty ? hasty : patient
        const from = gateway.reports.length
        const before = counted(gateway, base)
        backend.skip()
        const client = await connectPeer(gateway.port)
        client.send(request)
        const peer = await backend.next()
        await peer.untilText(request === POST ? '01234' : '\r\n\r\n')
        peer.send(sent)
        const expected = is10 ? wire10 : wire
        await client.until('the beginning', () => client.text.includes('\r\n\r\n') && client.text.endsWith(expected))
        lose(peer)

        assert.equal(await client.untilEnd(), 'RST')
        const [head, body] = client.text.split(/(?<=\r\n\r\n)/)
        assert.match(head!, /^HTTP\/1\.1 200 OK\r\n/)
        assert.equal(client.text.slice(head!.length), expected, `body ${body}`)
        const [line, ...others] = gateway.reports.slice(from).filter(({ event }) => event === 'back end failed')
        assert.equal(others.length, 0)
        assert.equal(line?.level, 'warn')
        assert.equal(line.fields.ERROR_CODE, base + 5)
        assert.equal(line.fields.INTERNAL_STATE, 5)
        assert.equal(line.fields.DIRECTION, 'RESPONSE')
        assert.equal(counted(gateway, base), before + 1)
        await peer.untilEnd()
      })
    }
  }
}

test('the access log tells a response cut short from a whole one', async () => {
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
