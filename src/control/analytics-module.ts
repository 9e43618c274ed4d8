/**
 * Gives batches of analytics events to the operator's module, on a thread of its own: a module that loops, crashes or
 * leaks ends that thread, and neither tokens nor the dashboard wait for it.
 */
import { getCompileCacheDir } from 'node:module'
import { ModuleError } from '../config/module-file.ts'
import { ChildThreads } from '../observe/child-threads.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import { allocateMemoryRows, memoryRows } from '../runtime/thread-memory.ts'
import { IsolatedThreads } from '../runtime/isolated-threads.ts'
import type { BatchResult, BatchSink, SentBatch } from './analytics-receiver.ts'

const ENTRY = new URL('../control/publisher-entry.js', import.meta.url)
const HEAP_BYTES = 256 * 1024 * 1024
/** Between two looks at the memory of the thread. */
const MEMORY_MS = 1000

/** `workerData` of the thread. */
export interface PublisherThreadData {
  readonly home: string
  readonly path: string
  /** Folder of Node's compile cache; undefined for none. */
  readonly compileCache: string | undefined
}

/** `lines`: null where the module is only loaded. */
export interface PublisherTask {
  readonly lines: string | null
}

export type PublisherReply = { readonly kind: 'done' | 'refused' } | { readonly kind: 'failed'; readonly cause: string }

interface ModuleSinkOptions {
  readonly home: string
  readonly path: string
  /** Longest time of a batch. */
  readonly timeoutMs: number
  readonly metrics: MetricsColumn
}

export class ModuleSink implements BatchSink {
  readonly #threads: IsolatedThreads
  readonly #children: ChildThreads
  readonly #timer: NodeJS.Timeout

  private constructor({ home, path, timeoutMs, metrics }: ModuleSinkOptions) {
    const workerData: PublisherThreadData = { home, path, compileCache: getCompileCacheDir() }
    const shared = allocateMemoryRows(1)
    this.#threads = new IsolatedThreads({
      ...{ entry: ENTRY, workerData, threadsMax: 1, timeoutMs, heapBytes: HEAP_BYTES, memory: memoryRows(shared) },
    })
    this.#children = new ChildThreads(metrics, () => 'publisher', shared)
    this.#timer = setInterval(() => this.#children.tick(), MEMORY_MS).unref()
  }

  /** Rejects with ModuleError. */
  static async open(options: ModuleSinkOptions): Promise<ModuleSink> {
    const { path } = options
    const sink = new ModuleSink(options)
    const problem = await sink.#run(null).then(
      reply => (reply.kind === 'failed' ? reply.cause : ''),
      (error: Error) => `${path} cannot be loaded (${error.message})`,
    )
    if (problem === '') return sink
    sink.close()
    throw new ModuleError(problem)
  }

  async send({ lines }: SentBatch): Promise<BatchResult> {
    const reply = await this.#run(lines)
    if (reply.kind === 'failed') throw new Error(reply.cause)
    return reply.kind === 'done' ? 'accepted' : { refused: 'they are not JSON' }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#threads.close()
    this.#children.close()
  }

  #run(lines: string | null): Promise<PublisherReply> {
    return this.#threads.run({ lines } satisfies PublisherTask) as Promise<PublisherReply>
  }
}
