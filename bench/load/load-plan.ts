/** What a load generator is told and what it answers; the same words for wrk and for the own generator. */
import type { Certificate } from '../certificate.ts'
import type { Ask } from '../contest/ask.ts'
import { REQUEST_FIELDS } from '../request-head.ts'
import { tokenIssuer } from '../token-issuer.ts'

export interface LoadPlan {
  readonly port: number
  /** TLS to the proxy, with this certificate; undefined for plain connections. */
  readonly certificate: Certificate | undefined
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
  /** What is asked of a contestant, by wrk alone; in the place of the path and the two sizes. */
  readonly ask?: Ask
}

export interface LoadOutcome {
  /** All of them, and all the time, those of the warm-up included: what the proxy was charged for. */
  readonly requests: number
  readonly seconds: number
  /** Connections refused or lost, statuses other than 2xx, and requests without an answer. */
  readonly errors: number
  /** Left out where the generator does not time single requests. */
  readonly p50Ms?: number
  readonly p99Ms?: number
  readonly p999Ms?: number
  readonly maxMs?: number
}

/** TLS connections one after the other, by several clients. */
export interface HandshakePlan {
  readonly port: number
  readonly path: string
  readonly clients: number
  readonly seconds: number
  readonly downloadBytes: number
  readonly resumed: boolean
  /** Makes the clients offer what every client of the bench offers. */
  readonly environment: Readonly<Record<string, string>>
}

/** Messages through WebSocket connections. */
export interface TunnelPlan {
  readonly port: number
  readonly traffic: 'echo' | 'flow'
  readonly connections: number
  readonly messageBytes: number
  readonly seconds: number
}

export function fieldsOf(plan: LoadPlan): Record<string, string> {
  const usual = plan.ask === undefined ? REQUEST_FIELDS : asked(plan.ask)
  return {
    ...usual,
    ...(plan.connectionPerRequest ? { Connection: 'close' } : {}),
    ...(plan.uploadBytes > 0
      ? { 'Content-Type': 'application/octet-stream', 'Content-Length': String(plan.uploadBytes) }
      : {}),
  }
}

function asked({ fields, tokens = 0 }: Ask): Record<string, string> {
  // Of several it is the first: the others are the load generator's.
  const bearer = tokens === 0 ? {} : { Authorization: `Bearer ${tokenIssuer().tokens(1)[0]}` }
  const all = Object.entries({ ...REQUEST_FIELDS, ...fields, ...bearer })
  return Object.fromEntries(all.flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
}

/** Requests at a constant rate, each recorded. */
export interface SteadyPlan {
  readonly port: number
  readonly path: string
  readonly connections: number
  readonly ratePerSecond: number
  readonly seconds: number
  /** In the place of the usual ones. */
  readonly fields?: Readonly<Record<string, string>>
}

/** Times are milliseconds of the epoch, so that they compare with those of another process. */
export interface SteadyRecord {
  /** When it was meant to leave. */
  readonly askedMs: number
  readonly answeredMs: number
  /** 0 where the connection ended without an answer. */
  readonly status: number
  /** The backend that answered; empty where the proxy did so itself. */
  readonly server: string
}

export interface SteadyOutcome {
  /** Requests without a record were still waiting at the end. */
  readonly asked: number
  readonly records: readonly SteadyRecord[]
}
