/** Publishes the events of `[apim.analytics]`: every group of nodes gets every event, or the operator's module does. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { loadModule } from '../config/module-file.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { EventLog } from '../observe/events.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { AnalyticsGroup } from './analytics-group.ts'
import { AnalyticsNodes, type BatchResult, type BatchSink, type SentBatch } from './analytics-receiver.ts'
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
/** Calls of a module without a result: each keeps a batch in memory. */
const MODULE_CALLS_MAX = 4

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
  moduleMs = MODULE_MS,
}: AnalyticsContext): Promise<readonly NamedSink[]> {
  const settings = configuration['apim.analytics']
  if (settings.event_publisher_type === 'custom') {
    const publish = await loadModule(home, settings.event_publisher_impl, 'publish')
    return [{ name: settings.event_publisher_impl, sink: new ModuleSink(publish, moduleMs) }]
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

/** The operator's module: `publish(events)` gets the events of a batch as objects. */
class ModuleSink implements BatchSink {
  readonly #publish: (...given: readonly unknown[]) => unknown
  readonly #moduleMs: number
  #calls = 0

  constructor(publish: (...given: readonly unknown[]) => unknown, moduleMs: number) {
    this.#publish = publish
    this.#moduleMs = moduleMs
  }

  async send({ lines }: SentBatch): Promise<BatchResult> {
    let events: readonly object[]
    try {
      const written = lines.trimEnd().split('\n')
      events = written.map(line => JSON.parse(line) as object)
    } catch {
      // A file of the spool that something else has changed: no later attempt reads it.
      return { refused: 'they are not JSON' }
    }
    if (this.#calls >= MODULE_CALLS_MAX) throw new Error(`${MODULE_CALLS_MAX} calls of the module have no result`)
    this.#calls++
    const result = Promise.try(this.#publish, events)
    const settled = () => void this.#calls--
    result.then(settled, settled)
    await withTimeout(result, this.#moduleMs, () => new Error(`no result of the module within ${this.#moduleMs} ms`))
    return 'accepted'
  }
}
