/** Load from wrk: its arguments, and a script that makes it print its counts exactly instead of rounded for people. */
import { writeFileSync } from 'node:fs'
import { finished, LOAD_CORE, pinned } from '../program.ts'
import { fieldsOf, type LoadOutcome, type LoadPlan } from './load-plan.ts'

const MARK = 'bench-outcome '

/** Only `done` is defined: with no `request` or `response` function wrk never enters Lua while it measures. */
function script(plan: LoadPlan): string {
  const upload = plan.uploadBytes > 0 ? `wrk.method = "POST"\nwrk.body = string.rep("x", ${plan.uploadBytes})\n` : ''
  return `${upload}done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('${MARK}{"requests":%d,"micros":%d,"errors":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
`
}

export async function driveWrk(wrk: string, plan: LoadPlan, folder: string): Promise<LoadOutcome> {
  const file = `${folder}/load.lua`
  writeFileSync(file, script(plan))
  const fields = Object.entries(fieldsOf(plan)).flatMap(([name, value]) =>
    name === 'Content-Length' ? [] : ['-H', `${name}: ${value}`],
  )
  const seconds = Math.max(1, Math.round(plan.seconds))
  const shape = ['-t', '1', '-c', String(plan.connections), '-d', `${seconds}s`, '--timeout', '10s', '-s', file]
  const url = `${plan.certificate === undefined ? 'http' : 'https'}://127.0.0.1:${plan.port}${plan.path}`
  const command = pinned(LOAD_CORE, [wrk, ...shape, ...fields, url])
  const printed = await finished('wrk', command, plan.certificate?.environment)
  const line = printed.split('\n').find(text => text.startsWith(MARK))
  if (line === undefined) throw new Error(`wrk printed no outcome:\n${printed}`)
  const counts = JSON.parse(line.slice(MARK.length)) as Record<
    'requests' | 'micros' | 'errors' | 'p50' | 'p99' | 'p999' | 'max',
    number
  >
  return {
    requests: counts.requests,
    seconds: counts.micros / 1e6,
    errors: counts.errors,
    p50Ms: counts.p50 / 1000,
    p99Ms: counts.p99 / 1000,
    p999Ms: counts.p999 / 1000,
    maxMs: counts.max / 1000,
  }
}
