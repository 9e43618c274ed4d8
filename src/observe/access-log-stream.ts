/**
 * Access log on standard output, written by the primary only. A reader that is slow or gone costs log lines, which are
 * counted, and never memory, requests or the process.
 */
import type { Writable } from 'node:stream'
import { type AccessLogSinkCallbacks, countLines, SinkFailures, tooSlow, WAITING_BYTES_MAX } from './access-log-sink.ts'

export class AccessLogStream {
  readonly #stream: Writable
  readonly #callbacks: AccessLogSinkCallbacks
  readonly #failures: SinkFailures
  /** A reader that has gone does not come back. */
  #isBroken = false

  constructor(stream: Writable, callbacks: AccessLogSinkCallbacks) {
    this.#stream = stream
    this.#callbacks = callbacks
    this.#failures = new SinkFailures(callbacks)
    // Without a listener, a reader that goes away (EPIPE) would end the process.
    stream.on('error', (cause: Error) => {
      this.#failures.failed(cause)
      this.#isBroken = true
    })
    stream.on('drain', () => this.#isBroken || this.#failures.succeeded(stream.writableLength))
  }

  /** Takes ownership of the batch. */
  write(batch: Uint8Array): void {
    const isFull = this.#stream.writableLength + batch.length > WAITING_BYTES_MAX
    if (!this.#isBroken && !isFull) {
      this.#stream.write(batch)
      return
    }
    this.#callbacks.onDropped(countLines(batch))
    if (!this.#isBroken) this.#failures.failed(tooSlow('the reader of standard output'))
  }
}
