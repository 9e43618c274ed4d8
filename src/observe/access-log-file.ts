/**
 * Access log file of one reactor. All reactors append to one file with O_APPEND, whole lines per write, so that lines
 * never interleave and no lock is needed. A disk that is slow or full costs log lines, which are counted, and never
 * memory or requests.
 */
import { close, openSync, open, write as writeToFile } from 'node:fs'
import { type AccessLogSinkCallbacks, countLines, SinkFailures, tooSlow, WAITING_BYTES_MAX } from './access-log-sink.ts'

/** Owner and group may read: a log holds addresses and paths. */
export const LOG_FILE_MODE = 0o640

const LINE_FEED = 0x0a

/** The form of `fs.write` that is used here. */
type WriteBytes = (
  fd: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
  position: null,
  done: (failure: Error | null, written: number) => void,
) => void

/** A batch, and what to call when its bytes are of no use any more. */
interface QueuedBatch {
  readonly batch: Uint8Array
  readonly written: () => void
}

const IGNORE = (): void => {}

export class AccessLogFile {
  readonly #path: string
  readonly #callbacks: AccessLogSinkCallbacks
  readonly #failures: SinkFailures
  readonly #write: WriteBytes
  #fd: number
  readonly #queue: QueuedBatch[] = []
  #queuedBytes = 0
  #state: 'idle' | 'busy' | 'closed' = 'idle'
  /** `due`: with the next batch, because the last attempt has failed. */
  #reopen: 'no' | 'now' | 'due' = 'no'
  /** Set by `close`; resolved when the queue is written. */
  #closing: PromiseWithResolvers<void> | undefined
  /** A failed write left an incomplete line at the end of the file. */
  #isTorn = false

  /** Throws where the file cannot be opened: a gateway does not start without its access log. */
  constructor(path: string, callbacks: AccessLogSinkCallbacks, write: WriteBytes = writeToFile) {
    this.#path = path
    this.#callbacks = callbacks
    this.#failures = new SinkFailures(callbacks)
    this.#write = write
    this.#fd = openSync(path, 'a', LOG_FILE_MODE)
  }

  /** Borrows the batch until `written` is called, whether it was written or dropped. */
  write(batch: Uint8Array, written: () => void = IGNORE): void {
    const isFull = this.#queuedBytes + batch.length > WAITING_BYTES_MAX
    if (isFull || this.#closing !== undefined) {
      this.#callbacks.onDropped(countLines(batch))
      if (isFull) this.#failures.failed(tooSlow('the disk'))
      written()
      return
    }
    if (this.#reopen === 'due') this.#reopen = 'now'
    this.#queue.push({ batch, written })
    this.#queuedBytes += batch.length
    this.#next()
  }

  /** Opens the path anew, for log rotation (SIGHUP). */
  reopen(): void {
    this.#reopen = 'now'
    this.#next()
  }

  /** Resolves when the queue is written. Later batches are dropped. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers()
    this.#next()
    return this.#closing.promise
  }

  #next(): void {
    if (this.#state !== 'idle') return
    if (this.#reopen === 'now') {
      this.#openAgain()
      return
    }
    const next = this.#queue.shift()
    if (next !== undefined) {
      this.#state = 'busy'
      const { batch } = next
      this.#send(next, this.#isTorn ? Buffer.concat([Uint8Array.of(LINE_FEED), batch]) : batch, 0)
    } else if (this.#closing !== undefined) {
      this.#state = 'closed'
      close(this.#fd, () => this.#closing?.resolve())
    }
  }

  /** Keeps the old descriptor where opening fails, and tries again: else the log would stay in a renamed file. */
  #openAgain(): void {
    this.#reopen = 'no'
    this.#state = 'busy'
    open(this.#path, 'a', LOG_FILE_MODE, (failure, fd) => {
      if (failure === null) {
        close(this.#fd)
        this.#fd = fd
        this.#isTorn = false
      } else {
        // A call of `reopen` meanwhile stands.
        if (this.#reopen === 'no') this.#reopen = 'due'
        this.#failures.failed(failure)
      }
      this.#state = 'idle'
      this.#next()
    })
  }

  /** `bytes`: the batch, after a line feed where the file ends in an incomplete line. */
  #send(queued: QueuedBatch, bytes: Uint8Array, offset: number): void {
    this.#write(this.#fd, bytes, offset, bytes.length - offset, null, (failure, written) => {
      const sent = failure === null ? offset + written : offset
      // A nearly full disk may take a part. The rest follows until the disk takes nothing.
      if (failure === null && written > 0 && sent < bytes.length) {
        this.#send(queued, bytes, sent)
        return
      }
      const { batch } = queued
      if (sent > 0) this.#isTorn = bytes[sent - 1] !== LINE_FEED
      this.#queuedBytes -= batch.length
      if (sent < bytes.length) {
        this.#callbacks.onDropped(Math.min(countLines(bytes.subarray(sent)), countLines(batch)))
        this.#failures.failed(failure ?? new Error('the file took no byte'))
      } else if (this.#reopen === 'no') this.#failures.succeeded(this.#queuedBytes)
      queued.written()
      this.#state = 'idle'
      this.#next()
    })
  }
}
