/**
 * Access log on standard output, written by the primary only. A reader that is slow or gone costs log lines, which are
 * counted, and never memory, requests or the process.
 */
import type { Writable } from 'node:stream'
import { type AccessLogSinkCallbacks, countLines } from './access-log-file.ts'

/** Bytes that wait for the reader; further batches are dropped. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024

/** A reader that has gone does not come back. */
type StreamCallbacks = Omit<AccessLogSinkCallbacks, 'onRecovered'>

export class AccessLogStream {
  readonly #stream: Writable
  readonly #callbacks: StreamCallbacks
  #isBroken = false

  constructor(stream: Writable, callbacks: StreamCallbacks) {
    this.#stream = stream
    this.#callbacks = callbacks
    // Without a listener, a reader that goes away (EPIPE) would end the process.
    stream.on('error', (cause: Error) => {
      if (!this.#isBroken) callbacks.onFailed(cause)
      this.#isBroken = true
    })
  }

  /** Takes ownership of the batch. */
  write(batch: Uint8Array): void {
    const isFull = this.#stream.writableLength + batch.length > WAITING_BYTES_MAX
    if (this.#isBroken || isFull) this.#callbacks.onDropped(countLines(batch))
    else this.#stream.write(batch)
  }
}
