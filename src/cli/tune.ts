/** `tune`: measures which sizes serve an API best, on a gateway of its own, and proposes changes of deployment.toml. */
import { availableParallelism } from 'node:os'
import { formatDiagnostic } from '../config/diagnostics.ts'
import { examine } from '../config/load.ts'
import { DelaysError } from '../tune/delays.ts'
import { GatewaySystem } from '../tune/gateway-system.ts'
import { type Proposal, proposalsOf } from '../tune/proposals.ts'
import { tune as search, type TuneResult } from '../tune/search.ts'
import { refusalText } from '../tune/refusals.ts'
import { TuneFailed } from '../tune/system.ts'
import type { Knob } from '../tune/verdict.ts'
import { type CliArguments, type CommandOptions, EXIT_CONFIGURATION, EXIT_FAILED, UsageError } from './arguments.ts'
import { paint, type Terminal } from './terminal.ts'
import { applyProposals, type Deployment, deploymentOf } from './tune-apply.ts'
import { printResult } from './tune-output.ts'
import { type ReportFile, reportFiles } from './tune-report.ts'
import { HTTP, knobsFor } from './tune-sizes.ts'
import { BODY_BYTES, SYNTHETIC_CONTEXT, Workspace } from './tune-workspace.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const WARM_UP_S = 0.5

type Options = Pick<CommandOptions, 'method' | 'headers' | 'body' | 'tuning'>

interface Settings {
  readonly clients: number
  readonly seconds: number
  readonly repeats: number
  readonly p99Ms: number
  readonly seed: number
}

/** Facts that are known before the first measurement. */
interface Plan {
  readonly args: CliArguments
  readonly settings: Settings
  /** Path of the requests. */
  readonly target: string
  /** Latin-1. */
  readonly request: string
  readonly knobs: readonly Knob[]
  /** File of recorded delays; null: the backend of the API. */
  readonly delays: string | null
  /** Null: the changes are not applied. */
  readonly deployment: Deployment | null
  readonly reports: readonly ReportFile[]
}

export async function tune(
  args: CliArguments,
  options: Options,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const interruption = new AbortController()
  const interrupt = (): void => interruption.abort(new TuneFailed('interrupted'))
  for (const signal of SIGNALS) process.on(signal, interrupt)
  let reports: readonly ReportFile[] = []
  try {
    const plan = planOf(args, options, errorOutput)
    if (plan === null) return EXIT_CONFIGURATION
    ;({ reports } = plan)
    const progress = new Progress(errorOutput)
    let result: TuneResult
    try {
      result = await measure(plan, interruption.signal, progress)
    } finally {
      progress.clear()
    }
    return await finish(plan, result, output, errorOutput)
  } catch (error) {
    if (!(error instanceof TuneFailed || error instanceof DelaysError)) throw error
    const reason = interruption.signal.aborted ? 'interrupted: nothing has changed' : error.message
    errorOutput.write(`${reason}\n`)
    return EXIT_FAILED
  } finally {
    for (const report of reports) report.close()
    for (const signal of SIGNALS) process.off(signal, interrupt)
  }
}

/** Null where the configuration has errors; they are printed. Throws UsageError. */
function planOf(args: CliArguments, options: Options, errorOutput: Terminal): Plan | null {
  const { tuning } = options
  const settings: Settings = {
    clients: wholeNumber(tuning, 'clients', 64, 1, 10_000),
    seconds: wholeNumber(tuning, 'seconds', 2, 1, 600),
    repeats: wholeNumber(tuning, 'repeats', 5, 2, 100),
    p99Ms: wholeNumber(tuning, 'p99', 0, 1, 600_000),
    seed: wholeNumber(tuning, 'seed', Date.now() % 1_000_000, 0, 2 ** 31),
  }
  const [path, ...more] = args.rest
  if (more.length > 0 || (path === undefined) === (tuning.delays === undefined))
    throw new UsageError('give the path of a request, or --delays FILE')
  const target = path ?? `${SYNTHETIC_CONTEXT}/`
  const request = requestText(target, options)
  const { errors, configuration } = examine(args.home, args.sets, args.dataDir)
  for (const error of errors) errorOutput.write(`${formatDiagnostic(error)}\n`)
  if (errors.length > 0) return null
  if (configuration['database.apim_db'].type !== 'h2')
    throw new UsageError('the gateway of tune would use the database of this home: --set database.apim_db.type=h2')
  const knobs = knobsFor(configuration, args, settings.clients, tuning.only)
  const deployment = tuning.apply === undefined ? null : deploymentOf(args)
  const reports = tuning.report === undefined ? [] : reportFiles(tuning.report)
  return { args, settings, target, request, knobs, delays: tuning.delays ?? null, deployment, reports }
}

async function measure(plan: Plan, signal: AbortSignal, progress: Progress): Promise<TuneResult> {
  const { args, settings, request, knobs, delays } = plan
  signal.throwIfAborted()
  const workspace = Workspace.make(args)
  let system: GatewaySystem | null = null
  try {
    if (delays !== null) await workspace.replay(delays, settings.seed)
    const { home, dataDir } = workspace
    system = new GatewaySystem({
      ...{ entry: process.argv[1]!, home, dataDir, sets: args.sets },
      ...{ request, seconds: settings.seconds, warmUpSeconds: WARM_UP_S, bodyBytes: BODY_BYTES, signal },
    })
    await mustServe(system)
    return await search(system, knobs, { ...settings, progress: (...step) => progress.show(...step) })
  } finally {
    await system?.close()
    await workspace.remove()
  }
}

/** Prints and writes the results, and applies them. A signal does not end it half-way: it takes less than a second. */
async function finish(plan: Plan, result: TuneResult, output: Terminal, errorOutput: Terminal): Promise<number> {
  const { args, target, reports, deployment } = plan
  const proposals = proposalsOf(result, () => HTTP)
  const data = `${JSON.stringify({ ...result, proposals }, null, 2)}\n`
  if (args.json) output.write(data)
  else printResult(output, result, proposals)
  const isWritten = await writeReports(reports, data, { result, proposals, target }, errorOutput)
  const code = deployment === null ? 0 : await applyProposals(args, proposals, deployment, errorOutput)
  return code === 0 && !isWritten ? EXIT_FAILED : code
}

interface Findings {
  readonly result: TuneResult
  readonly proposals: readonly Proposal[]
  readonly target: string
}

/** False: a report could not be written; the reason is printed. */
async function writeReports(
  [page, data]: readonly ReportFile[],
  text: string,
  { result, proposals, target }: Findings,
  errorOutput: Terminal,
): Promise<boolean> {
  if (page === undefined || data === undefined) return true
  const { htmlReport } = await import('../tune/html-report.ts')
  try {
    page.write(htmlReport(result, proposals, { target, processors: availableParallelism() }))
    data.write(text)
    errorOutput.write(`${page.path} and ${data.path} are written\n`)
    return true
  } catch (error) {
    errorOutput.write(`the report cannot be written: ${(error as Error).message}\n`)
    return false
  }
}

function wholeNumber(
  given: Readonly<Record<string, string | undefined>>,
  option: string,
  fallback: number,
  min: number,
  max: number,
): number {
  const text = given[option]
  if (text === undefined) return fallback
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw new UsageError(`--${option} is a whole number, ${min} to ${max}`)
  return value
}

function requestText(path: string, { method, headers, body }: Options): string {
  if (!path.startsWith('/') || /[\s\r\n]/.test(path)) throw new UsageError('the path of a request begins with /')
  const fields = ['Host: tune', ...headers]
  for (const field of headers) {
    if (!/^[\w!#$%&'*+.^`|~-]+: ?[^\r\n]*$/.test(field))
      throw new UsageError(`--header ${field}: expected 'Name: value'`)
  }
  const bytes = Buffer.from(body ?? '')
  if (body !== null) fields.push(`Content-Length: ${bytes.length}`)
  const verb = method || (body === null ? 'GET' : 'POST')
  return `${verb} ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${bytes.toString('latin1')}`
}

/** Rejects with TuneFailed where no request succeeds: nothing else would be measured than refusals. */
async function mustServe(system: GatewaySystem): Promise<void> {
  await system.configure({})
  const { throughput, failures } = await system.closed(1)
  if (throughput > 0) return
  throw new TuneFailed(refusalText(failures))
}

/** A line that is written over on a terminal; elsewhere one line for each tenth. */
class Progress {
  readonly #output: Terminal
  #shown = -1

  constructor(output: Terminal) {
    this.#output = output
  }

  show(done: number, total: number, doing: string): void {
    const share = Math.floor((done / total) * 100)
    const line = `${String(share).padStart(3)} %  ${done} of ${total}  ${doing}`
    const tenth = Math.floor(share / 10)
    if (this.#output.isTTY === true) this.#output.write(`\r\x1b[K${paint(this.#output, 'dim', line)}`)
    else if (tenth > this.#shown) this.#output.write(`${line}\n`)
    this.#shown = Math.max(this.#shown, tenth)
  }

  clear(): void {
    if (this.#output.isTTY === true && this.#shown >= 0) this.#output.write('\r\x1b[K')
  }
}
