/** A thread of handlers: runs one phase of one handler at a time. */
import { parentPort, workerData } from 'node:worker_threads'
import { loadModule } from '../config/module-file.ts'
import { causeOf, fieldNamed, openView } from '../filters/exchange-view.ts'
import type { HandlerReply, HandlerTask, PhaseFunction } from '../filters/handler-interface.ts'
import { READY } from '../runtime/isolated-threads.ts'
import { setTimeSlice } from '../runtime/thread-scheduling.ts'
import { MemoryReport } from '../runtime/thread-memory.ts'
import type { HandlerThreadData } from './handler-loading.ts'

const { home } = workerData as HandlerThreadData
/** By path and phase. */
const loaded = new Map<string, Promise<PhaseFunction>>()

function callOf(path: string, phase: string): Promise<PhaseFunction> {
  const key = `${phase} ${path}`
  const known = loaded.get(key) ?? (loadModule(home, path, phase) as Promise<PhaseFunction>)
  loaded.set(key, known)
  return known
}

async function run({ path, facts, fields }: HandlerTask): Promise<HandlerReply> {
  const { view, changes, close } = openView(facts, name => fieldNamed(fields, name), facts.phase === 'request')
  try {
    const call = await callOf(path, facts.phase)
    const goesOn = (await call(view)) !== false
    // Attributes must be plain data; JSON says whether they are.
    const attributes = JSON.parse(JSON.stringify(view.attributes)) as Record<string, unknown>
    return { kind: 'done', goesOn, changes, attributes }
  } catch (error) {
    return { kind: 'failed', cause: causeOf(error) }
  } finally {
    close()
  }
}

// The reactor that started the thread may have a short one.
setTimeSlice('default')
// An error that a handler leaves behind must not end the thread under the next one.
process.on('unhandledRejection', () => undefined)
const { memory } = workerData as { readonly memory?: Float64Array }
const report = memory === undefined ? null : new MemoryReport(memory)
parentPort!.on('message', async (task: HandlerTask) => {
  parentPort!.postMessage(await run(task))
  report?.update()
})
parentPort!.postMessage(READY)
