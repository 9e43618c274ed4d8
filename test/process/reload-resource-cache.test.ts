/** `[apim.cache.resource]` from the file to what is remembered, and over reloads. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openProject } from '../harness/open-project.ts'
import { backend, dial, home, leave, start } from '../harness/operator.ts'
import { ask as askChained } from '../harness/chained.ts'
import type { Peer } from '../harness/peers.ts'
import { ask, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

/** Segments with literal parts: looking for them costs more than a look into the cache. */
const TARGETS = ['/v{a}/x', '/w{a}/x', '/{a}.json', '/{a}.xml', '/{a}/y']
const REQUESTS = 5
/** A second, and more than the clock of a reactor is behind. */
const EXPIRED_MS = 1500

/** What the cache was asked for while the same path came so often. */
async function lookups(gateway: RunningGateway, client: Peer): Promise<{ hits: number; misses: number }> {
  const before = await counted(gateway)
  for (let i = 0; i < REQUESTS; i++) assert.equal((await askChained(client, 'GET /dear/list.xml')).status, 200)
  const now = await counted(gateway)
  return { hits: now.hits - before.hits, misses: now.misses - before.misses }
}

async function counted({ healthPort }: RunningGateway): Promise<{ hits: number; misses: number }> {
  const text = await ask(healthPort, 'GET', '/metrics')
  const of = (result: string): number => {
    return Number(new RegExp(`resource_cache_lookups_total\\{result="${result}"\\} (\\d+)`).exec(text)![1])
  }
  return { hits: of('hit'), misses: of('miss') }
}

test('enable = false remembers nothing, from the next request on; expiry_time is how long', async () => {
  const at = home()
  put(at, 'deployment.toml', '')
  const operations = TARGETS.map(target => ({ target, verb: 'GET' }))
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
  put(
    at,
    'apis/dear/api.yaml',
    openProject({ name: 'dear', context: '/dear', version: '1', endpointConfig, operations }),
  )
  const gateway = await start(at)
  const client = await dial(gateway)
  assert.deepEqual(await lookups(gateway, client), { hits: REQUESTS - 2, misses: 2 })

  put(at, 'deployment.toml', '[apim.cache.resource]\nenable = false\n')
  assert.equal((await reload(gateway)).outcome, 'in force')
  assert.deepEqual(await lookups(gateway, client), { hits: 0, misses: 0 })

  put(at, 'deployment.toml', '[apim.cache.resource]\nexpiry_time = "1s"\n')
  assert.equal((await reload(gateway)).outcome, 'in force')
  assert.ok((await lookups(gateway, client)).hits > 0)
  await sleep(EXPIRED_MS)
  assert.ok((await lookups(gateway, client)).misses > 0)
})
