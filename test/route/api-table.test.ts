/** API table: the API of a path and a host, while APIs are added and removed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Api, EVERY_RESOURCE } from '../../src/proxy/exchange/api.ts'
import { ApiTable } from '../../src/route/api-table.ts'
import { ScannedPath } from '../../src/route/scanned-path.ts'
import { Random, SEED } from '../harness/random.ts'

function api(name: string): Api {
  const parts = {
    filters: [],
    isOpen: true,
    resources: EVERY_RESOURCE,
    production: null,
    sandbox: null,
    isAi: false,
    metricsRow: 0,
    mediation: null,
    fullName: 'a:v1',
    provider: '',
    hostName: 'h',
    escapedSlashes: 'refuse' as const,
  }
  return { name, version: '1', path: '', keyType: 'PRODUCTION', ...parts }
}

function entry(name: string, path: string, ...hosts: readonly string[]) {
  return { api: api(name), path, hosts }
}

const path = new ScannedPath()

/** Name of the API, and the path after that of the API; '' without an API. */
function find(table: ApiTable, target: string, authority = 'a.example'): string {
  const bytes = Buffer.from(target, 'latin1')
  assert.ok(path.read(bytes, 0, bytes.length), target)
  const api = table.find(path, authority)
  return api === null ? '' : `${api.name} ${target.slice(path.segmentEnds[path.apiSegments - 1]!, path.end)}`
}

const ENTRIES = [
  entry('orders 1', '/orders/1.0.0'),
  entry('orders', '/orders'),
  entry('deep', '/orders/1.0.0/deep/2'),
  entry('plus', '/a+b'),
  entry('own', '/orders', 'Shop.Example'),
  entry('own deep', '/only/here/1', 'shop.example', '[::1]'),
  entry('general', '/only/here'),
]

const FINDS: readonly (readonly [target: string, authority: string, found: string])[] = [
  ['/orders/1.0.0/x?y=/z', 'a', 'orders 1 /x'],
  ['/orders/1.0.0', 'a', 'orders 1 '],
  ['/orders/1.0.0?x', 'a', 'orders 1 '],
  ['/orders/1.0.0/', 'a', 'orders 1 /'],
  ['/orders/1.0.00/x', 'a', 'orders /1.0.00/x'],
  ['/orders/1.0.0/deep/2/x', 'a', 'deep /x'],
  ['/orders/1.0.0/deep/3', 'a', 'orders 1 /deep/3'],
  ['/Orders', 'a', ''],
  ['/order', 'a', ''],
  ['/ordersx', 'a', ''],
  ['/', 'a', ''],
  ['', 'a', ''],
  ['?/orders', 'a', ''],
  ['/a+b/c', 'a', 'plus /c'],
  ['/a%2Bb/c', 'a', 'plus /c'],
  ['/a%20b/c', 'a', ''],
  ['/orders/x', 'shop.example', 'own /x'],
  ['/orders/x', 'SHOP.example:8290', 'own /x'],
  ['/orders/x', 'shop.example.', 'own /x'],
  ['/orders/x', 'shop.example.:8290', 'own /x'],
  ['/orders/x', 'a.shop.example', 'orders /x'],
  ['/orders/x', 'shop.example..', 'orders /x'],
  ['/orders/x', '', 'orders /x'],
  ['/orders/1.0.0/x', 'shop.example', 'orders 1 /x'],
  ['/only/here/1/x', 'shop.example', 'own deep /x'],
  ['/only/here/1/x', '[::1]:8290', 'own deep /x'],
  ['/only/here/1/x', '[::1]', 'own deep /x'],
  ['/only/here/1/x', 'a', 'general /1/x'],
  ['/only/here/2', 'shop.example', 'general /2'],
]

for (const [target, authority, found] of FINDS) {
  test(`${authority}${target} finds ${found || 'no API'}`, () => {
    const table = new ApiTable()
    for (const one of ENTRIES) table.add(one)
    assert.equal(find(table, target, authority), found)
  })
}

test('a table whose entries are all removed finds no API', () => {
  const table = new ApiTable()
  for (const one of ENTRIES) table.add(one)
  for (const one of ENTRIES) table.remove(one)
  for (const [target, authority] of FINDS) assert.equal(find(table, target, authority), '')
})

test('a change of the table clears the host of the last lookup', () => {
  const table = new ApiTable()
  const own = entry('own', '/x', 'h')
  table.add(own)
  assert.equal(find(table, '/x', 'h'), 'own ')
  table.remove(own)
  table.add(entry('other', '/x', 'h'))
  assert.equal(find(table, '/x', 'h'), 'other ')
})

test('removing one of two APIs with the same path keeps the other', () => {
  const table = new ApiTable()
  const [before, after] = [entry('before', '/x'), entry('after', '/x')]
  table.add(before)
  table.remove(before)
  table.add(after)
  table.remove(before)
  assert.equal(find(table, '/x'), 'after ')
})

test('two lookups that interleave keep their results', () => {
  const table = new ApiTable()
  for (const one of ENTRIES) table.add(one)
  const [first, second] = [new ScannedPath(), new ScannedPath()]
  const [long, short] = [Buffer.from('/orders/1.0.0/deep/2/x'), Buffer.from('/orders/x')]
  assert.ok(first.read(long, 0, long.length))
  assert.ok(second.read(short, 0, short.length))
  const deep = table.find(first, 'a')
  const orders = table.find(second, 'a')
  assert.deepEqual([deep?.name, first.apiSegments], ['deep', 4])
  assert.deepEqual([orders?.name, second.apiSegments], ['orders', 1])
})

test(`after random changes the table finds exactly its entries (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const table = new ApiTable()
  const held = new Map<string, ReturnType<typeof entry>>()
  for (let round = 0; round < 20_000; round++) {
    const at = `/${random.text(random.between(1, 2), 'abcdef')}${random.once(2) ? `/${random.text(1, 'abc')}` : ''}`
    const known = held.get(at)
    if (known !== undefined) {
      table.remove(known)
      held.delete(at)
    } else {
      const added = entry(at, at)
      table.add(added)
      held.set(at, added)
    }
    const target = `/${random.text(random.between(1, 2), 'abcdef')}/${random.text(1, 'abc')}`
    const expected = held.has(target)
      ? `${target} `
      : held.has(target.slice(0, -2))
        ? `${target.slice(0, -2)} ${target.slice(-2)}`
        : ''
    assert.equal(find(table, target), expected)
  }
})

const TEMPLATES = [
  entry('of tenant', '/t/{tenant}/api'),
  entry('of acme', '/t/acme/api'),
  entry('of acme unit', '/t/acme/{unit}'),
  entry('deep', '/t/{tenant}/api/{unit}/x'),
  entry('own', '/t/{any}/api', 'shop.example'),
  entry('short', '/t'),
]

const TEMPLATE_FINDS: readonly (readonly [target: string, authority: string, found: string])[] = [
  ['/t/a/api/x?y', 'a', 'of tenant /x'],
  ['/t/a%20b/api', 'a', 'of tenant '],
  ['/t/acme/api/x', 'a', 'of acme /x'],
  ['/t/acme/other', 'a', 'of acme unit '],
  ['/t/a/other', 'a', 'short /a/other'],
  ['/t/a', 'a', 'short /a'],
  ['/t/a/api/u/x/1', 'a', 'deep /1'],
  ['/t/a/api/u/y', 'a', 'of tenant /u/y'],
  ['/t/acme/api', 'shop.example', 'own '],
  ['/x/a/api', 'a', ''],
]

for (const [target, authority, found] of TEMPLATE_FINDS) {
  test(`among paths with variables, ${authority}${target} finds ${found || 'no API'}`, () => {
    for (const order of [TEMPLATES, TEMPLATES.toReversed()]) {
      const table = new ApiTable()
      for (const one of order) table.add(one)
      assert.equal(find(table, target, authority), found)
      for (const one of order) table.remove(one)
      assert.equal(find(table, target, authority), '')
    }
  })
}
