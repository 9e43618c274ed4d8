/** What a load generator is told and what it answers; the same words for wrk and for the own generator. */
import { REQUEST_FIELDS } from '../request-head.ts'

export interface LoadPlan {
  readonly port: number
  readonly path: string
  readonly connections: number
  readonly seconds: number
  /** Bytes of a request body; 0 makes it a GET. */
  readonly uploadBytes: number
  /** Bytes of the response body to expect. */
  readonly downloadBytes: number
  readonly connectionPerRequest: boolean
  /** Requests per second at a constant rate; 0 for as many as the proxy takes. */
  readonly ratePerSecond: number
  /** The own generator leaves the latencies of this long out: its own code is not compiled yet. */
  readonly warmUpSeconds: number
}

export interface LoadOutcome {
  /** All of them, and all the time, those of the warm-up included: what the proxy was charged for. */
  readonly requests: number
  readonly seconds: number
  /** Connections refused or lost, statuses other than 2xx, and requests without an answer. */
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
}

export function fieldsOf(plan: LoadPlan): Record<string, string> {
  return {
    ...REQUEST_FIELDS,
    ...(plan.connectionPerRequest ? { Connection: 'close' } : {}),
    ...(plan.uploadBytes > 0
      ? { 'Content-Type': 'application/octet-stream', 'Content-Length': String(plan.uploadBytes) }
      : {}),
  }
}
