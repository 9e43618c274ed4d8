/** The thread of the operator's module of `[apim.analytics]`: `publish(events)` gets the events of a batch. */
import { parentPort, workerData } from 'node:worker_threads'
import { loadModule } from '../config/module-file.ts'
import { READY } from '../runtime/isolated-threads.ts'
import { MemoryReport } from '../runtime/thread-memory.ts'
import type { PublisherReply, PublisherTask, PublisherThreadData } from './analytics-module.ts'

const { home, path, memory } = workerData as PublisherThreadData & { readonly memory?: Float64Array }
const report = memory === undefined ? null : new MemoryReport(memory)
const loading = loadModule(home, path, 'publish')
// Each task tells why the module cannot be loaded.
loading.catch(() => undefined)

async function run({ lines }: PublisherTask): Promise<PublisherReply> {
  try {
    const publish = await loading
    if (lines === null) return { kind: 'done' }
    const events = parsed(lines)
    if (events === null) return { kind: 'refused' }
    await publish(events)
    return { kind: 'done' }
  } catch (error) {
    return { kind: 'failed', cause: error instanceof Error ? error.message : 'it threw no error' }
  }
}

/** Null for a file on disk that something else has changed: no later attempt reads it. */
function parsed(lines: string): readonly object[] | null {
  try {
    const written = lines.trimEnd().split('\n')
    return written.map(line => JSON.parse(line) as object)
  } catch {
    return null
  }
}

// Errors that the module leaves behind must not end the thread under the next batch.
process.on('unhandledRejection', () => undefined)
parentPort!.on('message', async (task: PublisherTask) => {
  parentPort!.postMessage(await run(task))
  report?.update()
})
parentPort!.postMessage(READY)
