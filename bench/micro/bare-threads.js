/**
 * The floor of `memory-at-rest.ts`: a process with as many threads that do nothing as its argument names, collected as
 * the gateway does it (`src/runtime/heap-trim.ts`). JavaScript, because a process that strips types has more memory.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread, Worker } from 'node:worker_threads'

const COLLECTION_MS = 500

function collect() {
  setFlagsFromString('--expose-gc')
  runInNewContext('globalThis.gc')({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

setInterval(() => {}, 2 ** 30)
setTimeout(collect, COLLECTION_MS)
if (isMainThread) {
  const threads = Array.from({ length: Number(process.argv[2]) }, () => new Worker(import.meta.filename))
  await Promise.all(threads.map(thread => new Promise(resolve => thread.once('online', resolve))))
  console.log('ready')
}
