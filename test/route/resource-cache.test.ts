/** What is remembered of resources, for how long, and what makes room. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource, ResourceTable } from '../../src/exchange/resource.ts'
import { allocateMetrics, MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import { ResourceCache } from '../../src/route/resource-cache.ts'
import { ResourceTree } from '../../src/route/resource-tree.ts'
import { ScannedPath } from '../../src/structure/scanned-path.ts'
import { Random, SEED } from '../harness/random.ts'

function resource(template: string): Resource {
  return { template, verb: 'GET', authType: 'None', tier: 'Unlimited', scopes: [] }
}

/** Looking for a path in it may take many ways. */
const WINDING = ['/{name}.{format}', '/v{n}', '/{x}', '/list', '/list/', '/a/{x}/c', '/{y}/b/d', '/*']
const LASTS_MS = 1000

const path = new ScannedPath()

function start(templates = WINDING) {
  const metrics = allocateMetrics(1)
  const clock = { now: 5000 }
  const cache = new ResourceCache(new MetricsColumn(metrics, 0), () => clock.now)
  cache.keepFor(LASTS_MS)
  const tree = new ResourceTree(templates.map(resource))
  const counted = () => {
    const { resourceCacheHits, resourceCacheMisses } = snapshotMetrics(metrics).counts
    return [resourceCacheHits, resourceCacheMisses] as const
  }
  return { cache, clock, tree, table: cache.before(tree), counted }
}

function find(table: ResourceTable, target: string): string {
  const bytes = Buffer.from(target, 'latin1')
  assert.ok(path.read(bytes, 0, bytes.length))
  return table.find(path, 1)?.template ?? ''
}

test('a path is remembered when it comes for the second time, and counted', () => {
  const { table, counted } = start()
  const found = Array.from({ length: 5 }, () => find(table, '/api/a.json'))
  assert.deepEqual(found, Array(5).fill('/{name}.{format}'))
  assert.deepEqual(counted(), [3, 2])
})

test('so is that there is nothing', () => {
  const { table, counted } = start(WINDING.slice(0, -1))
  for (let i = 0; i < 4; i++) assert.equal(find(table, '/api/q/w/e'), '')
  assert.deepEqual(counted(), [2, 2])
})

test('what has lasted long enough is looked for again', () => {
  const { table, clock, counted } = start()
  for (let i = 0; i < 3; i++) find(table, '/api/a.json')
  clock.now += LASTS_MS - 1
  find(table, '/api/a.json')
  assert.deepEqual(counted(), [2, 2])
  clock.now += 1
  find(table, '/api/a.json')
  assert.deepEqual(counted(), [2, 3])
  find(table, '/api/a.json')
  assert.deepEqual(counted(), [3, 3])
})

test('nothing is remembered that is switched off, nor over a deployment', () => {
  const { cache, table, counted } = start()
  for (let i = 0; i < 3; i++) find(table, '/api/a.json')
  cache.clear()
  find(table, '/api/a.json')
  assert.deepEqual(counted(), [1, 3])
  cache.keepFor(0)
  for (let i = 0; i < 3; i++) assert.equal(find(table, '/api/a.json'), '/{name}.{format}')
  assert.deepEqual(counted(), [1, 3])
})

test('the query makes no difference, a slash at the end and the API do', () => {
  const { cache, table, counted } = start()
  const other = cache.before(new ResourceTree([...WINDING.slice(2), '/{p}-{q}-{r}', '/w{n}'].map(resource)))
  for (let i = 0; i < 3; i++) {
    assert.equal(find(table, `/api/list?${i}`), '/list')
    assert.equal(find(table, '/api/list/'), '/list/')
    assert.equal(find(other, '/api/v1'), '/{x}')
    assert.equal(find(table, '/api/v1'), '/v{n}')
  }
  assert.equal(counted()[0] > 0, true)
})

test('paths that are too long are looked for each time', () => {
  const { table, counted } = start()
  for (let i = 0; i < 3; i++) assert.equal(find(table, `/api/${'x'.repeat(130)}`), '/{x}')
  assert.deepEqual(counted(), [0, 0])
})

test('paths that come once turn nothing out', () => {
  const { table, counted } = start()
  for (let i = 0; i < 2; i++) find(table, '/api/a.json')
  for (let i = 0; i < 50_000; i++) find(table, `/api/${i}.xml`)
  const [before] = counted()
  find(table, '/api/a.json')
  assert.equal(counted()[0], before + 1)
})

test('a tree in which a path takes one way is asked itself', () => {
  for (const templates of [['/*'], ['/pets', '/pets/{id}', '/pets/{id}/toys/{toy}'], ['/{a}/b', '/c/d/e/f']]) {
    const { table, counted } = start(templates)
    for (let i = 0; i < 3; i++) find(table, '/api/pets')
    assert.deepEqual(counted(), [0, 0])
  }
})

test(`it finds what the tree finds (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const { tree, table, counted } = start()
  for (let i = 0; i < 30_000; i++) {
    const target = `/api/${random.text(random.between(1, 2), 'ab./v')}`
    const bytes = Buffer.from(target, 'latin1')
    if (!path.read(bytes, 0, bytes.length)) continue
    assert.equal(table.find(path, 1), tree.find(path, 1), target)
  }
  assert.ok(counted()[0] > 10_000)
})
