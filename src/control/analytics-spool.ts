/**
 * Batches of analytics events on disk, for the time without a receiver: a file each, in the order of their numbers. The
 * oldest are deleted where a new one has no room.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NAME = /^(\d{12})-(\d{1,9})\.ndjson$/
/** Name of a batch that a killed process has not written to its end. */
const HALF = /^\d{12}-\d{1,9}\.ndjson\.new$/
const DIGITS = 12
/** Events may name callers. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

interface SpooledFile {
  readonly name: string
  readonly events: number
  readonly bytes: number
}

/** `name`: for `remove`. */
interface SpooledBatch {
  readonly name: string
  readonly events: number
  readonly lines: string
}

export class AnalyticsSpool {
  readonly #folder: string
  readonly #bytesMax: number
  #files: SpooledFile[]
  #next: number

  /** Continues with the files of an earlier process. Throws where the folder cannot be used. */
  constructor(folder: string, bytesMax: number) {
    this.#folder = folder
    this.#bytesMax = bytesMax
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    const entries = readdirSync(folder, { withFileTypes: true })
    const named = entries.filter(({ name }) => NAME.test(name)).sort((one, other) => (one.name < other.name ? -1 : 1))
    // A folder or a link of such a name is not ours, but its number is taken.
    this.#next = 1 + Number(named.at(-1)?.name.slice(0, DIGITS) ?? 0)
    this.#files = named
      .filter(entry => entry.isFile())
      .map(({ name }) => ({ name, events: Number(NAME.exec(name)![2]), bytes: statSync(join(folder, name)).size }))
    const halves = entries.filter(entry => entry.isFile() && HALF.test(entry.name))
    for (const { name } of halves) deleteIfPossible(join(folder, name))
  }

  get batches(): number {
    return this.#files.length
  }

  get bytes(): number {
    return this.#files.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Returns how many events were deleted for it, its own where it is too long itself. Throws as the disk does. */
  add(lines: string, events: number): number {
    const bytes = Buffer.byteLength(lines)
    if (bytes > this.#bytesMax) return events
    let dropped = 0
    while (this.bytes + bytes > this.#bytesMax) {
      const [oldest] = this.#files
      dropped += oldest!.events
      this.remove(oldest!.name)
    }
    const name = `${String(this.#next++).padStart(DIGITS, '0')}-${events}.ndjson`
    const path = join(this.#folder, name)
    // A process that is killed leaves no half of a batch under its name.
    try {
      writeFileSync(`${path}.new`, lines, { mode: FILE_MODE })
      renameSync(`${path}.new`, path)
    } catch (error) {
      // A full disk takes a part of each batch, which nobody would delete.
      deleteIfPossible(`${path}.new`)
      throw error
    }
    this.#files.push({ name, events, bytes })
    return dropped
  }

  /** The oldest batch; null without any. A file that cannot be read is left out. */
  oldest(): SpooledBatch | null {
    for (;;) {
      const [file] = this.#files
      if (file === undefined) return null
      try {
        return { name: file.name, events: file.events, lines: readFileSync(join(this.#folder, file.name), 'utf8') }
      } catch {
        this.#forget(file.name)
        deleteIfPossible(join(this.#folder, file.name))
      }
    }
  }

  /** Throws as the disk does; this process does not publish the batch again all the same. */
  remove(name: string): void {
    this.#forget(name)
    rmSync(join(this.#folder, name), { force: true })
  }

  #forget(name: string): void {
    this.#files = this.#files.filter(file => file.name !== name)
  }
}

function deleteIfPossible(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The next process tries again.
  }
}
