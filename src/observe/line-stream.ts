/**
 * Access log lines on their way to standard output, written by the primary alone. A reader that is too slow or gone
 * costs log lines, which are counted, and never memory, requests or the gateway itself.
 */
import type { Writable } from 'node:stream'
import { type LineWatcher, linesOf } from './line-file.ts'

/** What waits for the reader; beyond this, batches are dropped. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024

export class LineStream {
  readonly #stream: Writable
  readonly #watcher: LineWatcher
  #isBroken = false

  constructor(stream: Writable, watcher: LineWatcher) {
    this.#stream = stream
    this.#watcher = watcher
    // Without a listener, a reader that goes away (EPIPE) would end the process.
    stream.on('error', (cause: Error) => {
      if (!this.#isBroken) watcher.failed(cause)
      this.#isBroken = true
    })
  }

  /** Takes the batch over. */
  write(batch: Uint8Array): void {
    const isFull = this.#stream.writableLength + batch.length > WAITING_BYTES_MAX
    if (this.#isBroken || isFull) this.#watcher.dropped(linesOf(batch))
    else this.#stream.write(batch)
  }
}
