/** Writers of one embedded database take turns, in the order in which they ask. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Connection } from '../../src/database/connection-pool.ts'
import { openSqlite } from '../../src/database/sqlite.ts'
import { WriteTurns } from '../../src/database/write-turns.ts'

const BEGIN = 'begin immediate'

async function connections(t: TestContext, count: number): Promise<readonly Connection[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-turns-'))
  const file = join(folder, 'turns.db')
  const opened: Connection[] = []
  for (let at = 0; at < count; at++) opened.push(await openSqlite(file))
  t.after(() => {
    for (const connection of opened) connection.destroy()
    rmSync(folder, { recursive: true })
  })
  await opened[0]!.query('create table numbers (value integer)', [])
  return opened
}

test('a connection with one transaction after the other waits for its turn, as all others do', async t => {
  const writers = await connections(t, 3)
  const order: number[] = []
  let ended = 0
  const write = async (writer: number): Promise<void> => {
    const connection = writers[writer]!
    for (let round = 0; round < 20; round++) {
      await connection.query(BEGIN, [])
      order.push(writer)
      await connection.query('insert into numbers values (?)', [writer])
      // Other statements of the transaction, while the others ask.
      await new Promise(setImmediate)
      await connection.query(round % 2 === 0 ? 'commit' : 'rollback', [])
    }
    ended++
  }
  await Promise.all([0, 1, 2].map(write))
  assert.equal(ended, 3)
  assert.deepEqual(
    order,
    Array.from({ length: 60 }, (_, at) => at % 3),
  )
})

test('a single statement has its turn among transactions that follow each other', async t => {
  const [busy, single] = await connections(t, 2)
  let [isDone, transactions] = [false, 0]
  const following = (async () => {
    while (!isDone) {
      await busy!.query(BEGIN, [])
      transactions++
      await new Promise(setImmediate)
      await busy!.query('commit', [])
    }
  })()
  while (transactions === 0) await new Promise(setImmediate)
  const before = transactions
  await single!.query('insert into numbers values (7)', [])
  assert.ok(transactions - before <= 2, `${transactions - before} transactions came first`)
  isDone = true
  await following
  assert.deepEqual((await busy!.query('select value from numbers', [])).rows.length, 1)
})

test('a connection that ends in its transaction gives its turn back', async t => {
  const [first, second] = await connections(t, 2)
  await first!.query(BEGIN, [])
  const waiting = second!.query(BEGIN, [])
  first!.destroy()
  await waiting
  await second!.query('commit', [])
})

test('a turn that never ends is passed over, and its end changes nothing then', async () => {
  const turns = new WriteTurns(`passed over ${Math.random()}`)
  const dead = await turns.take()
  const next = await turns.take()
  assert.equal((next - dead) | 0, 1)
  turns.end(dead)
  let isThird = false
  const third = turns.take().then(ticket => {
    isThird = true
    return ticket
  })
  await new Promise(setImmediate)
  assert.equal(isThird, false, 'the turn of the second one has not ended')
  turns.end(next)
  turns.end(await third)
})

const MODULE = new URL('../../src/database/write-turns.ts', import.meta.url).href
/** Three threads take a turn each; the main thread ends its own one when all have asked, and prints their order. */
const PROGRAM = `
  import { shareWriteTurns, WriteTurns } from '${MODULE}'
  import { once } from 'node:events'
  import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
  if (isMainThread) {
    shareWriteTurns()
    const turns = new WriteTurns('a file')
    const first = await turns.take()
    const order = []
    const exits = []
    for (const name of ['a', 'b', 'c']) {
      const thread = new Worker(new URL(import.meta.url), { workerData: name })
      thread.on('message', word => order.push(word))
      exits.push(once(thread, 'exit'))
      await once(thread, 'online')
    }
    turns.end(first)
    await Promise.all(exits)
    const all = [...order].sort().join(' ')
    const isWhole = order.every((word, at) => at % 2 === 0 || order[at - 1].slice(1) === word.slice(1))
    console.log(all, isWhole)
  } else {
    const turns = new WriteTurns('a file')
    const ticket = await turns.take()
    parentPort.postMessage('+' + workerData)
    await new Promise(setImmediate)
    parentPort.postMessage('-' + workerData)
    turns.end(ticket)
  }
`

test('threads of a process have one order', () => {
  const url = `data:text/javascript,${encodeURIComponent(PROGRAM)}`
  const words = ['--input-type=module', '--eval', `await import(${JSON.stringify(url)})`]
  assert.equal(execFileSync(process.execPath, words, { encoding: 'utf8' }), '+a +b +c -a -b -c true\n')
})
