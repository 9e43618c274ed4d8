/** The DNS cache: one lookup at a time for each name; addresses and failures are cached. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DnsCache } from '../../src/socket/dns-cache.ts'

const ADDRESSES = [{ address: '192.0.2.1' }, { address: '2001:db8::1' }]

function resolver(code: string | null) {
  const asked: string[] = []
  const pending: (() => void)[] = []
  const resolve: ConstructorParameters<typeof DnsCache>[1] = (host, _options, callback) => {
    asked.push(host)
    const error = code === null ? null : Object.assign(new Error(code), { code })
    pending.push(() => callback(error, error === null ? ADDRESSES : []))
  }
  const answer = async () => {
    for (const call of pending.splice(0)) call()
    await nextTurn()
  }
  return { asked, resolve, answer }
}

const rows: readonly (readonly [name: string, code: string | null, cacheSeconds: number, askedAgain: boolean])[] = [
  ['a name that resolves', null, 30, false],
  ['a name that resolves, without a cache', null, 0, true],
  ['a name that does not resolve', 'ENOTFOUND', 30, false],
  ['a name that does not resolve, without a cache', 'EAI_AGAIN', 0, false],
]
for (const [name, code, cacheSeconds, askedAgain] of rows) {
  test(`${name}: concurrent requests share one lookup`, async () => {
    const { asked, resolve, answer } = resolver(code)
    const cache = new DnsCache(cacheSeconds, resolve, 60_000)
    const answers: unknown[] = []
    const note = (error: string | null, addresses: readonly string[]) => answers.push([error, addresses])
    for (let i = 0; i < 50; i++) cache.resolve('a.test', note)
    cache.resolve('b.test', note)
    assert.deepEqual(asked, ['a.test', 'b.test'])
    await answer()
    assert.deepEqual(answers, Array(51).fill([code, code === null ? ['192.0.2.1', '2001:db8::1'] : []]))
    cache.resolve('a.test', note)
    await answer()
    assert.equal(asked.length, askedAgain ? 3 : 2)
    assert.deepEqual(answers[51], answers[0])
  })
}

test('a failed lookup is repeated once its cache entry has expired', async () => {
  const { asked, resolve, answer } = resolver('ENOTFOUND')
  const cache = new DnsCache(30, resolve, 1)
  while (asked.length < 2) {
    cache.resolve('a.test', () => undefined)
    await answer()
  }
  assert.deepEqual(asked, ['a.test', 'a.test'])
})

test('numeric addresses need no lookup', () => {
  const { asked, resolve } = resolver(null)
  const cache = new DnsCache(30, resolve)
  const answers: string[] = []
  for (const host of ['192.0.2.7', '[2001:db8::7]']) cache.resolve(host, (_error, found) => answers.push(...found))
  assert.deepEqual(answers, ['192.0.2.7', '2001:db8::7'])
  assert.deepEqual(asked, [])
})

test('a new TTL empties the cache, and the same TTL changes nothing', async () => {
  const { asked, resolve, answer } = resolver(null)
  const cache = new DnsCache(30, resolve)
  const find = async () => {
    cache.resolve('a.test', () => undefined)
    await answer()
  }
  const steps: readonly (readonly [seconds: number, asked: number])[] = [
    [30, 1],
    [30, 1],
    [60, 2],
    [60, 2],
    [0, 3],
    [0, 4],
    [30, 5],
    [30, 5],
  ]
  for (const [seconds, times] of steps) {
    cache.setTtl(seconds)
    await find()
    assert.equal(asked.length, times)
  }
})

test('a lookup that ends after the TTL was set uses the new TTL', async () => {
  const { asked, resolve, answer } = resolver(null)
  const cache = new DnsCache(0, resolve)
  cache.resolve('a.test', () => undefined)
  cache.setTtl(30)
  await answer()
  cache.resolve('a.test', () => undefined)
  assert.equal(asked.length, 1)
})
