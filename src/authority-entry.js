/** First file of the authority's thread; plain JavaScript for the reason that `launch.js` gives. */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

enableCompileCache(workerData.compileCache)
await import('./near-modules.js')
await import('./authority/authority-thread.ts')
// Now, because a thread that is killed would never do it.
flushCompileCache()
