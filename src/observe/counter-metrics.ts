/** Renders the metrics of the throttling counters, which the primary reads from the memory of the reactors. */
import { escaped } from './endpoint-metrics.ts'
import { heading } from './metrics.ts'

interface CounterSample {
  readonly live: number
  readonly capacity: number
  readonly full: number
  readonly busy: number
  readonly evicted: number
  readonly rebuilt: number
}

const ROWS: readonly (readonly [keyof CounterSample, kind: 'gauge' | 'counter', name: string, help: string])[] = [
  ['live', 'gauge', 'throttle_counters', 'Counters in use.'],
  ['capacity', 'gauge', 'throttle_counters_max', 'Largest number of counters (counters.max).'],
  ['full', 'counter', 'throttle_counters_full_total', 'Keys that got no counter, because every counter was in use.'],
  ['busy', 'counter', 'throttle_counters_busy_total', 'Keys that got no counter in time.'],
  ['evicted', 'counter', 'throttle_counters_evicted_total', 'Counters evicted after their windows.'],
  ['rebuilt', 'counter', 'throttle_counters_rebuilt_total', 'Repairs of the table after the death of a thread.'],
]

/** Text format of Prometheus. `refusals`: refused requests by policy, `level:name`. */
export function renderCounterMetrics(sample: CounterSample, refusals: ReadonlyMap<string, number>): string {
  const lines = ROWS.flatMap(([field, kind, name, help]) => [
    ...heading(name, kind, help),
    `sluice_${name} ${sample[field]}`,
  ])
  if (refusals.size > 0) {
    const name = 'throttle_policy_refusals_total'
    lines.push(...heading(name, 'counter', 'Refused requests by policy; policies beyond 1,024 count as `other`.'))
    for (const [policy, count] of refusals) lines.push(`sluice_${name}{policy="${escaped(policy)}"} ${count}`)
  }
  return `${lines.join('\n')}\n`
}
