/** First file of the thread that reads projects; plain JavaScript for the reason that `launch.js` gives. */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

if (workerData.compileCache !== '') enableCompileCache(workerData.compileCache)
await import('../runtime/module-resolver.js')
await import('./project-thread.ts')
flushCompileCache()
