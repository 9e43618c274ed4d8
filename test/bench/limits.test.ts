/** Peers and figures of the scenarios of throttling: homes that limit as they say, loads, and differences in units. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createHttpBackend } from '../../bench/backends/http-backend.ts'
import { requestFields } from '../../bench/load/load-plan.ts'
import { driveWrk } from '../../bench/load/wrk.ts'
import { readOptions } from '../../bench/options.ts'
import { comparisonsOf, pairedPlan } from '../../bench/paired/paired-rounds.ts'
import { KEY_COUNTS, LEVEL_COUNTS, LIMIT_SCENARIOS } from '../../bench/paired/limit-scenarios.ts'
import { NGINX } from '../../bench/peers/nginx.ts'
import { CEILING, NODE_FLOOR } from '../../bench/peers/npm-proxy.ts'
import type { PeerOptions } from '../../bench/peers/peer.ts'
import {
  ADDRESS_SETTINGS,
  LIMITED_SLUICE,
  writeAddressHome,
  writeLimitedHome,
} from '../../bench/peers/sluice-limits.ts'
import { startVariant } from '../../bench/peers/sluice-variants.ts'
import { findExecutable, type Program } from '../../bench/program.ts'
import { scenarioTable } from '../../bench/report/markdown.ts'
import { requestHead } from '../../bench/request-head.ts'
import { type ScenarioResult, summarize } from '../../bench/results.ts'
import { exhaustLimit, sendRequest, verify, verifyTokenCheck } from '../../bench/verify.ts'
import { tokenIssuer } from '../../bench/token-issuer.ts'
import { freePortPair } from '../harness/program.ts'

const LIMIT = { timeout: 60_000 }
const TELLING = { 'apim.throttling.rate_limit_headers': 'true' }
const UNREACHED = 1_000_000_000

test('limits selects levels and keys, and every named peer can be started for its scenario', () => {
  assert.deepEqual(readOptions(['--scenario', 'limits,refused'])?.scenarios, Object.keys(LIMIT_SCENARIOS))
  const peers = [CEILING, NODE_FLOOR, ...NGINX, ...LIMITED_SLUICE]
  for (const [name, { capability, peers: named }] of Object.entries(LIMIT_SCENARIOS)) {
    const able = peers.filter(({ capabilities }) => capabilities.includes(capability)).map(peer => peer.name)
    assert.deepEqual(new Set(able), new Set(named), name)
  }
})

/** Starts a peer in front of a backend, until the test ends; returns its port. */
async function started(t: TestContext, start: (options: PeerOptions) => Promise<Program>): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-limits-'))
  const backend = createHttpBackend().listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const downloadPort = (backend.address() as AddressInfo).port
  let program: Program | undefined
  t.after(async () => {
    await program?.stop()
    backend.close()
    rmSync(folder, { recursive: true })
  })
  const port = await freePortPair()
  program = await start({ port, capability: 'refused', downloadPort, folder } as PeerOptions)
  return port
}

function fieldOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\r?$`, 'im').exec(head)?.[1]
}

for (const [peer, levels] of Object.entries(LEVEL_COUNTS)) {
  test(`the home of ${peer} limits requests with a token by ${levels} levels`, LIMIT, async t => {
    const scenario = LIMIT_SCENARIOS['limits-levels']!
    const port = await started(t, async options => {
      const keySetUrl = await tokenIssuer().keySetUrl()
      writeLimitedHome(`${options.folder}/home`, options.downloadPort, keySetUrl, levels)
      return startVariant(options, { settings: TELLING })
    })
    const plan = pairedPlan(scenario, peer, { port, certificate: undefined }, 0)
    await verify(plan)
    await verifyTokenCheck(plan)
    const request = Buffer.from(requestHead('GET', plan.path, requestFields(plan)))
    const { head } = await sendRequest(port, request, false)
    const items = fieldOf(head, 'RateLimit-Policy')?.split(', ') ?? []
    assert.equal(items.length, levels, head)
    assert.ok(items.every(item => item.includes(`;q=${UNREACHED}`)))
  })
}

test('the home for many keys counts each address by itself', LIMIT, async t => {
  const port = await started(t, options => {
    writeAddressHome(`${options.folder}/home`, options.downloadPort)
    return startVariant(options, { settings: { ...ADDRESS_SETTINGS, ...TELLING } })
  })
  const left: string[] = []
  for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2']) {
    const request = Buffer.from(requestHead('GET', '/bench/1k', { 'X-Forwarded-For': address }))
    left.push(/r=(\d+)/.exec(fieldOf((await sendRequest(port, request, false)).head, 'RateLimit') ?? '')?.[1] ?? '')
  }
  assert.deepEqual(
    left,
    [1, 2, 1].map(used => String(UNREACHED - used)),
  )
})

for (const peer of [...LIMITED_SLUICE, NODE_FLOOR, NGINX[0]!].filter(each => each.capabilities.includes('refused'))) {
  const reason = peer.missing()
  test(`${peer.name} refuses every request behind the first one with 429`, { ...LIMIT, skip: reason }, async t => {
    const scenario = LIMIT_SCENARIOS.refused!
    const port = await started(t, options => peer.start(options))
    const plan = pairedPlan(scenario, peer.name, { port, certificate: undefined }, 0)
    await exhaustLimit(plan)
    await verify(plan)
    await verify(plan)
  })
}

const wrk = findExecutable('wrk')
test('addresses are sent in turn, from any one on', { ...LIMIT, skip: wrk === undefined && 'no wrk' }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-wrk-'))
  const seen: string[] = []
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', bytes => {
      seen.push(fieldOf(bytes.toString('latin1'), 'X-Forwarded-For') ?? '')
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  const { port } = server.address() as AddressInfo
  const scenario = { ...LIMIT_SCENARIOS['limits-keys']!, connections: 1, addresses: { peer: 300 } }
  const plan = pairedPlan(scenario, 'peer', { port, certificate: undefined }, 1)
  const { requests, errors } = await driveWrk(wrk!, plan, folder)
  assert.ok(requests > 300)
  assert.equal(errors, 0)
  const first = Array.from({ length: 300 }, (_, at) => `10.0.${at >> 8}.${at & 255}`).indexOf(seen[0]!)
  const expected = seen.map((_, at) => `10.0.${((first + at) % 300) >> 8}.${((first + at) % 300) & 255}`)
  assert.deepEqual(seen, expected)
})

test('what levels add is their difference in user time of the ceiling, round by round', () => {
  const scenario = LIMIT_SCENARIOS['limits-levels']!
  const user = (micros: readonly number[]) =>
    summarize(micros.map(value => ({ userMicrosPerRequest: value, cpuMicrosPerRequest: 2 * value })))
  const peers = {
    ceiling: user([10, 20, 10, 10]),
    'sluice-no-level': user([15, 30, 15, 15]),
    'sluice-five-levels': user([16, 32, 16, 16]),
  }
  const [inUnits, ratio, ...others] = comparisonsOf(scenario, peers)
  assert.deepEqual(others, [])
  assert.ok(Math.abs(inUnits!.ratio - 0.1) < 1e-9, String(inUnits!.ratio))
  assert.ok(Math.abs(ratio!.ratio - 16 / 15) < 1e-9)
  const environment = { processor: 'p', processors: 2, kernel: 'k', node: 'v26', commit: 'c', versions: {} }
  const result = { title: scenario.title, environment, peers, comparisons: [inUnits!], probeMs: [], skipped: {} }
  const table = scenarioTable('limits-levels', { ...result, startedAt: '' } as unknown as ScenarioResult)
  assert.match(
    table,
    /\(sluice-five-levels - sluice-no-level\) \/ ceiling, user: \*\*0\.100\*\*.* Target at most 0\.15/,
  )
})

test('peers of the scenario with many keys differ in the number of addresses', () => {
  const { addresses } = LIMIT_SCENARIOS['limits-keys']!
  assert.deepEqual(addresses, KEY_COUNTS)
  assert.deepEqual(Object.values(KEY_COUNTS), [10, 100_000, 1_000_000])
})
