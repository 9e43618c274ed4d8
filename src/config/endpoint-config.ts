/**
 * `endpointConfig` of an exported project: which servers answer for an API, how they are chosen among, and what their
 * failures mean. Values come as exports write them: numbers as text, and empty where nothing was filled in.
 */
import { type EndpointDefinition, type EndpointsDefinition, NO_ENDPOINTS } from './api-definition.ts'
import { endpointFault } from './api-syntax.ts'
import { DEFAULT_SETTINGS, type EndpointSettings, type HealthCheckSettings } from './endpoint-settings.ts'
import type { Path, YamlFile } from './yaml-file.ts'

type Kind = EndpointsDefinition['kind']
type Algorithm = EndpointsDefinition['algorithm']

const CONFIG = ['data', 'endpointConfig']
const KINDS: Readonly<Record<string, Kind>> = {
  http: 'single',
  address: 'single',
  ws: 'single',
  failover: 'failover',
  load_balance: 'load_balance',
}
/** Which of them a request has tried stands in the bits of one number. */
export const ENDPOINTS_MAX = 32
const YEAR_MS = 365 * 86_400_000

export interface BothEndpoints {
  readonly endpoints: EndpointsDefinition
  readonly sandbox: EndpointsDefinition
}

/** Undefined, with every fault noted, where there is anything wrong with it. */
export function readEndpoints(file: YamlFile): BothEndpoints | undefined {
  if (!file.has(CONFIG)) {
    file.lacks(CONFIG)
    return undefined
  }
  const before = file.faults.length
  const kind = readKind(file)
  if (kind === undefined) return undefined
  tellWhatIsNotBuilt(file)
  const algorithm = kind === 'load_balance' ? readAlgorithm(file) : 'round_robin'
  const failsOver = kind === 'failover' || (kind === 'load_balance' && file.flag([...CONFIG, 'failOver'], true))
  const [endpoints, sandbox] = (['production', 'sandbox'] as const).map(type => {
    const places = placesOf(file, kind, type)
    if (places.length > ENDPOINTS_MAX) tellOfTooMany(file, [...CONFIG, `${type}_endpoints`])
    if (places.length === 0) return NO_ENDPOINTS
    return { kind, algorithm, failsOver, endpoints: places.map(place => readEndpoint(file, place, algorithm)) }
  })
  return file.faults.length > before ? undefined : { endpoints: endpoints!, sandbox: sandbox! }
}

export function tellOfTooMany(file: YamlFile, list: Path): void {
  const remedy = 'put a balancer of their own in front of them'
  file.object(list, undefined, `expected at most ${ENDPOINTS_MAX} endpoints`, remedy)
}

function readKind(file: YamlFile): Kind | undefined {
  const path = [...CONFIG, 'endpoint_type']
  const type = file.text(path)
  if (type === undefined) return undefined
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined
  if (kind !== undefined) return kind
  const expected = `expected ${Object.keys(KINDS).join(', ')}`
  const remedy =
    type === 'default' ? 'its address comes from a sequence, and they come later' : 'other endpoint types come later'
  file.object(path, type, expected, remedy)
  return undefined
}

function tellWhatIsNotBuilt(file: YamlFile): void {
  const session = [...CONFIG, 'sessionManagement']
  const kept = file.optional(session)
  if (kept === '' || kept === 'none') return
  const remedy = 'write none if the back ends share their sessions'
  file.object(session, kept, 'keeping the requests of a session with one endpoint is not built', remedy)
}

/** Where the endpoints stand in the file, in the order in which they are tried. One of the two types may have none. */
function placesOf(file: YamlFile, kind: Kind, type: 'production' | 'sandbox'): readonly Path[] {
  const list = [...CONFIG, `${type}_endpoints`]
  const other = [...CONFIG, `${type === 'production' ? 'sandbox' : 'production'}_endpoints`]
  const isLeftOut = isBlank(file, list) && !file.has([...CONFIG, `${type}_failovers`])
  if (isLeftOut && (type === 'sandbox' || !isBlank(file, other))) return []
  const length = file.lengthOf(list)
  if (kind === 'single') {
    if (length === undefined) return [list]
    file.object(list, undefined, 'expected one endpoint', 'write endpoint_type: load_balance or failover')
    return []
  }
  if (length === 0) file.object(list, undefined, 'expected at least one endpoint', 'add one with its url')
  const first = length === undefined ? [list] : itemsOf(list, length)
  const failovers = [...CONFIG, `${type}_failovers`]
  if (kind !== 'failover' || !file.has(failovers)) return first
  const further = file.lengthOf(failovers)
  if (further === undefined) file.object(failovers, undefined, 'expected a list', 'write each endpoint behind a "-"')
  return [...first, ...itemsOf(failovers, further ?? 0)]
}

/** Exports have an empty URL, or an empty list, where nothing was filled in. */
function isBlank(file: YamlFile, list: Path): boolean {
  if (!file.has(list) || file.lengthOf(list) === 0) return true
  const url = [...list, 'url']
  return file.has(url) && file.optional(url) === ''
}

function itemsOf(list: Path, length: number): readonly Path[] {
  return Array.from({ length }, (_, item) => [...list, item])
}

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  round_robin: 'round_robin',
  weighted: 'weighted',
  least_pending: 'least_pending',
  'org.apache.synapse.endpoints.algorithms.RoundRobin': 'round_robin',
  'org.apache.synapse.endpoints.algorithms.WeightedRoundRobin': 'weighted',
}

/** Our own key first; `algoCombo` says `other` where the class has a field of its own. */
function readAlgorithm(file: YamlFile): Algorithm {
  for (const key of ['algorithm', 'algoClassName', 'algoCombo']) {
    const path = [...CONFIG, key]
    const name = file.optional(path)
    if (name === '' || name === 'other') continue
    if (Object.hasOwn(ALGORITHMS, name)) return ALGORITHMS[name]!
    file.object(path, name, 'there is no such algorithm', 'write algorithm: round_robin, weighted or least_pending')
    break
  }
  return 'round_robin'
}

function readEndpoint(file: YamlFile, place: Path, algorithm: Algorithm): EndpointDefinition {
  const path = [...place, 'url']
  const url = file.text(path) ?? ''
  if (file.has(path)) file.objectAs(path, url, endpointFault(url))
  const weight = count(file, [...place, 'weight'], 1, 1, 1000)
  if (file.has([...place, 'weight']) && algorithm !== 'weighted') {
    file.warn([...place, 'weight'], weight, 'is not acted on by this algorithm', 'write algorithm: weighted')
  }
  return { url, settings: { ...readSettings(file, [...place, 'config']), weight } }
}

function readSettings(file: YamlFile, config: Path): EndpointSettings {
  const { retriesBeforeSuspension, retryDelayMs, initialMs, maximumMs } = DEFAULT_SETTINGS
  tellOfDiscard(file, [...config, 'actionSelect'])
  return {
    retriesBeforeSuspension: count(file, [...config, 'retryTimeOut'], retriesBeforeSuspension, 0, 255),
    retryDelayMs: count(file, [...config, 'retryDelay'], retryDelayMs, 0, YEAR_MS),
    initialMs: count(file, [...config, 'suspendDuration'], initialMs, 0, YEAR_MS),
    factor: readFactor(file, [...config, 'factor']),
    maximumMs: count(file, [...config, 'suspendMaxDuration'], maximumMs, 0, Number.MAX_SAFE_INTEGER),
    timeoutCodes: readCodes(file, [...config, 'retryErroCode']),
    suspendCodes: readCodes(file, [...config, 'suspendErrorCode']),
    responseMs: count(file, [...config, 'actionDuration'], 0, 0, YEAR_MS),
    weight: 1,
    healthCheck: readHealthCheck(file, [...config, 'health_check']),
  }
}

/** The reference platform drops a late response without a word to the client; here the client is always answered. */
function tellOfDiscard(file: YamlFile, path: Path): void {
  const action = file.optional(path)
  if (action === '' || action === 'fault') return
  if (action === 'discard') file.warn(path, action, 'the client gets a fault all the same', 'write fault')
  else file.object(path, action, 'expected fault', 'or discard, for which the client gets a fault too')
}

function readFactor(file: YamlFile, path: Path): number {
  const text = file.optional(path)
  if (text === '') return DEFAULT_SETTINGS.factor
  const factor = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : 0
  if (factor >= 1) return factor
  file.object(path, text, 'expected a number from 1 on', 'write 1 for suspensions of the same length')
  return DEFAULT_SETTINGS.factor
}

function readCodes(file: YamlFile, path: Path): readonly number[] {
  const length = file.lengthOf(path)
  const items = length === undefined ? [path] : itemsOf(path, length)
  return items.flatMap(item => {
    const codes = file.optional(item).split(/[\s,]+/)
    return codes.filter(code => code !== '').flatMap(code => readCode(file, item, code))
  })
}

function readCode(file: YamlFile, item: Path, code: string): readonly number[] {
  if (/^(?:-1|\d{6})$/.test(code)) return [Number(code)]
  file.object(item, code, 'expected error codes of six digits', 'for example 101504, or -1 for none')
  return []
}

function readHealthCheck(file: YamlFile, check: Path): HealthCheckSettings | null {
  if (!file.has(check)) return null
  const asked = file.optional([...check, 'path'])
  if (asked !== '' && !/^\/[\x21-\x22\x24-\x7e]*$/.test(asked)) {
    file.object([...check, 'path'], asked, 'must start with "/" and hold no space', 'for example /health')
  }
  return {
    path: asked === '' ? '/' : asked,
    intervalMs: count(file, [...check, 'interval'], 10_000, 100, YEAR_MS),
    timeoutMs: count(file, [...check, 'timeout'], 2000, 1, 600_000),
    unhealthyAfter: count(file, [...check, 'unhealthy_after'], 3, 1, 1000),
    healthyAfter: count(file, [...check, 'healthy_after'], 2, 1, 1000),
  }
}

/** A whole number; empty and -1 stand for the default, as they do in exports. */
function count(file: YamlFile, path: Path, fallback: number, min: number, max: number): number {
  const text = file.optional(path)
  if (text === '' || text === '-1') return fallback
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  const expected = max > YEAR_MS ? `expected a whole number from ${min} on` : `expected ${min} to ${max}`
  file.object(path, text, expected, `leave it empty for the default${fallback > YEAR_MS ? '' : `, ${fallback}`}`)
  return fallback
}
