/**
 * The scenario `healthcare`: the healthcare-service API with many services, through the whole gateway with a token, on
 * the embedded database. Each row is a kind of request; bare nginx, in the same rounds, tells how fast the machine is.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, openSync, closeSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { sampleServices } from '../src/mounted/healthcare/storage-sample.ts'
import { driveWrk } from './load/wrk.ts'
import type { LoadOutcome, LoadPlan, RequestSpec } from './load/load-plan.ts'
import type { Sample } from './metric.ts'
import { READY, ROOT, startSluice, WITHOUT_KEY_MANAGER } from './peers/sluice.ts'
import { writeIssuer } from './peers/sluice-variants.ts'
import { findExecutable, PROXY_CORE } from './program.ts'
import type { PeerResult, RoundRecorder } from './results.ts'
import { measureLoad, type RunningPeer, smallGetPlan } from './rounds.ts'
import { tokenIssuer } from './token-issuer.ts'

/** Concurrent requests of a load that measures rate and cost. Latencies are those of one request at a time. */
const CONNECTIONS = 32
const WARM_UP_SECONDS = 1
export const HEALTHCARE_SCOPES = 'system/HealthcareService.cruds'
/** Services whose values the requests of a row name in turn. */
const NAMED = 500
/** New services that creates send in turn. */
const FRESH = 2000
const FRESH_SEED = 7
const NGINX = 'nginx'
const BASE = '/healthcare'
const TYPE = `${BASE}/HealthcareService`
/** Requests per second of bare nginx on one core of the machine that the targets are for. */
const NGINX_PER_CORE = 40_000

type Service = ReturnType<typeof sampleServices> extends Iterable<infer Item> ? Item : never

/** Requests of a row, in turn. */
interface RowRequests {
  readonly method?: string
  readonly fields?: RequestSpec['fields']
  readonly paths: readonly string[]
  readonly bodies?: readonly string[]
}

interface HealthcareRow {
  /** Requests per second on the machine that the targets are for, of one core or of the whole machine. */
  readonly target?: { readonly perSecond: number; readonly of: 'core' | 'machine' }
  requests(services: readonly Service[], ask: (path: string) => Promise<Response>): RowRequests | Promise<RowRequests>
}

const encoded = encodeURIComponent
const SEARCH = { perSecond: 430, of: 'core' } as const

/** A search per service; `query`: with its number from 0 on. */
function search(query: (service: Service, index: number) => string): HealthcareRow {
  return {
    target: SEARCH,
    requests: services => ({ paths: services.map((service, index) => `${TYPE}?${query(service, index)}`) }),
  }
}

function nameOf({ name }: Service): string {
  return String(name)
}

function codeOf(service: Service, element: string): string {
  const [concept] = service[element] as readonly { readonly coding: readonly { readonly code: string }[] }[]
  return concept!.coding[0]!.code
}

function referenceOf(service: Service): string {
  return (service.providedBy as { readonly reference: string }).reference
}

export const HEALTHCARE_ROWS: Readonly<Record<string, HealthcareRow>> = {
  read: {
    target: { perSecond: 2000, of: 'core' },
    requests: services => ({ paths: services.map(({ id }) => `${TYPE}/${String(id)}`) }),
  },
  'read, 304': {
    requests: services => ({
      paths: services.map(({ id }) => `${TYPE}/${String(id)}`),
      fields: { 'If-None-Match': 'W/"1"' },
    }),
  },
  'version read': { requests: services => ({ paths: services.map(({ id }) => `${TYPE}/${String(id)}/_history/1`) }) },
  'history of one': { requests: services => ({ paths: services.map(({ id }) => `${TYPE}/${String(id)}/_history`) }) },
  create: {
    target: { perSecond: 650, of: 'machine' },
    requests: () => {
      const bodies = [...sampleServices(FRESH, FRESH_SEED)].map(({ id: _, ...service }) =>
        JSON.stringify(service).replace('"HS-', '"NEW-'),
      )
      return { method: 'POST', paths: bodies.map(() => TYPE), bodies }
    },
  },
  'conditional create, found': {
    requests: services => ({
      method: 'POST',
      paths: services.map(() => TYPE),
      bodies: services.map(service => JSON.stringify(service)),
      fields: { 'If-None-Exist': 'identifier=HS-77' },
    }),
  },
  update: {
    requests: services => ({
      method: 'PUT',
      paths: services.map(({ id }) => `${TYPE}/${String(id)}`),
      bodies: services.map(service => JSON.stringify(service)),
    }),
  },
  'search: _id': search(({ id }) => `_id=${String(id)}`),
  'search: identifier': search((_, index) => `identifier=HS-${index * 7 + 1}`),
  'search: token': search(service => `service-type=${codeOf(service, 'type')}`),
  'search: three tokens': search(
    service => `specialty=${codeOf(service, 'specialty')}&service-type=${codeOf(service, 'type')}&active=true`,
  ),
  'search: three tokens, OR': search(() => 'service-type=124,165,180'),
  'search: token:not': search(service => `service-type:not=${codeOf(service, 'type')}`),
  'search: token:text': search(() => 'service-type:text=general'),
  'search: reference': search(service => `organization=${referenceOf(service)}`),
  'search: two references': search(
    service => `organization=${referenceOf(service)}&service-category=${codeOf(service, 'category')}`,
  ),
  'search: name': search(service => `name=${encoded(nameOf(service).slice(0, 12))}`),
  'search: name, few matches': search(service => `name=${encoded(nameOf(service))}`),
  'search: name:exact': search(service => `name:exact=${encoded(nameOf(service))}`),
  'search: name:contains': search(() => 'name:contains=cardio'),
  'search: name:contains, few matches': search((_, index) => `name:contains=${encoded(`ford ${index + 1}00`)}`),
  'search: :missing': search(() => 'program:missing=true'),
  'search: _lastUpdated': search(() => '_lastUpdated=gt2020-01-01'),
  'search: _sort=name': search(() => 'active=true&_sort=name'),
  'search: _sort=-_lastUpdated': search(() => '_sort=-_lastUpdated'),
  'search: _sort by a reference': search(service => `service-type=${codeOf(service, 'type')}&_sort=organization`),
  'search: accurate total of a tenth': search(service => `service-type=${codeOf(service, 'type')}&_total=accurate`),
  'search: accurate total of two conditions': search(() => 'active=true&characteristic=parking&_total=accurate'),
  'search: second page': {
    target: SEARCH,
    requests: async (_, ask) => {
      const response = await ask(`${TYPE}?active=true&_sort=name`)
      const { link } = (await response.json()) as { link: readonly { relation: string; url: string }[] }
      const next = new URL(link.find(({ relation }) => relation === 'next')!.url)
      return { paths: [next.pathname + next.search] }
    },
  },
  'search: 256 values': search(() => `identifier=${Array.from({ length: 256 }, (_, at) => `HS-${at}`).join(',')}`),
  'search: eight values of :contains': search(() => 'name:contains=za,zb,zc,zd,ze,zf,zg,zh'),
  'search: sixteen conditions': search(() => Array.from({ length: 16 }, (_, at) => `service-type:not=${at}`).join('&')),
  'search: 500 matches': { requests: () => ({ paths: [`${TYPE}?active=true&_count=500`] }) },
}

interface HealthcareRun {
  readonly rounds: number
  readonly seconds: number
  readonly services: number
  readonly port: number
  /** Empty; of this scenario. */
  readonly folder: string
  /** Bare nginx in front of the backend; undefined where it is not installed. */
  startNginx(): Promise<RunningPeer | undefined>
  reportProgress(round: number, row: string): void
  probe(): Promise<void>
}

/** Resolves with notes: the load, memory after each round, and the targets. */
export async function healthcareRounds(recorder: RoundRecorder, run: HealthcareRun): Promise<readonly string[]> {
  const { folder, rounds, services, seconds } = run
  const wrk = findExecutable('wrk')
  if (wrk === undefined) throw new Error('wrk is not installed: apt-get install wrk')
  const loadedMs = await prepareHome(run)
  const gateway = await startHealthcareGateway(run)
  const nginx = await run.startNginx()
  const memoryMiB: number[] = []
  try {
    const authorization = `Bearer ${tokenIssuer().token(HEALTHCARE_SCOPES)}`
    const ask = (path: string): Promise<Response> =>
      fetch(`http://127.0.0.1:${run.port}${path}`, { headers: { authorization } })
    const specs = await requestSpecs(services, ask, authorization)
    const driven = (peer: RunningPeer, request: RequestSpec | undefined, connections: number, lasts: number) =>
      driveWrk(wrk, planOf(peer, request, connections, lasts), folder)
    for (let round = 1; round <= rounds; round++) {
      for (const [row, spec] of round % 2 === 1 ? specs : specs.toReversed()) {
        run.reportProgress(round, row)
        const peer = spec === undefined ? nginx : gateway
        if (peer === undefined) continue
        await recorder.measure(row, async () => {
          if (round === 1) await driven(peer, spec, CONNECTIONS, WARM_UP_SECONDS)
          const alone = await driven(peer, spec, 1, seconds)
          const sample = await measureLoad(peer, () => driven(peer, spec, CONNECTIONS, seconds))
          return rowSample(sample, alone)
        })
      }
      memoryMiB.push(recorder.last('read')?.rssMiB ?? Number.NaN)
      await run.probe()
    }
  } finally {
    await Promise.all([gateway.program.stop(), nginx?.program.stop()])
  }
  const perSecond = Math.round((services * 1000) / loadedMs)
  return [
    `Loading ${services} services took ${(loadedMs / 1000).toFixed(0)} s (${perSecond} a second).`,
    `Memory of the gateway after each round, MiB: ${memoryMiB.map(mib => mib.toFixed(0)).join(', ')}.`,
    ...targetNotes(recorder.summaries()),
  ]
}

/** A GET of 1 KiB for nginx, which has no request of its own. */
function planOf(peer: RunningPeer, request: RequestSpec | undefined, connections: number, seconds: number): LoadPlan {
  const plan = smallGetPlan({ path: '/bench/1k', connections }, peer.address, seconds)
  return request === undefined ? plan : { ...plan, path: request.paths[0]!, request }
}

function rowSample(sample: Sample, { p50Ms, p99Ms, errors }: LoadOutcome): Sample {
  const { cpuMicrosPerRequest = Number.NaN } = sample
  return {
    ...sample,
    requestsPerCoreSecond: 1e6 / cpuMicrosPerRequest,
    errors: (sample.errors ?? 0) + errors,
    ...(p50Ms === undefined || p99Ms === undefined ? {} : { p50Ms, p99Ms }),
  }
}

async function requestSpecs(
  count: number,
  ask: (path: string) => Promise<Response>,
  authorization: string,
): Promise<readonly (readonly [row: string, spec: RequestSpec | undefined])[]> {
  const stride = Math.max(1, Math.floor(count / NAMED))
  const services = [...sampleServices(count)].filter((_, index) => index % stride === 0).slice(0, NAMED)
  const specs: (readonly [string, RequestSpec | undefined])[] = [[NGINX, undefined]]
  for (const [row, { requests }] of Object.entries(HEALTHCARE_ROWS)) {
    const { method = 'GET', fields = {}, ...more } = await requests(services, ask)
    const type = more.bodies === undefined ? {} : { 'Content-Type': 'application/fhir+json' }
    const all = { Origin: null, Authorization: authorization, ...type, ...fields }
    const size = { uploadBytes: 0, downloadBytes: null, expectedStatuses: [200] }
    specs.push([row, { method, fields: all, ...size, ...more }])
  }
  return specs
}

type HomeOptions = Pick<HealthcareRun, 'folder' | 'services' | 'port'>

/** The home and, unless `loads` is false, its loaded database. Resolves with the milliseconds that the load took. */
export async function prepareHome({ folder, services }: HomeOptions, loads = true): Promise<number> {
  const home = `${folder}/home`
  mkdirSync(`${home}/apis/HealthcareService`, { recursive: true })
  const project = readFileSync(`${ROOT}/conf/apis/HealthcareService/api.yaml`, 'utf8')
  writeFileSync(
    `${home}/apis/HealthcareService/api.yaml`,
    project.replace(/sample_services: \d+/, 'sample_services: 0'),
  )
  writeIssuer(home, await tokenIssuer().keySetUrl(), { api: 'HealthcareService:1.0.0' })
  if (!loads) return 0
  const launcher = resolve(ROOT, process.env.SLUICE_LAUNCHER ?? 'src/launch.js')
  const file = `${folder}/services.ndjson`
  const output = openSync(file, 'w')
  execFileSync(process.execPath, [launcher, 'healthcare', 'sample', String(services)], {
    stdio: ['ignore', output, 'inherit'],
  })
  closeSync(output)
  const startMs = performance.now()
  const words = ['healthcare', 'load', file, '--json', '--home', home, '--data', `${folder}/data`]
  execFileSync(process.execPath, [launcher, ...words], { stdio: ['ignore', 'ignore', 'inherit'] })
  return performance.now() - startMs
}

export async function startHealthcareGateway({ folder, port }: HomeOptions): Promise<RunningPeer> {
  const places = { home: `${folder}/home`, data: `${folder}/data`, port, profileFolder: undefined }
  const program = startSluice({ ...places, reactors: 1, cores: PROXY_CORE, settings: WITHOUT_KEY_MANAGER })
  await program.waitForLine(READY)
  return { name: 'sluice', program, address: { port, certificate: undefined }, folder }
}

type Rows = Readonly<Record<string, PeerResult>>

/** Rows that miss their target, and rows with a target and no result; undefined without nginx. */
function comparedRows(
  rows: Rows,
): { readonly missed: readonly string[]; readonly unknown: readonly string[] } | undefined {
  const nginx = rows[NGINX]?.median.requestsPerCoreSecond
  if (nginx === undefined) return undefined
  const ratio = nginx / NGINX_PER_CORE
  const missed: string[] = []
  const unknown: string[] = []
  for (const [row, { target }] of Object.entries(HEALTHCARE_ROWS)) {
    if (target === undefined) continue
    const { requestsPerCoreSecond, requestsPerSecond } = rows[row]?.median ?? {}
    const reached = target.of === 'core' ? requestsPerCoreSecond : requestsPerSecond
    const needed = target.perSecond * ratio
    if (reached === undefined) unknown.push(row)
    else if (reached < needed) missed.push(`${row} (${reached.toFixed(0)} of ${needed.toFixed(0)})`)
  }
  return { missed, unknown }
}

/** Rows that miss their target; undefined where not every target can be judged. */
export function missedRows(rows: Rows): readonly string[] | undefined {
  const { missed, unknown } = comparedRows(rows) ?? { missed: [], unknown: [NGINX] }
  return unknown.length > 0 ? undefined : missed
}

/** Targets, scaled by what bare nginx passes on a core of this machine. */
export function targetNotes(rows: Rows): readonly string[] {
  const nginx = rows[NGINX]?.median.requestsPerCoreSecond
  const compared = comparedRows(rows)
  if (nginx === undefined || compared === undefined)
    return ['Without nginx the speed of the machine, and with it each target, is unknown.']
  const { missed, unknown } = compared
  const ratio = nginx / NGINX_PER_CORE
  const count = `${nginx.toFixed(0)} requests/s per core, ${ratio.toFixed(2)} of ${NGINX_PER_CORE}`
  const wanted = '2,000 reads/s and 430 searches/s per core, 650 creates/s'
  return [
    `Bare nginx passes ${count}; the targets (${wanted}) are scaled by this ratio.`,
    missed.length === 0 ? 'No target of a measured row is missed.' : `Missed: ${missed.join(', ')}.`,
    ...(unknown.length === 0 ? [] : [`Targets without a measurement: ${unknown.length}.`]),
  ]
}
