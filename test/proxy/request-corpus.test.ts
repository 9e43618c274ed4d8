/**
 * Sends every raw request of the corpus through a gateway in three ways: whole, byte by byte, and followed by the bytes
 * of another request. Compares what the backend receives, not only the status.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { CHUNKED_REQUESTS } from '../corpus/chunked-requests.ts'
import { FRAMING_REQUESTS } from '../corpus/framing-requests.ts'
import { START_LINE_REQUESTS } from '../corpus/start-line-requests.ts'
import { FIELD_REQUESTS } from '../corpus/field-requests.ts'
import { HOP_BY_HOP_REQUESTS } from '../corpus/hop-by-hop-requests.ts'
import { FORWARDED_REQUESTS } from '../corpus/forwarded-requests.ts'
import { LIMIT_REQUESTS } from '../corpus/limit-requests.ts'
import type { Reached, RequestCase } from '../corpus/request-case.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import type { TestGateway } from '../harness/gateway.ts'
import { gatewaysBySettings } from '../harness/gateways-by-settings.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const CORPUS: readonly (readonly [string, readonly RequestCase[]])[] = [
  ['framing', FRAMING_REQUESTS],
  ['chunks', CHUNKED_REQUESTS],
  ['request lines', START_LINE_REQUESTS],
  ['fields', FIELD_REQUESTS],
  ['hop by hop', HOP_BY_HOP_REQUESTS],
  ['forwarded', FORWARDED_REQUESTS],
  ['limits', LIMIT_REQUESTS],
]

const NEXT = 'GET /echo/next HTTP/1.1\r\nHost: next.test\r\n\r\n'
const SENTINEL = 'GET /echo/sentinel HTTP/1.1\r\nHost: sentinel.test\r\nConnection: close\r\n\r\n'

const WAYS: readonly (readonly [string, (client: Peer, raw: string) => Promise<void> | void, string])[] = [
  ['whole', (client, raw) => client.send(raw), ''],
  ['byte by byte', (client, raw) => client.sendBytewise(raw), ''],
  ['followed by another request', (client, raw) => client.send(raw + NEXT), NEXT],
]

const backend = await StrictBackend.listen()
const gatewayFor = gatewaysBySettings(backend.port)
after(() => backend.close())

/** The next response on a connection; undefined when the connection ends without one. */
async function nextResponse(client: Peer, method: string): Promise<StrictMessage | undefined> {
  let response: StrictMessage | undefined
  const read = () => parseResponse(client.received, 0, method, client.ending !== '')
  await client.until('a response', () => {
    response = read()
    return response !== undefined || client.ending !== ''
  })
  response ??= read()
  if (response !== undefined) client.take(response.end)
  return response
}

/** Checks that the gateway still serves; the backend has then read all bytes that were sent before. */
async function checkServing(gateway: TestGateway): Promise<void> {
  const client = await connectPeer(gateway.port)
  client.send(SENTINEL)
  const response = await nextResponse(client, 'GET')
  assert.equal(response?.status, 200, 'the gateway still serves')
  await client.untilEnd()
  client.destroy()
}

/** The field lines that the gateway adds by default. */
function addedLines({ host = 'gateway.test', chunked }: Reached): string[] {
  return [
    'Via: 1.1 sluice',
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Proto: http',
    ...(host === '' ? [] : [`X-Forwarded-Host: ${host}`]),
    'activityid: …',
    ...(chunked === true ? ['Transfer-Encoding: chunked'] : []),
  ]
}

function checkReached(request: StrictMessage, reached: Reached, raw: string): void {
  // RFC 9110 7.6.3: Via has the version of the received request.
  const via = raw.includes(' HTTP/1.0\r\n') ? 'Via: 1.0 sluice' : 'Via: 1.1 sluice'
  const added = (reached.added ?? addedLines(reached)).map(line => (line === 'Via: 1.1 sluice' ? via : line))
  const lines = request.lines.map(line => line.replace(/^activityid: [\w-]+$/, 'activityid: …'))
  assert.equal(request.start, reached.line)
  assert.deepEqual(
    lines,
    [`Host: ${reached.backendHost ?? `127.0.0.1:${backend.port}`}`, ...(reached.fields ?? []), ...added],
    'field lines',
  )
  assert.equal(request.body.toString('latin1'), reached.body ?? '', 'body')
  assert.deepEqual(request.trailers, reached.trailers ?? [], 'trailers')
}

const methodOf = (raw: string) => raw.slice(0, Math.max(raw.indexOf(' '), 0))

/** Checks that the connection serves the next request, or that it is closed and nothing more is read. */
async function checkEnd(client: Peer, { staysOpen, closes, reaches }: RequestCase, next: string): Promise<string[]> {
  if (staysOpen !== true && (reaches === undefined || closes === true)) {
    await client.untilEnd()
    assert.equal(client.text, '', 'nothing follows the last response')
    return []
  }
  if (next === '') client.send(NEXT)
  const response = await nextResponse(client, 'GET')
  assert.equal(response?.status, 200, 'the connection carries the next request')
  return ['GET /next HTTP/1.1']
}

async function run(row: RequestCase, send: (client: Peer, raw: string) => Promise<void> | void, next: string) {
  const gateway = await gatewayFor(row.http ?? {})
  const client = await connectPeer(gateway.port)
  try {
    backend.requests.length = 0
    await send(client, row.raw)
    const response = await nextResponse(client, methodOf(row.raw))
    assert.equal(response?.status, row.status, `status of ${response?.start}`)
    const following = await checkEnd(client, row, next)
    client.destroy()
    await checkServing(gateway)
    assert.deepEqual(backend.violations, [])
    const lines = backend.requests.map(({ start }) => start)
    const forwarded = row.reaches === undefined ? [] : [row.reaches.line]
    assert.deepEqual(lines, [...forwarded, ...following, 'GET /sentinel HTTP/1.1'], 'requests at the backend')
    if (row.reaches !== undefined) checkReached(backend.requests[0]!, row.reaches, row.raw)
    await checkLeftovers(row)
  } finally {
    client.destroy()
    backend.violations.length = 0
    backend.dropClosed()
  }
}

/** Checks that no partial request is left at the backend; that of an invalid body must end with its connection. */
async function checkLeftovers({ mayReachPartially }: RequestCase): Promise<void> {
  if (mayReachPartially !== true) assert.deepEqual(backend.partialRequests(), [], 'nothing else reached the backend')
  else
    await eventually('the closed backend connection', () =>
      backend.partialRequests().every(({ ending }) => ending !== ''),
    )
}

for (const [topic, rows] of CORPUS) {
  describe(topic, () => {
    for (const row of rows) {
      for (const [way, send, next] of WAYS) test(`${row.name} (${way})`, () => run(row, send, next))
    }
  })
}
