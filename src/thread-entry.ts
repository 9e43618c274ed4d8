/** First file of a reactor's thread: the compile cache must be on before anything else is loaded. */
import { enableCompileCache } from 'node:module'
import { workerData } from 'node:worker_threads'

enableCompileCache((workerData as { compileCache: string }).compileCache)
await import('./reactor-thread.ts')
