/** Parameters that shape the result of a search (R4, search.html#return): order, page, total, content. */
import { shown } from './outcome.ts'
import { SEARCH_PARAMETERS, type SearchParameter } from './search-parameters.ts'
import { UnreadableValue } from './search-values.ts'

export interface SortKey {
  readonly parameter: SearchParameter
  readonly isDescending: boolean
}

const TOTALS = ['none', 'estimate', 'accurate'] as const
type TotalMode = (typeof TOTALS)[number]
const SUMMARIES = ['true', 'text', 'data', 'count', 'false'] as const
type SummaryMode = (typeof SUMMARIES)[number]

export interface ResultParameters {
  /** First key first; empty for the order of creation. */
  readonly sort: readonly SortKey[]
  /** Matches of a page, at most `COUNT_MAX`; null: not stated. 0 is the same as the summary `count`. */
  readonly count: number | null
  /** Null: not stated. */
  readonly total: TotalMode | null
  readonly summary: SummaryMode
  /** Names of elements; empty for all. */
  readonly elements: readonly string[]
  /** Values of `_include` and `_revinclude`. What they name is not stored here. */
  readonly includes: readonly string[]
  /** Position of a page, '' for the first. */
  readonly cursor: string
}

/** Name of the parameter with the position of a page. */
export const CURSOR_PARAMETER = '_cursor'
/** Matches of a page where the client states none, and at most. */
export const COUNT_DEFAULT = 20
export const COUNT_MAX = 500
const SORT_KEYS_MAX = 5
const ELEMENTS_MAX = 64

/** Parameters that name HealthcareService as their target, of resource types that are not stored here. */
export const REVERSE_INCLUDES = ['PractitionerRole:service', 'Schedule:actor', 'Appointment:actor']

/** The parameters that have been read so far. */
export type Results = { -readonly [Name in keyof ResultParameters]?: ResultParameters[Name] }
/** `processing`: a fault for strict clients only. */
type Note = (name: string, code: 'processing' | 'not-supported', text: string) => void
type Reader = (value: string, results: Results, note: Note, name: string) => void

const READERS: Readonly<Record<string, Reader>> = {
  _sort: readSort,
  _count: (value, results) => {
    if (!/^\d{1,9}$/.test(value)) throw new UnreadableValue('the value is a number of matches')
    results.count = Math.min(Number(value), COUNT_MAX)
  },
  _total: (value, results) => {
    results.total = oneOf(value, TOTALS)
  },
  _summary: (value, results) => {
    results.summary = oneOf(value, SUMMARIES)
  },
  _elements: (value, results) => {
    const names = value.split(',').map(name => name.replace(/^HealthcareService\./, ''))
    if (names.length > ELEMENTS_MAX) throw new UnreadableValue(`at most ${ELEMENTS_MAX} elements are named`)
    if (!names.every(name => /^[A-Za-z]+$/.test(name))) throw new UnreadableValue('the value is a list of elements')
    results.elements = [...(results.elements ?? []), ...names]
  },
  _include: readInclude,
  '_include:iterate': readInclude,
  '_include:recurse': readInclude,
  _revinclude: readReverseInclude,
  '_revinclude:iterate': readReverseInclude,
  '_revinclude:recurse': readReverseInclude,
  _contained: (value, _results, note, name) => {
    oneOf(value, ['false', 'true', 'both'])
    if (value !== 'false') note(name, 'not-supported', 'contained resources are not searched')
  },
  _containedType: value => {
    oneOf(value, ['container', 'contained'])
  },
  [CURSOR_PARAMETER]: (value, results) => {
    results.cursor = value
  },
}

/** True if `name` is a parameter of the result; it is in `results` then. Throws UnreadableValue. */
export function readResultParameter(name: string, value: string, results: Results, note: Note): boolean {
  if (!Object.hasOwn(READERS, name)) return false
  READERS[name]!(value, results, note, name)
  return true
}

function oneOf<T extends string>(value: string, allowed: readonly T[]): T {
  const found = allowed.find(each => each === value)
  if (found === undefined) throw new UnreadableValue(`the value is one of ${allowed.join(', ')}`)
  return found
}

function readSort(value: string, results: Results, note: Note, name: string): void {
  const keys = [...(results.sort ?? [])]
  for (const text of value.split(',')) {
    const isDescending = text.startsWith('-')
    const parameter = SEARCH_PARAMETERS.get(isDescending ? text.slice(1) : text)
    if (parameter === undefined) {
      note(name, 'processing', `nothing is sorted by ${shown(text)}, which is no search parameter`)
    } else if (!keys.some(key => key.parameter === parameter)) keys.push({ parameter, isDescending })
  }
  if (keys.length > SORT_KEYS_MAX) throw new UnreadableValue(`at most ${SORT_KEYS_MAX} parameters are sorted by`)
  results.sort = keys
}

/** The keys of a `_sort` that are known. */
export function sortKeysOf(value: string): string {
  const keys = value.split(',')
  return keys.filter(key => SEARCH_PARAMETERS.has(key.replace(/^-/, ''))).join(',')
}

/** Targets are never stored here, and a missing target is no fault. */
function readInclude(value: string, results: Results): void {
  const [type, name = '', target] = value.split(':')
  const parameter = SEARCH_PARAMETERS.get(name)
  const isKnown =
    value === '*' ||
    (type === 'HealthcareService' &&
      (value === 'HealthcareService:*' ||
        (parameter?.type === 'reference' && (target === undefined || target === parameter.target))))
  if (!isKnown) {
    throw new UnreadableValue(
      'the value is *, or HealthcareService: and one of organization, location, coverage-area, endpoint',
    )
  }
  results.includes = [...(results.includes ?? []), value]
}

function readReverseInclude(value: string, results: Results): void {
  const isKnown = REVERSE_INCLUDES.some(known => value === known || value === `${known}:HealthcareService`)
  if (!isKnown) throw new UnreadableValue(`the value is one of ${REVERSE_INCLUDES.join(', ')}`)
  results.includes = [...(results.includes ?? []), value]
}
