/**
 * Queue of the bytes that arrive while a socket's owner does not read, in order, with the end of the peer behind them.
 * Reading cannot always stop at once: TLS records and stream chunks that were read already still come. One read of the
 * socket below bounds the queue, because that socket is stopped meanwhile.
 */

const EMPTY = new Uint8Array(0)

/** The socket that a read queue delivers for. */
export interface ReadQueueOwner {
  /**
   * Gives the socket's owner the first bytes, as many as its view takes. Returns how many; 0 once the socket is closed.
   */
  receive(bytes: Uint8Array): number
  /** Everything that came is delivered and the owner reads: the socket below may go on. */
  resume(): void
  /** A call of the socket's owner threw. */
  threw(error: unknown): void
}

export class ReadQueue {
  readonly #socket: ReadQueueOwner
  #queued: Uint8Array = EMPTY
  /** Reports the end of the peer, which waits behind the bytes; null while there is none. */
  #reportEnd: (() => void) | null = null
  #isReading = true
  /** A delivery is scheduled. */
  #isScheduled = false

  constructor(socket: ReadQueueOwner) {
    this.#socket = socket
  }

  get isReading(): boolean {
    return this.#isReading
  }

  /** The owner reads and nothing waits for it: what comes now may go to it directly. */
  get isClear(): boolean {
    return this.#isReading && this.#queued.length === 0
  }

  /** The end of the peer has come and is not reported yet. */
  get hasPendingEnd(): boolean {
    return this.#reportEnd !== null
  }

  /** Delivers what the owner reads, and keeps the rest. The caller does not use the memory of `bytes` again. */
  add(bytes: Uint8Array): void {
    this.#queued = this.#queued.length === 0 ? bytes : Buffer.concat([this.#queued, bytes])
    if (!this.#isScheduled) this.#deliver()
  }

  /** Reports the end behind the bytes that wait. */
  end(report: () => void): void {
    if (this.isClear) report()
    else this.#reportEnd = report
  }

  /** Returns whether the socket below may read now; later, through `resume`, where something waits. */
  setReading(on: boolean): boolean {
    this.#isReading = on
    if (!on || (this.#queued.length === 0 && this.#reportEnd === null)) return on
    this.flushLater()
    return false
  }

  /** Delivers soon, but not from inside a call of the owner's own. */
  flushLater(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => this.#flush())
  }

  #flush(): void {
    this.#isScheduled = false
    try {
      this.#deliver()
      // The owner may have stopped reading, or closed the socket, before or during the delivery.
      if (!this.isClear) return
      const reportEnd = this.#reportEnd
      this.#reportEnd = null
      if (reportEnd === null) this.#socket.resume()
      else reportEnd()
    } catch (error) {
      this.#socket.threw(error)
    }
  }

  #deliver(): void {
    while (this.#isReading && this.#queued.length > 0) {
      const length = this.#socket.receive(this.#queued)
      if (length === 0) return
      this.#queued = this.#queued.length === length ? EMPTY : this.#queued.subarray(length)
    }
  }
}
