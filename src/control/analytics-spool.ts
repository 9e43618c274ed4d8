/**
 * Events of analytics on disk, for the time without a receiver: files of lines, in the order of their numbers. Batches
 * share a file while it is short: the number of files is bounded as their bytes are. The oldest are deleted where
 * a new batch has no room.
 */
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'

const NAME = /^(\d{12})-(\d{1,9})\.ndjson$/
/** A file of an earlier version that a killed process has not written to its end. */
const HALF = /^\d{12}-\d{1,9}\.ndjson\.new$/
const ASIDE = /^\d{12}-\d{1,9}\.ndjson\.unreadable$/
const DIGITS = 12
/** Events may name callers. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
/** A file with so many events or bytes gets no more; the events are those of the longest batch. */
const FILE_EVENTS = 500
const FILE_BYTES = 512 * 1024
/** Unreadable files that stay; the oldest ones are deleted beyond. */
const ASIDE_MAX = 8
/** The process lacks something, and the file is in order. */
const PASSING = ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']

interface SpooledFile {
  readonly number: number
  readonly events: number
  readonly bytes: number
}

/** `number`: for `remove`. */
interface SpooledBatch {
  readonly number: number
  readonly events: number
  readonly lines: string
}

/** Files that could not be read, and are set aside. `file`: the first one. */
export interface SpoolLoss {
  readonly files: number
  readonly events: number
  readonly file: string
  readonly cause: string
}

export class AnalyticsSpool {
  readonly #folder: string
  readonly #bytesMax: number
  readonly #lost: (loss: SpoolLoss) => void
  #files: SpooledFile[]
  #bytes: number
  #next: number
  /** The file that gets further batches; 0: none. */
  #growing = 0

  /** Continues with the files of an earlier process. Throws where the folder cannot be used. */
  constructor(folder: string, bytesMax: number, lost: (loss: SpoolLoss) => void) {
    this.#folder = folder
    this.#bytesMax = bytesMax
    this.#lost = lost
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    const entries = readdirSync(folder, { withFileTypes: true })
    const named = entries.filter(({ name }) => NAME.test(name)).sort((one, other) => (one.name < other.name ? -1 : 1))
    // A folder or a link of such a name is not ours, but its number is taken.
    this.#next = 1 + Math.max(0, ...entries.map(({ name }) => Number(/^\d{12}/.exec(name)?.[0] ?? 0)))
    this.#files = named
      .filter(entry => entry.isFile())
      .map(({ name }) => {
        const [, number, events] = NAME.exec(name)!
        return { number: Number(number), events: Number(events), bytes: statSync(join(folder, name)).size }
      })
    this.#bytes = this.#files.reduce((sum, { bytes }) => sum + bytes, 0)
    const halves = entries.filter(entry => entry.isFile() && HALF.test(entry.name))
    for (const { name } of halves) deleteIfPossible(join(folder, name))
  }

  get isEmpty(): boolean {
    return this.#files.length === 0
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Returns how many events were deleted for it, its own where it is too long itself. Throws as the disk does. */
  add(lines: string, events: number): number {
    const bytes = Buffer.byteLength(lines)
    if (bytes > this.#bytesMax) return events
    let dropped = 0
    while (this.#bytes + bytes > this.#bytesMax) {
      const [oldest] = this.#files
      dropped += oldest!.events
      this.remove(oldest!.number)
    }
    const last = this.#files.at(-1)
    const bytesMax = Math.min(FILE_BYTES, this.#bytesMax / 4)
    const file =
      last?.number === this.#growing && last.events + events <= FILE_EVENTS && last.bytes + bytes <= bytesMax
        ? last
        : { number: this.#next++, events: 0, bytes: 0 }
    this.#append(file, lines, { number: file.number, events: file.events + events, bytes: file.bytes + bytes })
    return dropped
  }

  #append(file: SpooledFile, lines: string, grown: SpooledFile): void {
    const path = this.#pathOf(file)
    try {
      appendFileSync(path, lines, { mode: FILE_MODE })
      // The name says how many events are lost where the file is deleted.
      renameSync(path, this.#pathOf(grown))
    } catch (error) {
      // A full disk takes a part of each batch, which nobody would delete.
      if (file.events === 0) deleteIfPossible(path)
      else cutIfPossible(path, file.bytes)
      throw error
    }
    if (file.events > 0) this.#files.pop()
    this.#files.push(grown)
    this.#bytes += grown.bytes - file.bytes
    this.#growing = grown.number
  }

  /**
   * The oldest batch; null without any. A file that is no batch any more is set aside, and told. Throws where the
   * process cannot read now.
   */
  oldest(): SpooledBatch | null {
    const bad: (SpooledFile & { readonly cause: string })[] = []
    try {
      for (let [file] = this.#files; file !== undefined; [file] = this.#files) {
        // A file that is being sent does not grow.
        if (file.number === this.#growing) this.#growing = 0
        const batch = this.#read(file)
        if (typeof batch !== 'string') return batch
        bad.push({ ...file, cause: batch })
        this.#setAside(file)
      }
      return null
    } finally {
      const [first] = bad
      if (first !== undefined) {
        const events = bad.reduce((sum, file) => sum + file.events, 0)
        this.#lost({ files: bad.length, events, file: this.#pathOf(first), cause: first.cause })
      }
    }
  }

  /** The cause where the file is no batch. Throws where the process cannot read now. */
  #read(file: SpooledFile): SpooledBatch | string {
    try {
      const text = readFileSync(this.#pathOf(file), 'utf8')
      return batchOf(file.number, text) ?? 'it holds no events'
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      if (PASSING.includes(code)) throw error
      return message
    }
  }

  /** Throws as the disk does; this process does not publish the batch again all the same. */
  remove(number: number): void {
    const file = this.#forget(number)
    if (file !== undefined) rmSync(this.#pathOf(file), { force: true })
  }

  #forget(number: number): SpooledFile | undefined {
    const file = this.#files.find(each => each.number === number)
    if (file === undefined) return undefined
    this.#files = this.#files.filter(each => each !== file)
    this.#bytes -= file.bytes
    return file
  }

  /** Keeps the file for the operator. On a read-only disk the next process finds it again. */
  #setAside(file: SpooledFile): void {
    this.#forget(file.number)
    try {
      const path = this.#pathOf(file)
      if (statSync(path).isFile()) renameSync(path, `${path}.unreadable`)
      const aside = readdirSync(this.#folder)
        .filter(name => ASIDE.test(name))
        .sort()
      for (const name of aside.slice(0, -ASIDE_MAX)) deleteIfPossible(join(this.#folder, name))
    } catch {
      // The file is gone, or stays under its name.
    }
  }

  #pathOf({ number, events }: SpooledFile): string {
    return join(this.#folder, `${String(number).padStart(DIGITS, '0')}-${events}.ndjson`)
  }
}

/** Null where the text is no lines of JSON objects; the half of a line at its end is that of a killed process. */
function batchOf(number: number, text: string): SpooledBatch | null {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1)
  const events = lines.split('\n').slice(0, -1)
  const areEvents = events.length > 0 && events.every(line => line.startsWith('{') && line.endsWith('}'))
  return areEvents ? { number, events: events.length, lines } : null
}

function deleteIfPossible(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The next process tries again.
  }
}

function cutIfPossible(path: string, bytes: number): void {
  try {
    truncateSync(path, bytes)
  } catch {
    // Readers of the file leave out text behind its last line.
  }
}
