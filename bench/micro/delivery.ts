/**
 * Cost of the outbox on the embedded database, without the gateway: events stored per second, and deliveries per second
 * with a sender that answers at once. `npx node bench/micro/delivery.ts [events] [concurrency] [folder]`; the folder's
 * disk decides about events that are stored one by one.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeliveryRun } from '../../src/delivery/delivery-run.ts'
import { Outbox } from '../../src/delivery/outbox.ts'
import { MeasuredTable, measuredNote } from '../measured-table.ts'
import { MountedDatabases } from '../../src/mounted/database-access.ts'

const POOL = {
  ...{ maxActive: 1, maxWaitMs: 60_000, testOnBorrow: false, validationIntervalMs: 0, validationQuery: 'select 1' },
  ...{ connectMs: 10_000, statementMs: 60_000 },
}
const CLIENTS = 32
const SENDER = { tenant: 'acme.com', channel: 'sms', name: 'SMSPublisher' }

const [events = '10000', concurrency = '16', parent = tmpdir()] = process.argv.slice(2)
const count = Number(events)
const folder = mkdtempSync(join(parent, 'sluice-delivery-'))
process.once('exit', () => rmSync(folder, { recursive: true }))
const settings = { dialect: 'sqlite', description: '', pool: POOL, file: '', server: null } as const
const databases = new MountedDatabases({ settings, folder })
const outbox = await Outbox.open(databases.of<object>('Bench'))

/** Orders of one event each, by clients at the same time, each of which waits for its acceptance. */
async function accept(): Promise<void> {
  let left = count
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const event = JSON.stringify({ to: '+4798765432', text: `Your code is ${left}`, properties: { number: left } })
      await outbox.accept({ tenant: SENDER.tenant, key: null, deliveries: [{ sender: SENDER, event }] })
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

/** `failures`: part of the attempts that ask for another one. */
async function deliver(failures: number): Promise<void> {
  const run = new DeliveryRun({
    outbox,
    compose: async () =>
      Math.random() < failures
        ? { kind: 'retry', cause: 'HTTP 503', afterMs: null }
        : { kind: 'delivered', detail: 'HTTP 202' },
    pace: () => ({ concurrency: Number(concurrency), perSecond: null }),
    log: () => {},
    schedule: { delayMs: 50 },
  })
  const { signal } = new AbortController()
  for (;;) {
    const { jobs } = await run.due()
    for (const job of jobs) await run.run(job, signal)
    const [counts] = await outbox.counts(SENDER.tenant)
    if (counts!.waiting === 0) break
  }
}

const table = new MeasuredTable('The outbox on the embedded database', { 'per second': 0, 'CPU µs': 0 })

async function timed(name: string, work: () => Promise<void>): Promise<void> {
  const [begun, cpu] = [performance.now(), process.cpuUsage()]
  await work()
  const [seconds, { user, system }] = [(performance.now() - begun) / 1000, process.cpuUsage(cpu)]
  table.row(name, count / seconds, (user + system) / count)
}

await timed('events stored', accept)
await timed('deliveries', () => deliver(0))
await accept()
await timed('deliveries, 20 % fail once', () => deliver(0.2))
measuredNote(`${Math.round(process.memoryUsage.rss() / 1_048_576)} MiB resident.`)
