/**
 * Memory and bounds of the healthcare API: `npx node bench/healthcare-soak.ts [minutes] [services] [folder]`. First
 * every hostile request of a list, with its status and time, while the reactor answers others; then a mix of requests,
 * some of which are given up, with the memory of the gateway every half minute. A folder with a loaded database is used
 * again.
 */
import { existsSync, mkdtempSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sampleServices } from '../src/mounted/healthcare/storage-sample.ts'
import { HEALTHCARE_SCOPES, prepareHome, startHealthcareGateway } from './healthcare.ts'
import { MeasuredTable, measuredNote } from './measured-table.ts'
import { memory } from './process-tree.ts'
import { tokenIssuer } from './token-issuer.ts'

const TYPE = '/healthcare/HealthcareService'
const CLIENTS = 16
const SAMPLE_MS = 30_000
/** The mix gives up one request in so many before its response. */
const GIVEN_UP = 50
const GIVEN_UP_MS = 20
const PROBE_MS = 20
const MEGABYTE = 1_048_576

const [minutes = '10', count = '100000', given = mkdtempSync(join(tmpdir(), 'sluice-soak-'))] = process.argv.slice(2)
const services = Number(count)
const port = 30_000 + (process.pid % 10_000)
const run = { folder: given, services, port }
await prepareHome(run, !existsSync(`${given}/data/api-HealthcareService.db`))
const gateway = await startHealthcareGateway(run)
const authorization = `Bearer ${tokenIssuer().token(HEALTHCARE_SCOPES)}`
const agent = new Agent({ keepAlive: true, maxSockets: 2 * CLIENTS })

interface Asked {
  readonly method?: string
  readonly path: string
  readonly body?: string
  readonly fields?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Resolves with the status; 0: no response. */
function ask({ method = 'GET', path, body = '', fields = {}, signal }: Asked): Promise<number> {
  const type = body === '' ? {} : { 'content-type': 'application/fhir+json', 'content-length': Buffer.byteLength(body) }
  const headers = { authorization, ...type, ...fields }
  const { promise, resolve } = Promise.withResolvers<number>()
  const sent = request(
    { port, path, method, agent, headers, ...(signal === undefined ? {} : { signal }) },
    response => {
      response.on('error', () => resolve(0)).on('end', () => resolve(response.statusCode ?? 0))
      response.resume()
    },
  )
  sent.on('error', () => resolve(0)).end(body)
  return promise
}

const times = (most: number, make: (index: number) => string, separator: string): string =>
  Array.from({ length: most }, (_, index) => make(index)).join(separator)
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const EIGHT = times(8, index => `zq${index}`, ',')

const HOSTILE: readonly (readonly [what: string, asked: Asked])[] = [
  ['a thousand OR values', { path: `${TYPE}?identifier=${times(1000, at => `${at}`, ',')}` }],
  ['256 OR values, no match', { path: `${TYPE}?identifier=${times(256, at => `x${at}`, ',')}` }],
  ['256 OR values, negated', { path: `${TYPE}?service-type:not=${times(256, at => `x${at}`, ',')}` }],
  ['ten chained filters', { path: `${TYPE}?${times(10, at => `organization.name=a${at}`, '&')}` }],
  ['ten broad filters', { path: `${TYPE}?${times(10, at => `service-type:not=x${at}`, '&')}&_total=accurate` }],
  [
    '16 filters of 16 values',
    { path: `${TYPE}?${times(16, at => `specialty:not=${times(16, i => `${at}x${i}`, ',')}`, '&')}` },
  ],
  ['_count=10000', { path: `${TYPE}?_count=10000` }],
  ['_count=10000 and a sort by a reference', { path: `${TYPE}?active=true&_sort=organization&_count=10000` }],
  ['% as a name', { path: `${TYPE}?name=%25` }],
  ['% and _ in a part of a name', { path: `${TYPE}?name:contains=%25_%25` }],
  ['a part of names that nothing has', { path: `${TYPE}?name:contains=zzzzzz` }],
  ['eight such parts, counted', { path: `${TYPE}?name:contains=${EIGHT}&_total=accurate` }],
  ['an accurate total of everything', { path: `${TYPE}?_total=accurate` }],
  ['five sort keys', { path: `${TYPE}?active=true&_sort=specialty,-program,location,-service-type,organization` }],
  ['the history of all', { path: `${TYPE}/_history?_count=10000` }],
  ['1 MB of URL', { path: `${TYPE}?name=${'a'.repeat(MEGABYTE)}` }],
  ['1 MB of a form', { method: 'POST', path: `${TYPE}/_search`, body: `name=${'a'.repeat(MEGABYTE)}`, fields: FORM }],
  ['a batch of 500 searches', { method: 'POST', path: '/healthcare', body: batch(`name:contains=${EIGHT}`, 500) }],
  ['3 MB of body', { method: 'POST', path: TYPE, body: `{"resourceType":"${'a'.repeat(3 * MEGABYTE)}"}` }],
]

function batch(query: string, entries: number): string {
  const entry = new Array(entries).fill({ request: { method: 'GET', url: `HealthcareService?${query}` } })
  return JSON.stringify({ resourceType: 'Bundle', type: 'batch', entry })
}

/** Longest time in milliseconds that the reactor took for a request of its own while `work` ran. */
async function reactorDelay(work: () => Promise<unknown>): Promise<number> {
  let [isOver, longest] = [false, 0]
  const probing = (async () => {
    while (!isOver) {
      const begun = performance.now()
      await ask({ path: '/no-such-api' })
      longest = Math.max(longest, performance.now() - begun)
      await sleep(PROBE_MS)
    }
  })()
  await work()
  isOver = true
  await probing
  return longest
}

await ask({ path: `${TYPE}?name=a` })
measuredNote(`Idle: ${memory(gateway.program.pid).rssMiB.toFixed(0)} MiB resident.`)
const hostileColumns = { status: 0, ms: 0, 'longest other request, ms': 0 }
const hostileTable = new MeasuredTable(`Hostile requests to ${services} services`, hostileColumns)
for (const [what, asked] of HOSTILE) {
  const begun = performance.now()
  let [status, ms] = [0, 0]
  const delay = await reactorDelay(async () => {
    status = await ask(asked)
    ms = performance.now() - begun
  })
  hostileTable.row(what, status, ms, delay)
}

/** Created services, of which updates, patches and deletes take some. */
const fresh = sampleServices(100_000_000, 17)[Symbol.iterator]()
let turn = 0
const pick = (most: number): number => (turn * 7919) % most
const idOf = (): string => `sample-${String(1 + pick(services)).padStart(6, '0')}`
const bodyOf = (id?: string): string => {
  const { id: _, ...service } = fresh.next().value!
  return JSON.stringify(id === undefined ? service : { ...service, id })
}
const PATCH = { 'content-type': 'application/json-patch+json' }
const MIX: readonly (() => Asked)[] = [
  () => ({ path: `${TYPE}/${idOf()}` }),
  () => ({ path: `${TYPE}/${idOf()}`, fields: { 'if-none-match': 'W/"1"' } }),
  () => ({ path: `${TYPE}/${idOf()}/_history` }),
  () => ({ path: `${TYPE}?_id=${idOf()},${idOf()}&_elements=name` }),
  () => ({ path: `${TYPE}?name=community&_count=50&_sort=name` }),
  () => ({ path: `${TYPE}?service-type=124&specialty=394579002&_total=accurate` }),
  () => ({ path: `${TYPE}?organization=Organization/org-${pick(300)}&_summary=true` }),
  () => ({ path: `${TYPE}?name:contains=${pick(1000)}x&_count=5` }),
  () => ({ path: `${TYPE}?active=true&_count=500` }),
  () => ({ path: `${TYPE}?colour=${turn}&_sort=-_lastUpdated` }),
  () => ({ path: `${TYPE}?${times(17, at => `name=${turn}${at}`, '&')}` }),
  () => ({ method: 'POST', path: TYPE, body: bodyOf() }),
  () => ({
    method: 'POST',
    path: TYPE,
    body: bodyOf(),
    fields: { 'if-none-exist': `identifier=HS-${1 + pick(services)}` },
  }),
  () => ({ method: 'PUT', path: `${TYPE}/soak-${pick(1000)}`, body: bodyOf(`soak-${pick(1000)}`) }),
  () => ({
    ...{ method: 'PATCH', path: `${TYPE}/soak-${pick(1000)}`, fields: PATCH },
    body: `[{"op":"add","path":"/comment","value":"turn ${turn}"}]`,
  }),
  () => ({ method: 'DELETE', path: `${TYPE}/soak-${pick(1000)}` }),
  () => ({ method: 'POST', path: '/healthcare', body: batch(`identifier=HS-${turn}`, 20) }),
  () => ({ method: 'POST', path: TYPE, body: '{"resourceType":"HealthcareService","colour":1}' }),
]

const statuses = new Map<number, number>()
const endMs = performance.now() + Number(minutes) * 60_000
async function client(): Promise<void> {
  while (performance.now() < endMs) {
    turn++
    const asked = MIX[turn % MIX.length]!()
    const signal = turn % GIVEN_UP === 0 ? AbortSignal.timeout(GIVEN_UP_MS) : undefined
    const status = await ask(signal === undefined ? asked : { ...asked, signal })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
}
const watching = (async () => {
  const begun = performance.now()
  const table = new MeasuredTable(`A mix of requests by ${CLIENTS} clients`, { requests: 0, 'resident MiB': 0 })
  while (performance.now() < endMs) {
    await sleep(Math.min(SAMPLE_MS, Math.max(1, endMs - performance.now())))
    const { rssMiB } = memory(gateway.program.pid)
    table.row(`after ${((performance.now() - begun) / 1000).toFixed(0)} s`, turn, rssMiB)
  }
})()
await Promise.all([watching, ...Array.from({ length: CLIENTS }, client)])
const counted = [...statuses].toSorted(([one], [other]) => one - other).map(([status, count]) => `${status}: ${count}`)
measuredNote(`Responses by status (0: given up): ${counted.join(', ')}.`)
agent.destroy()
await gateway.program.stop()
