/** Connection pool: limits, validation and timeouts, with scripted connections. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Connection, ConnectionPool, type PoolSettings } from '../../src/database/connection-pool.ts'

const TERMS: PoolSettings = {
  maxActive: 2,
  maxWaitMs: 20,
  testOnBorrow: true,
  validationIntervalMs: 0,
  validationQuery: 'SELECT 1',
  connectMs: 20,
  statementMs: 20,
}

class Scripted implements Connection {
  readonly queries: string[] = []
  isGone = false
  answer: () => Promise<{ rows: unknown[] }> = async () => ({ rows: [] })

  query(sql: string) {
    this.queries.push(sql)
    return this.answer()
  }

  isDead(): boolean {
    return this.isGone
  }

  destroy(): void {
    this.isGone = true
  }
}

function scriptedPool(change: Partial<PoolSettings> = {}) {
  const opened: Scripted[] = []
  const open = async () => {
    opened.push(new Scripted())
    return opened.at(-1)!
  }
  return { opened, pool: new ConnectionPool(open, { ...TERMS, ...change }) }
}

test('at most maxActive connections are open; a further caller waits maxWait and is refused', async t => {
  const { opened, pool } = scriptedPool()
  t.after(() => pool.close())
  const [first] = [await pool.acquire(), await pool.acquire()]
  await assert.rejects(pool.acquire(), {
    name: 'ConnectionUnavailable',
    message: 'no connection became free within 20 ms',
  })
  const waits = pool.acquire()
  pool.release(first!)
  assert.equal(await waits, first)
  assert.equal(opened.length, 2)
})

test('testOnBorrow runs validationQuery and replaces a connection that fails it', async t => {
  const { opened, pool } = scriptedPool()
  t.after(() => pool.close())
  pool.release(await pool.acquire())
  opened[0]!.answer = () => Promise.reject(new Error('gone'))
  const other = await pool.acquire()
  assert.deepEqual([opened[0]!.queries, opened[0]!.isGone, opened.length], [['SELECT 1'], true, 2])
  pool.release(other)
})

test('a connection is tested once per validationInterval, or when another connection has ended', async t => {
  const { opened, pool } = scriptedPool({ validationIntervalMs: 60_000 })
  t.after(() => pool.close())
  const [one, two] = [await pool.acquire(), await pool.acquire()]
  pool.release(one!)
  const again = await pool.acquire()
  assert.deepEqual(opened[0]!.queries, [])
  pool.release(again)
  opened[1]!.isGone = true
  pool.release(two!)
  await pool.acquire()
  assert.deepEqual(opened[0]!.queries, ['SELECT 1'])
})

test('a statement that times out closes its connection and frees the slot', async t => {
  const { opened, pool } = scriptedPool({ maxActive: 1 })
  t.after(() => pool.close())
  const connection = await pool.acquire()
  opened[0]!.answer = () => new Promise(() => {})
  await assert.rejects(connection.query('select pg_sleep(1000)', []), { name: 'ConnectionUnavailable' })
  pool.release(connection)
  await pool.acquire()
  assert.deepEqual([opened[0]!.isGone, opened.length], [true, 2])
})

test('a connection that opens too late is closed, and callers that wait when the pool closes are refused', async () => {
  const late = Promise.withResolvers<Connection>()
  const pool = new ConnectionPool(() => late.promise, { ...TERMS, maxActive: 1 })
  await assert.rejects(pool.acquire(), { message: 'the connection did not open within 20 ms' })
  const connection = new Scripted()
  late.resolve(connection)
  await new Promise(resolve => setImmediate(resolve))
  assert.ok(connection.isGone)
  const { pool: full } = scriptedPool({ maxActive: 1, maxWaitMs: 10_000 })
  await full.acquire()
  const waits = assert.rejects(full.acquire(), { message: 'the pool is closed' })
  full.close()
  await waits
})
