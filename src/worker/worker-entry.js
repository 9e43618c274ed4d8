/** First file of a worker thread, which piscina runs; plain JavaScript for the reason that `launch.js` gives. */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

enableCompileCache(workerData.compileCache)
await import('../runtime/module-resolver.js')
export const { runTask } = await import('./worker-thread.ts')
// A thread that is terminated later would never write the cache.
flushCompileCache()
