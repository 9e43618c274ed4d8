/**
 * The endpoints of an API project: its `endpointConfig`. Exports write numbers as text, and leave empty whatever nobody
 * filled in.
 */
import { DESTINATION_URL } from '../mediation/endpoint-plan.ts'
import {
  DEFAULT_ENDPOINT_SETTINGS,
  type EndpointDefinition,
  type EndpointSettings,
  type EndpointsDefinition,
  type HealthCheckSettings,
  LONE_ENDPOINT_SETTINGS,
  NO_ENDPOINTS,
} from './api-definition.ts'
import { isMounted } from './mounted-module.ts'
import type { Path, YamlFile } from './yaml-file.ts'
import { templateOf, templateViolation } from './endpoint-url.ts'

type Kind = EndpointsDefinition['kind']
type Algorithm = EndpointsDefinition['algorithm']

/** Production and sandbox endpoints. */
export type EndpointsByKeyType = Readonly<Record<'endpoints' | 'sandbox', EndpointsDefinition>>

/** A request marks the endpoints that it has tried in the bits of one number. */
export const ENDPOINTS_MAX = 32
const YEAR_MS = 365 * 86_400_000

const CONFIG = ['data', 'endpointConfig']
const KINDS: Readonly<Record<string, Kind>> = {
  http: 'single',
  address: 'single',
  ws: 'single',
  failover: 'failover',
  load_balance: 'load_balance',
}
const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  round_robin: 'round_robin',
  weighted: 'weighted',
  least_pending: 'least_pending',
  'org.apache.synapse.endpoints.algorithms.RoundRobin': 'round_robin',
  'org.apache.synapse.endpoints.algorithms.WeightedRoundRobin': 'weighted',
}

const DESTINATION_ENDPOINTS: EndpointsByKeyType = {
  endpoints: { ...NO_ENDPOINTS, endpoints: [{ url: DESTINATION_URL, settings: LONE_ENDPOINT_SETTINGS }] },
  sandbox: { ...NO_ENDPOINTS, endpoints: [{ url: DESTINATION_URL, settings: LONE_ENDPOINT_SETTINGS }] },
}

/** The type `default`: sequences of the API set the address of each request. */
export function isDestination(file: YamlFile): boolean {
  return file.optional([...CONFIG, 'endpoint_type']) === 'default'
}

/** Type of an API whose backend is a sequence of its project; exports have the first one. */
const OF_SEQUENCES = ['sequence_backend', 'sequence']
const SEQUENCE = [...CONFIG, 'sequence']

/** Name of the sequence that stands for the backend; '' for an API of another type, and after an error. */
export function backendSequence(file: YamlFile): string {
  return isBackedBySequence(file) ? (file.text(SEQUENCE)?.trim() ?? '') : ''
}

function isBackedBySequence(file: YamlFile): boolean {
  return OF_SEQUENCES.includes(file.optional([...CONFIG, 'endpoint_type']))
}

/** `data.endpointConfig`; undefined, with every error reported, if anything in it is wrong. */
export function readEndpoints(file: YamlFile): EndpointsByKeyType | undefined {
  if (!file.has(CONFIG)) {
    file.missing(CONFIG)
    return undefined
  }
  if (isDestination(file) || isBackedBySequence(file)) return DESTINATION_ENDPOINTS
  if (file.has(SEQUENCE)) {
    file.error(SEQUENCE, undefined, 'belongs to the type sequence', 'write endpoint_type: sequence_backend')
  }
  if (isMounted(file)) return { endpoints: NO_ENDPOINTS, sandbox: NO_ENDPOINTS }
  const before = file.errors.length
  const kind = readKind(file)
  if (kind === undefined) return undefined
  refuseStickySessions(file)
  const algorithm = kind === 'load_balance' ? readAlgorithm(file) : 'round_robin'
  const failsOver = kind === 'failover' || (kind === 'load_balance' && file.flag([...CONFIG, 'failOver'], true))
  const [endpoints, sandbox] = (['production', 'sandbox'] as const).map(type => {
    const paths = endpointPaths(file, kind, type)
    if (paths.length > ENDPOINTS_MAX) refuseTooMany(file, [...CONFIG, `${type}_endpoints`])
    if (paths.length === 0) return NO_ENDPOINTS
    const endpoints = paths.map(path => readEndpoint(file, path, kind, algorithm))
    return { kind, algorithm, failsOver, endpoints, ...readTemplate(file, paths) }
  })
  return file.errors.length > before ? undefined : { endpoints: endpoints!, sandbox: sandbox! }
}

export function refuseTooMany(file: YamlFile, list: Path): void {
  file.error(list, undefined, `expected at most ${ENDPOINTS_MAX} endpoints`, 'put a load balancer in front of them')
}

function readKind(file: YamlFile): Kind | undefined {
  const path = [...CONFIG, 'endpoint_type']
  const type = file.text(path)
  if (type === undefined) return undefined
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined
  if (kind !== undefined) return kind
  const known = [...Object.keys(KINDS), 'default', 'sequence_backend', 'mounted'].join(', ')
  file.error(path, type, `expected ${known}`, 'other endpoint types are not supported yet')
  return undefined
}

function refuseStickySessions(file: YamlFile): void {
  const path = [...CONFIG, 'sessionManagement']
  const type = file.optional(path)
  if (type === '' || type === 'none') return
  file.error(path, type, 'sticky sessions are not supported', 'write none if the backends share their sessions')
}

/** Paths of the endpoints of one key type, in the order in which they are tried. One key type may have none. */
function endpointPaths(file: YamlFile, kind: Kind, type: 'production' | 'sandbox'): readonly Path[] {
  const list = [...CONFIG, `${type}_endpoints`]
  const other = [...CONFIG, `${type === 'production' ? 'sandbox' : 'production'}_endpoints`]
  const isLeftOut = isBlank(file, list) && isBlank(file, [...CONFIG, `${type}_failovers`])
  if (isLeftOut && (type === 'sandbox' || !isBlank(file, other))) return []
  const length = file.lengthOf(list)
  if (kind === 'single') {
    if (length === undefined) return [list]
    file.error(list, undefined, 'expected one endpoint', 'write endpoint_type: load_balance or failover')
    return []
  }
  if (length === 0) file.error(list, undefined, 'expected at least one endpoint', 'add one with its url')
  const first = length === undefined ? [list] : itemsOf(list, length)
  const failovers = [...CONFIG, `${type}_failovers`]
  if (kind !== 'failover' || !file.has(failovers)) return first
  const further = file.lengthOf(failovers)
  if (further === undefined) file.error(failovers, undefined, 'expected a list', 'begin each endpoint with "-"')
  return [...first, ...itemsOf(failovers, further ?? 0)]
}

/** Exports have an empty URL or an empty list for endpoints that nobody filled in. */
function isBlank(file: YamlFile, list: Path): boolean {
  if (!file.has(list) || file.lengthOf(list) === 0) return true
  const url = [...list, 'url']
  return file.has(url) && file.optional(url) === ''
}

function itemsOf(list: Path, length: number): readonly Path[] {
  return Array.from({ length }, (_, item) => [...list, item])
}

/** `algorithm` (ours), else the keys of exports, whose `algoCombo: other` refers to `algoClassName`. */
function readAlgorithm(file: YamlFile): Algorithm {
  for (const key of ['algorithm', 'algoClassName', 'algoCombo']) {
    const path = [...CONFIG, key]
    const name = file.optional(path)
    if (name === '' || name === 'other') continue
    if (Object.hasOwn(ALGORITHMS, name)) return ALGORITHMS[name]!
    file.error(path, name, 'there is no such algorithm', 'write algorithm: round_robin, weighted or least_pending')
    break
  }
  return 'round_robin'
}

/** The path with variables, which all endpoints of a key type share. */
function readTemplate(file: YamlFile, paths: readonly Path[]): Pick<EndpointsDefinition, 'template'> {
  const templates = paths.map(path => templateOf(file.optional([...path, 'url']))?.pieces)
  const [template] = templates
  const other = templates.findIndex(each => JSON.stringify(each) !== JSON.stringify(template))
  if (other >= 0) {
    const path = [...paths[other]!, 'url']
    const expected = 'has other variables than the first endpoint'
    file.error(path, file.optional(path), expected, 'end all URLs of a key type with the same path')
  }
  return template === undefined ? {} : { template }
}

function readEndpoint(file: YamlFile, at: Path, kind: Kind, algorithm: Algorithm): EndpointDefinition {
  const path = [...at, 'url']
  const url = file.text(path) ?? ''
  if (file.has(path)) file.report(path, url, templateViolation(url))
  const weight = readCount(file, [...at, 'weight'], 1, 1, 1000)
  if (file.has([...at, 'weight']) && algorithm !== 'weighted') {
    file.warn([...at, 'weight'], weight, 'has no effect with this algorithm', 'write algorithm: weighted')
  }
  return { url: templateOf(url)?.base ?? url, settings: { ...readSettings(file, [...at, 'config'], kind), weight } }
}

/** Keys of the length of a suspension. */
const LENGTHS = ['suspendDuration', 'factor', 'suspendMaxDuration'] as const
/** An endpoint of a group that sets one of these keys keeps the documented defaults of the others (D43). */
const SUSPENSION = [...LENGTHS, 'suspendErrorCode', 'retryErroCode', 'retryTimeOut', 'retryDelay'] as const

function readSettings(file: YamlFile, config: Path, kind: Kind): EndpointSettings {
  const sets = (key: string): boolean => isSet(file, [...config, key])
  const { retriesBeforeSuspension, retryDelayMs, suspensionMs, suspensionFactor, suspensionMaxMs } =
    kind === 'single' && !LENGTHS.some(sets) ? LONE_ENDPOINT_SETTINGS : DEFAULT_ENDPOINT_SETTINGS
  checkTimeoutAction(file, [...config, 'actionSelect'])
  return {
    eachFailureCounts: kind !== 'single' && SUSPENSION.some(sets),
    retriesBeforeSuspension: readCount(file, [...config, 'retryTimeOut'], retriesBeforeSuspension, 0, 255),
    retryDelayMs: readCount(file, [...config, 'retryDelay'], retryDelayMs, 0, YEAR_MS),
    suspensionMs: readCount(file, [...config, 'suspendDuration'], suspensionMs, 0, YEAR_MS),
    suspensionFactor: readFactor(file, [...config, 'factor'], suspensionFactor),
    suspensionMaxMs: readCount(file, [...config, 'suspendMaxDuration'], suspensionMaxMs, 0, Number.MAX_SAFE_INTEGER),
    timeoutCodes: readCodes(file, [...config, 'retryErroCode']),
    suspendCodes: readCodes(file, [...config, 'suspendErrorCode']),
    responseTimeoutMs: readCount(file, [...config, 'actionDuration'], 0, 0, YEAR_MS),
    weight: 1,
    sendsProxyHeader: readProxyProtocol(file, [...config, 'proxy_protocol']),
    healthCheck: readHealthCheck(file, [...config, 'health_check']),
  }
}

/** With `discard` the reference platform drops a late response silently; this gateway always answers the client. */
function checkTimeoutAction(file: YamlFile, path: Path): void {
  const action = file.optional(path)
  if (action === '' || action === 'fault') return
  if (action === 'discard') file.warn(path, action, 'the client gets a fault all the same', 'write fault')
  else file.error(path, action, 'expected fault', 'or discard, for which the client gets a fault too')
}

/** Lists of codes, in which -1 stands for none. */
const CODES = /Code$/

/** True if a key has a value other than those that stand for the default. */
function isSet(file: YamlFile, path: Path): boolean {
  return file.hasContent(path) && (String(file.value(path)).trim() !== '-1' || CODES.test(String(path.at(-1))))
}

function readFactor(file: YamlFile, path: Path, fallback: number): number {
  const text = file.optional(path)
  if (text === '') return fallback
  const factor = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : 0
  if (factor >= 1) return factor
  file.error(path, text, 'expected a number of at least 1', 'write 1 for suspensions of equal length')
  return fallback
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
  file.error(item, code, 'expected error codes of six digits', 'for example 101504, or -1 for none')
  return []
}

function readProxyProtocol(file: YamlFile, path: Path): boolean {
  const version = file.optional(path)
  if (version !== '' && version !== 'v2' && version !== 'none') {
    file.error(path, version, 'expected v2 or none', 'write v2: the gateway sends no other version')
  }
  return version === 'v2'
}

function readHealthCheck(file: YamlFile, check: Path): HealthCheckSettings | null {
  if (!file.has(check)) return null
  const path = file.optional([...check, 'path'])
  if (path !== '' && !/^\/[\x21-\x22\x24-\x7e]*$/.test(path)) {
    file.error([...check, 'path'], path, 'must start with "/" and hold no space', 'for example /health')
  }
  return {
    path: path === '' ? '/' : path,
    intervalMs: readCount(file, [...check, 'interval'], 10_000, 100, YEAR_MS),
    timeoutMs: readCount(file, [...check, 'timeout'], 2000, 1, 600_000),
    unhealthyAfter: readCount(file, [...check, 'unhealthy_after'], 3, 1, 1000),
    healthyAfter: readCount(file, [...check, 'healthy_after'], 2, 1, 1000),
  }
}

/** A whole number. Empty text and -1 stand for the default, as in exports. */
function readCount(file: YamlFile, path: Path, fallback: number, min: number, max: number): number {
  const text = file.optional(path)
  if (text === '' || text === '-1') return fallback
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  const expected = max > YEAR_MS ? `expected a whole number of at least ${min}` : `expected ${min} to ${max}`
  file.error(path, text, expected, `leave it empty for the default${fallback > YEAR_MS ? '' : `, ${fallback}`}`)
  return fallback
}
