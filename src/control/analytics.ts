/** Publishes the events of `[apim.analytics]`: every group of nodes gets every event, or the operator's module does. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Configuration } from '../config/catalogue.ts'
import type { EventLog } from '../observe/events.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { AnalyticsGroup } from './analytics-group.ts'
import { ModuleSink } from './analytics-module.ts'
import { AnalyticsNodes, type BatchSink } from './analytics-receiver.ts'
import { AnalyticsSpool } from './analytics-spool.ts'
import type { RemoteServices } from './remote-services.ts'

interface AnalyticsContext {
  readonly configuration: Configuration
  readonly home: string
  readonly dataDir: string
  readonly send: RemoteServices['send']
  readonly report: EventLog['report']
  readonly metrics: MetricsColumn
  /** Longest time of a call of the module; for tests. */
  readonly moduleMs?: number
  /** Shortest and longest pause behind a failure; for tests. */
  readonly pausesMs?: readonly [shortest: number, longest: number]
}

const MODULE_MS = 10_000

export class Analytics {
  readonly #groups: readonly AnalyticsGroup[]

  private constructor(groups: readonly AnalyticsGroup[]) {
    this.#groups = groups
  }

  /** Rejects with ModuleError, or as the data folder does. */
  static async open(context: AnalyticsContext): Promise<Analytics> {
    const settings = context.configuration['apim.analytics']
    const sinks = await sinksOf(context)
    const bytesMax = Math.floor(settings.spool_max_bytes / sinks.length)
    const spools: AnalyticsSpool[] = []
    const { metrics, report, dataDir, pausesMs } = context
    const counts = {
      published: (events: number) => metrics.add(METRIC.analyticsPublished, events),
      dropped: (events: number) => metrics.add(METRIC.analyticsDropped, events),
      spooled: () => {
        const bytes = spools.reduce((sum, spool) => sum + spool.bytes, 0)
        metrics.add(METRIC.analyticsSpooled, bytes - metrics.read(METRIC.analyticsSpooled))
      },
      down: (by: number) => metrics.add(METRIC.analyticsDown, by),
      spoolFailing: (by: number) => metrics.add(METRIC.analyticsSpoolFailing, by),
    }
    const groups = sinks.map(({ name, sink }) => {
      const spool = new AnalyticsSpool(join(dataDir, 'analytics', folderOf(name)), bytesMax, loss => {
        counts.dropped(loss.events)
        counts.spooled()
        const fields = { GROUP: name, FILES: loss.files, FIRST_FILE: loss.file, CAUSE_OF_ERROR: loss.cause }
        report('error', 'analytics events on disk are unreadable', { ...fields, EVENTS: loss.events })
      })
      spools.push(spool)
      return new AnalyticsGroup({ name, sink, spool, counts, report, pausesMs })
    })
    counts.spooled()
    return new Analytics(groups)
  }

  publish(lines: string, events: number): void {
    for (const group of this.#groups) group.add({ lines, events })
  }

  /** Keeps what was not published. */
  async close(): Promise<void> {
    await Promise.all(this.#groups.map(group => group.close()))
  }
}

async function sinksOf({
  configuration,
  home,
  send,
  metrics,
  moduleMs = MODULE_MS,
}: AnalyticsContext): Promise<readonly NamedSink[]> {
  const settings = configuration['apim.analytics']
  if (settings.event_publisher_type === 'custom') {
    const path = settings.event_publisher_impl
    return [{ name: path, sink: await ModuleSink.open({ home, path, timeoutMs: moduleMs, metrics }) }]
  }
  const account = { name: settings.receiver_username, password: settings.receiver_password }
  return configuration['apim.analytics.url_group'].map(group => {
    const { analytics_url: events, analytics_auth_url: logins, type } = group
    return { name: events.join(' '), sink: new AnalyticsNodes({ events, logins, type }, account, send) }
  })
}

interface NamedSink {
  /** Addresses, or path of the module. */
  readonly name: string
  readonly sink: BatchSink
}

/** A folder that other groups do not use, also after groups have changed. */
function folderOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 16)
}
