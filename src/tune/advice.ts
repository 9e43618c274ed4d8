/**
 * Advice from what a running gateway has counted since its start: limits that were hit, limits that are never near, and
 * proposed values, each with its calculation. No load is made. A count says that a limit was exceeded, and not by how
 * much, so a proposal is twice the limit, and the next advice tells whether that was enough.
 */
import type { UsageReport } from '../plan/usage-report.ts'
import { MetricsText } from './metrics-text.ts'
import { plural } from './plural.ts'

export interface Finding {
  /** `ample`: less than a quarter was ever used. */
  readonly verdict: 'hit' | 'ample'
  /** `section.key`, or a limit of the operating system. */
  readonly key: string
  /** Null where it is unknown; -1 for no limit of its own. */
  readonly current: number | null
  /** Null: no value of this key would help by itself. */
  readonly proposed: number | null
  /** The counts that the advice rests on. */
  readonly seen: string
  /** How the proposal follows from it. */
  readonly reason: string
}

const HTTP = 'transport.passthru_http'
const HTTPS = 'transport.passthru_https'
const TRANSPORTS = [HTTP, HTTPS]
const PER_BACKEND = `${HTTP}.http.max.connection.per.host.port`
const [CONNECTION, CONNECTIONS] = ['connection at once', 'connections at once']
const OPEN_FILES = 'ulimit -n (LimitNOFILE)'
const PROCESSORS = 'processors'
/** A limit with fewer uses gets no advice. */
const USES_MIN = 100
/** Fewer requests tell of no limit that it is near or not. */
export const TRAFFIC_MIN = USES_MIN
const AMPLE_SHARE = 0.25
const LONG_WAIT_S = 0.1
const AGAIN = 'counts do not say by how much it was exceeded: twice the limit, and then look again'

/** The source of the counters. */
export interface Traffic {
  readonly requests: number
  /** Since the start of the gateway. */
  readonly seconds: number
}

export function trafficOf(usage: UsageReport, nowMs = Date.now()): Traffic {
  const metrics = new MetricsText(usage.metrics)
  const startS = metrics.find('process_start_time_seconds') ?? nowMs / 1000
  return { requests: metrics.count('requests_total'), seconds: Math.max(0, Math.floor(nowMs / 1000 - startS)) }
}

export function advise(usage: UsageReport): readonly Finding[] {
  const metrics = new MetricsText(usage.metrics)
  const findings = [
    ...clientConnections(usage, metrics),
    ...backendConnections(usage, metrics),
    ...POOLS.flatMap(pool => poolFindings(pool, usage, metrics)),
    ...queueBytes(usage, metrics),
    ...sizes(usage, metrics),
    ...counters(metrics),
    ...timeouts(usage, metrics),
    ...lost(metrics),
  ]
  return findings.toSorted((one, other) => Number(one.verdict === 'ample') - Number(other.verdict === 'ample'))
}

function hit(key: string, current: number | null, proposed: number | null, seen: string, reason: string): Finding {
  return { verdict: 'hit', key, current, proposed, seen, reason }
}

function clientConnections({ values, machine }: UsageReport, metrics: MetricsText): readonly Finding[] {
  const refused = (limit: string): number => metrics.count('client_connections_refused_total', { limit })
  const accepted = metrics.count('client_connections_accepted_total')
  // The count is that of both transports, and of limits that a reload has raised since (D613).
  const wasFull = ([path, limit]: Limited): boolean => {
    const transport = path.startsWith(HTTPS) ? 'https' : 'http'
    const highest = metrics.find('client_pool_connections_highest', { transport })
    return highest === null || highest >= limit
  }
  const limited = (count: number, limits: readonly Limited[]): readonly Finding[] => {
    if (count === 0) return []
    return limits.map(([path, limit]) => {
      const most = machine.clients < 0 ? limit * 2 : Math.min(limit * 2, machine.clients)
      const seen = `${plural(count, 'client connection')} reset, ${accepted} accepted`
      const proposed = most > limit ? most : null
      const files = machine.clients < 0 ? '' : `; ulimit -n ${machine.openFiles} allows ${machine.clients}`
      return hit(path, limit, proposed, seen, `2 x ${limit} = ${limit * 2}${files}; ${AGAIN}`)
    })
  }
  return [
    ...limited(refused('all'), limitedTransports(values, 'max_open_connections').filter(wasFull)),
    ...limited(refused('per_client'), limitedTransports(values, 'max_connections_per_client')),
    ...(accepted < USES_MIN ? [] : ampleClients(values, metrics)),
    ...openFiles(refused('descriptors') + metrics.count('accept_pauses_total'), 'client connection', machine),
  ]
}

function ampleClients(values: UsageReport['values'], metrics: MetricsText): readonly Finding[] {
  return (['http', 'https'] as const).flatMap(transport => {
    const key = `transport.passthru_${transport}.max_open_connections`
    return ample(key, values[key], metrics.count('client_pool_connections_highest', { transport }))
  })
}

function openFiles(
  count: number,
  what: string,
  { openFiles: limit, clients }: UsageReport['machine'],
): readonly Finding[] {
  if (count === 0) return []
  const seen = `${plural(count, what)} refused for lack of descriptors`
  const allowed = `ulimit -n ${limit} allows ${plural(clients, 'client')} and as many backend connections`
  const sum = `${allowed}; 2 x ${limit} = ${limit * 2}`
  return [hit(OPEN_FILES, limit, limit === 0 ? null : limit * 2, seen, `${sum}; ${AGAIN}`)]
}

type Limited = readonly [path: string, limit: number]

/** A transport without a limit of its own for this key cannot have refused. */
function limitedTransports(values: UsageReport['values'], key: string): readonly Limited[] {
  return TRANSPORTS.flatMap(section => {
    const limit = values[`${section}.${key}`]
    return limit === undefined || limit < 0 ? [] : [[`${section}.${key}`, limit] as const]
  }).filter(([path, limit], at) => at === 0 || !isInherited(path, limit, values))
}

/** `[transport.passthru_https]` has the values of `[transport.passthru_http]` where it sets none. */
function isInherited(path: string, limit: number, values: UsageReport['values']): boolean {
  return values[path.replace(HTTPS, HTTP)] === limit
}

function backendConnections({ values, machine }: UsageReport, metrics: MetricsText): readonly Finding[] {
  const refused = metrics.count('faults_total', { side: 'target', base: '101600' })
  const opened = metrics.count('backend_connections_opened_total')
  const highest = metrics.largest('backend_pool_connections_highest', 'backend', 'all')
  if (refused === 0) return opened < USES_MIN ? [] : ample(PER_BACKEND, values[PER_BACKEND], highest)
  const limits = limitedTransports(values, 'http.max.connection.per.host.port')
  const least = Math.min(...limits.map(([, limit]) => limit))
  if (machine.backends >= 0 && machine.backends < least) return openFiles(refused, 'backend connection', machine)
  const pools = metrics.samples('backend_pool_connections_limit')
  const full = pools.filter(({ labels, value }) => {
    const { backend = '' } = labels
    return metrics.count('backend_pool_connections_highest', { backend }) >= value
  })
  const names = full.length === 0 ? '' : ` (${full.map(({ labels }) => labels.backend).join(', ')})`
  const counts = `${plural(refused, 'request')} refused with 101600, ${plural(opened, 'backend connection')} opened`
  const seen = `${counts}${names}`
  // The counters name no backend, so only the smallest limit can be blamed.
  const reached = pools.length === 0 ? [least] : full.map(({ value }) => value)
  const blamed = limits.filter(([, limit]) => reached.includes(limit))
  return blamed.map(([path, limit]) => hit(path, limit, limit * 2, seen, `2 x ${limit} = ${limit * 2}; ${AGAIN}`))
}

function ample(
  key: string,
  limit: number | undefined,
  highest: number,
  one = CONNECTION,
  several = CONNECTIONS,
): readonly Finding[] {
  if (limit === undefined || highest === 0 || highest > limit * AMPLE_SHARE) return []
  const share = Math.ceil((highest / limit) * 100)
  const reason = `${highest} of ${limit} is ${share} %; an unused limit costs nothing, so nothing needs to change`
  return [
    { verdict: 'ample', key, current: limit, proposed: null, seen: `${plural(highest, one, several)} at most`, reason },
  ]
}

// ---- pools of workers -----------------------------------------------------------------------------------------------

interface Pool {
  readonly row: 'http' | 'https' | 'background'
  readonly counts: 'mediation' | 'background'
  readonly code: string
  readonly core: string
  readonly max: string
  readonly queue: string
}

const POOLS: readonly Pool[] = [
  transportPool('http', HTTP),
  transportPool('https', HTTPS),
  {
    row: 'background',
    counts: 'background',
    code: 'refused',
    core: 'mediation.synapse.core_threads',
    max: 'mediation.synapse.max_threads',
    queue: 'mediation.synapse.threads_queue_length',
  },
]

function transportPool(row: 'http' | 'https', section: string): Pool {
  return {
    row,
    counts: 'mediation',
    code: 'refused with 102540',
    core: `${section}.worker_pool_size_core`,
    max: `${section}.worker_pool_size_max`,
    queue: `${section}.worker_pool_queue_length`,
  }
}

function poolFindings(pool: Pool, { values, machine }: UsageReport, metrics: MetricsText): readonly Finding[] {
  const [core, max, queue] = [values[pool.core] ?? 0, values[pool.max] ?? 0, values[pool.queue] ?? -1]
  const atOnce = queue < 0 ? core : Math.max(core, max)
  const labels = { pool: pool.counts }
  const highest = metrics.count('worker_permits_highest', { pool: pool.row })
  const tasks = metrics.count('worker_tasks_total', labels)
  // The counts of http and https are those of both; only the pool that was full can have refused.
  if (highest < core)
    return tasks < USES_MIN ? [] : ample(pool.core, core, highest, 'message at once', 'messages at once')
  const refused = metrics.count('worker_failures_total', { ...labels, reason: 'queue_full' })
  const { processors } = machine
  const share = `${atOnce} at once on ${plural(processors, 'processor')}`
  if (refused > 0) {
    const seen = `${refused} of ${plural(tasks, 'message')} ${pool.code}; ${highest} ran at once, and ${queue} may wait`
    if (atOnce >= 2 * processors) {
      const proposed = Math.max(1, queue) * 2
      const reason = `${share}: more would share the same processors, so the burst needs a longer queue; ${AGAIN}`
      return [hit(pool.queue, queue, proposed, seen, reason)]
    }
    const proposed = Math.max(atOnce * 2, processors * 2)
    return [hit(pool.max, max, proposed, seen, `${share}: the larger of 2 x ${atOnce} and 2 x ${processors}; ${AGAIN}`)]
  }
  const waits = metrics.count('worker_waits_total', labels)
  if (waits === 0) return []
  const meanS = metrics.count('worker_wait_seconds_total', labels) / waits
  const mean = milliseconds(meanS)
  const seen = `${waits} of ${plural(tasks, 'message')} waited, ${mean} on average; ${highest} ran at once`
  if (core < 2 * processors) {
    const proposed = Math.max(core * 2, processors * 2)
    return [hit(pool.core, core, proposed, seen, `${share}: the larger of 2 x ${core} and 2 x ${processors}; ${AGAIN}`)]
  }
  if (meanS < LONG_WAIT_S) return []
  return [hit(PROCESSORS, processors, null, seen, `${share}: more at once would share them, and all would be slower`)]
}

function milliseconds(seconds: number): string {
  return `${Number((seconds * 1000).toPrecision(3))} ms`
}

function queueBytes({ values }: UsageReport, metrics: MetricsText): readonly Finding[] {
  const refused = metrics.count('worker_failures_total', { reason: 'memory' })
  if (refused === 0) return []
  const key = `${HTTP}.worker_pool_queue_bytes`
  const limit = values[key] ?? 0
  const seen = `${plural(refused, 'message')} refused with 102541, because those that waited had too many bytes`
  return [hit(key, limit, limit * 2, seen, `2 x ${limit} = ${limit * 2} bytes; ${AGAIN}`)]
}

// ---- sizes, counters, times -----------------------------------------------------------------------------------------

function sizes({ values }: UsageReport, metrics: MetricsText): readonly Finding[] {
  // A backend may send these statuses too; requests that the gateway refuses are faults of their clients.
  const isOwn = metrics.count('faults_total', { side: 'source', base: '101001' }) > 0
  const ofHeads: readonly (readonly [status: string, key: string])[] = [
    ['414', 'target.max_bytes'],
    ['431', 'header.max_bytes'],
  ]
  const heads = ofHeads.flatMap(([status, key]) => {
    const count = isOwn ? metrics.count('responses_total', { status }) : 0
    return count === 0 ? [] : [size(values, key, `${plural(count, 'response')} with ${status}`)]
  })
  const bodies = metrics.count('faults_total', { side: 'source', base: '102511' })
  const hasLimit = (values[`${HTTP}.body.max_bytes`] ?? -1) >= 0
  if (bodies === 0 || !hasLimit) return heads
  return [...heads, size(values, 'body.max_bytes', `${plural(bodies, 'request')} refused or cut short with 102511`)]
}

function size(values: UsageReport['values'], key: string, seen: string): Finding {
  const path = `${HTTP}.${key}`
  const limit = values[path] ?? 0
  const most = key === 'body.max_bytes' ? Number.POSITIVE_INFINITY : (values[`${HTTP}.io_buffer_size`] ?? 0)
  const proposed = Math.min(limit * 2, most)
  const bound = proposed < limit * 2 ? `io_buffer_size (${most}) bounds it` : `2 x ${limit} = ${proposed} bytes`
  const reason = `${bound}, if these requests are legitimate: the event log names the rule and the client`
  return hit(path, limit, proposed > limit ? proposed : null, seen, reason)
}

function counters(metrics: MetricsText): readonly Finding[] {
  const key = 'apim.throttling.counters.max'
  const full = metrics.count('throttle_counters_full_total')
  const capacity = metrics.count('throttle_counters_max')
  if (full === 0) return []
  const all = capacity === 1 ? 'the only one was' : `all ${capacity} were`
  const seen = `${plural(full, 'key')} got no counter, because ${all} in use`
  return [hit(key, capacity, capacity * 2, seen, `2 x ${capacity} = ${capacity * 2} counters; ${AGAIN}`)]
}

/** Kind of `timeouts_total` -> key. */
const TIMEOUTS: readonly (readonly [kind: string, key: string])[] = [
  ['connect', 'http.connection.timeout'],
  ['backend', 'http.socket.timeout'],
  ['request_head', 'header.read_timeout'],
  ['request_body', 'body.read_timeout'],
  ['client_stalled', 'response.min_rate'],
]

/** Expired time limits. A longer one would hold connections longer, and seldom helps: none is proposed. */
function timeouts({ values }: UsageReport, metrics: MetricsText): readonly Finding[] {
  return TIMEOUTS.flatMap(([kind, key]) => {
    const count = metrics.count('timeouts_total', { kind })
    if (count === 0) return []
    const path = `${HTTP}.${key}`
    const reason = 'the peer is slow or gone; a longer time would hold its connections longer: look at the peer first'
    return [hit(path, values[path] ?? null, null, `${plural(count, 'timeout')} of kind ${kind}`, reason)]
  })
}

function lost(metrics: MetricsText): readonly Finding[] {
  const lines = metrics.count('access_log_lines_dropped_total')
  const events = metrics.count('analytics_events_total', { result: 'dropped' })
  const reason = 'the disk or the reader is slower than the traffic; sampling writes fewer lines'
  return [
    ...(lines === 0
      ? []
      : [hit('access_log', null, null, `${plural(lines, 'line')} of the access log dropped`, reason)]),
    ...(events === 0 ? [] : [hit('apim.analytics', null, null, `${plural(events, 'event')} dropped`, RECEIVER)]),
  ]
}

const RECEIVER = 'the receiver was down for longer than its events can be kept'
