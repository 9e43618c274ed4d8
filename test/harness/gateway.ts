/** A gateway within the test's own process: one reactor on a free port, with everything it reported at hand. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfiguration } from '../../src/config/load.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import { AccessLog } from '../../src/observe/access-log.ts'
import { allocateMetrics, snapshotMetrics } from '../../src/observe/metrics.ts'
import { CLIENT_ROWS, type ReactorPlan } from '../../src/plan.ts'
import { Reactor } from '../../src/reactor.ts'
import { handleLevel } from '../../src/socket/handle-socket.ts'
import { streamLevel } from '../../src/socket/stream-socket.ts'
import { SharedGauge } from '../../src/structure/shared-gauge.ts'

interface Reported {
  readonly level: string
  readonly event: string
  readonly fields: Readonly<Record<string, string | number>>
}

export interface TestGateway {
  readonly port: number
  readonly reports: readonly Reported[]
  readonly accessLines: readonly string[]
  readonly reactor: Reactor
  metrics(): ReturnType<typeof snapshotMetrics>
  stop(): void
}

interface TestApi {
  readonly context: string
  readonly host?: string
  readonly port: number
  readonly basePath?: string
}

/** Socket level of this run of the suite: `SLUICE_LEVEL=streams npm test`. */
export const LEVEL = process.env.SLUICE_LEVEL === 'streams' ? 'streams' : 'handles'

const home = mkdtempSync(join(tmpdir(), 'sluice-test-'))
writeFileSync(join(home, 'deployment.toml'), '')
process.once('exit', () => rmSync(home, { recursive: true, force: true }))

/** `http`: keys of `[transport.passthru_http]`. */
export async function startGateway(
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  accessLogFormat: 'json' | 'combined' | null = null,
  handlers: readonly Handler[] = [],
): Promise<TestGateway> {
  const sets = Object.entries(http).map(([key, value]) => `transport.passthru_http.${key}=${JSON.stringify(value)}`)
  const { configuration } = loadConfiguration(home, sets)
  const backends = [...new Set(apis.map(api => `${api.host ?? '127.0.0.1'}:${api.port}`))]
  const plan: ReactorPlan = {
    reactor: 0,
    reactors: 1,
    http: { ...configuration['transport.passthru_http'], 'listener.parameters.bind_address': '127.0.0.1' },
    accessLog: configuration.access_log,
    accessLogPath: '',
    logLevel: 'debug',
    apis: apis.map(api => ({
      name: api.context.slice(1),
      paths: [api.context],
      host: api.host ?? '127.0.0.1',
      port: api.port,
      basePath: api.basePath ?? '',
      row: 1 + backends.indexOf(`${api.host ?? '127.0.0.1'}:${api.port}`),
    })),
    level: LEVEL,
    port: 0,
    metrics: allocateMetrics(1),
    gauge: SharedGauge.allocate(1, 1 + backends.length),
    clients: SharedGauge.allocate(1, CLIENT_ROWS),
    clientSeed: 42,
    heartbeats: new SharedArrayBuffer(4),
  }
  const reports: Reported[] = []
  const accessLines: string[] = []
  const accessLog =
    accessLogFormat === null
      ? null
      : new AccessLog(
          accessLogFormat,
          batch => accessLines.push(...Buffer.from(batch).toString('latin1').trimEnd().split('\n')),
          {
            wallOffsetMs: () => Date.now() - performance.now(),
          },
        )
  const reactor = new Reactor(plan, {
    level: LEVEL === 'streams' ? streamLevel : handleLevel(),
    report: (level, event, fields) => reports.push({ level, event, fields }),
    accessLog,
    chainOf: () => handlers,
    drained: () => {},
  })
  const port = await reactor.start()
  return {
    port,
    reports,
    accessLines,
    reactor,
    metrics: () => snapshotMetrics(plan.metrics),
    stop: () => reactor.stop(),
  }
}
