/**
 * Preloaded into a gateway (`--import`): each reactor prints how much later than due a timer of 1 ms fires, the 99th
 * percentile of each half second. Plain JavaScript, because every thread imports it before its first TypeScript file.
 */
import { writeSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { threadName } from 'node:worker_threads'

const RESOLUTION_MS = 1
const PERIOD_MS = 500
const STDERR = 2

if (/^reactor \d+$/.test(threadName)) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  setInterval(() => {
    const p99Ms = Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS)
    writeSync(STDERR, `loop delay ${p99Ms.toFixed(3)}\n`)
    delays.reset()
  }, PERIOD_MS).unref()
}
