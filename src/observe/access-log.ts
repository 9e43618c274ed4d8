/**
 * Access log of a reactor: one line per finished exchange, collected in batches, so that one system call writes many
 * lines. A batch holds whole lines only: several reactors append to one file.
 */
import { type AccessRecord, combinedLine, JsonLines, LINE_BYTES_MAX } from './access-line.ts'

/** A write wakes another thread, so it carries some 300 lines. It is made when the longest line has no room left. */
const BATCH_BYTES = 320 * 1024
if (BATCH_BYTES < LINE_BYTES_MAX) throw new RangeError('an access log line must fit into a batch')

export type AccessLogFormat = 'json' | 'combined'

interface AccessLogOptions {
  /** Unix time less the monotonic clock of the records, in milliseconds. Called at each flush: clocks are adjusted. */
  readonly wallOffsetMs: () => number
}

export class AccessLog {
  readonly #batch = Buffer.alloc(BATCH_BYTES)
  #length = 0
  readonly #format: AccessLogFormat
  readonly #write: (batch: Uint8Array<ArrayBuffer>) => void
  readonly #wallOffsetMs: () => number
  #offsetMs: number
  /** Second of the last line: formatting a date per line would double the cost of a line. */
  #second = -1
  /** Start of a line of that second: of JSON as bytes, up to the point; of the combined format its date. */
  #secondBytes: Uint8Array = new Uint8Array()
  #secondText = ''
  readonly #json = new JsonLines()

  /** `write` takes ownership of each batch. */
  constructor(format: AccessLogFormat, write: (batch: Uint8Array<ArrayBuffer>) => void, options: AccessLogOptions) {
    this.#format = format
    this.#write = write
    this.#wallOffsetMs = options.wallOffsetMs
    this.#offsetMs = options.wallOffsetMs()
  }

  append(record: AccessRecord): void {
    if (this.#length + LINE_BYTES_MAX > BATCH_BYTES) this.flush()
    const wallMs = Math.floor(record.startedMs + this.#offsetMs)
    const second = Math.floor(wallMs / 1000)
    if (second !== this.#second) this.#setSecond(second)
    const batch = this.#batch
    if (this.#format === 'json') {
      this.#length = this.#json.put(batch, this.#length, record, this.#secondBytes, wallMs - second * 1000)
      // The line is pure ASCII, so its length is its size in bytes.
    } else this.#length += batch.latin1Write(combinedLine(record, this.#secondText), this.#length)
  }

  /** Called at each tick of the reactor, about every 100 ms, and at shutdown. */
  flush(): void {
    this.#offsetMs = this.#wallOffsetMs()
    if (this.#length === 0) return
    const batch = new Uint8Array(this.#length)
    batch.set(this.#batch.subarray(0, this.#length))
    this.#length = 0
    this.#write(batch)
  }

  #setSecond(second: number): void {
    this.#second = second
    const date = new Date(second * 1000)
    this.#secondBytes = Buffer.from(`{"time":"${date.toISOString().slice(0, -4)}`)
    // Fri, 21 Nov 2026 03:56:00 GMT
    const [, day, month, year, time] = date.toUTCString().split(' ')
    this.#secondText = `${day}/${month}/${year}:${time} +0000`
  }
}
