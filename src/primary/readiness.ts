/** Readiness of a node with the state of each part, for `/readyz`. */
import { snapshotMetrics } from '../observe/metrics.ts'
import { CONFIGURED_PARTS, type ConfiguredPart } from '../plan/readiness-parts.ts'

interface Part {
  readonly name: string
  /** `degraded`: requests are still served. */
  readonly status: 'ok' | 'degraded' | 'failed'
  readonly detail: string
}

export interface Readiness {
  readonly status: 'ready' | 'unready'
  /** Why the node takes no traffic; '' where it does. */
  readonly reason: string
  readonly parts: readonly Part[]
}

interface ReadinessSources {
  /** Why the node does not take traffic; '' where it does. */
  readonly unready: string
  /** Null: the node runs no control thread. */
  readonly isControlServing: boolean | null
  readonly runsKeyManager: boolean
  readonly configured: ReadonlySet<ConfiguredPart>
  readonly metrics: SharedArrayBuffer
  /** Null on a node without reactors. */
  readonly endpoints: readonly { readonly name: string; readonly state: string }[] | null
}

type Counts = ReturnType<typeof snapshotMetrics>['counts']

const NAMES_MAX = 5

/** The failure of a part; '' for none. */
const DEGRADED: Readonly<Record<ConfiguredPart, (counts: Counts) => string>> = {
  database: ({ apimDatabaseDown: down }) => when(down, 'the database of the key manager does not answer'),
  'shared database': ({ sharedDatabaseDown: down }) => when(down, 'the shared database does not answer'),
  broker: ({ brokerDown }) => when(brokerDown, 'the message broker does not answer'),
  'traffic managers': ({ trafficManagerDown: down }) => when(down, 'there is no connection to one of them'),
  redis: ({ throttleRedisDown: down }) => when(down, 'the Redis of shared counters does not answer'),
  'access log': ({ accessLogFailing }) => when(accessLogFailing, 'the last lines could not be written'),
  analytics: ({ analyticsDown, analyticsSpoolFailing }) =>
    when(analyticsSpoolFailing, 'events are lost: they cannot be kept on disk') ||
    when(analyticsDown, 'a group of receivers takes no events; they are kept on disk'),
}

function when(count: number, detail: string): string {
  return count > 0 ? detail : ''
}

export function readiness(sources: ReadinessSources): Readiness {
  const { unready, isControlServing, runsKeyManager, configured, metrics, endpoints } = sources
  const { counts } = snapshotMetrics(metrics)
  const parts: Part[] = [{ name: 'node', status: unready === '' ? 'ok' : 'failed', detail: unready }]
  if (isControlServing !== null) {
    const name = runsKeyManager ? 'key manager' : 'control thread'
    parts.push(partOf(name, isControlServing ? '' : 'the control thread died; a replacement starts'))
  }
  for (const name of CONFIGURED_PARTS) if (configured.has(name)) parts.push(partOf(name, DEGRADED[name](counts)))
  if (endpoints !== null && endpoints.length > 0) parts.push(endpointsPart(endpoints))
  return { status: unready === '' ? 'ready' : 'unready', reason: unready, parts }
}

function partOf(name: string, detail: string): Part {
  return { name, status: detail === '' ? 'ok' : 'degraded', detail }
}

function endpointsPart(endpoints: NonNullable<ReadinessSources['endpoints']>): Part {
  const others = endpoints.filter(({ state }) => state !== 'ACTIVE')
  if (others.length === 0) return { name: 'endpoints', status: 'ok', detail: `${endpoints.length} active` }
  const named = others.slice(0, NAMES_MAX).map(({ name, state }) => `${name} ${state}`)
  const rest = others.length > NAMES_MAX ? `, and ${others.length - NAMES_MAX} more` : ''
  const detail = `${others.length} of ${endpoints.length} not active: ${named.join(', ')}${rest}`
  return { name: 'endpoints', status: 'degraded', detail }
}

/** One line per part, as `[+]name ok`. */
export function readinessText({ status, parts }: Readiness): string {
  const lines = parts.map(part => {
    const detail = part.detail === '' ? '' : ` (${part.detail})`
    return `[${part.status === 'ok' ? '+' : '-'}]${part.name} ${part.status}${detail}`
  })
  return [...lines, status].join('\n')
}
