/**
 * Sends every raw response of the corpus through a gateway in three ways: whole, byte by byte, and followed by an
 * unrequested response. Compares what the client receives, and on which backend connection the next request is sent.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { FRAMING_RESPONSES } from '../corpus/framing-responses.ts'
import { HEAD_RESPONSES } from '../corpus/head-responses.ts'
import { DATE, GET, type Expected, type ResponseCase } from '../corpus/response-case.ts'
import type { TestGateway } from '../harness/gateway.ts'
import { gatewaysBySettings } from '../harness/gateways-by-settings.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { Malformed, parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const CORPUS: readonly (readonly [string, readonly ResponseCase[]])[] = [
  ['framing', FRAMING_RESPONSES],
  ['heads', HEAD_RESPONSES],
]

const EVIL = 'HTTP/1.1 200 OK\r\nX-Evil: yes\r\nContent-Length: 4\r\n\r\nevil'
const SECOND = 'GET /echo/second HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n'

const WAYS: readonly (readonly [string, (row: ResponseCase) => ResponseCase | undefined])[] = [
  ['whole', row => row],
  ['byte by byte', row => row],
  // Nothing can follow a body that ends with its connection.
  [
    'followed by another response',
    row => (row.ends === undefined ? { ...row, raw: row.raw + EVIL, reused: false } : undefined),
  ],
]

const backend = await ScriptedBackend.listen()
const gatewayFor = gatewaysBySettings(backend.port)
after(() => backend.close())

/** Waits for a request head on any backend connection and returns that connection. */
async function arrival(target: string): Promise<Peer> {
  const start = new RegExp(`^[A-Z]+ ${target} HTTP/1\\.1\r\n[^]*\r\n\r\n$`)
  let peer: Peer | undefined
  await eventually(`${target} at the backend`, () => {
    peer = backend.peers.find(({ text }) => start.test(text))
    return peer !== undefined
  })
  peer!.take()
  return peer!
}

/** Takes the interim responses and the final response; undefined when the final response never becomes complete. */
async function nextResponses(client: Peer, method: string) {
  const interims: string[] = []
  let final: StrictMessage | undefined
  await client.until('a response or the end', () => {
    for (;;) {
      const message = parseResponse(client.received, 0, method, client.ending === 'FIN')
      if (message === undefined) return client.ending !== ''
      const raw = client.take(message.end)
      if (message.status >= 200) {
        final = message
        return true
      }
      interims.push(raw)
    }
  })
  return { interims, final }
}

function checkGot(final: StrictMessage | undefined, got: Expected): void {
  assert.equal(final?.start, got.start)
  assert.equal(final.framing, got.framing ?? 'none')
  assert.equal(final.body.toString('latin1'), got.body ?? '')
  assert.deepEqual(final.trailers, got.trailers ?? [])
  const fields = got.fields ?? []
  const added = [
    'activityid: …',
    ...(fields.includes(DATE) ? [] : ['Date: …']),
    ...(got.framing === 'chunked' ? ['Transfer-Encoding: chunked'] : []),
    ...(got.closes === true ? ['Connection: close'] : []),
    ...(got.hasKeepAlive === true ? ['Connection: keep-alive'] : []),
  ]
  const lines = final.lines.map(line =>
    line.replace(/^activityid: [\w-]+$/, 'activityid: …').replace(/^Date: (?!Thu, 01 Jan 1970).*/, 'Date: …'),
  )
  assert.deepEqual(lines, [...fields, ...added])
}

/** Checks an incomplete response: the client gets no complete response, or a fault if nothing was sent before. */
async function checkCut(client: Peer, method: string): Promise<void> {
  const complete = () => parseResponse(client.received, 0, method, false)
  try {
    await client.until('a fault or the end', () => client.ending !== '' || complete() !== undefined)
    if (client.ending === '') assert.equal(complete()?.status, 502)
    else assert.equal(complete(), undefined)
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
  if (client.ending !== '') assert.equal(client.ending, 'RST', 'the client sees that the response is incomplete')
}

/** Checks whether the next request is sent on the same backend connection, and that it gets its own response. */
async function checkReuse(gateway: TestGateway, row: ResponseCase, first: Peer): Promise<void> {
  const client = await connectPeer(gateway.port)
  client.send(SECOND)
  const peer = await arrival('/second')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecond')
  const { final } = await nextResponses(client, 'GET')
  client.destroy()
  assert.equal(final?.body.toString('latin1'), 'second', 'the next client gets its own response')
  assert.equal(peer === first, row.reused, row.reused ? 'the connection is reused' : 'the connection is not reused')
}

async function run(row: ResponseCase, bytewise: boolean): Promise<void> {
  const gateway = await gatewayFor(row.http ?? {})
  const request = row.request ?? GET
  const method = request.slice(0, request.indexOf(' '))
  const client = await connectPeer(gateway.port)
  try {
    client.send(request)
    const peer = await arrival('/x')
    if (bytewise) await peer.sendBytewise(row.raw)
    else peer.send(row.raw)
    if (row.ends === 'FIN') peer.end()
    else if (row.ends === 'RST') {
      // The gateway must read the head before the reset, which discards unread bytes.
      await client.until('the head', ({ length }) => length > 0)
      peer.reset()
    }
    if (row.gets === 'cut') await checkCut(client, method)
    else {
      const { interims, final } = await nextResponses(client, method)
      if (row.gets === 'fault') assert.equal(final?.status, 502)
      else {
        assert.deepEqual(interims, row.gets.interims ?? [])
        checkGot(final, row.gets)
        if (row.gets.closes === true) await client.untilEnd()
      }
      assert.equal(client.text, '', 'nothing follows the response')
    }
    await checkReuse(gateway, row, peer)
  } finally {
    client.destroy()
    for (const peer of backend.peers.splice(0)) peer.destroy()
    backend.skip()
  }
}

for (const [topic, rows] of CORPUS) {
  describe(topic, () => {
    for (const row of rows) {
      for (const [way, change] of WAYS) {
        const changed = change(row)
        if (changed !== undefined) test(`${row.name} (${way})`, () => run(changed, way === 'byte by byte'))
      }
    }
  })
}
