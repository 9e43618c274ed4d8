/** Histograms of the times of operations of the control thread: the key manager and the servers that it asks. */
import { heading, MetricsColumn, OPERATION_CELLS } from './metrics.ts'
import { histogramLines } from './metrics-text.ts'

/** Upper bounds in seconds, inclusive; one more bucket holds longer times. */
const BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const
const BUCKETS = BOUNDS_SECONDS.length + 1
/** Buckets and the sum. */
const CELLS_EACH = BUCKETS + 1

/** Family, its help in the first row, and the labels. */
const ROWS = {
  token: ['key_manager_request_duration_seconds', 'endpoint="token"', 'Time of requests to the key manager.'],
  introspect: ['key_manager_request_duration_seconds', 'endpoint="introspect"', ''],
  authorize: ['key_manager_request_duration_seconds', 'endpoint="authorize"', ''],
  keys: ['key_manager_request_duration_seconds', 'endpoint="jwks"', ''],
  other: ['key_manager_request_duration_seconds', 'endpoint="other"', ''],
  keySetFetch: ['key_set_fetch_duration_seconds', '', 'Time of fetches of the key sets of issuers (JWKS).'],
  remoteIntrospection: [
    'token_introspection_duration_seconds',
    '',
    'Time of introspections that reactors asked for, by the key manager of this node or another.',
  ],
} as const satisfies Record<string, readonly [family: string, labels: string, help: string]>

export type Operation = keyof typeof ROWS
const OPERATIONS = Object.keys(ROWS) as readonly Operation[]

/** Counts the time of an operation. */
export function countTime(column: Pick<MetricsColumn, 'add'>, operation: Operation, seconds: number): void {
  const first = OPERATION_CELLS + OPERATIONS.indexOf(operation) * CELLS_EACH
  const bucket = BOUNDS_SECONDS.findIndex(bound => seconds <= bound)
  column.add(first + (bucket === -1 ? BUCKETS - 1 : bucket), 1)
  column.add(first + BUCKETS, seconds)
}

/** Runs an operation and counts its time, however it ends. */
export async function timed<Result>(
  column: Pick<MetricsColumn, 'add'>,
  operation: Operation,
  run: () => Promise<Result>,
): Promise<Result> {
  const fromMs = performance.now()
  try {
    return await run()
  } finally {
    countTime(column, operation, (performance.now() - fromMs) / 1000)
  }
}

/** Text format of Prometheus. `column`: of the control thread. Operations that never ran have zeros. */
export function renderOperationTimes(shared: SharedArrayBuffer, column: number): string {
  const cells = new MetricsColumn(shared, column)
  const lines: string[] = []
  let family = ''
  for (const [index, operation] of OPERATIONS.entries()) {
    const [name, labels, help] = ROWS[operation]
    const first = OPERATION_CELLS + index * CELLS_EACH
    const buckets = Array.from({ length: BUCKETS }, (_, bucket) => cells.read(first + bucket))
    if (name !== family) lines.push(...heading(name, 'histogram', help))
    family = name
    lines.push(...histogramLines(name, labels, BOUNDS_SECONDS, { buckets, sumSeconds: cells.read(first + BUCKETS) }))
  }
  return `${lines.join('\n')}\n`
}
