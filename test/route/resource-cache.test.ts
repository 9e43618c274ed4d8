/** Resource cache: what enters, how long it stays, and what evicts it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource, ResourceTable } from '../../src/proxy/exchange/resource.ts'
import { allocateMetrics, MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import { ResourceCache } from '../../src/route/resource-cache.ts'
import { ResourceTree } from '../../src/route/resource-tree.ts'
import { ScannedPath } from '../../src/route/scanned-path.ts'
import { Random, SEED } from '../harness/random.ts'

function resource(template: string): Resource {
  return { template, verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] }
}

/** Templates whose lookups have dead ends. */
const COSTLY = ['/{name}.{format}', '/v{n}', '/{x}', '/list', '/list/', '/a/{x}/c', '/{y}/b/d', '/*']
const LIFETIME_MS = 1000

const path = new ScannedPath()

function start(templates = COSTLY) {
  const metrics = allocateMetrics(1)
  const clock = { now: 5000 }
  const cache = new ResourceCache(new MetricsColumn(metrics, 0), () => clock.now)
  cache.setLifetime(LIFETIME_MS)
  const tree = new ResourceTree(templates.map(resource))
  const lookups = () => {
    const { resourceCacheHits, resourceCacheMisses } = snapshotMetrics(metrics).counts
    return [resourceCacheHits, resourceCacheMisses] as const
  }
  return { cache, clock, tree, table: cache.wrap(tree), lookups }
}

function find(table: ResourceTable, target: string): string {
  const bytes = Buffer.from(target, 'latin1')
  assert.ok(path.read(bytes, 0, bytes.length))
  return table.find(path, 1)?.template ?? ''
}

test('a path is cached with its second lookup, and hits and misses are counted', () => {
  const { table, lookups } = start()
  const found = Array.from({ length: 5 }, () => find(table, '/api/a.json'))
  assert.deepEqual(found, Array(5).fill('/{name}.{format}'))
  assert.deepEqual(lookups(), [3, 2])
})

test('a lookup without a result is cached too', () => {
  const { table, lookups } = start(COSTLY.slice(0, -1))
  for (let i = 0; i < 4; i++) assert.equal(find(table, '/api/q/w/e'), '')
  assert.deepEqual(lookups(), [2, 2])
})

test('an entry expires after its lifetime', () => {
  const { table, clock, lookups } = start()
  for (let i = 0; i < 3; i++) find(table, '/api/a.json')
  clock.now += LIFETIME_MS - 1
  find(table, '/api/a.json')
  assert.deepEqual(lookups(), [2, 2])
  clock.now += 1
  find(table, '/api/a.json')
  assert.deepEqual(lookups(), [2, 3])
  find(table, '/api/a.json')
  assert.deepEqual(lookups(), [3, 3])
})

test('clear() and a lifetime of 0 empty the cache', () => {
  const { cache, table, lookups } = start()
  for (let i = 0; i < 3; i++) find(table, '/api/a.json')
  cache.clear()
  find(table, '/api/a.json')
  assert.deepEqual(lookups(), [1, 3])
  cache.setLifetime(0)
  for (let i = 0; i < 3; i++) assert.equal(find(table, '/api/a.json'), '/{name}.{format}')
  assert.deepEqual(lookups(), [1, 3])
})

test('the cache ignores the query, and distinguishes a slash at the end and the API', () => {
  const { cache, table, lookups } = start()
  const other = cache.wrap(new ResourceTree([...COSTLY.slice(2), '/{p}-{q}-{r}', '/w{n}'].map(resource)))
  for (let i = 0; i < 3; i++) {
    assert.equal(find(table, `/api/list?${i}`), '/list')
    assert.equal(find(table, '/api/list/'), '/list/')
    assert.equal(find(other, '/api/v1'), '/{x}')
    assert.equal(find(table, '/api/v1'), '/v{n}')
  }
  assert.equal(lookups()[0] > 0, true)
})

test('paths longer than 128 bytes are not cached', () => {
  const { table, lookups } = start()
  for (let i = 0; i < 3; i++) assert.equal(find(table, `/api/${'x'.repeat(130)}`), '/{x}')
  assert.deepEqual(lookups(), [0, 0])
})

test('paths that come once evict nothing', () => {
  const { table, lookups } = start()
  for (let i = 0; i < 2; i++) find(table, '/api/a.json')
  for (let i = 0; i < 50_000; i++) find(table, `/api/${i}.xml`)
  const [before] = lookups()
  find(table, '/api/a.json')
  assert.equal(lookups()[0], before + 1)
})

test('a tree with cheap lookups is not cached', () => {
  for (const templates of [['/*'], ['/pets', '/pets/{id}', '/pets/{id}/toys/{toy}'], ['/{a}/b', '/c/d/e/f']]) {
    const { table, lookups } = start(templates)
    for (let i = 0; i < 3; i++) find(table, '/api/pets')
    assert.deepEqual(lookups(), [0, 0])
  }
})

test(`cached lookups return what the tree returns (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const { tree, table, lookups } = start()
  for (let i = 0; i < 30_000; i++) {
    const target = `/api/${random.text(random.between(1, 2), 'ab./v')}`
    const bytes = Buffer.from(target, 'latin1')
    if (!path.read(bytes, 0, bytes.length)) continue
    assert.equal(table.find(path, 1), tree.find(path, 1), target)
  }
  assert.ok(lookups()[0] > 10_000)
})
