/**
 * The invariants of the definitions that concern one element and its children, as functions: `ele-1` and those of
 * resources as a whole are in `validation.ts`. A key without a function here or there fails a test.
 */
import { type DateInterval, dateInterval, instantInterval } from './date-interval.ts'
import { isNumber, isObject, type JsonObject, numberText } from './json-text.ts'

/** True if an object of the type meets the rule. Elements of a wrong type are other faults: they count as absent. */
type Rule = (object: JsonObject) => boolean

const UCUM = 'http://unitsofmeasure.org'
const ISO_4217 = 'urn:iso:std:iso:4217'

export const RULES: Readonly<Record<string, Rule>> = {
  'ext-1': object => has(object, 'extension') !== Object.keys(object).some(name => /^_?value[A-Z]/.test(name)),
  'att-1': object => !has(object, 'data') || has(object, 'contentType'),
  'cpt-2': object => !has(object, 'value') || has(object, 'system'),
  'qty-3': object => !has(object, 'code') || has(object, 'system'),
  'sqty-1': object => !has(object, 'comparator'),
  'age-1': object => isUnit(object, UCUM) && (!isNumber(object.value) || numberOf(object.value) > 0),
  'cnt-3': object =>
    isUnit(object, UCUM) &&
    (!has(object, 'code') || object.code === '1') &&
    (!isNumber(object.value) || !numberText(object.value).includes('.')),
  'dis-1': object => isUnit(object, UCUM),
  'drt-1': object => !has(object, 'code') || (object.system === UCUM && has(object, 'value')),
  'mqty-1': object => isUnit(object, ISO_4217),
  'per-1': ({ start, end }) => !isAfter(start, end),
  'rng-2': ({ low, high }) => {
    if (!isObject(low) || !isObject(high) || low.code !== high.code || low.system !== high.system) return true
    return !isNumber(low.value) || !isNumber(high.value) || numberOf(low.value) <= numberOf(high.value)
  },
  'rat-1': object =>
    has(object, 'numerator') === has(object, 'denominator') && (has(object, 'numerator') || has(object, 'extension')),
  'exp-1': object => has(object, 'expression') || has(object, 'reference'),
  'drq-1': object => has(object, 'path') !== has(object, 'searchParam'),
  'drq-2': object => has(object, 'path') !== has(object, 'searchParam'),
  'tim-1': object => !has(object, 'duration') || has(object, 'durationUnit'),
  'tim-2': object => !has(object, 'period') || has(object, 'periodUnit'),
  'tim-4': ({ duration }) => !isNumber(duration) || numberOf(duration) >= 0,
  'tim-5': ({ period }) => !isNumber(period) || numberOf(period) >= 0,
  'tim-6': object => !has(object, 'periodMax') || has(object, 'period'),
  'tim-7': object => !has(object, 'durationMax') || has(object, 'duration'),
  'tim-8': object => !has(object, 'countMax') || has(object, 'count'),
  'tim-9': object => {
    if (!has(object, 'offset')) return true
    return Array.isArray(object.when) && !object.when.some(when => ['C', 'CM', 'CD', 'CV'].includes(when as string))
  },
  'tim-10': object => !has(object, 'timeOfDay') || !has(object, 'when'),
  'trd-1': object => !has(object, 'data') || !Object.keys(object).some(name => /^_?timing[A-Z]/.test(name)),
  'trd-2': object => !has(object, 'condition') || has(object, 'data'),
  'trd-3': object => {
    const { type } = object
    if (type === 'named-event') return has(object, 'name')
    if (type === 'periodic') return Object.keys(object).some(name => /^_?timing[A-Z]/.test(name))
    return typeof type !== 'string' || !type.startsWith('data-') || has(object, 'data')
  },
  'inv-1': object => {
    const values = Object.keys(object).filter(name => /^value[A-Z]/.test(name)).length
    const others = (has(object, 'resource') ? 1 : 0) + (has(object, 'part') ? 1 : 0)
    return Math.min(values, 1) + others === 1
  },
  'bdl-1': ({ total, type }) => total === undefined || type === 'searchset' || type === 'history',
  'bdl-2': ({ type, entry }) => type === 'searchset' || !objects(entry).some(item => has(item, 'search')),
  'bdl-3': ({ type, entry }) => {
    const isMandatory = type === 'batch' || type === 'transaction' || type === 'history'
    return objects(entry).every(item => has(item, 'request') === isMandatory)
  },
  'bdl-4': ({ type, entry }) => {
    const isMandatory = type === 'batch-response' || type === 'transaction-response' || type === 'history'
    return objects(entry).every(item => has(item, 'response') === isMandatory)
  },
  'bdl-5': object => has(object, 'resource') || has(object, 'request') || has(object, 'response'),
  'bdl-7': ({ type, entry }) => type === 'history' || areDistinct(objects(entry)),
  'bdl-8': ({ fullUrl }) => typeof fullUrl !== 'string' || !fullUrl.includes('/_history/'),
  'bdl-9': ({ type, identifier }) =>
    type !== 'document' || (isObject(identifier) && has(identifier, 'system') && has(identifier, 'value')),
  'bdl-10': ({ type, timestamp }) => type !== 'document' || timestamp !== undefined,
  'bdl-11': ({ type, entry }) => type !== 'document' || firstType(entry) === 'Composition',
  'bdl-12': ({ type, entry }) => type !== 'message' || firstType(entry) === 'MessageHeader',
}

/** True if the element is there, if only with extensions. */
function has(object: JsonObject, name: string): boolean {
  return Object.hasOwn(object, name) || Object.hasOwn(object, `_${name}`)
}

function numberOf(value: unknown): number {
  return Number(numberText(value))
}

/** A value has a code, and a system is the given one. */
function isUnit(object: JsonObject, system: string): boolean {
  const hasCode = has(object, 'code') || !has(object, 'value')
  return hasCode && (object.system === undefined || object.system === system)
}

/** True if `start` is surely after `end`: partial dates are compared to the precision that both have. */
function isAfter(start: unknown, end: unknown): boolean {
  if (typeof start !== 'string' || typeof end !== 'string') return false
  const instants = [instantInterval(start), instantInterval(end)]
  // Two date-times are compared as points in time.
  if (instants[0] !== undefined && instants[1] !== undefined) return instants[0].start > instants[1].start
  const dates = [intervalOf(start), intervalOf(end)]
  if (dates[0] === undefined || dates[1] === undefined) return false
  return dates[0].start >= dates[1].end
}

/** The day of a date-time where the other one has no time: its zone says which day that is. */
function intervalOf(text: string): DateInterval | undefined {
  return dateInterval(text) ?? (instantInterval(text) && dateInterval(text.slice(0, 10)))
}

function objects(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

function areDistinct(entries: readonly JsonObject[]): boolean {
  const keys = entries
    .filter(({ fullUrl }) => typeof fullUrl === 'string')
    .map(({ fullUrl, resource }) => {
      const meta = isObject(resource) && isObject(resource.meta) ? resource.meta : {}
      return `${fullUrl} ${String(meta.versionId ?? '')}`
    })
  return new Set(keys).size === keys.length
}

function firstType(entry: unknown): unknown {
  const resource = objects(entry)[0]?.resource
  return isObject(resource) ? resource.resourceType : undefined
}
