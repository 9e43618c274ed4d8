/** `tune`: measures which sizes serve an API best, on a gateway of its own, and proposes changes of deployment.toml. */
import { closeSync, cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Worker } from 'node:worker_threads'
import type { Configuration } from '../config/catalogue.ts'
import { formatDiagnostic } from '../config/diagnostics.ts'
import { examine } from '../config/load.ts'
import { DelaysError, parseDelays } from '../tune/delays.ts'
import { GatewaySystem, startSynthetic, TuneFailed } from '../tune/gateway-system.ts'
import { plural } from '../tune/plural.ts'
import { type Proposal, proposalsOf } from '../tune/proposals.ts'
import { type Knob, tune as search } from '../tune/search.ts'
import { type CliArguments, type CommandOptions, EXIT_CONFIGURATION, EXIT_FAILED, UsageError } from './arguments.ts'
import { paint, type Terminal } from './terminal.ts'
import { applyProposals } from './tune-apply.ts'
import { printResult } from './tune-output.ts'

const HTTP = 'transport.passthru_http'
const SYNTHETIC_CONTEXT = '/tune'
const BODY_BYTES = 1024
const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const BUFFERS = [4096, 8192, 16_384, 32_768, 65_536]
const QUEUES = [0, 16, 64, 256, 1024]

type Options = Pick<CommandOptions, 'method' | 'headers' | 'body' | 'tuning'>

interface Settings {
  readonly clients: number
  readonly seconds: number
  readonly repeats: number
  readonly p99Ms: number
  readonly seed: number
}

export async function tune(
  args: CliArguments,
  options: Options,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
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
  const { errors, configuration } = examine(args.home, args.sets, args.dataDir)
  for (const error of errors) errorOutput.write(`${formatDiagnostic(error)}\n`)
  if (errors.length > 0) return EXIT_CONFIGURATION
  if (configuration['database.apim_db'].type !== 'h2')
    throw new UsageError('the gateway of tune would use the database of this home: --set database.apim_db.type=h2')
  if (tuning.report !== undefined) checkReport(tuning.report)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tune-'))
  let backend: Worker | null = null
  let system: GatewaySystem | null = null
  const interrupted = (): void => {
    system?.abort()
    rmSync(folder, { recursive: true, force: true })
    process.exit(EXIT_FAILED)
  }
  for (const signal of SIGNALS) process.once(signal, interrupted)
  try {
    const home = join(folder, 'home')
    const dataDir = resolve(args.dataDir)
    cpSync(args.home, home, { recursive: true, filter: file => resolve(file) !== dataDir })
    if (tuning.delays !== undefined) backend = await replay(tuning.delays, home, settings.seed)
    const target = path ?? `${SYNTHETIC_CONTEXT}/`
    system = new GatewaySystem({
      ...{ entry: process.argv[1]!, home, dataDir: join(folder, 'data'), sets: args.sets },
      ...{ request: requestText(target, options), seconds: settings.seconds, warmUpSeconds: 0.5 },
      bodyBytes: BODY_BYTES,
    })
    const knobs = knobsFor(configuration, args, settings, tuning.only)
    await probe(system)
    const result = await search(system, knobs, { ...settings, progress: progressOn(errorOutput) })
    const proposals = proposalsOf(result, () => HTTP)
    if (tuning.report !== undefined) {
      const { htmlReport } = await import('../tune/html-report.ts')
      writeFileSync(tuning.report, htmlReport(result, proposals, { target, processors: availableParallelism() }))
    }
    if (args.json) output.write(`${JSON.stringify({ ...result, proposals }, null, 2)}\n`)
    else printResult(output, result, proposals)
    return tuning.apply === undefined ? 0 : await apply(args, proposals, errorOutput)
  } catch (error) {
    if (!(error instanceof TuneFailed || error instanceof DelaysError)) throw error
    errorOutput.write(`${error.message}\n`)
    return EXIT_FAILED
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupted)
    await system?.close()
    await backend?.terminate()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Before minutes of measurement rather than behind them. Throws UsageError. */
function checkReport(file: string): void {
  try {
    closeSync(openSync(file, 'a'))
  } catch (error) {
    throw new UsageError(`--report ${file} cannot be written (${(error as NodeJS.ErrnoException).code})`)
  }
}

function apply(args: CliArguments, proposals: readonly Proposal[], errorOutput: Terminal): Promise<number> {
  return applyProposals(args, proposals, errorOutput)
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

/** Puts one open API into the copy of the home, whose backend has these delays, in place of all others. */
async function replay(file: string, home: string, seed: number): Promise<Worker> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new DelaysError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  const { port, worker } = await startSynthetic({ delaysMs: parseDelays(text), bodyBytes: BODY_BYTES, seed })
  rmSync(join(home, 'apis'), { recursive: true, force: true })
  mkdirSync(join(home, 'apis', 'Tune'), { recursive: true })
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${port}` } }
  const data = { name: 'Tune', version: '1', context: SYNTHETIC_CONTEXT, isDefaultVersion: true, endpointConfig }
  const project = { type: 'api', version: 'v4.0.0', data: { ...data, securityScheme: ['none'] } }
  writeFileSync(join(home, 'apis', 'Tune', 'api.yaml'), JSON.stringify(project))
  return worker
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
async function probe(system: GatewaySystem): Promise<void> {
  await system.configure({})
  const { throughput, errors } = await system.closed(1)
  if (throughput === 0)
    throw new TuneFailed(
      `no request has succeeded, ${plural(errors, 'has', 'have')} failed: try the path with sluice walk, ` +
        'and give a token with --header',
    )
}

// ---- sizes to vary --------------------------------------------------------------------------------------------------

/** Words of --only. */
const NAMES = ['reactors', 'workers', 'queue', 'connections', 'buffer'] as const
type Name = (typeof NAMES)[number]

function knobsFor(
  configuration: Configuration,
  { home, sets, dataDir }: CliArguments,
  { clients }: Settings,
  only: string | undefined,
): readonly Knob[] {
  const http = configuration[HTTP]
  const wanted = only === undefined ? NAMES : only.split(',')
  const unknown = wanted.find(word => !NAMES.some(name => name === word))
  if (unknown !== undefined) throw new UsageError(`--only lists some of ${NAMES.join(', ')}`)
  const processors = availableParallelism()
  const all: Readonly<
    Record<Name, readonly [key: string, current: number, values: readonly number[], other?: string]>
  > = {
    reactors: ['reactors', http.reactors || processors, powersTo(processors)],
    workers: ['worker_pool_size_core', http.worker_pool_size_core, powersTo(clients), 'worker_pool_size_max'],
    queue: ['worker_pool_queue_length', http.worker_pool_queue_length, QUEUES],
    connections: [
      'http.max.connection.per.host.port',
      http['http.max.connection.per.host.port'],
      powersTo(2 * clients),
    ],
    buffer: ['io_buffer_size', http.io_buffer_size, BUFFERS],
  }
  const isValid = (key: string, value: number): boolean =>
    examine(home, [...sets, `${HTTP}.${key}=${value}`], dataDir).errors.length === 0
  return NAMES.filter(name => wanted.includes(name)).map(name => {
    const [key, current, values, other] = all[name]
    const isPaired = other !== undefined
    const valid = values.filter(value => value !== current && (isPaired || isValid(key, value)))
    return {
      key: `${HTTP}.${key}`,
      others: isPaired ? [`${HTTP}.${other}`] : [],
      current,
      // -1 stands for no limit.
      values: [...valid, current].toSorted((one, two) => (one < 0 ? 1 : two < 0 ? -1 : one - two)),
    }
  })
}

function powersTo(most: number): readonly number[] {
  const powers: number[] = []
  for (let power = 1; power < most; power *= 2) powers.push(power)
  return [...powers, most]
}

/** A line that is written over on a terminal; elsewhere one line for each tenth. */
function progressOn(errorOutput: Terminal): (done: number, total: number, doing: string) => void {
  let shown = -1
  const isTerminal = errorOutput.isTTY === true
  return (done, total, doing) => {
    const percent = Math.floor((done / total) * 100)
    const line = `${String(percent).padStart(3)} %  ${done} of ${total}  ${doing}`
    if (isTerminal)
      errorOutput.write(`\r\x1b[K${paint(errorOutput, 'dim', line)}${done + 1 === total ? '\r\x1b[K' : ''}`)
    else if (Math.floor(percent / 10) !== shown) {
      shown = Math.floor(percent / 10)
      errorOutput.write(`${line}\n`)
    }
  }
}
