/**
 * `lifecycle.json` in the data folder: what the command line has made of APIs. A file that cannot be understood is a
 * fault and never an empty one: a blocked API must not open by itself.
 */
import { join } from 'node:path'
import { ConfigurationFaults, type Fault } from '../config/fault.ts'
import { LIFECYCLE_STATES } from '../config/lifecycle.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { replaceKept } from './kept-file.ts'
import { type LifecycleRecord, type LifecycleRecords, MOMENT_MS_MAX, NO_RECORDS } from './lifecycles.ts'

/** Why it cannot be written; the message names the file. */
export class CannotKeep extends Error {
  override readonly name = 'CannotKeep'
}

/** What the file holds. */
export interface LifecycleFile {
  /** '' where there is no file. */
  readonly text: string
  readonly records: LifecycleRecords
  /** Why it cannot be understood; no records then. */
  readonly faults: readonly Fault[]
}

const NAME = 'lifecycle.json'
const FORMAT = 1
/** Hundreds of thousands of records. */
const BYTES_MAX = 64 * 1024 * 1024

const REMEDY = 'restore it from a backup, or remove it while no gateway runs: then APIs are as their projects declare'

export function readLifecycles(dataDir: string): LifecycleFile {
  const source = readSource(join(dataDir, NAME), BYTES_MAX)
  if (source === undefined) return { text: '', records: NO_RECORDS, faults: [] }
  const { label, text, fault } = source
  if (fault !== undefined) return { text, records: NO_RECORDS, faults: [{ ...fault, remedy: REMEDY }] }
  try {
    return { text, records: recordsIn(text), faults: [] }
  } catch (error) {
    const expected = `is damaged: ${(error as Error).message}`
    return { text, records: NO_RECORDS, faults: [{ where: label, key: '', given: '', expected, remedy: REMEDY }] }
  }
}

/** The records in force, and the file that outlives the gateway. */
export class LifecycleBook {
  readonly #dataDir: string
  #records: LifecycleRecords
  /** What is known to stand in the file; null: nobody knows what a failed writing has left. */
  #written: string | null

  private constructor(dataDir: string, { records, text }: LifecycleFile) {
    this.#dataDir = dataDir
    this.#records = records
    this.#written = text
  }

  /** Of the folder that this process holds. Throws ConfigurationFaults. */
  static open(dataDir: string): LifecycleBook {
    const file = readLifecycles(dataDir)
    if (file.faults.length > 0) throw new ConfigurationFaults(file.faults)
    return new LifecycleBook(dataDir, file)
  }

  get records(): LifecycleRecords {
    return this.#records
  }

  /**
   * What a reload begins with: the file, which somebody may have restored. Where it is gone, or could not be written,
   * what is in force is the only truth there is.
   */
  reread({ text, records }: LifecycleFile): LifecycleRecords {
    const isBehind = !this.#stands(textOf(this.#records))
    this.#written = text
    return isBehind || text === '' ? this.#records : records
  }

  /** Whether the file is known to hold it; where there are no records it need not be there. */
  #stands(text: string): boolean {
    return text === this.#written || (this.#records.size === 0 && this.#written === '')
  }

  /** In the file first, and only then in force. Throws CannotKeep, and nothing has changed. */
  async change(records: LifecycleRecords): Promise<void> {
    await this.#write(textOf(records))
    this.#records = records
  }

  /** In force in any case. Answers why it is not in the file, to which the next writing will bring it; '' if it is. */
  async follow(records: LifecycleRecords): Promise<string> {
    this.#records = records
    const text = textOf(records)
    if (this.#stands(text)) return ''
    try {
      await this.#write(text)
      return ''
    } catch (error) {
      if (!(error instanceof CannotKeep)) throw error
      return error.message
    }
  }

  async #write(text: string): Promise<void> {
    const file = join(this.#dataDir, NAME)
    try {
      if (Buffer.byteLength(text) > BYTES_MAX) throw new Error('too many records')
      this.#written = null
      await replaceKept(file, text)
      this.#written = text
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      throw new CannotKeep(`${labelOf(file)} cannot be written (${code ?? message})`)
    }
  }
}

/** A record a line. */
function textOf(records: LifecycleRecords): string {
  return `{"format":${FORMAT},"apis":[\n${Array.from(records.values(), lineOf).join(',\n')}\n]}\n`
}

/** Each change writes all records, of which all but one are as they were. */
const lines = new WeakMap<LifecycleRecord, string>()

function lineOf(record: LifecycleRecord): string {
  const known = lines.get(record)
  if (known !== undefined) return known
  const line = JSON.stringify(record)
  lines.set(record, line)
  return line
}

/** Throws with what is wrong. */
function recordsIn(text: string): LifecycleRecords {
  const file = parsed(text)
  if (!isObject(file)) throw new Error('it does not hold what this gateway writes there')
  if (file.format !== FORMAT)
    throw new Error(`it has the format ${show(file.format)}, and this release knows ${FORMAT}`)
  if (!Array.isArray(file.apis)) throw new Error('it has no list of APIs')
  const records = new Map<string, LifecycleRecord>()
  for (const [index, record] of file.apis.entries()) {
    if (!isRecord(record) || records.has(record.address)) throw new Error(`record ${index + 1} is not one of an API`)
    records.set(record.address, record)
  }
  return records
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('it is not whole JSON')
  }
}

function show(format: unknown): string {
  return typeof format === 'number' ? String(format) : 'of something else'
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
