/** Tokens of the bench, and the configurations of the gateway and of HAProxy that check them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { driveRecorded } from '../../bench/load/drive.ts'
import { requestLines } from '../../bench/load/wrk.ts'
import { warmClientPlan, warmClientSample } from '../../bench/paired/paired-rounds.ts'
import { PAIRED_SCENARIOS } from '../../bench/paired/paired-scenarios.ts'
import { HAPROXY, writeConfiguration } from '../../bench/peers/haproxy.ts'
import type { PeerOptions } from '../../bench/peers/peer.ts'
import { SLUICE_VARIANTS, writeSecuredHome } from '../../bench/peers/sluice-variants.ts'
import { findExecutable } from '../../bench/program.ts'
import { ISSUER, tokenIssuer } from '../../bench/token-issuer.ts'
import { readApplications } from '../../src/apis/application-files.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { accessPlan } from '../../src/plan/auth-planning.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { ScriptedBackend } from '../harness/peers.ts'

test('tokens of the bench are valid, all different, and the same at each call', async () => {
  const tokens = tokenIssuer().tokens(3)
  const keys = createRemoteJWKSet(new URL(await tokenIssuer().keySetUrl()))
  for (const token of tokens) await jwtVerify(token, keys, { issuer: ISSUER, algorithms: ['RS256'] })
  assert.equal(new Set(tokens).size, 3)
  assert.deepEqual(tokenIssuer().tokens(2), tokens.slice(0, 2))
})

test('several tokens are sent in turn with the paths; a single one is a field of all requests', () => {
  const { request } = PAIRED_SCENARIOS['secured-one']!
  const [path] = request.paths
  assert.deepEqual(requestLines({ path: '', request }), [path])
  const [first, second] = tokenIssuer().tokens(2)
  assert.deepEqual(requestLines({ path: '', request: { ...request, tokens: 2 } }), [
    `${path} ${first}`,
    `${path} ${second}`,
  ])
})

test('the home of the secured gateway is valid, and its API requires tokens of the declared client', async t => {
  const home = mkdtempSync(join(tmpdir(), 'bench-secured-'))
  t.after(() => rmSync(home, { recursive: true }))
  writeSecuredHome(home, 9000, 'http://127.0.0.1:9001/jwks', true)
  const { configuration } = loadConfiguration(home, [])
  assert.deepEqual(
    configuration['apim.jwt.issuer'].map(({ name }) => name),
    [ISSUER],
  )
  const { applications, errors } = await readApplications(home)
  assert.deepEqual(errors, [])
  const [api] = new ApiProjects(home).load().apis
  assert.equal(accessPlan(api!).api, applications[0]!.subscriptions[0]!.api)
  assert.ok(api!.resources.every(({ authType }) => authType !== 'None'))
  assert.deepEqual(
    SLUICE_VARIANTS.filter(({ capabilities }) => capabilities.includes('secured')).map(({ name }) => name),
    ['sluice-open', 'sluice-secured', 'sluice-secured-log'],
  )
})

test('the warm client sends a valid token, and a response without status 200 is an error without latency', async () => {
  const { warmClient, request } = PAIRED_SCENARIOS['secured-cold']!
  const backend = await ScriptedBackend.listen(peer => {
    void peer.untilText('\r\n\r\n').then(() => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  })
  const plan = {
    ...warmClientPlan(warmClient!, backend.port, request.paths[0]!, 0.02),
    ratePerSecond: 50,
    connections: 1,
  }
  const [recorded, other] = await driveRecorded(plan, async () => 'result of the other load')
  const warm = warmClientSample(recorded)
  const [token] = tokenIssuer().tokens(1)
  assert.match(
    backend.peers[0]!.text,
    new RegExp(`^GET ${request.paths[0]} .*\r\nAuthorization: Bearer ${token}\r\n`, 's'),
  )
  backend.close()
  assert.deepEqual([other, warm.warmErrors], ['result of the other load', 0])
  assert.ok(warm.warmP50Ms! > 0)
  const records = [1, 2, 100].map(ms => ({ intendedMs: 0, answeredMs: ms, status: ms === 100 ? 503 : 200, server: '' }))
  const { warmP50Ms, warmP999Ms, warmErrors } = warmClientSample({ due: 4, records })
  assert.deepEqual([Math.round(warmP50Ms!), Math.round(warmP999Ms!), warmErrors], [1, 2, 2])
})

const haproxy = findExecutable('haproxy')
test('HAProxy accepts the configuration that checks tokens', { skip: haproxy === undefined && 'no haproxy' }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-haproxy-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const place = { port: 1, capability: 'secured', downloadPort: 2, certificate: undefined, folder } as PeerOptions
  const file = writeConfiguration(place)
  const { status, stdout, stderr } = spawnSync('sh', ['-c', `${haproxy} -c -f ${file} 3>>${folder}/log`], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stdout + stderr)
  assert.ok(HAPROXY[0]!.capabilities.includes('secured'))
})
