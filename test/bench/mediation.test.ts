/** Scenarios of mediation: documents of the right size, and peers that transform them as the table says. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createHttpBackend } from '../../bench/backends/http-backend.ts'
import { driveWrk } from '../../bench/load/wrk.ts'
import { readOptions } from '../../bench/options.ts'
import { delayRound } from '../../bench/paired/delay-round.ts'
import { MEDIATION_SCENARIOS, orderOf, transformed } from '../../bench/paired/mediation-scenarios.ts'
import { pairedPlan } from '../../bench/paired/paired-rounds.ts'
import { HAPROXY } from '../../bench/peers/haproxy.ts'
import { NGINX } from '../../bench/peers/nginx.ts'
import { CEILING } from '../../bench/peers/npm-proxy.ts'
import type { Peer, PeerOptions } from '../../bench/peers/peer.ts'
import { MEDIATING_SLUICE } from '../../bench/peers/sluice-mediation.ts'
import { findExecutable } from '../../bench/program.ts'
import type { RunningPeer } from '../../bench/rounds.ts'
import { sendRequest, verify, verifyTransformation } from '../../bench/verify.ts'
import { freePortPair } from '../harness/program.ts'

const LIMIT = { timeout: 60_000 }
const PEERS = [...MEDIATING_SLUICE, CEILING, NGINX[0]!, HAPROXY[0]!]
const SCENARIO = MEDIATION_SCENARIOS['mediation-10k']!
const { path, expected } = SCENARIO.transformation!

test('mediation selects all of its scenarios, and every named peer can be started for its scenario', () => {
  assert.deepEqual(readOptions(['--scenario', 'mediation'])?.scenarios, Object.keys(MEDIATION_SCENARIOS))
  for (const [name, { capability, peers: named }] of Object.entries(MEDIATION_SCENARIOS)) {
    const able = PEERS.filter(({ capabilities }) => capabilities.includes(capability)).map(peer => peer.name)
    assert.deepEqual(new Set(able), new Set(named), name)
  }
})

for (const bytes of [1024, 10_240]) {
  test(`an order of ${bytes} bytes has exactly as many, and loses nothing but its trace`, () => {
    const order = orderOf(bytes)
    assert.equal(Buffer.byteLength(JSON.stringify(order)), bytes)
    const { id, buyer, lines, source, ...rest } = transformed(order)
    assert.deepEqual([id, buyer, lines, source], [order.orderId, order.customer, order.items, 'gateway'])
    assert.deepEqual(rest, {})
    assert.ok(lines.length > 3)
  })
}

/** Starts a peer in front of a backend, until the test ends. */
async function started(t: TestContext, peer: Peer, capability: PeerOptions['capability']): Promise<RunningPeer> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-mediation-'))
  const backend = createHttpBackend().listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const backendPort = (backend.address() as AddressInfo).port
  const ports = { downloadPort: backendPort, uploadPort: backendPort }
  const closing = [() => rmSync(folder, { recursive: true }), () => void backend.close()]
  t.after(async () => {
    for (const close of closing.toReversed()) await close()
  })
  const port = await freePortPair()
  const program = await peer.start({ port, ...ports, capability, folder } as PeerOptions)
  closing.push(() => program.stop())
  return { name: peer.name, program, address: { port, certificate: undefined }, folder }
}

for (const name of SCENARIO.transformation!.peers) {
  const peer = PEERS.find(each => each.name === name)!
  test(`${name} sends the transformed order to the backend`, { ...LIMIT, skip: peer.missing('mediation') }, async t => {
    const { address } = await started(t, peer, 'mediation')
    const plan = pairedPlan(SCENARIO, name, address, 0)
    await verify(plan)
    await verifyTransformation(plan, path, expected)
    const beside = await sendRequest(address.port, Buffer.from('GET /bench/1k HTTP/1.1\r\nHost: a\r\n\r\n'), false)
    assert.deepEqual([beside.status, beside.body.length], [200, 1024])
  })
}

test('an order that passes unchanged is distinguished from a transformed one', LIMIT, async t => {
  const peer = MEDIATING_SLUICE.find(({ name }) => name === 'sluice-unmediated')!
  const { address } = await started(t, peer, 'mediation')
  const plan = pairedPlan(SCENARIO, peer.name, address, 0)
  await verify(plan)
  await assert.rejects(verifyTransformation(plan, path, expected), /another body/)
})

const wrk = findExecutable('wrk')
test('wrk sends the document of a plan as it is', { ...LIMIT, skip: wrk === undefined && 'no wrk' }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-wrk-'))
  let received = ''
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', bytes => {
      received += bytes.toString()
      if (received.endsWith('}')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  const address = { port: (server.address() as AddressInfo).port, certificate: undefined }
  const scenario = { ...SCENARIO, connections: 1 }
  const plan = pairedPlan(scenario, 'nginx', address, 1)
  await driveWrk(wrk!, plan, folder)
  const [head = '', body = ''] = received.split('\r\n\r\n')
  assert.match(head, /^POST \/mediation\/orders HTTP\/1\.1\r\n/)
  assert.match(head, /\r\nContent-Length: 10240\b/i)
  assert.match(head, /\r\nContent-Type: application\/json\b/i)
  assert.ok(body.startsWith(plan.request!.body!.slice(0, 5000)))
})

test('a round of delays has those of the loop, and those of requests beside the load', LIMIT, async t => {
  const { beside } = MEDIATION_SCENARIOS['mediation-delay']!
  const peer = await started(t, MEDIATING_SLUICE[0]!, 'mediation-delay')
  const plan = pairedPlan(MEDIATION_SCENARIOS['mediation-delay']!, peer.name, peer.address, 3)
  // The first order waits until the worker threads have started, which takes seconds on a busy machine.
  await verifyTransformation(plan, path, expected)
  const sample = await delayRound(peer, beside!, plan, peer.folder)
  assert.equal(sample.besideErrors, 0)
  for (const name of ['idleBesideP99Ms', 'besideP99Ms', 'requestsPerSecond'] as const)
    assert.ok(sample[name]! > 0, name)
  for (const name of ['idleLoopP99Ms', 'loopP99Ms'] as const) assert.ok(sample[name]! >= 0, name)
})
