/** Limits on what is known late: bytes of bodies and tunnels, and messages of WebSocket connections. */
import assert from 'node:assert/strict'
import { listing } from '../throttle/counting.ts'
import { after, beforeEach, test } from 'node:test'
import { closeFrame } from '../../src/proxy/exchange/websocket-frames.ts'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import type { Quota } from '../../src/throttle/policy.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'
import { advanced, openApi, quota, securedApi, subscription, ThrottledGateway } from '../harness/throttled-gateway.ts'

const MINUTE = 60_000
const scripted = await ScriptedBackend.listen()
after(() => scripted.close())

const apisOf = (port: number) => [
  openApi(port, 'bytes', { tier: 'Tier' }),
  openApi(scripted.port, 'echo', { tier: 'Tier' }),
  securedApi(port, 'plain'),
]
const closing = await ThrottledGateway.start(apisOf)
const dropping = await ThrottledGateway.start(apisOf, { dropsMessages: true })

beforeEach(() => {
  closing.clock.ms += MINUTE
  dropping.clock.ms += MINUTE
})

const bytes = (limit: number): Quota => quota(limit, { type: 'bandwidth' })
const events = (limit: number): Quota => quota(limit, { type: 'events' })

// ---- bandwidth -----------------------------------------------------------------------------------------------------

test('requests pass while a byte is left; the bytes of both bodies are charged at the end', async () => {
  closing.apply([advanced('Tier', bytes(12))])
  // The backend answers `ok`.
  const body = 'POST /bytes/x HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n12345678'
  const client = await connectPeer(closing.gateway.port)
  client.send(body)
  await client.untilText('ok')
  client.destroy()
  assert.deepEqual(await closing.codes(2, '/bytes/x'), [0, 900800])
  closing.clock.ms += MINUTE
  assert.deepEqual(await closing.codes(1, '/bytes/x'), [0])
})

test('a window overruns by what is in flight when it is used up', async () => {
  closing.apply([advanced('Tier', bytes(3))])
  const responses = await Promise.all(Array.from({ length: 8 }, () => closing.request('/bytes/x')))
  const passed = responses.filter(({ code }) => code === 0).length
  assert.ok(passed >= 2, `${passed} passed`)
  assert.deepEqual(await closing.codes(1, '/bytes/x'), [900800])
})

test('a bandwidth quota of a subscription that does not stop marks the responses beyond it', async () => {
  closing.apply([subscription('Soft', bytes(3), { stopOnQuotaReach: false })])
  closing.token('soft', { subscription: 'Soft' }, 'plain')
  assert.deepEqual(await closing.codes(2, '/plain/x', 'soft'), [0, 0])
  const { code, fields } = await closing.request('/plain/x', 'soft')
  assert.deepEqual([code, fields.get('ratelimit')], [0, ['"Soft";r=0;t=60']])
})

// ---- messages ------------------------------------------------------------------------------------------------------

/** A frame of a client with an empty mask, or of a server. `first`: FIN and opcode. */
function frame(text: string, isMasked: boolean, first = 0x81): string {
  const length = Buffer.byteLength(text)
  const second = length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : [127, 0, 0, 0, 0]
  if (length >= 65_536) second.push((length >>> 24) & 255, (length >>> 16) & 255, (length >>> 8) & 255, length & 255)
  if (isMasked) second[0]! |= 0x80
  return Buffer.from([first, ...second, ...(isMasked ? [0, 0, 0, 0] : [])]).toString('latin1') + text
}

const ofClient = (text: string, first?: number) => frame(text, true, first)
const ofServer = (text: string, first?: number) => frame(text, false, first)

async function open(of: ThrottledGateway): Promise<{ readonly client: Peer; readonly peer: Peer }> {
  const client = await connectPeer(of.gateway.port)
  client.send(upgradeRequest())
  const peer = await scripted.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(switchingProtocols())
  await takeHead(client)
  return { client, peer }
}

/** Status and reason of a close frame at the start of the bytes. */
function closed(text: string): string {
  const received = Buffer.from(text, 'latin1')
  assert.equal(received[0], 0x88)
  const isMasked = (received[1]! & 0x80) !== 0
  const length = received[1]! & 0x7f
  const mask = isMasked ? received.subarray(2, 6) : Buffer.alloc(4)
  const from = isMasked ? 6 : 2
  const payload = Buffer.from(received.subarray(from, from + length).map((byte, i) => byte ^ mask[i % 4]!))
  return `${isMasked ? 'masked ' : ''}${payload.readUInt16BE(0)} ${payload.subarray(2).toString('latin1')}`
}

const REASON = '1008 900800 Message throttled out'

test('messages of both directions count; the one too many closes both sides with 1008 and the code', async () => {
  closing.apply([advanced('Tier', events(3))])
  const { client, peer } = await open(closing)
  client.send(ofClient('one'))
  await peer.untilText('one')
  peer.take()
  peer.send(ofServer('two') + ofServer('three'))
  await client.untilText('three')
  client.take()
  client.send(ofClient('four'))
  await client.untilText('throttled out')
  await peer.untilLength(closeFrame(1008, REASON.slice(5), true).length)
  assert.equal(closed(client.text), REASON)
  assert.equal(closed(peer.text), `masked ${REASON}`)
  client.send(closeFrame(1008, '', true))
  peer.send(closeFrame(1008, '', false))
  await eventually('the end of both sides', () => client.ending !== '' && peer.ending !== '')
  assert.deepEqual([client.ending, peer.ending], ['FIN', 'FIN'])
  const { fields } = closing.gateway.reports.findLast(({ event }) => event === 'tunnel closed')!
  assert.match(String(fields.CAUSE_OF_ERROR), /900800 Message throttled out/)
})

test('a message under way in the other direction ends before the close frame', async () => {
  closing.apply([advanced('Tier', events(2))])
  const { client, peer } = await open(closing)
  const long = ofServer('x'.repeat(70_000))
  peer.send(long.slice(0, 30_000))
  await client.untilLength(30_000)
  client.send(ofClient('one') + ofClient('two'))
  await peer.untilText('one')
  await quiet()
  peer.send(long.slice(30_000))
  await client.untilText('throttled out')
  assert.equal(client.text.slice(0, long.length), long)
  assert.equal(closed(client.text.slice(long.length)), REASON)
})

test('control frames and further frames of a message are no events', async () => {
  closing.apply([advanced('Tier', events(2))])
  const { client, peer } = await open(closing)
  const sent = [
    ofClient('a', 0x01),
    ofClient('ping', 0x89),
    ofClient('b', 0x00),
    ofClient('c', 0x80),
    ofClient('pong', 0x8a),
    ofClient('last', 0x82),
  ]
  for (const part of sent) client.send(part)
  await peer.untilText('last')
  assert.equal(peer.text, sent.join(''))
})

test('frames are found wherever reads cut them', async () => {
  closing.apply([advanced('Tier', events(3))])
  const { client, peer } = await open(closing)
  const all = ofClient('one') + ofClient('y'.repeat(300)) + ofClient('three')
  for (const byte of all) {
    client.send(byte)
    await peer.untilLength(1)
  }
  await peer.untilLength(all.length)
  assert.equal(peer.text, all)
  client.send(ofClient('four').slice(0, 1))
  await client.untilText('throttled out')
})

test('with throttled_messages = "drop" whole messages are left out, and the next window lets pass again', async () => {
  dropping.apply([advanced('Tier', events(2))])
  const { client, peer } = await open(dropping)
  const before = dropping.gateway.metrics().counts.throttleMessagesDropped
  const parts = [
    ofClient('one') + ofClient('two') + ofClient('gone', 0x01),
    ofClient('ping', 0x89),
    ofClient('too', 0x80),
  ]
  client.send(parts.join('') + ofClient('never'))
  await peer.untilText('ping')
  await eventually('both are dropped', () => dropping.gateway.metrics().counts.throttleMessagesDropped - before === 2)
  assert.equal(peer.take(), ofClient('one') + ofClient('two') + ofClient('ping', 0x89))
  dropping.clock.ms += MINUTE
  client.send(ofClient('again'))
  await peer.untilText('again')
  assert.equal(peer.text, ofClient('again'))
})

test('a handshake is refused while no message is left; a request without an upgrade is no event', async () => {
  closing.apply([advanced('Tier', events(1))])
  const { client, peer } = await open(closing)
  client.send(ofClient('one'))
  await peer.untilText('one')
  const counters = new CounterTable(closing.gateway.plan.counters, () => closing.clock.ms, 99)
  const before = listing(counters).refusals().get('api:Tier') ?? 0
  const late = await connectPeer(closing.gateway.port)
  late.send(upgradeRequest())
  await late.untilText('"code":900800')
  assert.equal(listing(counters).refusals().get('api:Tier')! - before, 1, 'refusals by the policy in the metrics')
  assert.deepEqual(await closing.codes(2, '/bytes/x'), [0, 0])
})

test('a tunnel counts bytes as they are read, and closes with the message that begins beyond the quota', async () => {
  closing.apply([advanced('Tier', bytes(20))])
  const { client, peer } = await open(closing)
  client.send(ofClient('0123456789'))
  await peer.untilText('789')
  peer.send(ofServer('0123456789'))
  await client.untilText('789')
  client.take()
  client.send(ofClient('more'))
  await client.untilText('throttled out')
  assert.equal(closed(client.text), REASON)
})

test('a tunnel of another protocol is cut once its bandwidth is used up', async () => {
  closing.apply([advanced('Tier', bytes(20))])
  const client = await connectPeer(closing.gateway.port)
  client.send(upgradeRequest('other/1'))
  const peer = await scripted.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(switchingProtocols('other/1'))
  await takeHead(client)
  client.send('x'.repeat(15))
  await peer.untilLength(15)
  client.send('x'.repeat(15))
  await eventually('the end of both sides', () => client.ending !== '' && peer.ending !== '')
  assert.deepEqual([client.ending, peer.ending], ['RST', 'RST'])
})

for (const offered of ['other/1, websocket', 'websocket, other/1', 'WebSocket']) {
  test(`messages count where a client offers ${offered} and the backend switches to websocket`, async () => {
    closing.apply([advanced('Tier', events(1))])
    const client = await connectPeer(closing.gateway.port)
    client.send(upgradeRequest(offered))
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send(switchingProtocols())
    await takeHead(client)
    client.send(ofClient('one') + ofClient('two'))
    await client.untilText('throttled out')
    assert.equal(closed(client.text), REASON)
  })
}

test('bytes of a protocol that is not websocket are no messages, though the client offers websocket too', async () => {
  closing.apply([advanced('Tier', events(1))])
  const client = await connectPeer(closing.gateway.port)
  client.send(upgradeRequest('websocket, other/1'))
  const peer = await scripted.next()
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(switchingProtocols('other/1'))
  await takeHead(client)
  const sent = ofClient('one') + ofClient('two')
  client.send(sent)
  await peer.untilLength(sent.length)
  assert.equal(peer.text, sent)
})

test('a peer that answers no close frame is closed after two seconds', async () => {
  closing.apply([advanced('Tier', events(1))])
  const { client, peer } = await open(closing)
  client.send(ofClient('one') + ofClient('two'))
  await client.untilText('throttled out')
  await eventually('the end of both sides', () => client.ending !== '' && peer.ending !== '')
})
