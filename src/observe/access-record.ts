/**
 * What an access log line is made from: the accounting of one finished exchange, read structurally so that nothing is
 * copied for the log. Times are milliseconds of the reactor's monotonic clock; 0 marks a moment that never came.
 */
export interface AccessRecord {
  readonly method: string
  /** As received, path and query, one character per byte. */
  readonly requestTarget: string
  /** x of HTTP/1.x; negative when the start line could not be read. */
  readonly minorVersion: number
  readonly clientAddress: string
  /** N of http-incoming-N. */
  readonly sourceId: number
  /** N of http-outgoing-N; 0 when no backend connection was used. */
  readonly targetId: number
  /** Documented state number at the end, 0 to 8; -1 none. */
  readonly sourceState: number
  readonly targetState: number
  readonly status: number
  readonly requestBodyBytes: number
  readonly responseBodyBytes: number
  /** First byte of the request. */
  readonly startedMs: number
  readonly requestDoneMs: number
  /** Request head handed to the backend socket. */
  readonly sentMs: number
  /** How long the connect took; 0 on a reused connection. */
  readonly connectMs: number
  /** Response head received. */
  readonly firstByteMs: number
  readonly doneMs: number
  readonly correlationId: string
  readonly apiName: string
  /** host:port; empty when there was none. */
  readonly backend: string
  /** Base code of the failure; 0 none. */
  readonly errorBase: number
  readonly errorState: number
  readonly userAgent: string
  readonly referer: string
}
