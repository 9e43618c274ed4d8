/** Counts of connections with limits and highest numbers, from the gauges that the reactors share. */
import type { SharedGauge } from '../runtime/shared-gauge.ts'
import { escaped } from './endpoint-metrics.ts'
import { heading } from './metrics.ts'

/** Rows of the gauge that count the client connections of a transport. */
export const CLIENT_ROWS = { http: 0, https: 1 } as const

/** A row of the gauge, as it is listed. */
interface CountedRow {
  readonly row: number
  readonly label: string
  /** -1: none. */
  readonly limit: number
}

/** Row and limit of the connections of one transport's clients, and of one backend over all APIs that use it. */
export interface ConnectionRows {
  readonly clients: readonly CountedRow[]
  readonly backends: readonly CountedRow[]
}

/** Text format of Prometheus. Backends that were never connected to are left out. */
export function renderConnectionMarks(gauge: SharedGauge, { clients, backends }: ConnectionRows): string {
  const used = backends.filter(({ row }) => gauge.highest(row) > 0)
  const lines = [
    ...marks(gauge, 'client_pool_connections', 'of the clients of a transport', 'transport', clients),
    ...marks(gauge, 'backend_pool_connections', 'to a backend', 'backend', used),
  ]
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

function marks(
  gauge: SharedGauge,
  series: string,
  which: string,
  label: string,
  rows: readonly CountedRow[],
): readonly string[] {
  if (rows.length === 0) return []
  const limited = rows.filter(({ limit }) => limit >= 0)
  const line = (suffix: string, { label: value }: CountedRow, count: number) =>
    `sluice_${series}${suffix}{${label}="${escaped(value)}"} ${count}`
  return [
    ...heading(series, 'gauge', `Connections ${which} now, all reactors together.`),
    ...rows.map(row => line('', row, gauge.sum(row.row))),
    ...heading(`${series}_highest`, 'gauge', `Most connections ${which} at once since the start.`),
    ...rows.map(row => line('_highest', row, gauge.highest(row.row))),
    ...(limited.length === 0 ? [] : heading(`${series}_limit`, 'gauge', `Most connections ${which} that may be open.`)),
    ...limited.map(row => line('_limit', row, row.limit)),
  ]
}
