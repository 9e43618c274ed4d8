/** What the failures of one endpoint mean (endpoint states of the transport). Plain data; times in milliseconds. */
export interface EndpointSettings {
  /** Time-outs in a row that only make the endpoint wait, before it is suspended. */
  readonly retriesBeforeSuspension: number
  /** Wait before an endpoint in TIMEOUT is tried again. */
  readonly retryDelayMs: number
  /** First suspension; 0: it is never suspended. */
  readonly initialMs: number
  readonly factor: number
  /** Longest suspension; 0: it is never suspended. */
  readonly maximumMs: number
  /** Codes that lead to TIMEOUT; empty: the bases 101504 and 101505. -1 alone: none. */
  readonly timeoutCodes: readonly number[]
  /** Codes that suspend; empty: all others. -1 alone: none. */
  readonly suspendCodes: readonly number[]
  /** Longest wait for a response; 0: only the limit of all endpoints. */
  readonly responseMs: number
  /** Share of the load in weighted balancing. */
  readonly weight: number
  /** null: no active checks. */
  readonly healthCheck: HealthCheckSettings | null
}

export interface HealthCheckSettings {
  /** Path asked for with GET; an answer below 400 is healthy. */
  readonly path: string
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Failures in a row that suspend, and successes in a row that bring back. */
  readonly unhealthyAfter: number
  readonly healthyAfter: number
}

export const DEFAULT_SETTINGS: EndpointSettings = {
  retriesBeforeSuspension: 0,
  retryDelayMs: 0,
  initialMs: 30_000,
  factor: 1,
  maximumMs: Number.MAX_SAFE_INTEGER,
  timeoutCodes: [],
  suspendCodes: [],
  responseMs: 0,
  weight: 1,
  healthCheck: null,
}
