/**
 * Reads the parameters of a search (R4, search.html): a plain query for the index, or every fault at once. Nothing that
 * would narrow the result is ignored silently.
 */
import { hasErrors, type Issue, type IssueCode, shown } from './outcome.ts'
import { modifiersOf, SEARCH_PARAMETERS, type SearchParameter } from './search-parameters.ts'
import { SEARCHED_CHARS_MAX, TEXT_CHARS } from './search-index.ts'
import { foldText } from './search-terms.ts'
import { readResultParameter, sortKeysOf, type ResultParameters, type Results } from './search-results.ts'
import {
  readDate,
  readOfType,
  readReference,
  readToken,
  readUri,
  type SearchValue,
  type StringValue,
  splitUnescaped,
  UnreadableValue,
  unescapeValue,
} from './search-values.ts'

/** Conditions that all hold. */
export type SearchFilter =
  | { readonly parameter: SearchParameter; readonly kind: 'missing'; readonly isMissing: boolean }
  | {
      readonly parameter: SearchParameter
      /** `text`: the texts of a token; `none`: no value of the resource matches. */
      readonly kind: 'any' | 'none' | 'text'
      readonly values: readonly SearchValue[]
    }

export interface SearchQuery extends ResultParameters {
  readonly filters: readonly SearchFilter[]
  /** Parameters that have an effect, as the self link shows them; those of paging are left out. */
  readonly used: readonly (readonly [name: string, value: string])[]
}

interface SearchOptions {
  /** `Prefer: handling=strict`: unknown parameters are faults. */
  readonly isStrict: boolean
  /** A search that decides about a write: parameters of the result are refused. */
  readonly isCriteria?: boolean
}

type SearchReading =
  | { readonly query: SearchQuery; readonly issues: readonly Issue[] }
  | { readonly query: null; readonly issues: readonly Issue[] }

/** Limits of one search: characters of names and values, conditions, alternatives of all conditions. */
const CHARS_MAX = 8192
const FILTERS_MAX = 16
const VALUES_MAX = 256
/** Values of `:contains`, of each of which a search reads all texts of the parameter. */
const CONTAINED_MAX = 8
const NAME_CHARS_SHOWN = 64

/** Parameters of R4 that would narrow or widen the result and have no index. */
const UNSUPPORTED = new Set(['_text', '_content', '_list', '_has', '_type', '_query', '_filter'])
/** Parameters that other parts of the API act on. */
const ELSEWHERE = new Set(['_format', '_pretty'])

/** `pairs`: decoded, in order; of a query, a form, or both. */
export function readSearch(
  pairs: Iterable<readonly [name: string, value: string]>,
  options: SearchOptions,
): SearchReading {
  const reader = new SearchReader(options)
  for (const [name, value] of pairs) if (!reader.add(name, value)) break
  return reader.end()
}

/** The parameters of a query or a form body. A plus is a space. */
export function searchPairs(query: string): readonly (readonly [string, string])[] {
  return [...new URLSearchParams(query)]
}

class SearchReader {
  readonly #options: SearchOptions
  readonly #issues: Issue[] = []
  readonly #filters: SearchFilter[] = []
  readonly #used: (readonly [string, string])[] = []
  readonly #results: Results = {}
  /** Names and values of the conditions: a repeated one would only cost. */
  readonly #known = new Set<string>()
  #chars = 0
  #values = 0
  #contained = 0

  constructor(options: SearchOptions) {
    this.#options = options
  }

  /** False once the search is too long to go on. */
  add(name: string, value: string): boolean {
    this.#chars += name.length + value.length
    if (this.#chars > CHARS_MAX) {
      this.#fault(name, 'too-long', `a search has at most ${CHARS_MAX} characters`)
      return false
    }
    if (ELSEWHERE.has(name)) this.#used.push([name, value])
    else if (value !== '') this.#read(name, value)
    // Without its condition a search finds more, and a change would hit more.
    else if (this.#options.isCriteria === true) this.#fault(name, 'value', 'the value is empty')
    return this.#filters.length <= FILTERS_MAX && this.#values <= VALUES_MAX
  }

  end(): SearchReading {
    if (this.#filters.length > FILTERS_MAX) {
      this.#fault('', 'too-costly', `a search has at most ${FILTERS_MAX} conditions`)
    }
    if (this.#contained > CONTAINED_MAX) {
      this.#fault('', 'too-costly', `a search has at most ${CONTAINED_MAX} values of :contains`)
    }
    if (this.#values > VALUES_MAX) this.#fault('', 'too-costly', `a search has at most ${VALUES_MAX} values`)
    if (this.#options.isCriteria === true && this.#filters.length === 0) {
      this.#fault('', 'processing', 'criteria name at least one search parameter')
    }
    if (this.#results.summary === 'text' && this.#results.includes !== undefined) {
      this.#fault('_include', 'value', 'nothing is included with _summary=text')
    }
    const issues = this.#issues
    if (hasErrors(issues)) return { query: null, issues }
    return { query: { ...defaults(), ...this.#results, filters: this.#filters, used: this.#used }, issues }
  }

  #read(name: string, value: string): void {
    try {
      const isOfResult =
        this.#options.isCriteria !== true && readResultParameter(name, value, this.#results, this.#note)
      if (isOfResult) this.#used.push(...appliedOf(name, value, this.#results))
      else this.#readFilter(name, value)
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      this.#fault(name, 'value', error.message)
    }
  }

  /** `processing`: strict clients alone are refused. */
  readonly #note = (name: string, code: IssueCode, text: string): void => {
    const severity = code === 'processing' && !this.#options.isStrict ? 'warning' : 'error'
    this.#issues.push({ severity, code, text, ...parameterOf(name) })
  }

  #readFilter(name: string, value: string): void {
    const colon = name.indexOf(':')
    const base = colon === -1 ? name : name.slice(0, colon)
    const modifier = colon === -1 ? '' : name.slice(colon + 1)
    const parameter = SEARCH_PARAMETERS.get(base)
    if (parameter === undefined) {
      this.#unknown(name, base)
      return
    }
    const isType = modifier !== '' && modifier === parameter.target
    if (modifier !== '' && !isType && !modifiersOf(parameter).includes(modifier)) {
      this.#fault(name, 'not-supported', `the modifier ${shown(modifier)} is not supported on ${base}`)
      return
    }
    this.#used.push([name, value])
    if (this.#known.has(`${name}=${value}`)) return
    this.#known.add(`${name}=${value}`)
    this.#filters.push(this.#filterOf(parameter, modifier, value))
  }

  #filterOf(parameter: SearchParameter, modifier: string, value: string): SearchFilter {
    if (modifier === 'missing') {
      if (value !== 'true' && value !== 'false') throw new UnreadableValue('the value of :missing is true or false')
      return { parameter, kind: 'missing', isMissing: value === 'true' }
    }
    const values = splitUnescaped(value, ',').filter(part => part !== '')
    if (values.length === 0) throw new UnreadableValue('the value is empty')
    this.#values += values.length
    if (modifier === 'contains') this.#contained += values.length
    const kind = modifier === 'not' ? 'none' : modifier === 'text' ? 'text' : 'any'
    return { parameter, kind, values: values.map(part => readValue(parameter, modifier, part)) }
  }

  #unknown(name: string, base: string): void {
    const chain = base.split('.', 1)[0]!
    if (UNSUPPORTED.has(base)) this.#fault(name, 'not-supported', `the parameter ${base} is not supported`)
    else if (base.includes('.') && SEARCH_PARAMETERS.has(chain)) {
      this.#fault(name, 'not-supported', `chained parameters are not supported: ${chain} names other resources`)
    } else {
      // Criteria that would be ignored could change the wrong resource.
      const code = this.#options.isCriteria === true ? 'not-supported' : 'processing'
      this.#note(name, code, `there is no search parameter ${shown(base)}`)
    }
  }

  #fault(name: string, code: IssueCode, text: string): void {
    this.#issues.push({ severity: 'error', code, text, ...parameterOf(name) })
  }
}

/** The self link shows what was applied (R4, search.html#errors). */
function appliedOf(name: string, value: string, { count }: Results): readonly (readonly [string, string])[] {
  if (name === '_count') return [[name, String(count)]]
  if (name !== '_sort') return [[name, value]]
  const keys = sortKeysOf(value)
  return keys === '' ? [] : [[name, keys]]
}

function readValue(parameter: SearchParameter, modifier: string, value: string): SearchValue {
  switch (parameter.type) {
    case 'token':
      return readTokenValue(parameter, modifier, value)
    case 'reference':
      if (modifier === 'identifier') return { ...readToken(value), kind: 'reference-identifier' }
      return readReference(value, modifier)
    case 'string': {
      const match = modifier === 'exact' || modifier === 'contains' ? modifier : 'starts'
      return stringValue(match, value)
    }
    case 'date':
      return readDate(value)
    case 'uri':
      return readUri(value, modifier === 'above' || modifier === 'below' ? modifier : 'exact')
  }
}

function stringValue(match: StringValue['match'], value: string): StringValue {
  const text = unescapeValue(value)
  const most = match === 'contains' ? SEARCHED_CHARS_MAX : TEXT_CHARS
  if (match !== 'exact' && [...foldText(text)].length > most) {
    throw new UnreadableValue(`the value has at most ${most} characters`)
  }
  return { kind: 'string', match, text }
}

function readTokenValue({ shape, name }: SearchParameter, modifier: string, value: string): SearchValue {
  if (modifier === 'text') return stringValue('starts', value)
  if (modifier === 'of-type') return readOfType(value)
  const token = readToken(value)
  if (shape !== 'boolean' && shape !== 'id') return token
  if (token.system !== null) throw new UnreadableValue(`a value of ${name} has no system`)
  if (shape === 'boolean' && token.code !== 'true' && token.code !== 'false') {
    throw new UnreadableValue(`a value of ${name} is true or false`)
  }
  return token
}

function defaults(): ResultParameters {
  return {
    sort: [],
    count: null,
    total: null,
    summary: 'false',
    elements: [],
    includes: [],
    cursor: '',
  }
}

/** The name without its modifier. */
function parameterOf(name: string): { readonly parameter?: string } {
  const [base = ''] = name.split(':', 1)
  return base === '' ? {} : { parameter: base.slice(0, NAME_CHARS_SHOWN).toWellFormed() }
}
