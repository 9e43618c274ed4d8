/** Text formats of metrics: histograms, metrics of APIs and threads, OpenMetrics, and the choice by Accept. */
import { type ApiSample, DURATION_BOUNDS_SECONDS, DURATIONS } from './api-metrics.ts'
import { escaped } from './endpoint-metrics.ts'
import { heading, METRICS_CONTENT_TYPE } from './metrics.ts'
import type { MemoryKind } from '../runtime/thread-memory.ts'
import type { ChildThreadSample } from './child-threads.ts'
import { DELAY_BOUNDS_SECONDS, type ThreadSample } from './thread-metrics.ts'
import type { ConnectionList } from './connection-list.ts'
import { STATE_NAMES } from '../protocol/states.ts'

/** Samples of one API, and its labels. */
export interface LabelledApi {
  readonly api: string
  readonly version: string
  readonly samples: readonly ApiSample[]
}

/** Lines of one histogram. `labels`: '' for none. `buckets`: not cumulative. */
export function histogramLines(
  series: string,
  labels: string,
  bounds: readonly number[],
  { buckets, sumSeconds }: { readonly buckets: readonly number[]; readonly sumSeconds: number },
): string[] {
  let count = 0
  const prefix = labels === '' ? '' : `${labels},`
  const all = labels === '' ? '' : `{${labels}}`
  const lines = buckets.map((inBucket, index) => {
    count += inBucket
    return `sluice_${series}_bucket{${prefix}le="${bounds[index] ?? '+Inf'}"} ${count}`
  })
  return [...lines, `sluice_${series}_sum${all} ${sumSeconds}`, `sluice_${series}_count${all} ${count}`]
}

const TOTALS: readonly (readonly [keyof ApiSample & ('faults' | 'requestBytes' | 'responseBytes'), string, string])[] =
  [
    ['faults', 'api_faults_total', 'Exchanges of an API that failed or were refused.'],
    ['requestBytes', 'api_request_bytes_total', 'Bytes of request bodies by API.'],
    ['responseBytes', 'api_response_bytes_total', 'Bytes of response bodies by API.'],
  ]

const DURATION_SERIES: Readonly<Record<(typeof DURATIONS)[number], readonly [series: string, help: string]>> = {
  total: ['request_duration_seconds', 'Time from the first byte of a request to the last byte of its response.'],
  backend: ['backend_duration_seconds', 'Time from the request sent to the first byte of the response of the backend.'],
  queue: ['mediation_queue_duration_seconds', 'Time that messages of a request waited for a worker.'],
  mediation: ['mediation_duration_seconds', 'Time that workers took for the messages of a request.'],
}

/** Text format of Prometheus. APIs with equal labels must be one. */
export function renderApiMetrics(apis: readonly LabelledApi[]): string {
  const labelled = apis.map(({ api, version, samples }) => ({
    labels: `api="${escaped(api)}",version="${escaped(version)}"`,
    samples,
  }))
  const rows = labelled.flatMap(({ labels, samples }) =>
    samples.map(sample => ({ labels: `${labels},method="${sample.method}",status="${sample.status}"`, sample })),
  )
  if (rows.length === 0) return ''
  const lines = heading('api_requests_total', 'counter', 'Requests of an API by class of methods and of statuses.')
  for (const { labels, sample } of rows) lines.push(`sluice_api_requests_total{${labels}} ${sample.requests}`)
  for (const [field, series, help] of TOTALS) {
    lines.push(...heading(series, 'counter', help))
    for (const { labels, samples } of labelled) {
      if (samples.length === 0) continue
      lines.push(`sluice_${series}{${labels}} ${samples.reduce((sum, sample) => sum + sample[field], 0)}`)
    }
  }
  for (const duration of DURATIONS) {
    const [series, help] = DURATION_SERIES[duration]
    const found = rows.filter(({ sample }) => sample.durations[duration] !== undefined)
    if (found.length === 0) continue
    lines.push(...heading(series, 'histogram', help))
    for (const { labels, sample } of found) {
      lines.push(...histogramLines(series, labels, DURATION_BOUNDS_SECONDS, sample.durations[duration]!))
    }
  }
  return `${lines.join('\n')}\n`
}

const MEMORY_SERIES: Readonly<Record<MemoryKind, readonly [series: string, help: string]>> = {
  heap_used: ['thread_heap_used_bytes', 'Live and dead objects on the heap of a thread.'],
  heap_size: ['thread_heap_size_bytes', 'Size of the heap of a thread.'],
  heap_limit: ['thread_heap_limit_bytes', 'Largest size of the heap of a thread.'],
  external: ['thread_external_memory_bytes', 'Memory outside of the heap that objects of a thread hold.'],
}

/** Text format of Prometheus. Threads that do not run, and have not run, are left out. */
export function renderThreads(threads: readonly ThreadSample[], children: readonly ChildThreadSample[]): string {
  const running = threads.filter(({ memory }) => memory.heap_size > 0)
  const lines = heading('event_loop_delay_seconds', 'histogram', 'How late the event loop of a thread runs a timer.')
  const delayed = [...running, ...children.filter(({ delays }) => delays.length > 0)]
  for (const { thread, delays: buckets, delaySeconds: sumSeconds } of delayed) {
    const labels = `thread="${thread}"`
    lines.push(...histogramLines('event_loop_delay_seconds', labels, DELAY_BOUNDS_SECONDS, { buckets, sumSeconds }))
  }
  for (const [kind, [series, help]] of Object.entries(MEMORY_SERIES) as [MemoryKind, readonly [string, string]][]) {
    lines.push(...heading(series, 'gauge', help))
    for (const { thread, memory } of [...running, ...children])
      lines.push(`sluice_${series}{thread="${thread}"} ${memory[kind]}`)
  }
  return `${lines.join('\n')}\n`
}

/** Text format of Prometheus: connections of all reactors by side and state of the machine. */
export function renderConnections(lists: readonly Pick<ConnectionList, 'counts'>[]): string {
  const lines = heading('connections', 'gauge', 'Open connections by side and state.')
  for (const side of ['source', 'target'] as const) {
    for (const state of STATE_NAMES) {
      const count = lists.reduce((sum, { counts }) => sum + (counts[side][state] ?? 0), 0)
      lines.push(`sluice_connections{side="${side}",state="${state}"} ${count}`)
    }
  }
  return `${lines.join('\n')}\n`
}

const OPEN_METRICS_TYPE = 'application/openmetrics-text'
const OPEN_METRICS_CONTENT_TYPE = `${OPEN_METRICS_TYPE}; version=1.0.0; charset=utf-8`
const UNITS = ['seconds', 'bytes'] as const

/** The text in the format that the client prefers: OpenMetrics 1.0 where Accept rates it above text/plain. */
export function inPreferredFormat(text: string, accept: string): { readonly type: string; readonly body: string } {
  const isOpen = qualityOf(accept, OPEN_METRICS_TYPE) > 0
  if (!isOpen || qualityOf(accept, 'text/plain') > qualityOf(accept, OPEN_METRICS_TYPE)) {
    return { type: METRICS_CONTENT_TYPE, body: text }
  }
  return { type: OPEN_METRICS_CONTENT_TYPE, body: openMetrics(text) }
}

/** Quality of a media type that Accept names, 0 to 1; parameters but `q` are ignored, and ranges name no type. */
function qualityOf(accept: string, type: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map(part => part.trim())
    if (name !== type) continue
    const q = parameters.find(parameter => parameter.startsWith('q='))
    return q === undefined ? 1 : Number(q.slice(2)) || 0
  }
  return 0
}

/**
 * OpenMetrics 1.0 from the text format of this gateway. Families of counters have no `_total` in their name, whole
 * bounds have a fraction, units are named, and a last line ends the text.
 */
function openMetrics(text: string): string {
  const lines: string[] = []
  let help = ''
  for (const line of text.trimEnd().split('\n')) {
    const head = /^# (HELP|TYPE) (\w+) (.*)$/.exec(line)
    if (head === null) lines.push(line.replace(/\ble="(\d+)"/, 'le="$1.0"'))
    else if (head[1] === 'HELP') help = head[3]!
    else {
      const isInfo = head[2]!.endsWith('_info')
      const family = head[3] === 'counter' ? head[2]!.replace(/_total$/, '') : head[2]!.replace(/_info$/, '')
      const unit = UNITS.find(each => family.endsWith(`_${each}`))
      lines.push(`# TYPE ${family} ${isInfo ? 'info' : head[3]}`)
      if (unit !== undefined) lines.push(`# UNIT ${family} ${unit}`)
      lines.push(`# HELP ${family} ${help}`)
    }
  }
  return `${lines.join('\n')}\n# EOF\n`
}
