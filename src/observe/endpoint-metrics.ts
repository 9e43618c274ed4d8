/** Renders the metrics of each endpoint, from its slot in the endpoint table. */
import { heading } from './metrics.ts'

const STATES = ['ACTIVE', 'TIMEOUT', 'SUSPENDED', 'OFF'] as const

interface EndpointSample {
  readonly name: string
  readonly api: string
  readonly url: string
  readonly state: (typeof STATES)[number]
  readonly failures: number
  readonly timeouts: number
  readonly suspensions: number
  readonly recoveries: number
}

type Counted = 'failures' | 'timeouts' | 'suspensions' | 'recoveries'
const COUNTERS: readonly (readonly [Counted, help: string])[] = [
  ['failures', 'Failures that count towards the suspension of an endpoint.'],
  ['timeouts', 'Changes of an endpoint to the state TIMEOUT.'],
  ['suspensions', 'Suspensions of an endpoint, by failures or by its health check.'],
  ['recoveries', 'Changes of an endpoint back to the state ACTIVE without an operator.'],
]

/** Text format of Prometheus: per endpoint one series for each state, of which one is 1, and its counters. */
export function renderEndpointMetrics(endpoints: readonly EndpointSample[]): string {
  if (endpoints.length === 0) return ''
  const labelled = endpoints.map(endpoint => ({ endpoint, labels: labelsOf(endpoint) }))
  const lines = heading('endpoint_state', 'gauge', '1 for the current state of an endpoint, 0 for the others.')
  for (const { endpoint, labels } of labelled) {
    for (const state of STATES) {
      lines.push(`sluice_endpoint_state{${labels},state="${state}"} ${endpoint.state === state ? 1 : 0}`)
    }
  }
  for (const [name, help] of COUNTERS) {
    lines.push(...heading(`endpoint_${name}_total`, 'counter', help))
    for (const { endpoint, labels } of labelled) {
      lines.push(`sluice_endpoint_${name}_total{${labels}} ${endpoint[name]}`)
    }
  }
  return `${lines.join('\n')}\n`
}

function labelsOf({ name, api, url }: EndpointSample): string {
  return `api="${escaped(api)}",endpoint="${escaped(name)}",url="${escaped(url)}"`
}

/** A text as the value of a label. */
export function escaped(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}
