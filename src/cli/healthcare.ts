/** `healthcare`: loads services into the database of a healthcare API, and makes sample services. */
import { createReadStream, mkdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { formatDiagnostic, printable } from '../config/diagnostics.ts'
import { examine } from '../config/load.ts'
import { MountedDatabases } from '../mounted/database-access.ts'
import { type JsonObject, JsonSyntaxError, readJson, writeJson } from '../mounted/healthcare/json-text.ts'
import { hasErrors } from '../mounted/healthcare/outcome.ts'
import { loadServices } from '../mounted/healthcare/storage-load.ts'
import { sampleServices } from '../mounted/healthcare/storage-sample.ts'
import type { HealthcareTables } from '../mounted/healthcare/storage-schema.ts'
import { ServiceStorage } from '../mounted/healthcare/storage.ts'
import { validateResource } from '../mounted/healthcare/validation.ts'
import { databasePlan } from '../plan/worker-planning.ts'
import { type CliArguments, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_USAGE } from './arguments.ts'
import { usage } from './help.ts'
import { counted, type Terminal } from './terminal.ts'

const RESOURCE_TYPE = 'HealthcareService'
const API = 'HealthcareService'
/** Refused lines that are told; the further ones are counted. */
const TOLD_MAX = 20
const SAMPLES_MAX = 10_000_000
const PROGRESS_MS = 1000

export async function healthcare(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [word, subject, api = API, ...others] = args.rest
  if (word === 'load' && subject !== undefined && others.length === 0) {
    return load(args, subject, api, output, errorOutput)
  }
  if (word === 'sample' && isCount(subject) && args.rest.length === 2) {
    for (const service of sampleServices(Number(subject))) {
      // A slow reader holds the generator back.
      if (!output.write(`${writeJson(service)}\n`)) await drained(output)
    }
    return 0
  }
  errorOutput.write(usage('healthcare'))
  return EXIT_USAGE
}

function isCount(text = ''): boolean {
  return /^\d{1,8}$/.test(text) && Number(text) <= SAMPLES_MAX
}

async function drained(output: Terminal): Promise<void> {
  if ('once' in output && typeof output.once === 'function') {
    await new Promise<void>(resolve => (output as NodeJS.WriteStream).once('drain', resolve))
  }
}

async function load(
  { home, sets, dataDir, json }: CliArguments,
  file: string,
  api: string,
  output: Terminal,
  errorOutput: Terminal,
): Promise<number> {
  const { configuration, errors } = examine(home, sets, dataDir)
  const plan = errors.length > 0 ? null : databasePlan(configuration, dataDir)
  if (plan === null) {
    for (const error of errors) errorOutput.write(`${formatDiagnostic(error)}\n`)
    errorOutput.write('the configuration names no supported database: see sluice check\n')
    return EXIT_CONFIGURATION
  }
  mkdirSync(dataDir, { recursive: true })
  const database = new MountedDatabases(plan).of<HealthcareTables>(api)
  const lines = new ServiceLines(file, json ? null : errorOutput)
  try {
    const storage = await ServiceStorage.open(database)
    const loaded = await loadServices(storage, lines.services(), progressTo(json ? null : errorOutput))
    const { refused } = lines
    if (json) output.write(`${JSON.stringify({ loaded, refused: refused.count, faults: refused.told })}\n`)
    else output.write(`loaded ${counted(loaded, 'service')}, refused ${counted(refused.count, 'line')}\n`)
    return refused.count === 0 ? 0 : EXIT_FAILED
  } catch (error) {
    errorOutput.write(`the load has ended: ${printable((error as Error).message)}\n`)
    return EXIT_FAILED
  } finally {
    await database.kysely.destroy()
  }
}

/** At most one line a second. */
function progressTo(terminal: Terminal | null): (loaded: number) => void {
  let toldMs = performance.now()
  return loaded => {
    if (terminal === null || performance.now() - toldMs < PROGRESS_MS) return
    toldMs = performance.now()
    terminal.write(`${counted(loaded, 'service')} loaded\n`)
  }
}

interface LineFault {
  readonly line: number
  readonly fault: string
}

/** Services of newline-delimited JSON. Lines with faults are left out, told and counted. */
class ServiceLines {
  readonly refused: { count: number; readonly told: LineFault[] } = { count: 0, told: [] }
  readonly #file: string
  readonly #terminal: Terminal | null

  /** `file`: `-` for standard input. */
  constructor(file: string, terminal: Terminal | null) {
    this.#file = file
    this.#terminal = terminal
  }

  /** Rejects where the file cannot be read. */
  async *services(): AsyncGenerator<JsonObject, void, undefined> {
    const input = this.#file === '-' ? process.stdin : createReadStream(this.#file)
    let line = 0
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++
      if (text.trim() === '') continue
      const fault = faultOf(text)
      if (typeof fault !== 'string') yield fault
      else this.#refuse(line, fault)
    }
  }

  #refuse(line: number, fault: string): void {
    const { told } = this.refused
    this.refused.count++
    if (told.length >= TOLD_MAX) return
    told.push({ line, fault })
    this.#terminal?.write(`line ${line}: ${printable(fault)}\n`)
  }
}

/** The service, or what is wrong with it. */
function faultOf(text: string): JsonObject | string {
  try {
    const value = readJson(text)
    const issues = validateResource(value, RESOURCE_TYPE)
    if (!hasErrors(issues)) return value as JsonObject
    const { text: fault, expression = '' } = issues.find(
      ({ severity }) => severity === 'error' || severity === 'fatal',
    )!
    return expression === '' ? fault : `${expression}: ${fault}`
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message
    throw error
  }
}
