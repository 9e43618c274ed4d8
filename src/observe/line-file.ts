/**
 * The access log file as one reactor sees it. Several reactors append to the same file, each whole batches of lines
 * with one write to a descriptor opened with O_APPEND, so lines never interleave and nobody needs a lock. A disk that
 * is too slow or full costs log lines, which are counted, and never memory or requests.
 */
import { close, openSync, open, write as writeToFile } from 'node:fs'

/** Batches that wait for the disk; beyond this they are dropped. */
const QUEUE_BYTES_MAX = 8 * 1024 * 1024

/** Readable by the operator's group: a log holds addresses and paths, which are nobody else's business. */
export const LOG_FILE_MODE = 0o640

const LINE_FEED = 0x0a

/** The one form of `fs.write` that is used. */
type WriteBytes = (
  fd: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
  position: null,
  done: (failure: Error | null, written: number) => void,
) => void

export interface LineWatcher {
  /** So many lines will never be in the file. */
  dropped(lines: number): void
  /** The first failure after things went well; the next ones of the same trouble are only counted. */
  failed(cause: Error): void
}

export class LineFile {
  readonly #path: string
  readonly #watcher: LineWatcher
  readonly #write: WriteBytes
  #fd: number
  readonly #queue: Uint8Array[] = []
  #queuedBytes = 0
  #state: 'idle' | 'busy' | 'closed' = 'idle'
  #reopen = false
  /** Settled when all is written; once it is there, nobody may add to the file. */
  #closing: PromiseWithResolvers<void> | undefined
  #failing = false
  /** A batch broke off within a line. */
  #torn = false

  /** Throws when the file cannot be opened: a gateway that was told to log does not start without. */
  constructor(path: string, watcher: LineWatcher, write: WriteBytes = writeToFile) {
    this.#path = path
    this.#watcher = watcher
    this.#write = write
    this.#fd = openSync(path, 'a', LOG_FILE_MODE)
  }

  /** Takes the batch over. */
  write(batch: Uint8Array): void {
    if (this.#closing !== undefined || this.#queuedBytes + batch.length > QUEUE_BYTES_MAX) {
      this.#watcher.dropped(linesOf(batch))
      return
    }
    this.#queue.push(batch)
    this.#queuedBytes += batch.length
    this.#next()
  }

  /** After the file was moved away (SIGHUP): what is written from now on goes to a new one of the same name. */
  reopen(): void {
    this.#reopen = true
    this.#next()
  }

  /** Resolves when everything queued is written. Later batches are dropped. */
  close(): Promise<void> {
    this.#closing ??= Promise.withResolvers()
    this.#next()
    return this.#closing.promise
  }

  #next(): void {
    if (this.#state !== 'idle') return
    if (this.#reopen) {
      this.#openAgain()
      return
    }
    const batch = this.#queue.shift()
    if (batch !== undefined) {
      this.#state = 'busy'
      this.#send(batch, this.#torn ? Buffer.concat([Uint8Array.of(LINE_FEED), batch]) : batch, 0)
    } else if (this.#closing !== undefined) {
      this.#state = 'closed'
      close(this.#fd, () => this.#closing?.resolve())
    }
  }

  /** The old descriptor serves on when there is no new one. */
  #openAgain(): void {
    this.#reopen = false
    this.#state = 'busy'
    open(this.#path, 'a', LOG_FILE_MODE, (failure, fd) => {
      if (failure === null) {
        close(this.#fd)
        this.#fd = fd
        this.#torn = false
      } else this.#watcher.failed(failure)
      this.#state = 'idle'
      this.#next()
    })
  }

  /** `bytes` are those of the batch, behind a line feed where the one before was torn. */
  #send(batch: Uint8Array, bytes: Uint8Array, offset: number): void {
    this.#write(this.#fd, bytes, offset, bytes.length - offset, null, (failure, written) => {
      const sent = failure === null ? offset + written : offset
      // A nearly full disk may take only a part; the remainder follows until it takes nothing.
      if (failure === null && written > 0 && sent < bytes.length) {
        this.#send(batch, bytes, sent)
        return
      }
      if (sent > 0) this.#torn = bytes[sent - 1] !== LINE_FEED
      if (sent === bytes.length) this.#failing = false
      else
        this.#giveUp(Math.min(linesOf(bytes.subarray(sent)), linesOf(batch)), failure ?? new Error('no byte was taken'))
      this.#queuedBytes -= batch.length
      this.#state = 'idle'
      this.#next()
    })
  }

  #giveUp(lines: number, cause: Error): void {
    this.#watcher.dropped(lines)
    if (!this.#failing) this.#watcher.failed(cause)
    this.#failing = true
  }
}

export function linesOf(batch: Uint8Array): number {
  let lines = 0
  for (let at = batch.indexOf(LINE_FEED); at !== -1; at = batch.indexOf(LINE_FEED, at + 1)) lines++
  return lines
}
