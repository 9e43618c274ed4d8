/** Outboxes on each database, in a schema of their own per test, with a clock and errors that the test chooses. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Kysely } from 'kysely'
import { type ConnectionSettings, databaseSettings } from '../../src/database/database-settings.ts'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import type { OutboxClock } from '../../src/delivery/database-clock.ts'
import type { Delivery, SenderId } from '../../src/delivery/delivery.ts'
import { DeliveryRun, type DeliveryRunOptions } from '../../src/delivery/delivery-run.ts'
import { Outbox, type OutboxOptions } from '../../src/delivery/outbox.ts'
import { KINDS, type RealDatabase, realDatabase } from '../control/registry/real-databases.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { kyselyOf, type StatementFault } from './faulty-connection.ts'

export const TENANT = 'acme.com'
export const SMS: SenderId = { tenant: TENANT, channel: 'sms', name: 'SMSPublisher' }
export const MAIL: SenderId = { tenant: TENANT, channel: 'email', name: 'E-mail/“1”' }

export interface OutboxFixture {
  readonly database: RealDatabase
  readonly settings: ConnectionSettings
  /** Another thread or node on the same tables. */
  open(options?: OutboxOptions, fault?: StatementFault): Promise<Outbox>
  remove(): Promise<void>
}

/** Resolves with the reason where the server is unavailable. */
export async function outboxDatabase(kind: RealDatabase['kind']): Promise<OutboxFixture | string> {
  const database = await realDatabase(kind)
  if (typeof database === 'string') return database
  writeFileSync(join(database.dataDir, 'deployment.toml'), database.toml)
  const { configuration } = loadConfiguration(database.dataDir, [], database.dataDir)
  const { apim } = databaseSettings(configuration, database.dataDir)
  const settings = apim.server === null ? { ...apim, file: join(database.dataDir, 'outbox.db') } : apim
  const opened: Kysely<object>[] = []
  const open = async (options: OutboxOptions = {}, fault?: StatementFault): Promise<Outbox> => {
    const kysely = kyselyOf(settings, fault)
    opened.push(kysely)
    return Outbox.open({ dialect: settings.dialect, kysely }, options)
  }
  const remove = async (): Promise<void> => {
    for (const kysely of opened) await kysely.destroy()
    await database.remove()
  }
  return { database, settings, open, remove }
}

export type Clause = (fixture: OutboxFixture) => Promise<void>

/** One test per database and clause, which begins with empty tables and without a holder of the lease. */
export function describeClauses(title: string, clauses: readonly (readonly [string, Clause])[]): void {
  for (const kind of KINDS) {
    describe(`${title} ${kind}`, () => {
      let fixture: OutboxFixture | string
      before(async () => {
        fixture = await outboxDatabase(kind)
      })
      after(async () => {
        if (typeof fixture !== 'string') await fixture.remove()
      })
      for (const [clause, body] of clauses) {
        test(clause, async t => {
          if (typeof fixture === 'string') return t.skip(fixture)
          const { db } = (await fixture.open()).connection
          for (const table of ['delivery_messages', 'delivery_keys', 'delivery_senders'] as const) {
            await db.deleteFrom(table).execute()
          }
          await db.updateTable('delivery_lease').set({ until_ms: 0 }).execute()
          await body(fixture)
        })
      }
    })
  }
}

export class TestClock implements OutboxClock {
  ms = Date.parse('2026-01-01')
  isSettled = true

  nowMs(): number {
    return this.ms
  }

  async read(): Promise<number> {
    return this.ms
  }

  isTrusted(): boolean {
    return this.isSettled
  }
}

/** Stores one event per text; their ids. */
export async function acceptAll(outbox: Outbox, texts: readonly string[], sender = SMS): Promise<readonly string[]> {
  const ids: string[] = []
  for (let i = 0; i < texts.length; i += 100) {
    const deliveries = texts.slice(i, i + 100).map(text => ({ sender, event: JSON.stringify({ text }) }))
    const acceptance = await outbox.accept({ tenant: sender.tenant, key: null, deliveries })
    if (acceptance.kind === 'refused') throw new Error(acceptance.reason)
    ids.push(...acceptance.ids)
  }
  return ids
}

export function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `text ${i}`)
}

type Compose = (delivery: Delivery, signal: AbortSignal) => Promise<AttemptResult>

export const DELIVERED: AttemptResult = { kind: 'delivered', detail: 'HTTP 202' }
export const RETRY = { kind: 'retry', cause: 'HTTP 503', afterMs: null } as const

/** A run without randomness: delays are as long as they can be. */
export function runOf(outbox: Outbox, compose: Compose, options: Partial<DeliveryRunOptions> = {}): DeliveryRun {
  return new DeliveryRun({
    outbox,
    compose,
    pace: () => ({ concurrency: 8, perSecond: null }),
    log: () => {},
    random: () => 1,
    ...options,
  })
}

/** Runs what is due until nothing is. Rejects as one of the runs, after all have ended. */
export async function runDue(run: DeliveryRun, signal = new AbortController().signal): Promise<void> {
  for (;;) {
    const { jobs } = await run.due()
    if (jobs.length === 0) return
    const ended = await Promise.allSettled(jobs.map(job => run.run(job, signal)))
    for (const each of ended) if (each.status === 'rejected') throw each.reason
  }
}

export async function readState(outbox: Outbox, id: string): Promise<string | undefined> {
  const delivery = await outbox.get(TENANT, id)
  return delivery && `${delivery.state} ${delivery.attempts} ${delivery.cause}`.trim()
}

/** The counts of a sender that are not 0. */
export async function readCountsOf(outbox: Outbox, sender = SMS): Promise<Readonly<Record<string, number>>> {
  const all = await outbox.counts(sender.tenant)
  const own = all.find(counts => counts.sender.channel === sender.channel && counts.sender.name === sender.name)
  const { sender: _, ...counts } = own ?? { sender }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
}
