/** Item 12: the outage of a database in metrics and events, with a clock by hand and with servers behind a gate. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DatabaseOutage } from '../../../src/control/registry/database-outage.ts'
import { Registry } from '../../../src/control/registry/registry.ts'
import { METRIC } from '../../../src/observe/metrics.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { eventually } from '../../harness/peers.ts'
import { freePort } from '../../harness/program.ts'
import { TcpGate } from '../../harness/tcp-gate.ts'
import { ISSUER, realDatabase } from './real-databases.ts'

class Recorded {
  readonly events: string[] = []
  readonly counts = new Map<number, number>()
  readonly report = (level: string, event: string, fields: Readonly<Record<string, unknown>>): void => {
    this.events.push(`${level} ${event} after ${fields.DOWN_S} s`)
  }
  readonly add = (cell: number, by: number): void => {
    this.counts.set(cell, this.count(cell) + by)
  }
  count(cell: number): number {
    return this.counts.get(cell) ?? 0
  }
}

test('an outage is reported at once, every 30 s while it lasts, and when it ends', () => {
  const recorded = new Recorded()
  let nowMs = 5000
  const outage = new DatabaseOutage({
    ...{ section: 'database.apim_db', description: 'postgre db:5432/x', nowMs: () => nowMs },
    ...{ report: recorded.report, metrics: recorded },
  })
  outage.worked()
  for (let seconds = 0; seconds <= 90; seconds += 3) {
    outage.failed('connect ECONNREFUSED')
    nowMs += 3000
  }
  assert.equal(recorded.count(METRIC.apimDatabaseDown), 1)
  outage.worked()
  outage.worked()
  assert.deepEqual(
    recorded.events,
    [0, 30, 60, 90]
      .map(seconds => `error database unavailable after ${seconds} s`)
      .concat(['warn database available again after 93 s']),
  )
  assert.deepEqual([recorded.count(METRIC.apimDatabaseDown), recorded.count(METRIC.apimDatabaseFailures)], [0, 31])
})

test('the outage of a shared_db of its own is found without a request', async t => {
  const database = await realDatabase('postgre')
  if (typeof database === 'string') return t.skip(database)
  const gate = new TcpGate(await freePort(), 5432)
  await gate.open()
  const server = database.toml.slice(database.toml.indexOf('[database.shared_db]'))
  const { dataDir } = database
  writeFileSync(join(dataDir, 'deployment.toml'), server.replaceAll(':5432', `:${gate.port}`))
  const { configuration } = loadConfiguration(dataDir, [])
  const recorded = new Recorded()
  const { report } = recorded
  const registry = await Registry.open({
    configuration,
    dataDir,
    issuer: ISSUER,
    report,
    metrics: recorded,
    pollMs: 20,
  })
  await gate.shut()
  await eventually('the outage', () => recorded.count(METRIC.sharedDatabaseDown) === 1)
  assert.equal(recorded.count(METRIC.apimDatabaseDown), 0)
  assert.deepEqual(recorded.events, ['error database unavailable after 0 s'])
  await gate.open()
  await eventually('its end', () => recorded.count(METRIC.sharedDatabaseDown) === 0)
  await registry.close()
  await gate.shut()
  await database.remove()
})
