/**
 * Runs the parts of `bench:all` one after the other. A part that fails, or whose tool is missing, is reported and does
 * not stop the others; an interruption ends the running part with all its processes.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PartEnd, type PartOutput, PartProcess } from './part-process.ts'
import type { Part } from './parts.ts'

/** A part that takes so much longer than expected hangs. */
const PATIENCE = 5
const PATIENCE_SECONDS = 300
const REASON_CHARS_MAX = 300
/** Weight of the estimates: the first parts are short and say little about the others. */
const TRUSTED_SECONDS = 300

interface Outcome {
  readonly part: string
  readonly kind: 'measured' | 'failed' | 'left out' | 'interrupted'
  /** Why, and what a measured part lacks. */
  readonly reasons: readonly string[]
  readonly seconds: number
}

/** A part that has ended by itself with exit code 0. */
export interface EndedPart extends PartEnd {
  /** The file that the part has written; it need not exist. */
  readonly file: string
  readonly startedAt: string
  readonly loadBefore: number
}

interface PartRun {
  /** Folder of the files that parts write. */
  readonly folder: string
  readonly signal: AbortSignal
  lacking(part: Part): Promise<readonly string[]>
  /** Records and publishes; returns what the part lacks. Throws where it has no figures. */
  keep(part: Part, ended: EndedPart): readonly string[]
  tell(line: string): void
  /** Where the output of parts goes. */
  readonly output: PartOutput
}

/** Never rejects because of a part. */
export async function runParts(parts: readonly Part[], run: PartRun): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  const clock = new RemainingTime(parts)
  mkdirSync(run.folder, { recursive: true })
  for (const [index, part] of parts.entries()) {
    if (run.signal.aborted) break
    const reasons = await run.lacking(part)
    const place = `${index + 1} of ${parts.length}: ${part.name}`
    if (reasons.length > 0) {
      run.tell(`${place} is left out: ${reasons.join('; ')}`)
      outcomes.push({ part: part.name, kind: 'left out', reasons, seconds: 0 })
      clock.done(part, undefined)
      continue
    }
    run.tell(`${place}, about ${duration(clock.expected(part))}; ${duration(clock.left())} left. ${part.command}`)
    const outcome = await runPart(part, run)
    clock.done(part, outcome.seconds)
    if (outcome.reasons.length > 0) run.tell(`${part.name}: ${outcome.kind}: ${outcome.reasons.join('; ')}`)
    outcomes.push(outcome)
  }
  return outcomes
}

async function runPart(part: Part, run: PartRun): Promise<Outcome> {
  const file = `${run.folder}/${part.name}.${part.kind === 'scenario' ? 'json' : 'rows'}`
  rmSync(file, { force: true })
  const temporary = mkdtempSync(join(tmpdir(), 'bench-'))
  const [startedAt, loadBefore] = [new Date().toISOString(), loadavg()[0]!]
  const isTerminal = process.stderr.isTTY === true
  const environment = { TMPDIR: temporary, BENCH_RECORD: file, ...(isTerminal ? { BENCH_TERMINAL: '1' } : {}) }
  const own = part.kind === 'scenario' ? ['--json', file] : []
  const running = new PartProcess([...part.words, ...own], environment, run.output)
  const stop = (): void => void running.stop()
  run.signal.addEventListener('abort', stop, { once: true })
  let isLate = false
  const patience = setTimeout(
    () => {
      isLate = true
      stop()
    },
    1000 * (PATIENCE * part.seconds + PATIENCE_SECONDS),
  )
  const end = await running.end()
  clearTimeout(patience)
  run.signal.removeEventListener('abort', stop)
  rmSync(temporary, { recursive: true, force: true, maxRetries: 3 })
  const { seconds, leftovers } = end
  const outcome = (kind: Outcome['kind'], ...reasons: readonly string[]): Outcome => {
    return { part: part.name, kind, reasons, seconds }
  }
  if (run.signal.aborted) return outcome('interrupted')
  if (leftovers > 0) run.tell(`${part.name} left ${leftovers} processes behind, which have been ended.`)
  if (isLate) return outcome('failed', `it took longer than ${duration(seconds)} and was ended`)
  if (end.code !== 0) return outcome('failed', failureReason(end))
  try {
    return outcome('measured', ...run.keep(part, { ...end, file, startedAt, loadBefore }))
  } catch (error) {
    return outcome('failed', (error as Error).message)
  }
}

/** The first line of standard error that names an error, else its last line, behind the exit code. */
function failureReason({ code, complaints }: PartEnd): string {
  const lines = complaints.split('\n').filter(line => line.trim() !== '')
  const said = lines.find(line => /^(?:\w*Error\b|error:|Uncaught)/.test(line)) ?? lines.at(-1) ?? 'it said nothing'
  return `exit code ${code ?? 'none'}: ${said.trim().slice(0, REASON_CHARS_MAX)}`
}

/** Expected seconds of parts, corrected by what the parts so far have taken beside their estimates. */
class RemainingTime {
  #left: number
  #estimated = 0
  #taken = 0

  constructor(parts: readonly Part[]) {
    this.#left = parts.reduce((sum, { seconds }) => sum + seconds, 0)
  }

  /** `seconds`: undefined for a part that did not run. */
  done(part: Part, seconds: number | undefined): void {
    this.#left -= part.seconds
    if (seconds === undefined) return
    this.#estimated += part.seconds
    this.#taken += seconds
  }

  expected({ seconds }: Part): number {
    return seconds * this.#pace
  }

  left(): number {
    return this.#left * this.#pace
  }

  get #pace(): number {
    return (this.#taken + TRUSTED_SECONDS) / (this.#estimated + TRUSTED_SECONDS)
  }
}

/** As people say it: `40 s`, `12 min`, `3 h 20 min`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Defects of the run, one line per part; empty where every part has all its figures. */
export function shortcomings(parts: readonly Part[], outcomes: readonly Outcome[]): readonly string[] {
  const known = new Map(outcomes.map(outcome => [outcome.part, outcome]))
  return parts.flatMap(({ name }) => {
    const { kind = 'not reached', reasons = [] } = known.get(name) ?? {}
    if (kind === 'measured' && reasons.length === 0) return []
    const what = kind === 'measured' ? 'incomplete' : kind
    return [`${name}: ${[what, ...reasons].join(': ')}`]
  })
}
