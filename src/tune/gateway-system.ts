/**
 * The system that `sluice tune` measures: a gateway of its own, in a process with a copy of the home and a temporary
 * data folder, on free ports, under the load of threads of this process. Nothing that runs is touched.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type GatewayPlan, GatewayProcess } from './gateway-process.ts'
import type { LoadOutcome, LoadPlan } from './load-thread.ts'
import { cpuTimes, type OtherUse, otherUse } from './other-programs.ts'
import { quantile } from './statistics.ts'
import type { SyntheticPlan } from './synthetic-backend.ts'
import { type Measured, type Sizes, type System, TuneFailed } from './system.ts'

interface GatewayOptions extends GatewayPlan {
  /** Latin-1. */
  readonly request: string
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Body of the stub's responses. */
  readonly bodyBytes: number
  /** Ends all at once. */
  readonly signal: AbortSignal
}

/** Beside the time of the load: threads start, connections open, last responses come. */
const LOAD_GUARD_MS = 30_000
/** Long enough for the clock of the processors, which ticks a hundred times a second. */
const QUIET_MS = 500

export class GatewaySystem implements System {
  readonly #options: GatewayOptions
  #gateway: GatewayProcess | null = null
  #sizes = ''

  constructor(options: GatewayOptions) {
    this.#options = options
  }

  async configure(sizes: Sizes): Promise<void> {
    const wanted = JSON.stringify(sizes)
    if (this.#gateway?.life.aborted === false && wanted === this.#sizes) return
    await this.#gateway?.stop()
    this.#options.signal.throwIfAborted()
    const own = Object.entries(sizes).map(([key, value]) => `${key}=${value}`)
    const plan = { ...this.#options, sets: [...this.#options.sets, ...own] }
    this.#sizes = wanted
    this.#gateway = await GatewayProcess.start(plan, this.#options.signal)
  }

  closed(clients: number): Promise<Measured> {
    return this.#measure(this.#gateway!.port, clients, 0, this.#gateway!.life)
  }

  open(ratePerSecond: number, clients: number): Promise<Measured> {
    return this.#measure(this.#gateway!.port, clients, ratePerSecond, this.#gateway!.life)
  }

  async ceiling(clients: number): Promise<Measured> {
    const stub = await startSynthetic({ delaysMs: [], bodyBytes: this.#options.bodyBytes, seed: 1 })
    try {
      return await this.#measure(stub.port, clients, 0, new AbortController().signal)
    } finally {
      await stub.worker.terminate()
    }
  }

  async quiet(): Promise<OtherUse | null> {
    const before = cpuTimes()
    await sleep(QUIET_MS)
    this.#options.signal.throwIfAborted()
    return otherUse(before, cpuTimes(), process.pid)
  }

  /** Ends the gateway. */
  async close(): Promise<void> {
    await this.#gateway?.stop()
  }

  async #measure(port: number, clients: number, ratePerSecond: number, life: AbortSignal): Promise<Measured> {
    const { request, seconds, warmUpSeconds, signal } = this.#options
    signal.throwIfAborted()
    const plan: LoadPlan = { port, request, clients, seconds, warmUpSeconds, ratePerSecond }
    const before = cpuTimes()
    const worker = new Worker(new URL('../tune/load-thread.ts', import.meta.url), { workerData: plan })
    const guard = AbortSignal.timeout((seconds + warmUpSeconds) * 1000 + LOAD_GUARD_MS)
    const ends = AbortSignal.any([guard, life, signal])
    try {
      const [outcome] = (await once(worker, 'message', { signal: ends })) as [LoadOutcome]
      return measuredOf(outcome, otherUse(before, cpuTimes(), process.pid))
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (life.aborted) throw life.reason
      const why = guard.aborted ? 'it has not ended in time' : (error as Error).message
      throw new TuneFailed(`the load generator has failed: ${why}`)
    } finally {
      await worker.terminate()
    }
  }
}

function measuredOf(outcome: LoadOutcome, others: OtherUse | null): Measured {
  const { succeeded, errors, failures, seconds, latenciesMs, busy } = outcome
  const sorted = [...latenciesMs.toSorted()]
  return {
    throughput: succeeded / seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    p999Ms: quantile(sorted, 0.999),
    errors,
    failures,
    requests: succeeded + errors,
    generatorBusy: busy,
    others,
  }
}

/** The caller ends the thread. */
export async function startSynthetic(plan: SyntheticPlan): Promise<{ readonly port: number; readonly worker: Worker }> {
  const worker = new Worker(new URL('../tune/synthetic-backend.ts', import.meta.url), { workerData: plan })
  const [port] = (await once(worker, 'message')) as [number]
  return { port, worker }
}
