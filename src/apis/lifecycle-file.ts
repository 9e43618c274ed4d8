/**
 * `lifecycle.json` in the data folder keeps the lifecycle records. A damaged file is an error and never an empty one,
 * because a blocked API must not open by itself.
 */
import { join } from 'node:path'
import { ConfigurationErrors, type Diagnostic } from '../config/diagnostics.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { replaceFile } from '../runtime/atomic-file.ts'
import { type LifecycleRecord, type LifecycleRecords, MOMENT_MS_MAX, NO_RECORDS } from './lifecycle-records.ts'
import { LIFECYCLE_STATES } from './lifecycle-states.ts'

/** The file cannot be written; the message names file and cause. */
export class LifecycleWriteError extends Error {
  override readonly name = 'LifecycleWriteError'
}

export interface LifecycleFile {
  /** '' without a file. */
  readonly text: string
  /** Empty for a damaged file. */
  readonly records: LifecycleRecords
  readonly errors: readonly Diagnostic[]
}

const NAME = 'lifecycle.json'
const FORMAT = 1
/** Room for hundreds of thousands of records. */
const BYTES_MAX = 64 * 1024 * 1024

const HINT =
  'restore it from a backup, or remove it while no gateway runs: APIs then have the states that their projects declare'

export function readLifecycleFile(dataDir: string): LifecycleFile {
  const source = readSource(join(dataDir, NAME), BYTES_MAX)
  if (source === undefined) return { text: '', records: NO_RECORDS, errors: [] }
  const { label, text, error } = source
  if (error !== undefined) return { text, records: NO_RECORDS, errors: [{ ...error, hint: HINT }] }
  try {
    return { text, records: parseRecords(text), errors: [] }
  } catch (cause) {
    const expected = `is damaged: ${(cause as Error).message}`
    return { text, records: NO_RECORDS, errors: [{ where: label, key: '', given: '', expected, hint: HINT }] }
  }
}

/** The active records, and the file that keeps them beyond the end of the process. */
export class LifecycleStore {
  readonly #dataDir: string
  #records: LifecycleRecords
  /** Content of the file; null after a failed write, when it is unknown. */
  #written: string | null

  private constructor(dataDir: string, { records, text }: LifecycleFile) {
    this.#dataDir = dataDir
    this.#records = records
    this.#written = text
  }

  /** This process must hold the lock of the data folder. Throws ConfigurationErrors. */
  static open(dataDir: string): LifecycleStore {
    const file = readLifecycleFile(dataDir)
    if (file.errors.length > 0) throw new ConfigurationErrors(file.errors)
    return new LifecycleStore(dataDir, file)
  }

  get records(): LifecycleRecords {
    return this.#records
  }

  /**
   * The records that a reload starts from: those of the file, which an operator may have restored. If the file is gone,
   * or a write has failed, the active records win.
   */
  reread({ text, records }: LifecycleFile): LifecycleRecords {
    const isBehind = !this.#isWritten(textOf(this.#records))
    this.#written = text
    return isBehind || text === '' ? this.#records : records
  }

  /** True if the file holds this text; without records there need not be a file. */
  #isWritten(text: string): boolean {
    return text === this.#written || (this.#records.size === 0 && this.#written === '')
  }

  /** Writes the records, then activates them. Throws LifecycleWriteError and changes nothing if the write fails. */
  async commit(records: LifecycleRecords): Promise<void> {
    await this.#write(textOf(records))
    this.#records = records
  }

  /** Activates the records, then writes them. Returns why the write failed ('' if not); the next write repeats it. */
  async adopt(records: LifecycleRecords): Promise<string> {
    this.#records = records
    const text = textOf(records)
    if (this.#isWritten(text)) return ''
    try {
      await this.#write(text)
      return ''
    } catch (error) {
      if (!(error instanceof LifecycleWriteError)) throw error
      return error.message
    }
  }

  async #write(text: string): Promise<void> {
    const file = join(this.#dataDir, NAME)
    try {
      if (Buffer.byteLength(text) > BYTES_MAX) throw new Error('too many records')
      this.#written = null
      await replaceFile(file, text)
      this.#written = text
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      throw new LifecycleWriteError(`${labelOf(file)} cannot be written (${code ?? message})`)
    }
  }
}

/** One line per record. */
function textOf(records: LifecycleRecords): string {
  return `{"format":${FORMAT},"apis":[\n${Array.from(records.values(), lineOf).join(',\n')}\n]}\n`
}

/** Each write contains all records, of which all but one are unchanged. */
const lines = new WeakMap<LifecycleRecord, string>()

function lineOf(record: LifecycleRecord): string {
  const known = lines.get(record)
  if (known !== undefined) return known
  const line = JSON.stringify(record)
  lines.set(record, line)
  return line
}

/** Throws an error that says what is damaged. */
function parseRecords(text: string): LifecycleRecords {
  const file = parseJson(text)
  if (!isObject(file)) throw new Error('it is not a file of this gateway')
  if (file.format !== FORMAT) {
    const format = typeof file.format === 'number' ? `the format ${file.format}` : 'no known format'
    throw new Error(`it has ${format}, and this release reads format ${FORMAT}`)
  }
  if (!Array.isArray(file.apis)) throw new Error('it has no list of APIs')
  const records = new Map<string, LifecycleRecord>()
  for (const [index, record] of file.apis.entries()) {
    if (!isRecord(record) || records.has(record.address)) throw new Error(`record ${index + 1} is invalid`)
    records.set(record.address, record)
  }
  return records
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('it is no complete JSON')
  }
}

function isObject(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null
}

function isRecord(given: unknown): given is LifecycleRecord {
  if (!isObject(given)) return false
  const { address, name, version, state, declared, sinceMs, sunsetMs, absentSinceMs } = given
  return (
    [address, name, version].every(text => typeof text === 'string' && text !== '') &&
    [state, declared].every(word => LIFECYCLE_STATES.some(known => known === word)) &&
    [sinceMs, sunsetMs, absentSinceMs].every(
      ms => Number.isSafeInteger(ms) && Number(ms) >= 0 && Number(ms) <= MOMENT_MS_MAX,
    )
  )
}
