/**
 * Metrics in shared memory: one column per thread, which only that thread writes, summed by the primary without a
 * message. With one writer plain stores are enough: float64 counts exactly up to 2^53, 64-bit machines store it whole,
 * and a reader sees a value that is at most one event old.
 *
 * test/tidy.test.ts fails for a metric that no code counts.
 */
import { FAULT } from '../faults/error-codes.ts'

type Kind = 'counter' | 'gauge'
/** Kind, name, labels, help (in the first row of a name). Rendered names begin with `sluice_`. */
type Row = readonly [Kind, string, string, string]

const ROWS = {
  connectionsAccepted: ['counter', 'client_connections_accepted_total', '', 'Client connections accepted.'],
  connectionsOpen: ['gauge', 'client_connections_open', '', 'Client connections open now.'],
  connectionsRefusedAtLimit: [
    'counter',
    'client_connections_refused_total',
    'limit="all"',
    'Client connections reset on accept, by the limit that was reached.',
  ],
  connectionsRefusedPerClient: ['counter', 'client_connections_refused_total', 'limit="per_client"', ''],
  connectionsRefusedDescriptors: ['counter', 'client_connections_refused_total', 'limit="descriptors"', ''],
  acceptPauses: [
    'counter',
    'accept_pauses_total',
    '',
    'Times a listener was closed for a moment because no descriptor was left for a connection.',
  ],
  proxyHeadersRefused: [
    'counter',
    'proxy_headers_refused_total',
    '',
    'Client connections reset for a PROXY header that is missing, late, malformed or of no trusted network.',
  ],
  tlsHandshakesFailed: ['counter', 'tls_handshakes_failed_total', '', 'Failed TLS handshakes with clients.'],
  connectionsReset: ['counter', 'client_connections_reset_total', '', 'Client connections reset by the client.'],
  requests: ['counter', 'requests_total', '', 'Requests whose head was read completely.'],
  retries: ['counter', 'backend_retries_total', '', 'Requests sent once more on a new connection.'],
  staleConnections: [
    'counter',
    'backend_connections_stale_total',
    '',
    'Idle backend connections found closed when reused.',
  ],
  refusedNoneReady: [
    'counter',
    'endpoint_refusals_total',
    'code="303000"',
    'Requests refused because no endpoint was ready.',
  ],
  refusedSuspended: ['counter', 'endpoint_refusals_total', 'code="303001"', ''],
  failovers: ['counter', 'endpoint_failovers_total', '', 'Requests sent to another endpoint after a failure.'],
  targetsOpened: ['counter', 'backend_connections_opened_total', '', 'Backend connections opened.'],
  targetsReused: ['counter', 'backend_connections_reused_total', '', 'Requests sent on an open backend connection.'],
  targetsOpen: ['gauge', 'backend_connections_open', '', 'Backend connections open now, idle ones included.'],
  tunnelsOpened: ['counter', 'tunnels_opened_total', '', 'Connections that switched to another protocol (101).'],
  tunnelsOpen: ['gauge', 'tunnels_open', '', 'Tunnels open now.'],
  bytesFromClients: ['counter', 'bytes_total', 'peer="client",direction="in"', 'Bytes read and written on sockets.'],
  bytesToClients: ['counter', 'bytes_total', 'peer="client",direction="out"', ''],
  bytesFromTargets: ['counter', 'bytes_total', 'peer="backend",direction="in"', ''],
  bytesToTargets: ['counter', 'bytes_total', 'peer="backend",direction="out"', ''],
  timeoutRequestHead: ['counter', 'timeouts_total', 'kind="request_head"', 'Expired timeouts, by kind.'],
  timeoutRequestBody: ['counter', 'timeouts_total', 'kind="request_body"', ''],
  timeoutSourceIdle: ['counter', 'timeouts_total', 'kind="client_idle"', ''],
  timeoutSourceStalled: ['counter', 'timeouts_total', 'kind="client_stalled"', ''],
  timeoutConnect: ['counter', 'timeouts_total', 'kind="connect"', ''],
  timeoutTarget: ['counter', 'timeouts_total', 'kind="backend"', ''],
  timeoutTargetIdle: ['counter', 'timeouts_total', 'kind="backend_idle"', ''],
  timeoutTunnelIdle: ['counter', 'timeouts_total', 'kind="tunnel_idle"', ''],
  workerThreads: ['gauge', 'worker_threads', '', 'Worker threads, those of the background pool included.'],
  workerDeaths: ['counter', 'worker_deaths_total', '', 'Worker threads that died, hung or ran out of memory.'],
  workerTasks: [
    'counter',
    'worker_tasks_total',
    'pool="mediation"',
    'Tasks for worker threads, refused ones included.',
  ],
  backgroundTasks: ['counter', 'worker_tasks_total', 'pool="background"', ''],
  workerWaits: ['counter', 'worker_waits_total', 'pool="mediation"', 'Tasks that waited for a permit.'],
  backgroundWaits: ['counter', 'worker_waits_total', 'pool="background"', ''],
  workerWaitSeconds: [
    'counter',
    'worker_wait_seconds_total',
    'pool="mediation"',
    'Time that tasks waited until they had a permit.',
  ],
  backgroundWaitSeconds: ['counter', 'worker_wait_seconds_total', 'pool="background"', ''],
  workerRefusedQueueFull: [
    'counter',
    'worker_failures_total',
    'pool="mediation",reason="queue_full"',
    'Tasks without a result, by reason.',
  ],
  workerRefusedMemory: ['counter', 'worker_failures_total', 'pool="mediation",reason="memory"', ''],
  workerTimeouts: ['counter', 'worker_failures_total', 'pool="mediation",reason="late"', ''],
  workerTasksDied: ['counter', 'worker_failures_total', 'pool="mediation",reason="died"', ''],
  workerTasksFailed: ['counter', 'worker_failures_total', 'pool="mediation",reason="failed"', ''],
  backgroundRefusedQueueFull: ['counter', 'worker_failures_total', 'pool="background",reason="queue_full"', ''],
  backgroundRefusedMemory: ['counter', 'worker_failures_total', 'pool="background",reason="memory"', ''],
  backgroundTimeouts: ['counter', 'worker_failures_total', 'pool="background",reason="late"', ''],
  backgroundTasksDied: ['counter', 'worker_failures_total', 'pool="background",reason="died"', ''],
  backgroundTasksFailed: ['counter', 'worker_failures_total', 'pool="background",reason="failed"', ''],
  resourceCacheHits: ['counter', 'resource_cache_lookups_total', 'result="hit"', 'Lookups in the resource cache.'],
  resourceCacheMisses: ['counter', 'resource_cache_lookups_total', 'result="miss"', ''],
  tokenHits: ['counter', 'token_cache_lookups_total', 'result="hit"', 'Lookups in the token cache.'],
  tokenRefusedHits: ['counter', 'token_cache_lookups_total', 'result="refused"', ''],
  tokenMisses: ['counter', 'token_cache_lookups_total', 'result="miss"', ''],
  tokenEntries: ['gauge', 'token_cache_entries', '', 'Accepted and refused tokens in the token cache.'],
  tokenVerifications: ['counter', 'token_verifications_total', '', 'Verified signatures of tokens.'],
  tokenIntrospections: ['counter', 'token_introspections_total', '', 'Introspections of opaque tokens.'],
  passwordHits: ['counter', 'password_cache_lookups_total', 'result="hit"', 'Lookups in the password cache.'],
  passwordMisses: ['counter', 'password_cache_lookups_total', 'result="miss"', ''],
  verifiedSecretHits: [
    'counter',
    'verified_secret_cache_lookups_total',
    'result="hit"',
    "Lookups in the key manager's cache of verified client secrets and passwords.",
  ],
  verifiedSecretMisses: ['counter', 'verified_secret_cache_lookups_total', 'result="miss"', ''],
  introspectionHits: [
    'counter',
    'introspection_cache_lookups_total',
    'result="hit"',
    'Lookups in the introspection cache.',
  ],
  introspectionMisses: ['counter', 'introspection_cache_lookups_total', 'result="miss"', ''],
  backendJwtHits: ['counter', 'backend_jwt_cache_lookups_total', 'result="hit"', 'Lookups in the backend JWT cache.'],
  backendJwtMisses: ['counter', 'backend_jwt_cache_lookups_total', 'result="miss"', ''],
  userClaimsHits: ['counter', 'user_claims_cache_lookups_total', 'result="hit"', 'Lookups in the user claims cache.'],
  userClaimsMisses: ['counter', 'user_claims_cache_lookups_total', 'result="miss"', ''],
  apimDatabaseDown: [
    'gauge',
    'database_down',
    'section="apim_db"',
    '1 while the database of the key manager does not answer.',
  ],
  sharedDatabaseDown: ['gauge', 'database_down', 'section="shared_db"', ''],
  apimDatabaseFailures: [
    'counter',
    'database_failures_total',
    'section="apim_db"',
    'Connections to the database that did not open, and statements without an answer.',
  ],
  sharedDatabaseFailures: ['counter', 'database_failures_total', 'section="shared_db"', ''],
  apimDatabaseUsed: [
    'gauge',
    'database_connections_in_use',
    'section="apim_db"',
    'Connections of the pool of a database that are used now.',
  ],
  sharedDatabaseUsed: ['gauge', 'database_connections_in_use', 'section="shared_db"', ''],
  apimDatabaseHighest: [
    'gauge',
    'database_connections_highest',
    'section="apim_db"',
    'Most connections of the pool of a database that were used at once since the start.',
  ],
  sharedDatabaseHighest: ['gauge', 'database_connections_highest', 'section="shared_db"', ''],
  apimDatabaseLimit: [
    'gauge',
    'database_connections_limit',
    'section="apim_db"',
    'Most connections of the pool of a database that may be open.',
  ],
  sharedDatabaseLimit: ['gauge', 'database_connections_limit', 'section="shared_db"', ''],
  apimDatabaseWaits: [
    'counter',
    'database_waits_total',
    'section="apim_db"',
    'Callers that waited for a connection of the pool of a database.',
  ],
  sharedDatabaseWaits: ['counter', 'database_waits_total', 'section="shared_db"', ''],
  throttleRedisDown: [
    'gauge',
    'throttle_redis_down',
    '',
    'Reactors whose connection to the Redis of shared counters does not answer.',
  ],
  throttleRedisReplies: ['counter', 'throttle_redis_replies_total', '', 'Replies of Redis within the time limit.'],
  throttleRedisWaitSeconds: [
    'counter',
    'throttle_redis_wait_seconds_total',
    '',
    'Time that those replies took, from the command to the reply.',
  ],
  throttleRedisUndecidedDown: [
    'counter',
    'throttle_redis_undecided_total',
    'cause="down"',
    'Commands that Redis did not decide, by cause; fail modes decide instead.',
  ],
  throttleRedisUndecidedTimeout: ['counter', 'throttle_redis_undecided_total', 'cause="timeout"', ''],
  throttleRedisUndecidedPending: ['counter', 'throttle_redis_undecided_total', 'cause="pending"', ''],
  throttleRedisUndecidedError: ['counter', 'throttle_redis_undecided_total', 'cause="error"', ''],
  throttleRedisLost: [
    'counter',
    'throttle_redis_charges_lost_total',
    '',
    'Charges and refunds that Redis did not get, because it did not answer or too many waited.',
  ],
  throttlePassedApi: [
    'counter',
    'throttle_decisions_total',
    'level="api",result="passed"',
    'Decisions of limits on requests and messages, by level.',
  ],
  throttleRefusedApi: ['counter', 'throttle_decisions_total', 'level="api",result="refused"', ''],
  throttlePassedResource: ['counter', 'throttle_decisions_total', 'level="resource",result="passed"', ''],
  throttleRefusedResource: ['counter', 'throttle_decisions_total', 'level="resource",result="refused"', ''],
  throttlePassedSubscription: ['counter', 'throttle_decisions_total', 'level="subscription",result="passed"', ''],
  throttleRefusedSubscription: ['counter', 'throttle_decisions_total', 'level="subscription",result="refused"', ''],
  throttlePassedBurst: ['counter', 'throttle_decisions_total', 'level="burst",result="passed"', ''],
  throttleRefusedBurst: ['counter', 'throttle_decisions_total', 'level="burst",result="refused"', ''],
  throttlePassedApplication: ['counter', 'throttle_decisions_total', 'level="application",result="passed"', ''],
  throttleRefusedApplication: ['counter', 'throttle_decisions_total', 'level="application",result="refused"', ''],
  throttlePassedCustom: ['counter', 'throttle_decisions_total', 'level="custom",result="passed"', ''],
  throttleRefusedCustom: ['counter', 'throttle_decisions_total', 'level="custom",result="refused"', ''],
  throttlePassedHard: ['counter', 'throttle_decisions_total', 'level="hard",result="passed"', ''],
  throttleRefusedHard: ['counter', 'throttle_decisions_total', 'level="hard",result="refused"', ''],
  throttleDenied: ['counter', 'throttle_decisions_total', 'level="deny",result="refused"', ''],
  throttleMarked: [
    'counter',
    'throttle_marked_total',
    '',
    'Requests beyond the quota of a policy that does not stop them.',
  ],
  throttleMessagesDropped: [
    'counter',
    'throttle_messages_dropped_total',
    '',
    'WebSocket messages dropped because a limit was used up.',
  ],
  throttleUndecided: [
    'counter',
    'throttle_undecided_total',
    '',
    'Requests on which the fail modes of shared limits decided, because Redis did not.',
  ],
  throttleTunnelsCut: ['counter', 'throttle_tunnels_ended_total', 'cause="limit"', 'Open tunnels ended by throttling.'],
  throttleTunnelsDenied: ['counter', 'throttle_tunnels_ended_total', 'cause="deny"', ''],
  brokerDown: ['gauge', 'broker_down', '', '1 while the message broker does not answer.'],
  brokerFailures: ['counter', 'broker_failures_total', '', 'Connections to a message broker that failed or ended.'],
  brokerPublished: ['counter', 'broker_messages_total', 'result="published"', 'Messages of the broker, by result.'],
  brokerReceived: ['counter', 'broker_messages_total', 'result="received"', ''],
  brokerDropped: ['counter', 'broker_messages_total', 'result="dropped"', ''],
  brokerInvalid: ['counter', 'broker_messages_total', 'result="invalid"', ''],
  trafficManagerDown: [
    'gauge',
    'traffic_managers_down',
    '',
    'Traffic managers to which this gateway has no connection.',
  ],
  throttleReportsSent: [
    'counter',
    'throttle_report_rows_total',
    'result="confirmed"',
    'Rows of reports to traffic managers, by result.',
  ],
  throttleReportsLost: ['counter', 'throttle_report_rows_total', 'result="lost"', ''],
  throttleReportsReceived: [
    'counter',
    'throttle_reports_received_total',
    'result="counted"',
    'Rows of reports that this traffic manager has received, by result.',
  ],
  throttleReportsRefused: ['counter', 'throttle_reports_received_total', 'result="refused"', ''],
  throttleDecisionsSent: [
    'counter',
    'throttle_decision_messages_total',
    'direction="out"',
    'Decisions that traffic managers publish and gateways receive.',
  ],
  throttleDecisionsReceived: ['counter', 'throttle_decision_messages_total', 'direction="in"', ''],
  accessLogDrops: [
    'counter',
    'access_log_lines_dropped_total',
    '',
    'Access log lines dropped because the disk or reader was too slow.',
  ],
  accessLogSampledOut: [
    'counter',
    'access_log_lines_sampled_out_total',
    '',
    'Exchanges without a line in the access log, by sampling or the limit of lines.',
  ],
  analyticsPublished: ['counter', 'analytics_events_total', 'result="published"', 'Events of analytics, by result.'],
  analyticsDropped: ['counter', 'analytics_events_total', 'result="dropped"', ''],
  analyticsSpooled: ['gauge', 'analytics_spooled_bytes', '', 'Bytes of events on disk that wait for their receiver.'],
  traceSpansExported: ['counter', 'trace_spans_total', 'result="exported"', 'Spans of traces, by result.'],
  traceSpansFailed: ['counter', 'trace_spans_total', 'result="failed"', ''],
  traceSpansDropped: ['counter', 'trace_spans_total', 'result="dropped"', ''],
  traceSpansWaiting: ['gauge', 'trace_spans_waiting', '', 'Spans that wait for their receivers.'],
  traceRecordsDropped: [
    'counter',
    'trace_records_dropped_total',
    '',
    'Traced exchanges that the control thread did not take.',
  ],
  logLinesSuppressed: ['counter', 'log_lines_suppressed_total', '', 'Event log lines suppressed by the rate limit.'],
  requestBytes: ['counter', 'request_size_bytes_sum', '', ''],
  responseBytes: ['counter', 'response_size_bytes_sum', '', ''],
} as const satisfies Record<string, Row>

type MetricName = keyof typeof ROWS
const NAMES = Object.keys(ROWS) as readonly MetricName[]

/** Cell of each metric in a column. */
export const METRIC = Object.freeze(Object.fromEntries(NAMES.map((name, cell) => [name, cell]))) as {
  readonly [N in MetricName]: number
}

const STATUS_MIN = 100
const STATUS_MAX = 599
const STATUSES = STATUS_MAX - STATUS_MIN + 2
const STATUS_CELLS = NAMES.length

export const SIDES = ['source', 'target'] as const
type MetricSide = (typeof SIDES)[number]

/** Base codes of the transport; other codes count as base 0. */
const BASES = [0, ...Object.keys(FAULT).map(Number)].filter(code => code === 0 || (code >= 101_000 && code < 103_000))
const BASE_INDEX = new Map(BASES.map((base, index) => [base, index]))
const STATES = 9
const FAULT_CELLS = STATUS_CELLS + STATUSES

const MESSAGES = ['request', 'response'] as const
/** Upper bounds of the size buckets, exclusive; one more bucket holds larger sizes. */
const SIZE_BOUNDS = [1024, 10 * 1024, 100 * 1024, 1024 * 1024, 10 * 1024 * 1024] as const
const SIZES = SIZE_BOUNDS.length + 1
const SIZE_CELLS = FAULT_CELLS + SIDES.length * BASES.length * STATES

/** Behind the counts: what each thread says of itself (thread-metrics.ts). */
export const THREAD_CELLS = SIZE_CELLS + MESSAGES.length * SIZES
/** Room for thread-metrics.ts. */
const THREAD_CELL_COUNT = 24

const CELLS = THREAD_CELLS + THREAD_CELL_COUNT
/** Columns start on cache lines of their own, against false sharing (128 bytes: CPUs prefetch pairs of lines). */
const COLUMN_CELLS = Math.ceil(CELLS / 16) * 16

/** Cell of a response status; invalid statuses share one. */
export function statusCell(status: number): number {
  return STATUS_CELLS + (status >= STATUS_MIN && status <= STATUS_MAX ? status - STATUS_MIN : STATUSES - 1)
}

/** Cell of a failure, by base code and documented state number, never by their sum. */
export function faultCell(side: MetricSide, base: number, state: number): number {
  const row = (side === 'source' ? 0 : BASES.length) + (BASE_INDEX.get(base) ?? 0)
  return FAULT_CELLS + row * STATES + (state >= 0 && state < STATES ? state : STATES - 1)
}

/** Cell of a message by the size of its body. Callers also add the size to `requestBytes` or `responseBytes`. */
export function sizeCell(message: (typeof MESSAGES)[number], bytes: number): number {
  let bucket = 0
  while (bucket < SIZE_BOUNDS.length && bytes >= SIZE_BOUNDS[bucket]!) bucket++
  return SIZE_CELLS + (message === 'request' ? 0 : SIZES) + bucket
}

/** Allocates zeroed memory for `columns` threads. */
export function allocateMetrics(columns: number): SharedArrayBuffer {
  return new SharedArrayBuffer(columns * COLUMN_CELLS * Float64Array.BYTES_PER_ELEMENT)
}

/** Column of one thread. */
export class MetricsColumn {
  readonly #cells: Float64Array

  constructor(shared: SharedArrayBuffer, reactor: number) {
    this.#cells = columnOf(shared, reactor)
  }

  add(cell: number, by: number): void {
    this.#cells[cell]! += by
  }

  set(cell: number, value: number): void {
    this.#cells[cell] = value
  }

  /** The value of a cell in this column alone. */
  read(cell: number): number {
    return this.#cells[cell]!
  }
}

function columnOf(shared: SharedArrayBuffer, reactor: number): Float64Array {
  return new Float64Array(shared, reactor * COLUMN_CELLS * Float64Array.BYTES_PER_ELEMENT, COLUMN_CELLS)
}

/** Sums of all columns. Statuses and faults that never occurred are left out. */
interface MetricsSnapshot {
  readonly counts: { readonly [N in MetricName]: number }
  /** By status code; 0 for invalid statuses. */
  readonly statuses: ReadonlyMap<number, number>
  readonly faults: readonly { side: MetricSide; base: number; state: number; count: number }[]
  /** Messages per bucket, not cumulative. */
  readonly sizes: { readonly request: readonly number[]; readonly response: readonly number[] }
}

export function snapshotMetrics(shared: SharedArrayBuffer): MetricsSnapshot {
  const sums = new Float64Array(COLUMN_CELLS)
  const all = new Float64Array(shared)
  for (let at = 0; at < all.length; at++) sums[at % COLUMN_CELLS]! += all[at]!
  const counts = Object.fromEntries(NAMES.map((name, cell) => [name, sums[cell]!])) as Record<MetricName, number>
  const statuses = new Map<number, number>()
  for (let index = 0; index < STATUSES; index++) {
    const count = sums[STATUS_CELLS + index]!
    if (count > 0) statuses.set(index === STATUSES - 1 ? 0 : STATUS_MIN + index, count)
  }
  const faults = SIDES.flatMap(side =>
    BASES.flatMap(base =>
      Array.from({ length: STATES }, (_, state) => ({ side, base, state, count: sums[faultCell(side, base, state)]! })),
    ),
  ).filter(fault => fault.count > 0)
  const sizesFrom = (cell: number) => Array.from(sums.subarray(cell, cell + SIZES))
  return {
    counts,
    statuses,
    faults,
    sizes: { request: sizesFrom(SIZE_CELLS), response: sizesFrom(SIZE_CELLS + SIZES) },
  }
}

/** Clears the gauges of a dead reactor. Its counters stay, and its successor gets the column. */
export function clearGauges(shared: SharedArrayBuffer, reactor: number): void {
  const cells = columnOf(shared, reactor)
  for (const name of NAMES) {
    if (ROWS[name][0] === 'gauge') cells[METRIC[name]] = 0
  }
}

/** Content type of the output of `renderMetrics`. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Renders the text format of Prometheus. */
export function renderMetrics(snapshot: MetricsSnapshot): string {
  const lines: string[] = []
  let family = ''
  for (const name of NAMES) {
    const [kind, series, labels, help]: Row = ROWS[name]
    if (series.endsWith('_sum')) continue
    if (series !== family) lines.push(...heading(series, kind, help))
    family = series
    lines.push(`sluice_${series}${labels === '' ? '' : `{${labels}}`} ${snapshot.counts[name]}`)
  }
  lines.push(...heading('responses_total', 'counter', 'Responses sent to clients, by status.'))
  for (const [status, count] of snapshot.statuses) {
    const labels =
      status === 0 ? 'class="other",status="other"' : `class="${Math.floor(status / 100)}xx",status="${status}"`
    lines.push(`sluice_responses_total{${labels}} ${count}`)
  }
  lines.push(...heading('faults_total', 'counter', 'Failures, by base code and protocol state.'))
  for (const { side, base, state, count } of snapshot.faults) {
    lines.push(`sluice_faults_total{side="${side}",base="${base}",state="${state}"} ${count}`)
  }
  lines.push(
    ...histogram('request_size_bytes', 'Size of request bodies.', snapshot.sizes.request, snapshot.counts.requestBytes),
  )
  lines.push(
    ...histogram(
      'response_size_bytes',
      'Size of response bodies.',
      snapshot.sizes.response,
      snapshot.counts.responseBytes,
    ),
  )
  return `${lines.join('\n')}\n`
}

export function heading(series: string, kind: Kind | 'histogram', help: string): string[] {
  return [`# HELP sluice_${series} ${help}`, `# TYPE sluice_${series} ${kind}`]
}

/** `le` is inclusive and SIZE_BOUNDS are not, so `le` is one byte less. */
function histogram(series: string, help: string, buckets: readonly number[], sum: number): string[] {
  const lines = heading(series, 'histogram', help)
  let count = 0
  buckets.forEach((inBucket, index) => {
    count += inBucket
    const bound = SIZE_BOUNDS[index]
    lines.push(`sluice_${series}_bucket{le="${bound === undefined ? '+Inf' : bound - 1}"} ${count}`)
  })
  return [...lines, `sluice_${series}_sum ${sum}`, `sluice_${series}_count ${count}`]
}
