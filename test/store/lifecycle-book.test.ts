/** `lifecycle.json`: written whole or not at all, understood whole or not at all. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigurationFaults, describe } from '../../src/config/fault.ts'
import { LifecycleBook, readLifecycles } from '../../src/store/lifecycle-book.ts'
import { changed, NO_RECORDS } from '../../src/store/lifecycles.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const ORDERS = { address: '/orders/1.0.0', name: 'Orders "\n', version: '1.0.0', declared: 'PUBLISHED' } as const
const BLOCKED = changed(NO_RECORDS, ORDERS, 'BLOCKED', { nowMs: 1_800_000_000_000, sunsetMs: 0 })
const RECORD =
  '{"address":"/a","name":"a","version":"1","state":"BLOCKED","sinceMs":1,"sunsetMs":0,"declared":"PUBLISHED","absentSinceMs":0}'

function place(t: TestContext) {
  const folder = temporaryHome(t, {})
  return { folder, file: join(folder, 'lifecycle.json') }
}

test('what was changed is there after a start, and nobody else can read it', async t => {
  const { folder, file } = place(t)
  await LifecycleBook.open(folder).change(BLOCKED)
  assert.deepEqual(LifecycleBook.open(folder).records, BLOCKED)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder), ['lifecycle.json'])
})

test('one that was left half written beside it is nobody’s', async t => {
  const { folder, file } = place(t)
  await LifecycleBook.open(folder).change(BLOCKED)
  writeFileSync(`${file}.new`, '{"format":1', { mode: 0o666 })
  const book = LifecycleBook.open(folder)
  assert.deepEqual(book.records, BLOCKED)
  await book.change(BLOCKED)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder), ['lifecycle.json'])
})

const DAMAGED: readonly (readonly [what: string, text: string | Buffer, said: RegExp])[] = [
  ['empty', '', /is damaged: it is not whole JSON/],
  ['cut short', `{"format":1,"apis":[\n${RECORD}`, /is damaged: it is not whole JSON/],
  ['zeros', Buffer.alloc(512), /is damaged: it is not whole JSON/],
  ['no UTF-8', Buffer.from([0x7b, 0xff]), /cannot be read: it is not UTF-8/],
  ['of a later release', '{"format":2,"apis":[]}', /has the format 2, and this release knows 1/],
  ['without a format', '{"apis":[]}', /has the format of something else/],
  ['null', 'null', /does not hold what this gateway writes/],
  ['without APIs', '{"format":1}', /has no list of APIs/],
  ['with a state that is none', `{"format":1,"apis":[${RECORD.replace('BLOCKED', 'BLOCKEE')}]}`, /record 1 is not one/],
  ['with a state of the prototype', `{"format":1,"apis":[${RECORD.replace('BLOCKED', 'valueOf')}]}`, /record 1 is/],
  ['with a record without a time', `{"format":1,"apis":[${RECORD.replace('"sinceMs":1,', '')}]}`, /record 1 is not/],
  ['with a time that is none', `{"format":1,"apis":[${RECORD.replace('"sinceMs":1', '"sinceMs":9e15')}]}`, /record 1/],
  ['with two records of one API', `{"format":1,"apis":[${RECORD},${RECORD}]}`, /record 2 is not one of an API/],
]

for (const [what, text, said] of DAMAGED) {
  test(`a file that is ${what} is a fault that names it and what to do, and no empty file`, t => {
    const { folder, file } = place(t)
    writeFileSync(file, text)
    const { faults } = readLifecycles(folder)
    assert.equal(faults.length, 1)
    assert.match(describe(faults[0]!), said)
    assert.ok(describe(faults[0]!).startsWith(file))
    assert.match(faults[0]!.remedy, /restore it from a backup, or remove it/)
    assert.throws(() => LifecycleBook.open(folder), ConfigurationFaults)
    assert.deepEqual(readFileSync(file), Buffer.from(text))
  })
}

test('a folder of that name is a fault', t => {
  const { folder, file } = place(t)
  mkdirSync(file)
  assert.match(describe(readLifecycles(folder).faults[0]!), /cannot be read: it is a folder/)
})

test('what cannot be written does not hold, and a reload brings the file to what does', async t => {
  const { folder, file } = place(t)
  const book = LifecycleBook.open(folder)
  mkdirSync(file)
  await assert.rejects(book.change(BLOCKED), /lifecycle\.json cannot be written \(E/)
  assert.equal(book.records.size, 0)
  rmdirSync(file)
  assert.equal(await book.follow(book.reread(readLifecycles(folder))), '')
  assert.equal(readLifecycles(folder).records.size, 0)
  await book.change(BLOCKED)
  assert.deepEqual(readLifecycles(folder).records, BLOCKED)
})

test('what a failed writing may have left is not what a reload finds', async t => {
  const { folder, file } = place(t)
  const book = LifecycleBook.open(folder)
  await book.change(BLOCKED)
  mkdirSync(`${file}.new`)
  await assert.rejects(book.change(NO_RECORDS), /cannot be written/)
  rmdirSync(`${file}.new`)
  writeFileSync(file, '{"format":1,"apis":[]}')
  assert.equal(await book.follow(book.reread(readLifecycles(folder))), '')
  assert.deepEqual(readLifecycles(folder).records, BLOCKED)
})

test('what holds without being written is written later', async t => {
  const { folder, file } = place(t)
  const book = LifecycleBook.open(folder)
  mkdirSync(file)
  assert.match(await book.follow(BLOCKED), /cannot be written/)
  assert.equal(book.records, BLOCKED)
  rmdirSync(file)
  assert.equal(await book.follow(book.records), '')
  assert.deepEqual(readLifecycles(folder).records, BLOCKED)
})

test('a reload takes a file that was restored, and brings back one that is gone', async t => {
  const { folder, file } = place(t)
  const book = LifecycleBook.open(folder)
  await book.change(BLOCKED)
  writeFileSync(file, `{"format":1,"apis":[${RECORD}]}`)
  assert.deepEqual([...book.reread(readLifecycles(folder)).keys()], ['/a'])
  rmSync(file)
  assert.equal(book.reread(readLifecycles(folder)), BLOCKED)
  assert.equal(await book.follow(BLOCKED), '')
  assert.deepEqual(readLifecycles(folder).records, BLOCKED)
})

test('where nobody has changed anything there is no file', async t => {
  const { folder, file } = place(t)
  const book = LifecycleBook.open(folder)
  assert.equal(await book.follow(NO_RECORDS), '')
  assert.ok(!existsSync(file))
})
