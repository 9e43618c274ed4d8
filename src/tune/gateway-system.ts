/**
 * The system that `sluice tune` measures: a gateway of its own, in a process with a copy of the home and a temporary
 * data folder, on free ports, under the load of threads of this process. Nothing that runs is touched.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import type { LoadOutcome, LoadPlan } from './load-thread.ts'
import type { Measured, Sizes, System } from './search.ts'
import { quantile } from './statistics.ts'
import type { SyntheticPlan } from './synthetic-backend.ts'

interface GatewayOptions {
  /** First words of the command line of the program: the entry. */
  readonly entry: string
  readonly home: string
  readonly dataDir: string
  readonly sets: readonly string[]
  /** Latin-1. */
  readonly request: string
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Body of the stub's responses. */
  readonly bodyBytes: number
}

/** The gateway does not start, or does not answer; the message is for the operator. */
export class TuneFailed extends Error {
  override readonly name = 'TuneFailed'
}

const START_MS = 60_000
const END_MS = 10_000
const OUTPUT_CHARS_MAX = 100_000
/** Beside the time of the load: threads start, connections open, last responses come. */
const LOAD_GUARD_MS = 30_000
const HTTP = 'transport.passthru_http'
/** Only the plain listener is measured; the ports of the others may be in use. */
const PLAIN_ONLY = [
  'transport.passthru_https.listener.enable=false',
  'transport.ws.listener.enable=false',
  'transport.wss.listener.enable=false',
  'management.enable=false',
  'management.health_port=0',
  `${HTTP}.listener.enable=true`,
]

export class GatewaySystem implements System {
  readonly #options: GatewayOptions
  #gateway: ChildProcess | null = null
  #sizes = ''
  #port = 0
  #stub: Worker | null = null
  /** The running load, which ends with the system. */
  #load: Worker | null = null

  constructor(options: GatewayOptions) {
    this.#options = options
  }

  async configure(sizes: Sizes): Promise<void> {
    const wanted = JSON.stringify(sizes)
    if (this.#gateway !== null && wanted === this.#sizes) return
    await this.#stop()
    this.#sizes = wanted
    this.#port = await freePort()
    const { entry, home, dataDir, sets } = this.#options
    const own = Object.entries(sizes).map(([key, value]) => `${key}=${value}`)
    const all = [...sets, ...PLAIN_ONLY, `${HTTP}.listener.parameters.port=${this.#port}`, ...own]
    const words = ['start', '--home', home, '--data', dataDir, ...all.flatMap(set => ['--set', set])]
    const child = spawn(process.execPath, [entry, ...words], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#gateway = child
    await untilReady(child)
  }

  closed(clients: number): Promise<Measured> {
    return this.#measure(this.#port, clients, 0)
  }

  open(ratePerSecond: number, clients: number): Promise<Measured> {
    return this.#measure(this.#port, clients, ratePerSecond)
  }

  async ceiling(clients: number): Promise<Measured> {
    const stub = await startSynthetic({ delaysMs: [], bodyBytes: this.#options.bodyBytes, seed: 1 })
    this.#stub = stub.worker
    try {
      return await this.#measure(stub.port, clients, 0)
    } finally {
      await stub.worker.terminate()
      this.#stub = null
    }
  }

  /** Ends the gateway and all threads. */
  async close(): Promise<void> {
    await this.#stub?.terminate()
    await this.#load?.terminate()
    await this.#stop()
  }

  /** Ends the gateway at once; its data folder is temporary. */
  abort(): void {
    this.#gateway?.kill('SIGKILL')
  }

  async #stop(): Promise<void> {
    const child = this.#gateway
    this.#gateway = null
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const guard = setTimeout(() => child.kill('SIGKILL'), END_MS)
    await ended
    clearTimeout(guard)
  }

  async #measure(port: number, clients: number, ratePerSecond: number): Promise<Measured> {
    const { request, seconds, warmUpSeconds } = this.#options
    const plan: LoadPlan = { port, request, clients, seconds, warmUpSeconds, ratePerSecond }
    const worker = new Worker(new URL('../tune/load-thread.ts', import.meta.url), { workerData: plan })
    this.#load = worker
    const guardMs = (seconds + warmUpSeconds) * 1000 + LOAD_GUARD_MS
    try {
      const [outcome] = (await once(worker, 'message', { signal: AbortSignal.timeout(guardMs) })) as [LoadOutcome]
      return measuredOf(outcome)
    } catch (error) {
      const why = (error as Error).name === 'AbortError' ? 'connections did not open in time' : (error as Error).message
      throw new TuneFailed(`the load generator has failed: ${why}`)
    } finally {
      await worker.terminate()
      this.#load = null
    }
  }
}

function measuredOf({ succeeded, errors, seconds, latenciesMs, busy }: LoadOutcome): Measured {
  const sorted = [...latenciesMs.toSorted()]
  return {
    throughput: succeeded / seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    p999Ms: quantile(sorted, 0.999),
    errors,
    requests: succeeded + errors,
    generatorBusy: busy,
  }
}

/** Rejects with TuneFailed where the program ends first. */
async function untilReady(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let printed = ''
  const fail = (): void => reject(new TuneFailed(`the gateway does not start:\n${lastLines(printed)}`))
  const guard = setTimeout(fail, START_MS)
  child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
    printed = (printed + piece).slice(-OUTPUT_CHARS_MAX)
    if (printed.includes('"msg":"ready"')) resolve()
  })
  child.once('error', fail)
  child.once('exit', fail)
  try {
    await promise
  } finally {
    clearTimeout(guard)
  }
}

const LINES_SHOWN = 8

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-LINES_SHOWN).join('\n')
}

/** The caller ends the thread. */
export async function startSynthetic(plan: SyntheticPlan): Promise<{ readonly port: number; readonly worker: Worker }> {
  const worker = new Worker(new URL('../tune/synthetic-backend.ts', import.meta.url), { workerData: plan })
  const [port] = (await once(worker, 'message')) as [number]
  return { port, worker }
}

/** Several reactors need a port that is known beforehand. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
