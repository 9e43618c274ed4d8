/** Two reactors of a process, whose worker threads do what tests say. */
import type { TestContext } from 'node:test'
import type { WorkerFailure, WorkerService } from '../../src/mediation/worker-service.ts'
import type { FlowTask } from '../../src/mediation/worker-task.ts'
import { MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import type { ReactorPlan } from '../../src/plan/reactor-plan.ts'
import { PERMIT_ROWS, type PermitRow } from '../../src/plan/worker-plan.ts'
import { ReactorWorkers } from '../../src/reactor/reactor-workers.ts'
import { type PermitLimits, SharedPermits } from '../../src/runtime/shared-permits.ts'
import { planGateway } from '../harness/gateway.ts'
import { BEGUN, GATE, type ScriptedTask } from './scripted-tasks.ts'

const ENTRY = new URL('./scripted-worker.ts', import.meta.url)
export const REACTORS = 2
const MANY = 1_000_000_000

/** A thread that a test blocks is to outlast the test on a busy machine. */
const SILENCE_MS = 60_000

interface Options {
  readonly limits?: Partial<PermitLimits>
  readonly background?: Partial<PermitLimits>
  readonly timeoutMs?: number
  readonly queueWarningMs?: number
  readonly heldUpMs?: number
  readonly silenceMs?: number
  readonly memoryMax?: number
  /** Threads for short messages, of all reactors. */
  readonly threads?: number
}

export class Reactors {
  readonly reports: { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[] = []
  readonly cells = new Int32Array(new SharedArrayBuffer(16))
  readonly workers: ReactorWorkers[]
  readonly plan: ReactorPlan

  readonly #watch: { readonly heldUpMs: number; readonly silenceMs: number }

  constructor(t: TestContext, options: Options = {}) {
    const { limits = {}, background = {}, timeoutMs = 0, queueWarningMs = 0 } = options
    const { heldUpMs = 150, silenceMs = SILENCE_MS } = options
    this.#watch = { heldUpMs, silenceMs }
    const { plan } = planGateway([], { reactors: REACTORS, responseTimeoutMs: timeoutMs })
    const all = { core: 4, max: 4, queueLength: -1, queueBytes: MANY, ...limits }
    const ofBackground = { core: 1, max: 1, queueLength: 0, queueBytes: MANY, ...background }
    const workers = {
      ...plan.workers,
      limits: { plain: all, secured: all, background: ofBackground },
      threads: { mediation: options.threads ?? REACTORS, background: 1 },
      queueWarningMs,
      heapBytes: 64 * 1024 * 1024,
    }
    const { memoryMax = plan.bodies.memoryMax } = options
    this.plan = { ...plan, workers, bodies: { ...plan.bodies, memoryMax } }
    this.workers = Array.from({ length: REACTORS }, (_, reactor) => this.newReactor(reactor))
    t.after(() => this.workers.forEach(each => void each.close()))
  }

  newReactor(reactor: number): ReactorWorkers {
    return new ReactorWorkers(
      { ...this.plan, reactor },
      {
        report: (_level, event, fields) => this.reports.push({ event, fields }),
        metrics: new MetricsColumn(this.plan.metrics, reactor),
        receive: () => undefined,
        count: () => undefined,
        serve: () => null,
        left: () => undefined,
        entry: ENTRY,
        watch: { checkMs: 100, ...this.#watch },
      },
    )
  }

  service(reactor: number, transport: 'plain' | 'secured' = 'plain'): WorkerService {
    return this.workers[reactor]!.services[transport]
  }

  /** `bytes`: length of the body. `place`: where it is. */
  run(
    reactor: number,
    task: ScriptedTask,
    bytes = 0,
    transport: 'plain' | 'secured' = 'plain',
    place: 'memory' | 'file' = 'memory',
  ): Promise<unknown> {
    const inMemory = bytes === 0 ? { kind: 'none' } : { kind: 'bytes', bytes: new Uint8Array(bytes) }
    const fields = task.coding ? [['Content-Encoding', task.coding]] : []
    const message = { fields, body: place === 'file' ? { kind: 'file', path: '/none', length: bytes } : inMemory }
    return this.service(reactor, transport).mediate({ api: 'scripted', ...task, message } as unknown as FlowTask, bytes)
  }

  /** Resolves with `done`, or the reason of the failure. */
  outcome(...args: Parameters<Reactors['run']>): Promise<string> {
    return this.run(...args).then(
      () => 'done',
      (error: WorkerFailure) => error.reason,
    )
  }

  hold(reactor: number, bytes = 0, transport: 'plain' | 'secured' = 'plain'): Promise<string> {
    return this.outcome(reactor, { kind: 'hold', cells: this.cells.buffer as SharedArrayBuffer }, bytes, transport)
  }

  counts(row: PermitRow = 'plain') {
    return SharedPermits.counts(this.plan.permits, REACTORS, PERMIT_ROWS[row])
  }

  openGate(): void {
    Atomics.store(this.cells, GATE, 1)
    Atomics.notify(this.cells, GATE)
  }

  async begun(count: number): Promise<void> {
    await until(() => this.cells[BEGUN] === count)
  }

  get metrics() {
    return snapshotMetrics(this.plan.metrics).counts
  }
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(resolve => setTimeout(resolve, 5))
}
