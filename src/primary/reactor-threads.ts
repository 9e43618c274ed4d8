/**
 * Threads for reactors. A start begins them as soon as it knows how many there will be: each loads its modules while
 * the primary still reads APIs, and then waits for its plan.
 */
import { Worker } from 'node:worker_threads'
import type { ReactorPlan } from '../plan.ts'
import { toldPlan } from '../told-plan.ts'

const ENTRY = new URL('../thread-entry.js', import.meta.url)

interface BegunThread {
  readonly worker: Worker
  /** One cell: 1 once the plan can be received. */
  readonly told: Int32Array
}

export class ReactorThreads {
  readonly #compileCache: string
  readonly #entry: URL
  /** By their reactors; those that have no plan yet. */
  readonly #begun = new Map<number, BegunThread>()

  /** `entry`: for tests. */
  constructor(compileCache: string, entry = ENTRY) {
    this.#compileCache = compileCache
    this.#entry = entry
  }

  /** For so many reactors. */
  begin(reactors: number): void {
    for (let reactor = 0; reactor < reactors; reactor++) {
      const thread = this.#thread(reactor)
      this.#begun.set(reactor, thread)
      // Whatever is wrong with it is wrong with the one that is begun in its place, and told then.
      thread.worker.on('error', () => this.#begun.delete(reactor))
      thread.worker.on('exit', () => this.#begun.delete(reactor))
    }
  }

  /** Of a reactor that has this plan. */
  take(plan: ReactorPlan): Worker {
    const { reactor } = plan
    const { worker, told } = this.#begun.get(reactor) ?? this.#thread(reactor)
    this.#begun.delete(reactor)
    worker.postMessage(toldPlan(plan))
    Atomics.store(told, 0, 1)
    Atomics.notify(told, 0)
    return worker
  }

  #thread(reactor: number): BegunThread {
    const told = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const workerData = { compileCache: this.#compileCache, told }
    return { worker: new Worker(this.#entry, { workerData, name: `reactor-${reactor}` }), told }
  }
}
