/** Readiness of a node with the state of each part, for `/readyz`. */
import { snapshotMetrics } from '../observe/metrics.ts'

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
  readonly metrics: SharedArrayBuffer
  readonly endpoints: readonly { readonly name: string; readonly state: string }[]
}

const NAMES_MAX = 5

export function readiness(sources: ReadinessSources): Readiness {
  const { unready, isControlServing, runsKeyManager, metrics, endpoints } = sources
  const { counts } = snapshotMetrics(metrics)
  const down = (name: string, is: number, detail: string): Part =>
    is > 0 ? { name, status: 'degraded', detail } : { name, status: 'ok', detail: '' }
  const parts: Part[] = [{ name: 'node', status: unready === '' ? 'ok' : 'failed', detail: unready }]
  if (isControlServing !== null) {
    const name = runsKeyManager ? 'key manager' : 'control thread'
    parts.push(down(name, isControlServing ? 0 : 1, 'the control thread died; a replacement starts'))
  }
  parts.push(
    down('database', counts.apimDatabaseDown, 'the database of the key manager does not answer'),
    down('shared database', counts.sharedDatabaseDown, 'the shared database does not answer'),
    down('broker', counts.brokerDown, 'the message broker does not answer'),
    down('traffic managers', counts.trafficManagerDown, 'there is no connection to one of them'),
    down('redis', counts.throttleRedisDown, 'the Redis of shared counters does not answer'),
    endpointsPart(endpoints),
  )
  return { status: unready === '' ? 'ready' : 'unready', reason: unready, parts }
}

function endpointsPart(endpoints: ReadinessSources['endpoints']): Part {
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
