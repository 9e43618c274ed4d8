/** Renders the counts of deliveries. */
import { CHANNELS, DELIVERY_DURATIONS, type DeliveryCounts, EVENTS, REASONS, STATES } from './delivery-counts.ts'
import { heading } from './metrics.ts'
import { histogramLines } from './metrics-text.ts'

const DURATION_SERIES = {
  attempt: ['delivery_attempt_duration_seconds', 'Time of an attempt to deliver, by channel.'],
  delivery: ['delivery_duration_seconds', 'Time from the acceptance to the delivery, by channel.'],
} as const

/** Text format of Prometheus. A channel `other` without deliveries is left out, and so are empty histograms. */
export function renderDeliveryMetrics(counts: DeliveryCounts): string {
  const rows = CHANNELS.map(channel => ({ channel, labels: `channel="${channel}"`, sample: counts.sample(channel) }))
  const shown = rows.filter(({ channel, sample }) => channel !== 'other' || sample.events.accepted > 0)
  const lines = heading('delivery_events_total', 'counter', 'What became of deliveries on this node, by channel.')
  for (const { labels, sample } of shown) {
    for (const event of EVENTS)
      lines.push(`sluice_delivery_events_total{${labels},event="${event}"} ${sample.events[event]}`)
  }
  lines.push(
    ...heading('delivery_refusals_total', 'counter', 'Orders of events that were refused, by channel and reason.'),
  )
  for (const { labels, sample } of shown) {
    for (const reason of REASONS) {
      const label = reason.replace('-', '_')
      lines.push(`sluice_delivery_refusals_total{${labels},reason="${label}"} ${sample.refused[reason]}`)
    }
  }
  lines.push(...heading('deliveries', 'gauge', 'Deliveries in the database, which nodes share, by channel and state.'))
  for (const { labels, sample } of shown) {
    for (const state of STATES) lines.push(`sluice_deliveries{${labels},state="${state}"} ${sample.stored[state]}`)
  }
  for (const duration of ['attempt', 'delivery'] as const) {
    const [series, help] = DURATION_SERIES[duration]
    lines.push(...heading(series, 'histogram', help))
    for (const { labels, sample } of shown) {
      const times = sample.durations[duration]
      if (times.buckets.every(count => count === 0)) continue
      lines.push(...histogramLines(series, labels, DELIVERY_DURATIONS[duration], times))
    }
  }
  return `${lines.join('\n')}\n`
}
