/**
 * Access log of a reactor: one line per finished exchange, collected in batches, so that one system call writes many
 * lines. A batch holds whole lines only: several reactors append to one file.
 */
import { arena } from '../http1/llhttp.ts'
import { putJsonLine } from './access-line-json.ts'
import { type AccessRecord, combinedLine, LINE_BYTES_MAX, localTime } from './access-line.ts'
import type { AccessSampling } from './access-sampling.ts'

/** A write wakes another thread, so it carries some 300 lines. It is made when the longest line has no room left. */
const BATCH_BYTES = 320 * 1024
if (BATCH_BYTES < LINE_BYTES_MAX) throw new RangeError('an access log line must fit into a batch')
/** Batches that a slow disk may hold on loan; further ones are copies. */
const LENT_MAX = 3

/** Where batches begin in the arena, of all that no log of the thread uses. */
const freeBatches: number[] = []

/** True if there is memory for a batch that nobody uses. */
function hasFreeBatch(): boolean {
  if (freeBatches.length > 0) return true
  const start = arena.reserve(BATCH_BYTES)
  if (start >= 0) freeBatches.push(start)
  return start >= 0
}

/** The line of a record in pure ASCII, with its line feed and at most LINE_BYTES_MAX long. `wallMs`: its start. */
type LineText = (record: AccessRecord, wallMs: number) => string
export type AccessLogFormat = 'json' | 'combined' | LineText

interface AccessLogOptions {
  /** Unix time less the monotonic clock of the records, in milliseconds. Called at each flush: clocks are adjusted. */
  readonly wallOffsetMs: () => number
  /** Batches are lent until `written` is called. Left out: `write` takes ownership of each batch. */
  readonly lends?: boolean
  /** Null: every exchange gets a line. */
  readonly sampling?: Pick<AccessSampling, 'takes'> | null
  /** Called for each exchange without a line. */
  readonly sampledOut?: () => void
}

type WriteBatch = (batch: Uint8Array<ArrayBuffer>, written: () => void) => void

const IGNORE = (): void => {}

export class AccessLog {
  readonly #format: 'json' | 'text'
  readonly #text: LineText
  readonly #write: WriteBatch
  readonly #wallOffsetMs: () => number
  readonly #lends: boolean
  readonly #sampling: Pick<AccessSampling, 'takes'> | null
  readonly #sampledOut: () => void
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
  constructor(
    format: AccessLogFormat,
    write: WriteBatch,
    { wallOffsetMs, lends = false, sampling = null, sampledOut = IGNORE }: AccessLogOptions,
  ) {
    this.#format = format === 'json' ? 'json' : 'text'
    this.#text = typeof format === 'function' ? format : this.#combined
    this.#sampling = sampling
    this.#sampledOut = sampledOut
    this.#write = write
    this.#wallOffsetMs = wallOffsetMs
    this.#offsetMs = wallOffsetMs()
    this.#lends = lends
    if (!hasFreeBatch()) throw new RangeError('no memory for the access log')
  }

  append(record: AccessRecord): void {
    if (this.#sampling !== null && !this.#sampling.takes(record.status, record.doneMs)) {
      this.#sampledOut()
      return
    }
    if (this.#length + LINE_BYTES_MAX > BATCH_BYTES) this.flush()
    if (this.#length === 0) {
      if (!hasFreeBatch()) throw new RangeError('no memory for the access log')
      this.#start = freeBatches.pop()!
    }
    const wallMs = Math.floor(record.startedMs + this.#offsetMs)
    const at = this.#start + this.#length
    if (this.#format === 'json') this.#length = putJsonLine(at, record, wallMs) - this.#start
    // The line is pure ASCII, so its length is its size in bytes.
    else this.#length += arena.bytes.latin1Write(this.#text(record, wallMs), at)
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

  readonly #combined = (record: AccessRecord, wallMs: number): string => {
    const second = Math.floor(wallMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#secondText = localTime(wallMs)
    }
    return combinedLine(record, this.#secondText)
  }
}

function copyOf(batch: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(batch.length)
  copy.set(batch)
  return copy
}
