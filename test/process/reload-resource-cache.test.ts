/** `[apim.cache.resource]` from the file to the cache, over reloads. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openProject } from '../harness/open-project.ts'
import { backend, dial, home, leave, start } from '../harness/operator.ts'
import { sendRequest as askChained } from '../harness/filter-chain.ts'
import type { Peer } from '../harness/peers.ts'
import { ask, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

after(leave)

/** Mixed segments, which are expensive enough for the cache. */
const TARGETS = ['/v{a}/x', '/w{a}/x', '/{a}.json', '/{a}.xml', '/{a}/y']
const REQUESTS = 5
/** A second, and the lag of a reactor's clock. */
const EXPIRED_MS = 1500

/** Lookups of the cache for so many requests of one path. */
async function lookups(gateway: RunningGateway, client: Peer): Promise<{ hits: number; misses: number }> {
  const before = await counted(gateway)
  for (let i = 0; i < REQUESTS; i++) assert.equal((await askChained(client, 'GET /dear/list.xml')).status, 200)
  const now = await counted(gateway)
  return { hits: now.hits - before.hits, misses: now.misses - before.misses }
}

async function counted({ healthPort }: RunningGateway): Promise<{ hits: number; misses: number }> {
  const text = await ask(healthPort, 'GET', '/metrics')
  const of = (result: string): number => {
    return Number(new RegExp(`cache_lookups_total\\{cache="resource",result="${result}"\\} (\\d+)`).exec(text)![1])
  }
  return { hits: of('hit'), misses: of('miss') }
}

test('enable = false empties the cache at the next request, and expiry_time limits its entries', async () => {
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
  assert.equal((await reload(gateway)).outcome, 'applied')
  assert.deepEqual(await lookups(gateway, client), { hits: 0, misses: 0 })

  put(at, 'deployment.toml', '[apim.cache.resource]\nexpiry_time = "1s"\n')
  assert.equal((await reload(gateway)).outcome, 'applied')
  assert.ok((await lookups(gateway, client)).hits > 0)
  await sleep(EXPIRED_MS)
  assert.ok((await lookups(gateway, client)).misses > 0)
})
