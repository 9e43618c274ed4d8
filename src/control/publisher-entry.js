/** First file of the thread that publishes analytics; plain JavaScript for the reason that `launch.js` gives. */
import { enableCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

enableCompileCache(workerData.compileCache)
await import('../runtime/module-resolver.js')
await import('./publisher-thread.ts')
