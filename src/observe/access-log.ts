/**
 * Access log of a reactor: one line per finished exchange, collected in batches, so that one system call writes many
 * lines. A batch holds whole lines only: several reactors append to one file.
 */
import { arena } from '../http1/llhttp.ts'
import { putJsonLine } from './access-line-json.ts'
import { type AccessRecord, combinedLine, LINE_BYTES_MAX } from './access-line.ts'

/** A write wakes another thread, so it carries some 300 lines. It is made when the longest line has no room left. */
const BATCH_BYTES = 320 * 1024
if (BATCH_BYTES < LINE_BYTES_MAX) throw new RangeError('an access log line must fit into a batch')
/** Batches that a slow disk may hold on loan; further ones are copies. */
const LENT_MAX = 3

/** Where batches begin in the arena, of all that no log of the thread uses. */
const freeBatches: number[] = []

/** Whether there is memory for a batch that nobody uses. */
function hasFreeBatch(): boolean {
  if (freeBatches.length > 0) return true
  const start = arena.reserve(BATCH_BYTES)
  if (start >= 0) freeBatches.push(start)
  return start >= 0
}

export type AccessLogFormat = 'json' | 'combined'

interface AccessLogOptions {
  /** Unix time less the monotonic clock of the records, in milliseconds. Called at each flush: clocks are adjusted. */
  readonly wallOffsetMs: () => number
  /** Batches are lent until `written` is called. Left out: `write` takes ownership of each batch. */
  readonly lends?: boolean
}

type WriteBatch = (batch: Uint8Array<ArrayBuffer>, written: () => void) => void

const IGNORE = (): void => {}

export class AccessLog {
  readonly #format: AccessLogFormat
  readonly #write: WriteBatch
  readonly #wallOffsetMs: () => number
  readonly #lends: boolean
  #lent = 0
  /** Where the batch begins in the arena; without meaning while it is empty. */
  #start = 0
  #length = 0
  #offsetMs: number
  /** Second of the last line, of the combined format. */
  #second = -1
  /** Date and time of that second. */
  #secondText = ''

  /** Throws without memory for a batch. */
  constructor(format: AccessLogFormat, write: WriteBatch, { wallOffsetMs, lends = false }: AccessLogOptions) {
    this.#format = format
    this.#write = write
    this.#wallOffsetMs = wallOffsetMs
    this.#offsetMs = wallOffsetMs()
    this.#lends = lends
    if (!hasFreeBatch()) throw new RangeError('no memory for the access log')
  }

  append(record: AccessRecord): void {
    if (this.#length + LINE_BYTES_MAX > BATCH_BYTES) this.flush()
    if (this.#length === 0) {
      if (!hasFreeBatch()) throw new RangeError('no memory for the access log')
      this.#start = freeBatches.pop()!
    }
    const wallMs = Math.floor(record.startedMs + this.#offsetMs)
    const at = this.#start + this.#length
    if (this.#format === 'json') this.#length = putJsonLine(at, record, wallMs) - this.#start
    // The line is pure ASCII, so its length is its size in bytes.
    else this.#length += arena.bytes.latin1Write(combinedLine(record, this.#dateOf(wallMs)), at)
  }

  /** Called at each tick of the reactor, about every 100 ms, and at shutdown. */
  flush(): void {
    this.#offsetMs = this.#wallOffsetMs()
    if (this.#length === 0) return
    const start = this.#start
    const batch = new Uint8Array(arena.bytes.buffer as ArrayBuffer, start, this.#length)
    this.#length = 0
    // A batch stays for the next lines.
    if (this.#lends && this.#lent < LENT_MAX && hasFreeBatch()) {
      this.#lent++
      this.#write(batch, () => {
        this.#lent--
        freeBatches.push(start)
      })
    } else {
      freeBatches.push(start)
      this.#write(copyOf(batch), IGNORE)
    }
  }

  #dateOf(wallMs: number): string {
    const second = Math.floor(wallMs / 1000)
    if (second !== this.#second) {
      // Fri, 21 Nov 2026 03:56:00 GMT
      const [, day, month, year, time] = new Date(second * 1000).toUTCString().split(' ')
      this.#second = second
      this.#secondText = `${day}/${month}/${year}:${time} +0000`
    }
    return this.#secondText
  }
}

function copyOf(batch: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(batch.length)
  copy.set(batch)
  return copy
}
