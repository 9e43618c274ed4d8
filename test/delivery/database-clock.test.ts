/** The clock of the database is read now and then, and no age is judged after it has jumped. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Kysely } from 'kysely'
import { ConnectionPool } from '../../src/database/connection-pool.ts'
import { PooledDialect } from '../../src/database/pooled-dialect.ts'
import { DatabaseClock } from '../../src/delivery/database-clock.ts'
import { DeliveryCounts } from '../../src/observe/delivery-counts.ts'
import type { OutboxTables } from '../../src/delivery/outbox-schema.ts'
import { KINDS } from '../control/registry/real-databases.ts'
import { embeddedSettings } from '../mounted/healthcare/storage-databases.ts'
import { outboxDatabase } from './outbox-databases.ts'

const NOON = Date.parse('2026-01-01T12:00:00Z')
const HOUR = 3_600_000

/** Clock of the database beside that of the first reading, and whether ages are judged afterwards. */
const READINGS: readonly (readonly [number, boolean])[] = [
  [0, true],
  [59_000, true],
  [2 * HOUR, false],
  [2 * HOUR, false],
  [0, false],
]

test('a clock that jumps by more than a minute is not trusted to judge ages', async t => {
  let [nowMs, reads] = [NOON, 0]
  const query = async () => {
    reads++
    return { rows: [{ now: String(nowMs) }] }
  }
  const connection = { query, isDead: () => false, destroy: () => {} }
  const pool = new ConnectionPool(async () => connection, embeddedSettings().pool)
  const db = new Kysely<OutboxTables>({ dialect: new PooledDialect('sqlite', pool) })
  t.after(() => db.destroy())
  const clock = new DatabaseClock({
    db,
    dialect: 'sqlite',
    area: 'deliveries',
    cipher: null,
    counts: new DeliveryCounts(),
  })
  for (const [index, [offsetMs, isTrusted]] of READINGS.entries()) {
    nowMs = NOON + offsetMs
    assert.ok(Math.abs((await clock.read(true)) - nowMs) < 60_000, `reading ${index}`)
    assert.equal(clock.isTrusted(), isTrusted, `reading ${index}`)
  }
  await clock.read()
  assert.equal(reads, READINGS.length, 'a reading holds for ten seconds')
})

for (const kind of KINDS) {
  test(`the clock of ${kind} has milliseconds since 1970`, async t => {
    const fixture = await outboxDatabase(kind)
    if (typeof fixture === 'string') return t.skip(fixture)
    t.after(() => fixture.remove())
    const { clock } = await fixture.open()
    const nowMs = await clock.read(true)
    assert.ok(Number.isInteger(nowMs) && Math.abs(nowMs - Date.now()) < HOUR, `${nowMs}`)
  })
}
