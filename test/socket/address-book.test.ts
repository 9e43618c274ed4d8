/** Names of backends: one question at a time for each, and answers, failures too, that are remembered. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AddressBook } from '../../src/socket/address-book.ts'

const ADDRESSES = [{ address: '192.0.2.1' }, { address: '2001:db8::1' }]

function resolver(code: string | null) {
  const asked: string[] = []
  const pending: (() => void)[] = []
  const resolve: ConstructorParameters<typeof AddressBook>[1] = (host, _options, callback) => {
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
  ['a name that does not', 'ENOTFOUND', 30, false],
  ['a name that does not, without a cache', 'EAI_AGAIN', 0, false],
]
for (const [name, code, cacheSeconds, askedAgain] of rows) {
  test(`${name}: questions at the same time are one`, async () => {
    const { asked, resolve, answer } = resolver(code)
    const book = new AddressBook(cacheSeconds, resolve, 60_000)
    const answers: unknown[] = []
    const note = (error: string | null, addresses: readonly string[]) => answers.push([error, addresses])
    for (let i = 0; i < 50; i++) book.find('a.test', note)
    book.find('b.test', note)
    assert.deepEqual(asked, ['a.test', 'b.test'])
    await answer()
    assert.deepEqual(answers, Array(51).fill([code, code === null ? ['192.0.2.1', '2001:db8::1'] : []]))
    book.find('a.test', note)
    await answer()
    assert.equal(asked.length, askedAgain ? 3 : 2)
    assert.deepEqual(answers[51], answers[0])
  })
}

test('a name that did not resolve is asked again later', async () => {
  const { asked, resolve, answer } = resolver('ENOTFOUND')
  const book = new AddressBook(30, resolve, 1)
  while (asked.length < 2) {
    book.find('a.test', () => undefined)
    await answer()
  }
  assert.deepEqual(asked, ['a.test', 'a.test'])
})

test('numeric addresses are not asked for', () => {
  const { asked, resolve } = resolver(null)
  const book = new AddressBook(30, resolve)
  const answers: string[] = []
  for (const host of ['192.0.2.7', '[2001:db8::7]']) book.find(host, (_error, found) => answers.push(...found))
  assert.deepEqual(answers, ['192.0.2.7', '2001:db8::7'])
  assert.deepEqual(asked, [])
})

test('another time to keep addresses: names are asked for anew, one that is the same changes nothing', async () => {
  const { asked, resolve, answer } = resolver(null)
  const book = new AddressBook(30, resolve)
  const find = async () => {
    book.find('a.test', () => undefined)
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
    book.keepFor(seconds)
    await find()
    assert.equal(asked.length, times)
  }
})

test('addresses that come after another time was set are kept for that time', async () => {
  const { asked, resolve, answer } = resolver(null)
  const book = new AddressBook(0, resolve)
  book.find('a.test', () => undefined)
  book.keepFor(30)
  await answer()
  book.find('a.test', () => undefined)
  assert.equal(asked.length, 1)
})
