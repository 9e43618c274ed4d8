/** Preloaded into a gateway (`--import`): at SIGUSR2 writes the longest delay of the primary's event loop, in ms. */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  process.on('SIGUSR2', () => {
    writeFileSync(process.env.EVENT_LOOP_DELAY_FILE!, String(delays.max / 1e6))
    delays.reset()
  })
}
