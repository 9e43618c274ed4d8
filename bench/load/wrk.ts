/** Load from wrk: its arguments, and a script that makes it print its counts exactly instead of rounded for people. */
import { writeFileSync } from 'node:fs'
import { finished, LOAD_CORE, pinned } from '../program.ts'
import { type Ask, expectsRefusal } from '../contest/ask.ts'
import { tokenIssuer } from '../token-issuer.ts'
import { fieldsOf, type LoadOutcome, type LoadPlan } from './load-plan.ts'

const MARK = 'bench-outcome '

/** With no `request` or `response` function wrk never enters Lua while it measures; only several paths take one. */
function script(plan: LoadPlan, pathFile: string): string {
  const { ask, uploadBytes } = plan
  const method = ask?.method ?? (uploadBytes > 0 ? 'POST' : 'GET')
  const upload = uploadBytes > 0 ? `wrk.body = string.rep("x", ${uploadBytes})\n` : ''
  const turns = ask !== undefined && ask.paths.length * (ask.tokens ?? 1) > 1 ? inTurn(pathFile) : ''
  const wrong = ask !== undefined && expectsRefusal(ask) ? 'summary.requests - e.status' : 'e.status'
  return `wrk.method = "${method}"
${upload}${turns}done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('${MARK}{"requests":%d,"micros":%d,"errors":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + ${wrong} + e.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
`
}

/** Requests are made before the first is sent. */
function inTurn(pathFile: string): string {
  return `local requests, last = {}, 0
init = function()
  for line in io.lines("${pathFile}") do
    local path, token = line:match("^(%S+) ?(%S*)$")
    if token ~= "" then wrk.headers["Authorization"] = "Bearer " .. token end
    requests[#requests + 1] = wrk.format(nil, path)
  end
end
request = function()
  last = last % #requests + 1
  return requests[last]
end
`
}

/** The paths of a plan, a line each, with the tokens in turn where there are several. */
export function linesOf({ path, ask }: { readonly path: string; readonly ask?: Ask }): readonly string[] {
  const paths = ask?.paths ?? [path]
  const count = ask?.tokens ?? 0
  if (count <= 1) return paths
  return tokenIssuer()
    .tokens(count)
    .map((token, place) => `${paths[place % paths.length]} ${token}`)
}

export async function driveWrk(wrk: string, plan: LoadPlan, folder: string): Promise<LoadOutcome> {
  const file = `${folder}/load.lua`
  const pathFile = `${folder}/load.paths`
  const lines = linesOf(plan)
  if (lines.length > 1) writeFileSync(pathFile, `${lines.join('\n')}\n`)
  writeFileSync(file, script(plan, pathFile))
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
