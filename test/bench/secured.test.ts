/** What the bench secures: tokens, what the gateway is told of them, and what HAProxy is. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { linesOf } from '../../bench/load/wrk.ts'
import { HAPROXY, writeConfiguration } from '../../bench/peers/haproxy.ts'
import type { Place } from '../../bench/peers/peer.ts'
import { SECURED, writeSecuredHome } from '../../bench/peers/secured.ts'
import { findExecutable } from '../../bench/program.ts'
import { CONTESTS } from '../../bench/contest/contests.ts'
import { besideWarm, warmPlan, warmSample } from '../../bench/contest/warm-client.ts'
import { ISSUER, tokenIssuer } from '../../bench/token-issuer.ts'
import { readApplications } from '../../src/config/application-files.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { accessPlan } from '../../src/primary/identity-planning.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { ScriptedBackend } from '../harness/peers.ts'

test('tokens of the bench are good, all different, and the same when asked for again', async () => {
  const tokens = tokenIssuer().tokens(3)
  const keys = createRemoteJWKSet(new URL(await tokenIssuer().keySetUrl()))
  for (const token of tokens) await jwtVerify(token, keys, { issuer: ISSUER, algorithms: ['RS256'] })
  assert.equal(new Set(tokens).size, 3)
  assert.deepEqual(tokenIssuer().tokens(2), tokens.slice(0, 2))
})

test('several tokens are asked in turn, each with a path; one is a field of all requests', () => {
  const { ask } = CONTESTS['secured-one']!
  const [path] = ask.paths
  assert.deepEqual(linesOf({ path: '', ask }), [path])
  const [first, second] = tokenIssuer().tokens(2)
  assert.deepEqual(linesOf({ path: '', ask: { ...ask, tokens: 2 } }), [`${path} ${first}`, `${path} ${second}`])
})

test('the home of the secured gateway has no fault, and its API asks for tokens of a client that it knows', t => {
  const home = mkdtempSync(join(tmpdir(), 'bench-secured-'))
  t.after(() => rmSync(home, { recursive: true }))
  writeSecuredHome(home, 9000, 'http://127.0.0.1:9001/jwks', true)
  const { configuration } = loadConfiguration(home, [])
  assert.deepEqual(
    configuration['apim.jwt.issuer'].map(({ name }) => name),
    [ISSUER],
  )
  const { applications, faults } = readApplications(home)
  assert.deepEqual(faults, [])
  const [api] = new ApiProjects(home).load().apis
  assert.equal(accessPlan(api!).subject, applications[0]!.subscriptions[0]!.api)
  assert.ok(api!.resources.every(({ authType }) => authType !== 'None'))
  assert.deepEqual(
    SECURED.map(({ name }) => name),
    ['sluice-open', 'sluice-secured', 'sluice-secured-log'],
  )
})

test('the warm client shows a good token, and what has no 200 is an error without a latency', async () => {
  const { warmClient, ask } = CONTESTS['secured-cold']!
  const backend = await ScriptedBackend.listen(peer => {
    void peer.untilText('\r\n\r\n').then(() => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  })
  const plan = { ...warmPlan(warmClient!, backend.port, ask.paths[0]!, 0.02), ratePerSecond: 50, connections: 1 }
  const [flood, warm] = await besideWarm(plan, async () => 'flooded')
  const [token] = tokenIssuer().tokens(1)
  assert.match(backend.peers[0]!.text, new RegExp(`^GET ${ask.paths[0]} .*\r\nAuthorization: Bearer ${token}\r\n`, 's'))
  backend.close()
  assert.deepEqual([flood, warm.warmErrors], ['flooded', 0])
  assert.ok(warm.warmP50Ms! > 0)
  const records = [1, 2, 100].map(ms => ({ askedMs: 0, answeredMs: ms, status: ms === 100 ? 503 : 200, server: '' }))
  const { warmP50Ms, warmP999Ms, warmErrors } = warmSample({ asked: 4, records })
  assert.deepEqual([Math.round(warmP50Ms!), Math.round(warmP999Ms!), warmErrors], [1, 2, 2])
})

const haproxy = findExecutable('haproxy')
test('HAProxy takes the configuration that verifies tokens', { skip: haproxy === undefined && 'no haproxy' }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-haproxy-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const place = { port: 1, ability: 'secured', downloadPort: 2, certificate: undefined, folder } as Place
  const file = writeConfiguration(place)
  const { status, stdout, stderr } = spawnSync('sh', ['-c', `${haproxy} -c -f ${file} 3>>${folder}/log`], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stdout + stderr)
  assert.ok(HAPROXY[0]!.abilities.includes('secured'))
})
