/**
 * `<cache>`: the finder, in the request flow, responds with a kept response; the collector, behind the call or in the
 * response flow, keeps one. Responses are kept by the reactor, for a time and within a number of bytes.
 */
import { createHash } from 'node:crypto'
import type { XmlElement } from '../../config/xml.ts'
import { ask, servicesOf } from '../backend-calls.ts'
import { mediator, type Run } from '../mediator.ts'
import type { Message } from '../message.ts'
import { compileMatcher, parsePattern } from '../pattern.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { Branch } from '../sequence-plan.ts'
import { textOf, type Value } from '../value.ts'
import { NO_STATE } from '../worker-task.ts'
import { type FieldLines, lifetimeOf, lineOf, requestControl, variedNames } from './cache-rules.ts'

type CacheSettings = { readonly kind: 'collector' } | FinderSettings

/** The data that the finder leaves for the collector, as JSON in a property. */
interface Wanted {
  readonly key: string
  readonly lifetimeMs: number
  readonly sizeMax: number
  readonly statuses: string
  readonly obeysResponse: boolean
  /** Identity of the finder, whose responses `entriesMax` counts. */
  readonly cache: string
  readonly entriesMax: number
  /** Hashes of the request fields that are no part of the key, by name in lower case: a response may vary with them. */
  readonly others: Readonly<Record<string, string>>
}

interface FinderSettings extends Omit<Wanted, 'key' | 'cache' | 'others'> {
  readonly kind: 'finder'
  /** Methods of requests whose responses are kept; empty for all. */
  readonly methods: readonly string[]
  /** Request fields that do not count, in lower case; `*` for all. */
  readonly excluded: readonly string[]
  /** The only request fields that count, in lower case; empty: all that are not excluded. */
  readonly included: readonly string[]
  /**
   * `request`: method, path, query, fields and body count. `body`: place of the finder, method and body count; of a
   * request without a body the path, too.
   */
  readonly hashed: 'request' | 'body'
  readonly addsAge: boolean
  readonly onHit: Branch | null
}

const WANTED = 'cache.wanted'
const KEPT_AT = 'cache.kept-at'
/** Hashes of the fields that Vary of the kept response names, as JSON; '' for an absent one. */
const VARIED = 'cache.varied'
const DEFAULT_LIFETIME_S = 5000
const LIFETIME_S_MAX = 86_400
const SIZE_MAX = 4 * 1024 * 1024
const DEFAULT_ENTRIES = 1000
const ENTRIES_MAX = 1_000_000
/** Classes of the reference platform, in lower case: the parts of a request that count. */
const HASHED: Readonly<Record<string, FinderSettings['hashed']>> = {
  httprequesthashgenerator: 'request',
  requesthashgenerator: 'request',
  domhashgenerator: 'body',
}
/** Fields that are about one connection or client: a kept response has none of them. */
const NOT_KEPT = ['set-cookie', 'set-cookie2', 'activityid']

/** Request fields that ask for another form of a response, or for a part of it: they count for every key. */
const OF_FORM = [
  ...['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
  'accept-encoding',
]

/** Request fields that a cache with `enableCacheControl` obeys: they tell no responses apart. */
const OF_CACHE = ['cache-control', 'pragma']

/** The scope that every finder has. */
const OWN_SCOPE = 'per-mediator'

export const cache = mediator<CacheSettings>({
  name: 'cache',
  attributes: ['collector', 'timeout', 'maxMessageSize', 'id', 'scope', 'hashGenerator'],
  elements: ['onCacheHit', 'protocol', 'implementation'],

  parse(element, parser) {
    const collects = parser.flag(element, 'collector')
    if (collects === undefined) return undefined
    const scope = element.attribute('scope')
    if (scope !== '' && scope !== OWN_SCOPE) {
      parser.warn(element, 'scope', 'has no effect: each finder of an API has responses of its own', 'remove it')
    }
    return collects ? { kind: 'collector' } : parseFinder(element, parser)
  },

  needs: () => 'worker',

  compile(settings, context) {
    if (settings.kind === 'collector') return collect
    const { onHit } = settings
    const hit = onHit === null ? null : context.compileBranch(onHit)
    return message => find(message, settings, hit, context.location)
  },
})

async function find(message: Message, settings: FinderSettings, hit: Run | null, location: string): Promise<boolean> {
  const { methods, lifetimeMs, sizeMax, statuses, obeysResponse, entriesMax, addsAge } = settings
  if (methods.length > 0 && !methods.includes(message.head.method)) return true
  const services = servicesOf(message)
  const { key, others } = keyOf(message, settings, location)
  const { isStored, ageMaxS } = obeysResponse ? requestControl(fieldsOf(message)) : UNCONTROLLED
  const kept = ageMaxS < 0 ? null : await ask(services, { kind: 'kept', key })
  const values = new Map<string, Value>(kept?.state.default)
  const keptAt = Number(values.get(KEPT_AT) ?? 0)
  const ageS = Math.max(0, Math.floor((Date.now() - keptAt) / 1000))
  if (kept === null || ageS > ageMaxS || !isFor(others, textOf(values.get(VARIED) ?? '{}'))) {
    if (!isStored) return true
    const cache = `${services.api} ${location}`
    const wanted: Wanted = { key, lifetimeMs, sizeMax, statuses, obeysResponse, cache, entriesMax, others }
    message.set('default', WANTED, JSON.stringify(wanted))
    return true
  }
  message.becomeResponse(services.received({ ...kept, state: NO_STATE }))
  if (addsAge) message.set('transport', 'Age', String(ageS))
  if (hit !== null) return hit(message)
  message.outcome = 'responded'
  return false
}

const UNCONTROLLED: ReturnType<typeof requestControl> = { isStored: true, ageMaxS: Number.MAX_SAFE_INTEGER }

function fieldsOf(message: Message): FieldLines {
  return [...message.keptFields(), ...message.fields()]
}

/** Tells whether a request has the values of those fields on which a kept response depends (RFC 9111 4.1). */
function isFor(others: Wanted['others'], varied: string): boolean {
  return Object.entries(JSON.parse(varied) as Wanted['others']).every(([name, hash]) => hashIn(others, name) === hash)
}

/** '' for an absent field. */
function hashIn(others: Wanted['others'], name: string): string {
  return Object.hasOwn(others, name) ? others[name]! : ''
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/**
 * The parts that a response depends on: API, method, path and query, request fields, and the body. `others`: as in
 * `Wanted`, for a cache that obeys Vary.
 */
function keyOf(
  message: Message,
  { excluded, included, hashed, obeysResponse }: FinderSettings,
  location: string,
): Pick<Wanted, 'key' | 'others'> {
  const { api, transfer } = servicesOf(message)
  const { method, target } = message.head
  const hasBody = message.bodySource !== null || message.bodyState === 'replaced'
  const path = hashed === 'body' && hasBody ? [] : [target, message.to]
  // Bodies alone do not tell the resources of an API apart.
  const finder = hashed === 'body' ? [location] : []
  const hash = createHash('sha256').update(JSON.stringify([api, method, ...finder, ...path]))
  const counts = (name: string): boolean => {
    if (OF_FORM.includes(name)) return true
    if (hashed === 'body') return false
    if (included.length > 0) return included.includes(name)
    if (obeysResponse && OF_CACHE.includes(name)) return false
    return !excluded.includes('*') && !excluded.includes(name) && !NOT_KEPT.includes(name)
  }
  const fields = fieldsOf(message)
  const counted = fields.flatMap(([name, value]) => {
    const lower = name.toLowerCase()
    return counts(lower) ? [[lower, textOf(value)]] : []
  })
  hash.update(JSON.stringify(counted.sort()))
  const names = obeysResponse ? new Set(fields.map(([name]) => name.toLowerCase())) : []
  const others = [...names].filter(name => !counts(name)).map(name => [name, hashOf(lineOf(fields, name))] as const)
  const { body } = hasBody ? transfer(message) : { body: null }
  if (body?.kind === 'bytes') hash.update(body.bytes)
  // A body in a file is not read for its hash: the key is of this message alone.
  else if (body?.kind === 'file') hash.update(body.path)
  return { key: hash.digest('base64url'), others: Object.fromEntries(others) }
}

async function collect(message: Message): Promise<boolean> {
  const text = textOf(message.get('default', WANTED))
  // A fault stands for a response that did not come, and a request is none: neither is an answer to other clients.
  const isResponse = message.head.status !== 0 || message.isMarkedResponse
  if (text === '' || !isResponse || servicesOf(message).flow === 'fault') return true
  message.remove('default', WANTED)
  const { key, lifetimeMs, sizeMax, statuses, obeysResponse, cache, entriesMax, others } = JSON.parse(text) as Wanted
  const { status } = message.head
  const received = fieldsOf(message)
  const isOfCaller = hashIn(others, 'authorization') !== ''
  const allowedMs = obeysResponse ? lifetimeOf(received, lifetimeMs, isOfCaller) : lifetimeMs
  if (allowedMs <= 0 || compileMatcher(statuses, () => undefined)(String(status)) === null) return true
  const services = servicesOf(message)
  const { body, fields, ...rest } = services.transfer(message)
  if (body.kind === 'file' || (body.kind === 'bytes' && body.bytes.byteLength > sizeMax)) return true
  const varied = obeysResponse ? variedNames(received).map(name => [name, hashIn(others, name)] as const) : []
  const state = [
    [KEPT_AT, Date.now()],
    [VARIED, JSON.stringify(Object.fromEntries(varied))],
  ] as const
  const kept = {
    ...rest,
    fields: fields.filter(([name]) => !NOT_KEPT.includes(name.toLowerCase()) && !message.isOfRequest(name)),
    body,
    state: { ...NO_STATE, default: state },
  }
  await ask(services, { kind: 'keep', key, lifetimeMs: allowedMs, cache, entriesMax, message: kept })
  return true
}

// ---- parsing --------------------------------------------------------------------------------------------------------

function parseFinder(element: XmlElement, parser: SequenceParser): FinderSettings | undefined {
  const lifetimeS = count(element, 'timeout', DEFAULT_LIFETIME_S, LIFETIME_S_MAX, parser)
  const sizeMax = count(element, 'maxMessageSize', SIZE_MAX, SIZE_MAX, parser)
  const protocol = parser.only(element, 'protocol')
  const entriesMax = parseImplementation(parser.only(element, 'implementation'), parser)
  const onHit = parseHit(parser.only(element, 'onCacheHit'), parser)
  if (protocol !== undefined) {
    parser.checkAttributes(protocol, ['type'])
    parser.checkElements(protocol, PROTOCOL)
  }
  const inner = protocol === undefined ? undefined : parser.only(protocol, 'hashGenerator')
  const ofInner = inner === undefined ? undefined : parseGenerator(inner, '', inner.text, parser)
  const hashed = ofInner ?? parseGenerator(element, 'hashGenerator', element.attribute('hashGenerator'), parser)
  const text = (name: string) => protocol?.child(name)?.text ?? ''
  const statuses = text('responseCodes') || '.*'
  const { pattern, why, hint } = parsePattern(statuses)
  if (pattern === undefined) return parser.error(protocol!, 'responseCodes', why, hint, statuses)
  if (lifetimeS === undefined || sizeMax === undefined || entriesMax === undefined) return undefined
  const methods = list(text('methods').toUpperCase())
  return {
    kind: 'finder',
    lifetimeMs: lifetimeS * 1000,
    sizeMax,
    entriesMax,
    methods: methods.includes('*') ? [] : methods,
    excluded: list(text('headersToExcludeInHash').toLowerCase()),
    included: list(text('headersToIncludeInHash').toLowerCase()),
    statuses,
    hashed: hashed ?? 'request',
    obeysResponse: text('enableCacheControl') === 'true',
    addsAge: text('includeAgeHeader') === 'true',
    onHit,
  }
}

function parseImplementation(implementation: XmlElement | undefined, parser: SequenceParser): number | undefined {
  if (implementation === undefined) return DEFAULT_ENTRIES
  parser.checkAttributes(implementation, ['type', 'maxSize'])
  return count(implementation, 'maxSize', DEFAULT_ENTRIES, ENTRIES_MAX, parser)
}

/** Undefined where none is named, and after a warning about one that is not known. */
function parseGenerator(
  element: XmlElement,
  field: string,
  given: string,
  parser: SequenceParser,
): FinderSettings['hashed'] | undefined {
  const name = given.trim().replace(/^.*\./, '').toLowerCase()
  const hashed = Object.hasOwn(HASHED, name) ? HASHED[name] : undefined
  if (name === '' || hashed !== undefined) return hashed
  const known = 'HttpRequestHashGenerator, REQUESTHASHGenerator or DOMHASHGenerator'
  parser.warn(element, field, 'has no effect: method, path, fields and body count', `remove it, or name ${known}`)
  return undefined
}

const PROTOCOL = [
  ...['methods', 'headersToExcludeInHash', 'headersToIncludeInHash', 'responseCodes'],
  ...['enableCacheControl', 'includeAgeHeader', 'hashGenerator'],
]

function parseHit(element: XmlElement | undefined, parser: SequenceParser): FinderSettings['onHit'] {
  if (element === undefined) return null
  parser.checkAttributes(element, ['sequence'])
  // As on the reference platform an empty one is none: the kept response goes to the client.
  return element.has('sequence') || element.children.length > 0 ? parser.branch(element) : null
}

function list(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter(item => item !== '')
}

function count(
  element: XmlElement,
  attribute: string,
  fallback: number,
  most: number,
  parser: SequenceParser,
): number | undefined {
  const given = element.attribute(attribute)
  if (given === '' || given === '-1') return fallback
  if (/^\d{1,9}$/.test(given) && Number(given) <= most) return Number(given)
  return parser.error(element, attribute, `expected a number up to ${most}`, `leave it out for ${fallback}`, given)
}
