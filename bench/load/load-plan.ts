/** Input and output of the load generators, the same types for all of them. */
import type { Certificate } from '../certificate.ts'
import { REQUEST_FIELDS } from '../request-head.ts'
import { tokenIssuer } from '../token-issuer.ts'

export interface LoadPlan {
  readonly port: number
  /** Certificate of the proxy; undefined for connections without TLS. */
  readonly certificate: Certificate | undefined
  readonly path: string
  readonly connections: number
  readonly seconds: number
  /** Bytes of a request body; 0 makes the request a GET. */
  readonly uploadBytes: number
  /** Expected bytes of the response body. */
  readonly downloadBytes: number
  readonly connectionPerRequest: boolean
  /** Requests per second at a constant rate (open loop); 0 for as many as the proxy takes (closed loop). */
  readonly ratePerSecond: number
  /** The load generator of the bench drops latencies of this period, while its own code is not compiled yet. */
  readonly warmUpSeconds: number
  /** Requests of a paired scenario, sent by wrk only; replaces the path and the two sizes. */
  readonly request?: RequestSpec
}

/** Requests of a paired scenario, where they differ from the GET or POST of the other scenarios. */
export interface RequestSpec {
  readonly method: string
  /** Fields that are added to the usual ones or replace them; null removes a field. */
  readonly fields: Readonly<Record<string, string | null>>
  /** Requested in turn; at least one, unless they depend on the peer. */
  readonly paths: readonly string[]
  /** Bodies in place of `body`, one for each path. */
  readonly bodies?: readonly string[]
  /** Number of different bearer tokens, sent in turn. */
  readonly tokens?: number
  /** Number of client addresses, sent in X-Forwarded-For in turn, from a random one on. */
  readonly addresses?: number
  readonly uploadBytes: number
  /** The body in place of `uploadBytes` bytes; its type is in `fields`. */
  readonly body?: string
  /** Any of these statuses is correct. */
  readonly expectedStatuses: readonly number[]
  /** Body bytes of a correct response; null for a response of the proxy itself. */
  readonly downloadBytes: number | null
}

export interface LoadOutcome {
  /** All requests, and in `seconds` all time, warm-up included: CPU time is measured over the same period. */
  readonly requests: number
  readonly seconds: number
  /** Refused or lost connections, statuses other than 2xx, and requests without a response. */
  readonly errors: number
  /** Latencies are missing where the generator does not time single requests. */
  readonly p50Ms?: number
  readonly p99Ms?: number
  readonly p999Ms?: number
  readonly maxMs?: number
}

/** Consecutive TLS connections of several clients. */
export interface HandshakePlan {
  readonly port: number
  readonly path: string
  readonly clients: number
  readonly seconds: number
  readonly downloadBytes: number
  readonly resumed: boolean
  /** Environment variables that make the clients offer the TLS parameters of the bench. */
  readonly environment: Readonly<Record<string, string>>
}

/** Messages through WebSocket connections. */
export interface TunnelPlan {
  readonly port: number
  readonly traffic: 'echo' | 'stream'
  readonly connections: number
  readonly messageBytes: number
  readonly seconds: number
}

export function requestFields(plan: LoadPlan): Record<string, string> {
  return {
    ...(plan.request === undefined ? REQUEST_FIELDS : specifiedFields(plan.request)),
    ...(plan.connectionPerRequest ? { Connection: 'close' } : {}),
    ...(plan.uploadBytes > 0
      ? { 'Content-Type': 'application/octet-stream', 'Content-Length': String(plan.uploadBytes) }
      : {}),
    ...(plan.request?.body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(plan.request.body)) }),
  }
}

function specifiedFields({ fields, tokens = 0 }: RequestSpec): Record<string, string> {
  // Only the first token: where there are several, wrk sets the field for each request.
  const bearer = tokens === 0 ? {} : { Authorization: `Bearer ${tokenIssuer().tokens(1)[0]}` }
  const all = Object.entries({ ...REQUEST_FIELDS, ...fields, ...bearer })
  return Object.fromEntries(all.flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
}

/** Requests at a constant rate, each of which is recorded. */
export interface RecordingPlan {
  readonly port: number
  readonly path: string
  readonly connections: number
  readonly ratePerSecond: number
  readonly seconds: number
  /** Replace the usual fields of the same names. */
  readonly fields?: Readonly<Record<string, string>>
}

/** Times are milliseconds since the Unix epoch, so that they compare with those of other processes. */
export interface RequestRecord {
  /** The time at which the request was due. */
  readonly intendedMs: number
  readonly answeredMs: number
  /** 0 for a connection that ended without a response. */
  readonly status: number
  /** Name of the backend that responded; '' for a response of the proxy itself. */
  readonly server: string
}

export interface RecordingOutcome {
  /** Requests due; those without a record were still waiting at the end. */
  readonly due: number
  readonly records: readonly RequestRecord[]
}
