/** The pool's limits, with connections that do as they are told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Connection, ConnectionPool, type PoolTerms } from '../../src/registry/connection-pool.ts'

const TERMS: PoolTerms = {
  maxActive: 2,
  maxWaitMs: 20,
  testOnBorrow: true,
  validationIntervalMs: 0,
  validationQuery: 'SELECT 1',
  connectMs: 20,
  statementMs: 20,
}

class Scripted implements Connection {
  readonly asked: string[] = []
  isGone = false
  answer: () => Promise<{ rows: unknown[] }> = async () => ({ rows: [] })

  query(sql: string) {
    this.asked.push(sql)
    return this.answer()
  }

  isDead(): boolean {
    return this.isGone
  }

  destroy(): void {
    this.isGone = true
  }
}

function scriptedPool(change: Partial<PoolTerms> = {}) {
  const opened: Scripted[] = []
  const open = async () => {
    opened.push(new Scripted())
    return opened.at(-1)!
  }
  return { opened, pool: new ConnectionPool(open, { ...TERMS, ...change }) }
}

test('maxActive connections are open at once, the next one waits maxWait and is refused', async t => {
  const { opened, pool } = scriptedPool()
  t.after(() => pool.close())
  const [first] = [await pool.borrow(), await pool.borrow()]
  await assert.rejects(pool.borrow(), { name: 'NoConnection', message: 'no connection became free within 20 ms' })
  const waits = pool.borrow()
  pool.giveBack(first!)
  assert.equal(await waits, first)
  assert.equal(opened.length, 2)
})

test('testOnBorrow runs validationQuery, and takes another connection where it fails', async t => {
  const { opened, pool } = scriptedPool()
  t.after(() => pool.close())
  pool.giveBack(await pool.borrow())
  opened[0]!.answer = () => Promise.reject(new Error('gone'))
  const other = await pool.borrow()
  assert.deepEqual([opened[0]!.asked, opened[0]!.isGone, opened.length], [['SELECT 1'], true, 2])
  pool.giveBack(other)
})

test('a connection tested within validationInterval is not tested again, until another one has ended', async t => {
  const { opened, pool } = scriptedPool({ validationIntervalMs: 60_000 })
  t.after(() => pool.close())
  const [one, two] = [await pool.borrow(), await pool.borrow()]
  pool.giveBack(one!)
  const again = await pool.borrow()
  assert.deepEqual(opened[0]!.asked, [])
  pool.giveBack(again)
  opened[1]!.isGone = true
  pool.giveBack(two!)
  await pool.borrow()
  assert.deepEqual(opened[0]!.asked, ['SELECT 1'])
})

test('a statement without an answer ends its connection, and the place is free for another one', async t => {
  const { opened, pool } = scriptedPool({ maxActive: 1 })
  t.after(() => pool.close())
  const connection = await pool.borrow()
  opened[0]!.answer = () => new Promise(() => {})
  await assert.rejects(connection.query('select pg_sleep(1000)', []), { name: 'NoConnection' })
  pool.giveBack(connection)
  await pool.borrow()
  assert.deepEqual([opened[0]!.isGone, opened.length], [true, 2])
})

test('a connection that opens too late is closed again, and those who wait when the pool closes are told', async () => {
  const late = Promise.withResolvers<Connection>()
  const pool = new ConnectionPool(() => late.promise, { ...TERMS, maxActive: 1 })
  await assert.rejects(pool.borrow(), { message: 'the connection did not open within 20 ms' })
  const connection = new Scripted()
  late.resolve(connection)
  await new Promise(resolve => setImmediate(resolve))
  assert.ok(connection.isGone)
  const { pool: full } = scriptedPool({ maxActive: 1, maxWaitMs: 10_000 })
  await full.borrow()
  const waits = assert.rejects(full.borrow(), { message: 'closed' })
  full.close()
  await waits
})
