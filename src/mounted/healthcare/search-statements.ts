/** SQL of a search, the same for all databases: every value is a parameter. */
import { type RawBuilder, sql } from 'kysely'
import type { DialectName } from '../../database/pooled-dialect.ts'
import type { SearchFilter } from './search-query.ts'
import { foldText, searchedTerms } from './search-terms.ts'
import type { SortKey } from './search-results.ts'
import type { DateValue, SearchValue, StringValue } from './search-values.ts'
import { textField } from './storage-rows.ts'
import { sortColumn } from './storage-schema.ts'

export type Condition = RawBuilder<unknown>

/** A filter in the form of the index: any of a list, or one range of times. */
export type Lookup =
  | { readonly kind: 'terms'; readonly terms: readonly bigint[] }
  | { readonly kind: 'texts'; readonly conditions: readonly TextCondition[] }
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'times'; readonly condition: Condition }
  | { readonly kind: 'present'; readonly condition: Condition }
  | { readonly kind: 'nothing' }

/** On a text `x`. */
interface TextCondition {
  readonly fields: readonly number[]
  readonly text: Condition
}

interface LookupContext {
  /** URL below which references are local. */
  readonly base: string
  readonly nowMs: number
}

/** Follows every text that begins with a prefix. */
const LAST_CHARACTER = '\u{10ffff}'
const APPROXIMATION = 0.1

export function lookupOf(filter: SearchFilter, context: LookupContext): Lookup {
  const { parameter } = filter
  if (filter.kind === 'missing') {
    // Every service has an id and a time.
    const bit = parameter.name === '_id' || parameter.name === '_lastUpdated' ? 0 : 1 << parameter.number
    if (bit === 0) return filter.isMissing ? { kind: 'nothing' } : { kind: 'present', condition: sql`1 = 1` }
    const isMissing = sql`(s.present & ${bit}) = 0`
    return { kind: 'present', condition: filter.isMissing ? isMissing : sql`not (${isMissing})` }
  }
  const { values } = filter
  if (parameter.name === '_id') return { kind: 'ids', ids: values.map(value => ('code' in value ? value.code! : '')) }
  if (parameter.type === 'date') {
    const conditions = values.filter(value => value.kind === 'date').map(value => timeCondition(value, context.nowMs))
    return { kind: 'times', condition: anyOf(conditions) }
  }
  const texts = values.filter(isFolded)
  if (texts.length > 0) {
    const conditions = texts.flatMap(value => textConditions(parameter.number, value))
    return conditions.length === 0 ? { kind: 'nothing' } : { kind: 'texts', conditions }
  }
  const terms = values.flatMap(value => searchedTerms(parameter, value, context.base) ?? [])
  return { kind: 'terms', terms: [...new Set(terms)] }
}

function isFolded(value: SearchValue): value is StringValue {
  return value.kind === 'string' && value.match !== 'exact'
}

/**
 * Condition on a service `s`. `each`: looks each service up, which suits a page of a few; `all`: lists all services of
 * the lookup once, which suits a count, and conditions with many values. Neither is an `exists` or a bare `in`, because
 * servers make joins of those: planning thirty joins takes longer than any search.
 */
export function conditionOf(lookup: Lookup, by: 'each' | 'all'): Condition {
  switch (lookup.kind) {
    case 'nothing':
      return sql`1 = 0`
    case 'terms': {
      const terms = sql`t.term in (${listOf(lookup.terms)})`
      if (by === 'all') return sql`(s.pk in (select t.pk from healthcare_terms t where ${terms}) or 1 = 0)`
      return sql`(select count(*) from healthcare_terms t where ${terms} and t.pk = s.pk) > 0`
    }
    case 'texts':
      if (by === 'all') {
        return sql`(s.pk in (select x.pk from healthcare_texts x where ${textsOf(lookup, sql`x.field`)}) or 1 = 0)`
      }
      // A sum, because the databases would read the whole range of texts for each service.
      return sql`(select count(*) from healthcare_texts x
        where x.pk = s.pk and ${textsOf(lookup, sql`x.field + 0`)}) > 0`
    case 'ids':
      return sql`s.id in (${listOf(lookup.ids)})`
    case 'times':
    case 'present':
      return lookup.condition
  }
}

/** Values that are looked up for one service. */
export function valuesIn(lookup: Lookup): number {
  if (lookup.kind === 'terms') return lookup.terms.length
  return lookup.kind === 'texts' ? lookup.conditions.length : 0
}

function textsOf({ conditions }: Lookup & { readonly kind: 'texts' }, field: Condition): Condition {
  return anyOf(conditions.map(({ fields, text }) => sql`(${field} in (${sql.join(fields)}) and ${text})`))
}

/**
 * Selects the numbers of services that a lookup finds, at most `most` rows, in no order, some twice: databases read all
 * rows to make them distinct. Undefined without an index.
 */
export function candidatesOf(lookup: Lookup, most: number): Condition | undefined {
  switch (lookup.kind) {
    case 'terms':
      return sql`select t.pk from healthcare_terms t where t.term in (${listOf(lookup.terms)}) limit ${most}`
    case 'texts':
      return sql`select x.pk from healthcare_texts x
        where ${textsOf(lookup, sql`x.field`)} limit ${most}`
    case 'ids':
      return sql`select s.pk from healthcare_services s where s.id in (${listOf(lookup.ids)}) limit ${most}`
    case 'times':
      return sql`select s.pk from healthcare_services s where ${lookup.condition} limit ${most}`
    case 'present':
    case 'nothing':
      return undefined
  }
}

/** A list of a few lengths, so that statements repeat: the last item fills it. */
function listOf(items: readonly (bigint | number | string)[]): Condition {
  const length = items.length < 3 ? items.length : 2 ** Math.ceil(Math.log2(items.length))
  const last = items.at(-1)!
  return sql.join([...items, ...Array.from({ length: length - items.length }, () => last)])
}

/** Services with these numbers. One JSON text costs the embedded database less than a parameter for each number. */
export function numbered(numbers: readonly number[], dialect: DialectName): Condition {
  if (dialect !== 'sqlite') return sql`s.pk in (${listOf(numbers)})`
  return sql`s.pk in (select value from json_each(${JSON.stringify(numbers)}))`
}

export function allOf(conditions: readonly Condition[]): Condition {
  return sql.join(
    conditions.map(condition => sql`(${condition})`),
    sql` and `,
  )
}

function anyOf(conditions: readonly Condition[]): Condition {
  return sql`(${sql.join(conditions, sql` or `)})`
}

/** A stored time has no width: R4's rules for intervals become comparisons with both ends. */
function timeCondition({ prefix, startMs, endMs }: DateValue, nowMs: number): Condition {
  const at = sql`s.updated_ms`
  switch (prefix) {
    case 'eq':
      return sql`(${at} >= ${startMs} and ${at} < ${endMs})`
    case 'ne':
      return sql`(${at} < ${startMs} or ${at} >= ${endMs})`
    case 'gt':
    case 'sa':
      return sql`${at} >= ${endMs}`
    case 'lt':
    case 'eb':
      return sql`${at} < ${startMs}`
    case 'ge':
      return sql`${at} >= ${startMs}`
    case 'le':
      return sql`${at} < ${endMs}`
    case 'ap': {
      const gap = nowMs < startMs ? startMs - nowMs : Math.max(0, nowMs - endMs)
      const width = Math.round(gap * APPROXIMATION)
      return sql`(${at} >= ${startMs - width} and ${at} < ${endMs + width})`
    }
  }
}

/** None where the value has no letters or digits: it matches nothing, never everything. */
function textConditions(parameter: number, { match, text }: StringValue): readonly TextCondition[] {
  const folded = foldText(text)
  if (folded === '') return []
  const fields = [textField(parameter, true)]
  if (match === 'starts') {
    return [{ fields, text: sql`x.text >= ${folded} and x.text < ${folded + LAST_CHARACTER}` }]
  }
  const pattern = `%${folded.replace(/[%_!]/g, '!$&')}%`
  return [{ fields: [...fields, textField(parameter, false)], text: sql`x.text like ${pattern} escape '!'` }]
}

/** A column that results are ordered by. */
export interface OrderColumn {
  readonly column: Condition
  readonly isDescending: boolean
  readonly isNumber: boolean
  /** The column is in `healthcare_sorts`, as `o`. */
  readonly isJoined: boolean
}

const OWN_COLUMNS: ReadonlyMap<string, Condition> = new Map([
  ['_id', sql`s.id`],
  ['_lastUpdated', sql`s.updated_ms`],
  ['name', sql`s.name_key`],
])

/** The last one is the number of the service, which decides between equal values. */
export function orderOf(keys: readonly SortKey[]): readonly OrderColumn[] {
  const columns = keys.map(({ parameter, isDescending }) => {
    const own = OWN_COLUMNS.get(parameter.name)
    const column = own ?? sql.ref(`o.${sortColumn(parameter, isDescending ? 'high' : 'low')}`)
    return { column, isDescending, isNumber: parameter.type === 'date', isJoined: own === undefined }
  })
  const isDescending = columns.at(-1)?.isDescending ?? false
  return [...columns, { column: sql`s.pk`, isDescending, isNumber: true, isJoined: false }]
}

/** Services behind a position; its values are those of the columns. */
export function behind(order: readonly OrderColumn[], values: readonly (string | number)[]): Condition {
  const [first] = order
  const alternatives = order.map(({ column, isDescending }, index) => {
    const equal = order.slice(0, index).map(({ column }, at) => sql`${column} = ${values[at]}`)
    const beyond = isDescending ? sql`${column} < ${values[index]}` : sql`${column} > ${values[index]}`
    return allOf([...equal, beyond])
  })
  if (alternatives.length === 1) return alternatives[0]!
  // The databases do not see the range of the first column in the alternatives.
  const range = first!.isDescending ? sql`${first!.column} <= ${values[0]}` : sql`${first!.column} >= ${values[0]}`
  return sql`${range} and ${anyOf(alternatives)}`
}

/** The same order from its other end. */
export function reversed(order: readonly OrderColumn[]): readonly OrderColumn[] {
  return order.map(column => ({ ...column, isDescending: !column.isDescending }))
}
