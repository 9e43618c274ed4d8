/**
 * The pace at which a client takes its responses (D178). Time in which bytes wait for the client is paid from a credit.
 * It starts at `http.socket.timeout`, and each byte that the client takes earns time at `response.min_rate`.
 */
interface PaceLimits {
  readonly socketTimeoutMs: number
  /** Bytes per second; 0: time that bytes wait costs nothing once they have left. */
  readonly responseRateMin: number
}

export class ClientPace {
  #creditMs: number
  /** When bytes began to wait; -1: none wait. */
  #sinceMs = -1
  /** Bytes that have earned their time. */
  #paidBytes = 0

  constructor({ socketTimeoutMs }: PaceLimits) {
    this.#creditMs = socketTimeoutMs
  }

  /** Bytes wait for the client. Returns the milliseconds in which it has to take them. */
  waiting(nowMs: number): number {
    if (this.#sinceMs < 0) this.#sinceMs = nowMs
    return Math.max(0, this.#creditMs - (nowMs - this.#sinceMs))
  }

  /** No byte waits any more. `sentBytes`: all that were written on the connection. */
  drained(nowMs: number, sentBytes: number, { socketTimeoutMs, responseRateMin }: PaceLimits): void {
    const waitedMs = this.#sinceMs < 0 ? 0 : nowMs - this.#sinceMs
    const earnedMs =
      responseRateMin === 0 ? Number.POSITIVE_INFINITY : ((sentBytes - this.#paidBytes) * 1000) / responseRateMin
    this.#sinceMs = -1
    this.#paidBytes = sentBytes
    this.#creditMs = Math.min(socketTimeoutMs, this.#creditMs - waitedMs + earnedMs)
  }

  /** The client has paid for earlier waits, and not taken enough since. */
  isSlow({ socketTimeoutMs }: PaceLimits): boolean {
    return this.#creditMs < socketTimeoutMs
  }
}
