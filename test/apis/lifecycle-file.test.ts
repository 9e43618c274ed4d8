/** `lifecycle.json` is written atomically, and read completely or refused. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigurationErrors, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { LifecycleStore, readLifecycleFile } from '../../src/apis/lifecycle-file.ts'
import { withState, NO_RECORDS } from '../../src/apis/lifecycle-records.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const ORDERS = { address: '/orders/1.0.0', name: 'Orders "\n', version: '1.0.0', declared: 'PUBLISHED' } as const
const BLOCKED = withState(NO_RECORDS, ORDERS, 'BLOCKED', { nowMs: 1_800_000_000_000, sunsetMs: 0 })
const RECORD =
  '{"address":"/a","name":"a","version":"1","state":"BLOCKED","sinceMs":1,"sunsetMs":0,"declared":"PUBLISHED","absentSinceMs":0}'

function place(t: TestContext) {
  const folder = temporaryHome(t, {})
  return { folder, file: join(folder, 'lifecycle.json') }
}

test('changes survive a restart, in a file that only its owner can read', async t => {
  const { folder, file } = place(t)
  await LifecycleStore.open(folder).commit(BLOCKED)
  assert.deepEqual(LifecycleStore.open(folder).records, BLOCKED)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder), ['lifecycle.json'])
})

test('a half-written temporary file is ignored and replaced', async t => {
  const { folder, file } = place(t)
  await LifecycleStore.open(folder).commit(BLOCKED)
  writeFileSync(`${file}.new`, '{"format":1', { mode: 0o666 })
  const store = LifecycleStore.open(folder)
  assert.deepEqual(store.records, BLOCKED)
  await store.commit(BLOCKED)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder), ['lifecycle.json'])
})

const DAMAGED: readonly (readonly [what: string, text: string | Buffer, said: RegExp])[] = [
  ['empty', '', /is damaged: it is no complete JSON/],
  ['cut short', `{"format":1,"apis":[\n${RECORD}`, /is damaged: it is no complete JSON/],
  ['zeros', Buffer.alloc(512), /is damaged: it is no complete JSON/],
  ['not UTF-8', Buffer.from([0x7b, 0xff]), /cannot be read: it is not UTF-8/],
  ['of a later release', '{"format":2,"apis":[]}', /has the format 2, and this release reads format 1/],
  ['without a format', '{"apis":[]}', /has no known format/],
  ['null', 'null', /is not a file of this gateway/],
  ['without APIs', '{"format":1}', /has no list of APIs/],
  ['with an unknown state', `{"format":1,"apis":[${RECORD.replace('BLOCKED', 'BLOCKEE')}]}`, /record 1 is invalid/],
  ['with a state of the prototype', `{"format":1,"apis":[${RECORD.replace('BLOCKED', 'valueOf')}]}`, /record 1 is/],
  [
    'with a record without a time',
    `{"format":1,"apis":[${RECORD.replace('"sinceMs":1,', '')}]}`,
    /record 1 is invalid/,
  ],
  ['with an invalid time', `{"format":1,"apis":[${RECORD.replace('"sinceMs":1', '"sinceMs":9e15')}]}`, /record 1/],
  ['with two records of one API', `{"format":1,"apis":[${RECORD},${RECORD}]}`, /record 2 is invalid/],
]

for (const [what, text, said] of DAMAGED) {
  test(`a file that is ${what} is an error with a hint, and is left as it is`, t => {
    const { folder, file } = place(t)
    writeFileSync(file, text)
    const { errors } = readLifecycleFile(folder)
    assert.equal(errors.length, 1)
    assert.match(formatDiagnostic(errors[0]!), said)
    assert.ok(formatDiagnostic(errors[0]!).startsWith(file))
    assert.match(errors[0]!.hint, /restore it from a backup, or remove it/)
    assert.throws(() => LifecycleStore.open(folder), ConfigurationErrors)
    assert.deepEqual(readFileSync(file), Buffer.from(text))
  })
}

test('a folder of that name is an error', t => {
  const { folder, file } = place(t)
  mkdirSync(file)
  assert.match(formatDiagnostic(readLifecycleFile(folder).errors[0]!), /cannot be read: it is a folder/)
})

test('records that cannot be written do not become active, and the next reload writes the active ones', async t => {
  const { folder, file } = place(t)
  const store = LifecycleStore.open(folder)
  mkdirSync(file)
  await assert.rejects(store.commit(BLOCKED), /lifecycle\.json cannot be written \(E/)
  assert.equal(store.records.size, 0)
  rmdirSync(file)
  assert.equal(await store.adopt(store.reread(readLifecycleFile(folder))), '')
  assert.equal(readLifecycleFile(folder).records.size, 0)
  await store.commit(BLOCKED)
  assert.deepEqual(readLifecycleFile(folder).records, BLOCKED)
})

test('after a failed write a reload does not trust the file', async t => {
  const { folder, file } = place(t)
  const store = LifecycleStore.open(folder)
  await store.commit(BLOCKED)
  mkdirSync(`${file}.new`)
  await assert.rejects(store.commit(NO_RECORDS), /cannot be written/)
  rmdirSync(`${file}.new`)
  writeFileSync(file, '{"format":1,"apis":[]}')
  assert.equal(await store.adopt(store.reread(readLifecycleFile(folder))), '')
  assert.deepEqual(readLifecycleFile(folder).records, BLOCKED)
})

test('adopted records that could not be written are written later', async t => {
  const { folder, file } = place(t)
  const store = LifecycleStore.open(folder)
  mkdirSync(file)
  assert.match(await store.adopt(BLOCKED), /cannot be written/)
  assert.equal(store.records, BLOCKED)
  rmdirSync(file)
  assert.equal(await store.adopt(store.records), '')
  assert.deepEqual(readLifecycleFile(folder).records, BLOCKED)
})

test('a reload reads a restored file, and writes a missing one again', async t => {
  const { folder, file } = place(t)
  const store = LifecycleStore.open(folder)
  await store.commit(BLOCKED)
  writeFileSync(file, `{"format":1,"apis":[${RECORD}]}`)
  assert.deepEqual([...store.reread(readLifecycleFile(folder)).keys()], ['/a'])
  rmSync(file)
  assert.equal(store.reread(readLifecycleFile(folder)), BLOCKED)
  assert.equal(await store.adopt(BLOCKED), '')
  assert.deepEqual(readLifecycleFile(folder).records, BLOCKED)
})

test('without changes there is no file', async t => {
  const { folder, file } = place(t)
  const store = LifecycleStore.open(folder)
  assert.equal(await store.adopt(NO_RECORDS), '')
  assert.ok(!existsSync(file))
})
