/**
 * Runs searches page by page. A page begins behind the last match of the page before, by the values it is sorted by:
 * changes between two pages neither repeat nor lose a match that stays as it is.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { sql } from 'kysely'
import type { SearchQuery } from './search-query.ts'
import { COUNT_DEFAULT, CURSOR_PARAMETER } from './search-results.ts'
import {
  allOf,
  behind,
  candidatesOf,
  type Condition,
  conditionOf,
  type Lookup,
  lookupOf,
  numbered,
  orderOf,
  type OrderColumn,
  reversed,
  valuesIn,
} from './search-statements.ts'
import { FEW_VERSIONS, fittingCount, type StoredVersion, storedVersion } from './storage-rows.ts'
import type { StorageConnection } from './storage-schema.ts'

export interface SearchPage {
  readonly matches: readonly StoredVersion[]
  /** Matches of all pages; null where it is not known. */
  readonly total: number | null
  /** Queries of the links, without a question mark; null where there is no such page. */
  readonly links: {
    readonly self: string
    readonly first: string
    readonly previous: string | null
    readonly next: string | null
  }
}

/** The position of a page was not made for this search. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor'
}

interface PageContext {
  readonly base: string
  /** Signs positions. */
  readonly key: Buffer
  readonly nowMs: number
}

/** `values`: of the columns of the order. `isBackward`: the page ends before them. */
interface Position {
  readonly isBackward: boolean
  readonly values: readonly (string | number)[]
}

/** Services of a lookup that are listed before the search; a lookup with more is a condition. */
const CANDIDATES_MAX = 512
/** Lookups with so few services decide alone. */
const CANDIDATES_FEW = 64
/** Values that are looked up for each service of a page; more are listed. */
const VALUES_EACH_MAX = 8
/** Matches that an estimate counts. */
const COUNTED_MAX = 1000
const MAC_BYTES = 16

/** Rejects with InvalidCursor, or an error of the driver. */
export async function searchPage(
  connection: StorageConnection,
  query: SearchQuery,
  context: PageContext,
): Promise<SearchPage> {
  const position = readCursor(query, context.key)
  const search = await prepare(connection, query, context)
  const asked = query.summary === 'count' ? 0 : (query.count ?? COUNT_DEFAULT)
  if (asked === 0) {
    return { matches: [], total: await countAll(connection, search), links: linksOf(query, null, null) }
  }
  const order = orderOf(query.sort)
  const count = asked <= FEW_VERSIONS ? asked : await countThatFits(connection, search, order, position, asked)
  const rows = await readRows(connection, search, order, position, count + 1)
  const isBackward = position?.isBackward === true
  const hasMore = rows.length > count
  const page = isBackward ? rows.slice(0, count).reverse() : rows.slice(0, count)
  const hasNext = isBackward ? page.length > 0 : hasMore
  const hasPrevious = isBackward ? hasMore : position !== null && page.length > 0
  const cursorAt = (row: PageRow, isBackward: boolean) =>
    writeCursor(query, { isBackward, values: valuesOf(row, order) }, context.key)
  const next = hasNext ? cursorAt(page.at(-1)!, false) : null
  const previous = hasPrevious ? cursorAt(page[0]!, true) : null
  const isWhole = position === null && !hasMore
  const total = isWhole ? page.length : await totalOf(connection, search, query)
  return { matches: page.map(storedVersion), total, links: linksOf(query, previous, next) }
}

type PageRow = Parameters<typeof storedVersion>[0] & { readonly [key: `k${number}`]: string | number }

/** A search in the terms of the index. */
interface PreparedSearch {
  /** A term that every match has, whose services are read; null without one. */
  readonly term: bigint | null
  readonly dialect: StorageConnection['dialect']
  /** All such terms. */
  readonly terms: readonly bigint[]
  /** Numbers of all services that can match; null: too many to list. */
  readonly candidates: readonly number[] | null
  /** All filters but that of `term`, on a service `s`. */
  readonly conditions: readonly Condition[]
  /** The same, for all services instead of a page. */
  readonly whole: readonly Condition[]
  /** All filters but that of a term, each looked up for one service. */
  without(term: bigint): readonly Condition[]
}

/** The lookup with the fewest services leads, whatever the statistics of the database say. */
async function prepare(
  connection: StorageConnection,
  { filters, sort }: SearchQuery,
  context: PageContext,
): Promise<PreparedSearch> {
  const lookups = filters.map(filter => {
    const lookup = lookupOf(filter, context)
    const isNegated = filter.kind === 'none'
    return { lookup, isNegated, term: isNegated ? null : onlyTerm(lookup) }
  })
  const by = (way: 'each' | 'all', without: bigint | null): readonly Condition[] =>
    lookups
      .filter(({ term }) => term === null || term !== without)
      .map(({ lookup, isNegated }) => (isNegated ? sql`not (${conditionOf(lookup, way)})` : conditionOf(lookup, way)))
  const values = lookups.reduce((sum, { lookup }) => sum + valuesIn(lookup), 0)
  const way = values > VALUES_EACH_MAX ? 'all' : 'each'
  const terms = lookups.flatMap(({ term }) => term ?? [])
  const { dialect } = connection
  const positive = lookups.filter(({ isNegated }) => !isNegated).map(({ lookup }) => lookup)
  const search = (term: bigint | null, candidates: readonly number[] | null, pageWay: 'each' | 'all') => {
    const whole = by(candidates === null ? 'all' : way, term)
    return {
      dialect,
      term,
      terms,
      candidates,
      whole,
      conditions: by(pageWay, term),
      without: (of: bigint) => by(way, of),
    }
  }
  if (positive.some(({ kind }) => kind === 'nothing')) return search(null, [], way)
  const [term = null] = terms
  // One term in the order of creation needs no list.
  if (term !== null && lookups.length === 1 && sort.length === 0) return search(term, null, way)
  const candidates = await listCandidates(connection, positive)
  if (candidates !== null) return search(null, candidates, way)
  // A sort by values of a table of their own reads all matches, an order with an index only those before the page.
  const readsAll = orderOf(sort)[0]!.isJoined
  if (term !== null && (sort.length === 0 || readsAll)) return search(term, null, way)
  return search(null, null, readsAll ? 'all' : way)
}

/** The term that every match of a lookup has; null where there are several, or none. */
function onlyTerm(lookup: Lookup): bigint | null {
  return lookup.kind === 'terms' && lookup.terms.length === 1 ? lookup.terms[0]! : null
}

const LOOKUP_ORDER: readonly Lookup['kind'][] = ['ids', 'terms', 'texts', 'times']

async function listCandidates(
  { db }: StorageConnection,
  lookups: readonly Lookup[],
): Promise<readonly number[] | null> {
  let candidates: readonly number[] | null = null
  const ordered = LOOKUP_ORDER.flatMap(kind => lookups.filter(lookup => lookup.kind === kind))
  for (const lookup of ordered) {
    const select = candidatesOf(lookup, CANDIDATES_MAX + 1)
    if (select === undefined) continue
    const { rows } = await sql<{ pk: number }>`${select}`.execute(db)
    if (rows.length > CANDIDATES_MAX) continue
    const found: ReadonlySet<number> = new Set(rows.map(({ pk }) => Number(pk)))
    candidates = candidates === null ? [...found] : candidates.filter(pk => found.has(pk))
    if (candidates.length <= CANDIDATES_FEW) break
  }
  return candidates
}

/** `from … where …`: all matches. */
function matchesOf(
  { conditions, candidates, term, dialect }: PreparedSearch,
  more: readonly Condition[],
  joined: boolean,
) {
  const sorts = joined ? sql`inner join healthcare_sorts o on o.pk = s.pk` : sql``
  const live = sql`s.is_deleted = 0`
  if (candidates === null && term !== null) {
    const where = allOf([sql`d.term = ${term}`, live, ...conditions, ...more])
    return sql`from healthcare_terms d inner join healthcare_services s on s.pk = d.pk ${sorts} where ${where}`
  }
  const listed = candidates === null ? [] : [numbered(candidates, dialect)]
  return sql`from healthcare_services s ${sorts} where ${allOf([...listed, live, ...conditions, ...more])}`
}

/** Matches of a page whose contents fit into its limit, at least one. Larger pages only: services have limits, too. */
async function countThatFits(
  { db }: StorageConnection,
  search: PreparedSearch,
  order: readonly OrderColumn[],
  position: Position | null,
  count: number,
): Promise<number> {
  if (search.candidates?.length === 0) return count
  const { page, by } = pageOf(search, order, position, count)
  const { rows } = await sql<{ bytes: number | string }>`
    select octet_length(v.content) as bytes from ${page} p
    inner join healthcare_versions v on v.change_no = p.change_no
    order by ${by}`.execute(db)
  return fittingCount(rows, count)
}

/** Numbers of versions in a table, and the order of its rows. */
function pageOf(
  search: PreparedSearch,
  forward: readonly OrderColumn[],
  position: Position | null,
  limit: number,
): { readonly page: Condition; readonly by: Condition } {
  const order = position?.isBackward === true ? reversed(forward) : forward
  const isOfTerm = search.candidates === null && search.term !== null
  // The numbers of a term are in order in its index.
  const ordered = isOfTerm && order.length === 1 ? [{ ...order[0]!, column: sql`d.pk` }] : order
  const from = matchesOf(
    search,
    position === null ? [] : [behind(ordered, position.values)],
    order.some(({ isJoined }) => isJoined),
  )
  const keys = ordered.map(({ column }, index) => sql`${column} as ${sql.ref(`k${index}`)}`)
  const by = ordered.map(({ column, isDescending }) => sql`${column} ${isDescending ? sql`desc` : sql`asc`}`)
  const outer = ordered.map(
    ({ isDescending }, index) => sql`${sql.ref(`p.k${index}`)} ${isDescending ? sql`desc` : sql`asc`}`,
  )
  const page = sql`(select s.change_no, ${sql.join(keys)} ${from} order by ${sql.join(by)} limit ${limit})`
  return { page, by: sql.join(outer) }
}

async function readRows(
  { db }: StorageConnection,
  search: PreparedSearch,
  order: readonly OrderColumn[],
  position: Position | null,
  limit: number,
): Promise<readonly PageRow[]> {
  if (search.candidates?.length === 0) return []
  const { page, by } = pageOf(search, order, position, limit)
  // Contents are read for the page alone.
  const { rows } = await sql<PageRow>`
    select p.*, v.id, v.version, v.updated_ms, v.method, v.content from ${page} p
    inner join healthcare_versions v on v.change_no = p.change_no
    order by ${by}`.execute(db)
  return rows
}

async function totalOf(connection: StorageConnection, search: PreparedSearch, query: SearchQuery) {
  if (query.total === 'accurate') return countAll(connection, search)
  return query.total === 'estimate' ? estimateAll(connection, search) : null
}

async function countAll({ db }: StorageConnection, search: PreparedSearch): Promise<number> {
  if (search.candidates?.length === 0) return 0
  const count = async (from: Condition): Promise<number> => {
    const { rows } = await sql<{ total: number }>`select count(*) as total ${from}`.execute(db)
    return Number(rows[0]!.total)
  }
  const { candidates, terms } = search
  if (candidates !== null || terms.length === 0) return count(countedOf(search).from)
  // The rarest term leads: the other conditions are looked up for its services alone.
  let [rarest, least] = [terms[0]!, Number.POSITIVE_INFINITY]
  for (const term of terms) {
    const services = await count(sql`from healthcare_terms d where d.term = ${term}`)
    if (services < least) [rarest, least] = [term, services]
  }
  const others = search.without(rarest)
  if (others.length === 0) return least
  return count(matchesOf({ ...search, term: rarest, conditions: others }, [], false))
}

/** All matches as cheaply as they can be counted, with the column of their numbers. */
function countedOf(search: PreparedSearch): { readonly from: Condition; readonly number: Condition } {
  const isOfTerm = search.candidates === null && search.term !== null
  const number = isOfTerm ? sql`d.pk` : sql`s.pk`
  // Deleted services have no terms.
  const isTermAlone = isOfTerm && search.conditions.length === 0
  const whole = { ...search, conditions: search.whole }
  const from = isTermAlone ? sql`from healthcare_terms d where d.term = ${search.term}` : matchesOf(whole, [], false)
  return { from, number }
}

/** Exact for few matches; of many, the first ones are counted, and the rest are taken to be as dense. */
async function estimateAll({ db }: StorageConnection, search: PreparedSearch): Promise<number> {
  if (search.candidates?.length === 0) return 0
  const { from, number } = countedOf(search)
  const { rows } = await sql<{ counted: number; last: number }>`
    select count(*) as counted, max(f.pk) as last
    from (select ${number} as pk ${from} order by ${number} limit ${COUNTED_MAX}) f`.execute(db)
  const counted = Number(rows[0]!.counted)
  if (counted < COUNTED_MAX) return counted
  // SQLite finds one end by its index, not two at once.
  const { rows: ends } = await sql<{ first: number; last: number }>`
    select (select min(pk) from healthcare_services) as first, (select max(pk) from healthcare_services) as last
  `.execute(db)
  const first = Number(ends[0]!.first)
  return Math.round((counted * (Number(ends[0]!.last) - first + 1)) / (Number(rows[0]!.last) - first + 1))
}

function linksOf(query: SearchQuery, previous: string | null, next: string | null): SearchPage['links'] {
  const pairs = query.used.filter(([name]) => name !== CURSOR_PARAMETER)
  const first = new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString()
  const at = (cursor: string): string => `${first}${first === '' ? '' : '&'}${CURSOR_PARAMETER}=${cursor}`
  return {
    self: query.cursor === '' ? first : at(query.cursor),
    first,
    previous: previous === null ? null : at(previous),
    next: next === null ? null : at(next),
  }
}

/** A position and a signature that binds it to its search. */
function writeCursor(query: SearchQuery, { isBackward, values }: Position, key: Buffer): string {
  const text = JSON.stringify([isBackward ? 1 : 0, ...values])
  return `${Buffer.from(text).toString('base64url')}.${signatureOf(query, text, key).toString('base64url')}`
}

/** Drivers return large integers as text. */
function valuesOf(row: PageRow, order: readonly OrderColumn[]): readonly (string | number)[] {
  return order.map(({ isNumber }, index) => (isNumber ? Number(row[`k${index}`]) : row[`k${index}`]!))
}

function readCursor(query: SearchQuery, key: Buffer): Position | null {
  if (query.cursor === '') return null
  const [encoded = '', mac = ''] = query.cursor.split('.')
  const text = Buffer.from(encoded, 'base64url').toString()
  const given = Buffer.from(mac, 'base64url')
  const expected = signatureOf(query, text, key)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new InvalidCursor('the position belongs to another search')
  }
  const [direction, ...values] = JSON.parse(text) as [number, ...(string | number)[]]
  return { isBackward: direction === 1, values }
}

/** Parameters that change neither the matches nor their order may change between pages. */
function signatureOf({ filters, sort, used }: SearchQuery, text: string, key: Buffer): Buffer {
  const names = new Set([...filters.map(({ parameter }) => parameter.name)])
  const bound = used.filter(([name]) => names.has(name.split(':', 1)[0]!) || name === '_sort')
  const search = JSON.stringify([bound, sort.length])
  return createHmac('sha256', key).update(`${search}\n${text}`).digest().subarray(0, MAC_BYTES)
}
