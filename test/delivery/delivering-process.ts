/**
 * A node that delivers until nothing waits: prints `ok ID` for each message that its provider takes, and `no ID` for
 * each that it refuses. Arguments: connection settings as JSON, name of the node, seed, of how many attempts one
 * fails, concurrency.
 */
import { writeSync } from 'node:fs'
import type { ConnectionSettings } from '../../src/database/database-settings.ts'
import { DeliveryRun } from '../../src/delivery/delivery-run.ts'
import { Outbox } from '../../src/delivery/outbox.ts'
import { Random } from '../harness/random.ts'
import { kyselyOf } from './faulty-connection.ts'

const [settingsText = '', node = '', seed = '', failing = '', concurrency = ''] = process.argv.slice(2)
const settings = JSON.parse(settingsText) as ConnectionSettings
const random = new Random(Number(seed))
const kysely = kyselyOf(settings)
const outbox = await Outbox.open({ dialect: settings.dialect, kysely })
const run = new DeliveryRun({
  outbox,
  node,
  pace: () => ({ concurrency: Number(concurrency), perSecond: null }),
  lease: { leaseMs: 1000, marginMs: 300 },
  schedule: { delayMs: 20, delayMsMax: 100 },
  log: () => {},
  compose: async ({ id }) => {
    await new Promise(setImmediate)
    const isRefused = random.once(Number(failing))
    // Synchronous: what the provider knows survives the end of this process.
    writeSync(1, `${isRefused ? 'no' : 'ok'} ${id}\n`)
    return isRefused ? { kind: 'retry', cause: 'HTTP 503', afterMs: null } : { kind: 'delivered', detail: 'HTTP 202' }
  },
})
const { signal } = new AbortController()
for (;;) {
  const { jobs, againMs } = await run.due()
  for (const job of jobs) await run.run(job, signal)
  const counts = await outbox.counts(null)
  if (counts.every(({ waiting }) => waiting === 0)) break
  if (jobs.length === 0) await new Promise(resolve => setTimeout(resolve, Math.min(againMs, 20)))
}
await kysely.destroy()
