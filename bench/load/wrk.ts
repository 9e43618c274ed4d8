/** Load from wrk: its arguments, and a Lua script that prints exact counts, where wrk itself prints rounded ones. */
import { writeFileSync } from 'node:fs'
import { LOAD_CORE, pinned, runToEnd } from '../program.ts'
import { tokenIssuer } from '../token-issuer.ts'
import { type LoadOutcome, type LoadPlan, type RequestSpec, requestFields } from './load-plan.ts'

/** Beginning of the line with the counts. */
const MARKER = 'bench-outcome '

/** All correct responses have statuses that wrk counts as errors. */
function expectsError({ expectedStatuses }: RequestSpec): boolean {
  return expectedStatuses.every(status => status >= 400)
}

/** A long literal of Lua, in which JSON needs no escapes. */
function luaBody(request: RequestSpec | undefined): string {
  return request?.body === undefined ? '' : `wrk.body = [==[${request.body}]==]\n`
}

/** Defines a `request` function only for several paths or tokens: without one wrk does not run Lua per request. */
function script(plan: LoadPlan, pathFile: string): string {
  const { request, uploadBytes } = plan
  const method = request?.method ?? (uploadBytes > 0 ? 'POST' : 'GET')
  const upload = uploadBytes > 0 ? `wrk.body = string.rep("x", ${uploadBytes})\n` : luaBody(request)
  const turns = request === undefined ? '' : requestsInTurn(request, pathFile)
  const wrong = request !== undefined && expectsError(request) ? 'summary.requests - e.status' : 'e.status'
  return `wrk.method = "${method}"
${upload}${turns}done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('${MARKER}{"requests":%d,"micros":%d,"errors":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + ${wrong} + e.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
`
}

function requestsInTurn({ paths, tokens = 1, addresses = 0 }: RequestSpec, pathFile: string): string {
  if (addresses > 0) return luaAddresses(addresses)
  return paths.length * tokens > 1 ? luaRequests(pathFile) : ''
}

/** Lua code that sends one request from many addresses: the address is put in as it is sent, to spare the memory. */
function luaAddresses(count: number): string {
  return `local last, front, back = 0
init = function()
  wrk.headers["X-Forwarded-For"] = "@"
  front, back = wrk.format():match("^(.*X%-Forwarded%-For: )@(.*)$")
  math.randomseed(os.time())
  last = math.random(${count})
end
request = function()
  last = (last + 1) % ${count}
  return front .. "10." .. math.floor(last / 65536) .. "." .. math.floor(last / 256) % 256 .. "." .. last % 256 .. back
end
`
}

/** Lua code that sends requests in turn; all are composed before the first is sent. */
function luaRequests(pathFile: string): string {
  return `local requests, last = {}, 0
init = function()
  for line in io.lines("${pathFile}") do
    local path, token, body = line:match("^(%S+) ?(%S*) ?(.*)$")
    if token ~= "" then wrk.headers["Authorization"] = "Bearer " .. token end
    requests[#requests + 1] = wrk.format(nil, path, nil, body ~= "" and body or nil)
  end
end
request = function()
  last = last % #requests + 1
  return requests[last]
end
`
}

/** The paths of a plan, one per line, with their bodies; with several tokens, one line per token: path and token. */
export function requestLines({ path, request }: Pick<LoadPlan, 'path' | 'request'>): readonly string[] {
  const paths = request?.paths ?? [path]
  const count = request?.tokens ?? 0
  const bodies = request?.bodies
  if (bodies !== undefined) return paths.map((each, index) => `${each}  ${bodies[index]}`)
  if (count <= 1) return paths
  return tokenIssuer()
    .tokens(count)
    .map((token, index) => `${paths[index % paths.length]} ${token}`)
}

export async function driveWrk(wrk: string, plan: LoadPlan, folder: string): Promise<LoadOutcome> {
  const file = `${folder}/load.lua`
  const pathFile = `${folder}/load.paths`
  const lines = requestLines(plan)
  if (lines.length > 1) writeFileSync(pathFile, `${lines.join('\n')}\n`)
  writeFileSync(file, script(plan, pathFile))
  const fields = Object.entries(requestFields(plan)).flatMap(([name, value]) =>
    name === 'Content-Length' ? [] : ['-H', `${name}: ${value}`],
  )
  const seconds = Math.max(1, Math.round(plan.seconds))
  const shape = ['-t', '1', '-c', String(plan.connections), '-d', `${seconds}s`, '--timeout', '10s', '-s', file]
  const url = `${plan.certificate === undefined ? 'http' : 'https'}://127.0.0.1:${plan.port}${plan.path}`
  const command = pinned(LOAD_CORE, [wrk, ...shape, ...fields, url])
  const printed = await runToEnd('wrk', command, plan.certificate?.environment)
  const line = printed.split('\n').find(text => text.startsWith(MARKER))
  if (line === undefined) throw new Error(`wrk printed no outcome:\n${printed}`)
  const counts = JSON.parse(line.slice(MARKER.length)) as Record<
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
