/** First file of a reactor's thread; plain JavaScript for the reason that `launch.js` gives. */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

enableCompileCache(workerData.compileCache)
await import('./near-modules.js')
await import('./reactor/reactor-thread.ts')
// Now, because a thread that is killed would never do it.
flushCompileCache()
