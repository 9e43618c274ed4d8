/** Interactions that change nothing: read, version read, history and search. */
import { dateTimeInterval } from './date-interval.ts'
import {
  type Answer,
  demand,
  etagOf,
  type Interaction,
  Refused,
  refused,
  RESOURCE_TYPE,
  versionsIn,
} from './interaction.ts'
import { isObject, type JsonObject, readJson, writeJson } from './json-text.ts'
import { hasErrors, type Issue, operationOutcome } from './outcome.ts'
import { elementsOf, summaryOf, unknownElements } from './projection.ts'
import { readSearch, type SearchQuery, searchPairs } from './search-query.ts'
import { COUNT_DEFAULT, COUNT_MAX, CURSOR_PARAMETER } from './search-results.ts'
import { InvalidCursor } from './search-pages.ts'
import { SITUATIONS } from './situations.ts'
import type { HistoryRange } from './storage-history.ts'
import type { StoredVersion } from './storage-rows.ts'
import type { ServiceStorage } from './storage.ts'

type Pairs = readonly (readonly [name: string, value: string])[]

export class ReadInteractions {
  readonly #storage: ServiceStorage

  constructor(storage: ServiceStorage) {
    this.#storage = storage
  }

  async read(interaction: Interaction, id: string): Promise<Answer> {
    demand(interaction, ['r'])
    const stored = await this.#storage.read(id)
    if (stored === undefined) throw unknownService(id)
    if (stored.method === 'DELETE') throw refused('deleted', {}, [['ETag', etagOf(stored)]])
    return answerOf(interaction, stored)
  }

  async readVersion(interaction: Interaction, id: string, version: string): Promise<Answer> {
    demand(interaction, ['r'])
    const stored = /^[1-9]\d{0,9}$/.test(version) ? await this.#storage.readVersion(id, Number(version)) : undefined
    if (stored === undefined) throw refused('not-found', { diagnostics: 'There is no such version' })
    if (stored.method === 'DELETE') throw refused('deleted', {}, [['ETag', etagOf(stored)]])
    return answerOf(interaction, stored)
  }

  /** `id`: '' for the history of all services. */
  async history(interaction: Interaction, id: string): Promise<Answer> {
    demand(interaction, [id === '' ? 's' : 'r'])
    const given = searchPairs(interaction.query)
    const range = historyRange(given, interaction.isStrict)
    // The self link shows what was applied.
    const pairs = given.map(([name, value]) => [name, name === '_count' ? String(range.count) : value] as const)
    if (id !== '' && (await this.#storage.read(id)) === undefined) throw unknownService(id)
    const { versions, next, total } = await this.#storage.history(id, range)
    const path = id === '' ? RESOURCE_TYPE : `${RESOURCE_TYPE}/${id}`
    const kept = pairs.filter(([name]) => name !== CURSOR_PARAMETER)
    const linkTo = (more: Pairs): string => linkOf(`${interaction.base}/${path}/_history`, [...kept, ...more])
    const links = [
      { relation: 'self', url: linkOf(`${interaction.base}/${path}/_history`, pairs) },
      { relation: 'first', url: linkTo([]) },
      ...(next === null ? [] : [{ relation: 'next', url: linkTo([[CURSOR_PARAMETER, String(next)]]) }]),
    ]
    const entries = versions.map(version => historyEntry(interaction.base, version))
    return { status: 200, resource: bundleText('history', total, links, entries) }
  }

  /** `form`: pairs of a form body, which add up with those of the URL. */
  async search(interaction: Interaction, form: Pairs = []): Promise<Answer> {
    demand(interaction, ['s'])
    const pairs = [...searchPairs(interaction.query), ...form]
    const { query, issues } = readSearch(pairs, { isStrict: interaction.isStrict })
    if (query === null) throw new Refused(statusOfSearch(issues, form.length > 0), issues)
    const unknown = unknownElements(RESOURCE_TYPE, query.elements)
    const page = await this.#storage.search(query, interaction.base, interaction.waiter).catch((error: unknown) => {
      if (error instanceof InvalidCursor) {
        throw refused('parameter-value', { parameter: CURSOR_PARAMETER, diagnostics: error.message })
      }
      throw error
    })
    const { base } = interaction
    const url = (part: string): string => `${base}/${RESOURCE_TYPE}${part === '' ? '' : `?${part}`}`
    const relations = [
      ['self', page.links.self],
      ['first', page.links.first],
    ] as const
    const links = [
      ...relations,
      ['previous', page.links.previous] as const,
      ['next', page.links.next] as const,
    ].flatMap(([relation, part]) => (part === null ? [] : [{ relation, url: url(part) }]))
    const entries = page.matches.map(match => searchEntry(base, match, query))
    const notes = [...issues, ...unknown.map(elementNote)]
    if (notes.length > 0) entries.push(writeJson({ resource: operationOutcome(notes), search: { mode: 'outcome' } }))
    const isCounted = query.total !== 'none' || query.summary === 'count' || query.count === 0
    return { status: 200, resource: bundleText('searchset', isCounted ? page.total : null, links, entries) }
  }
}

/** Faults of a search that have a status of their own. */
function statusOfSearch(issues: readonly Issue[], isForm: boolean): number {
  const isTooLong = issues.some(({ code, severity }) => code === 'too-long' && severity === 'error')
  return SITUATIONS[!isTooLong ? 'parameter-value' : isForm ? 'body-too-large' : 'url-too-long'].status
}

function elementNote(name: string): Issue {
  const text = `the resource has no element ${name}`
  return { severity: 'warning', code: 'processing', text, parameter: '_elements' }
}

export function unknownService(id: string): Refused {
  return refused('not-found', {
    diagnostics: `There is no ${RESOURCE_TYPE} with the id ${JSON.stringify(id.slice(0, 64))}`,
  })
}

/** 304 where the client has the version (RFC 9110 13.2.2: If-None-Match wins). */
function answerOf({ conditions, query }: Interaction, stored: StoredVersion): Answer {
  const { ifNoneMatch, ifModifiedSince } = conditions
  if (ifNoneMatch !== '') {
    const isSame = ifNoneMatch.trim() === '*' || versionsIn(ifNoneMatch).includes(stored.version)
    if (isSame) return { status: 304, resource: null, version: stored }
  } else if (ifModifiedSince !== '') {
    const since = Date.parse(ifModifiedSince)
    // HTTP dates have no parts of a second.
    if (Math.floor(stored.updatedMs / 1000) * 1000 <= since) return { status: 304, resource: null, version: stored }
  }
  return { status: 200, resource: query === '' ? stored.content : projected(query, stored), version: stored }
}

/** A read takes `_summary` and `_elements`; other parameters than those of the format are faults. */
function projected(query: string, stored: StoredVersion): JsonObject | string {
  const { query: found, issues } = readSearch(searchPairs(query), { isStrict: false })
  if (found === null) throw new Refused(SITUATIONS['parameter-value'].status, issues)
  return projection(stored, found)
}

function projection({ content }: StoredVersion, { summary, elements }: SearchQuery): JsonObject | string {
  const isWhole = (summary === 'false' || summary === 'count') && elements.length === 0
  if (isWhole) return content
  const resource = readJson(content)
  if (!isObject(resource)) return content
  if (elements.length > 0) return elementsOf(resource, elements)
  return summary === 'true' || summary === 'text' || summary === 'data' ? summaryOf(resource, summary) : content
}

function searchEntry(base: string, stored: StoredVersion, query: SearchQuery): string {
  const resource = projection(stored, query)
  const text = typeof resource === 'string' ? resource : writeJson(resource)
  return `{"fullUrl":${JSON.stringify(urlOf(base, stored))},"resource":${text},"search":{"mode":"match"}}`
}

function historyEntry(base: string, stored: StoredVersion): string {
  const { id, method, content, updatedMs, version } = stored
  const isNew = method === 'POST' || (method === 'PUT' && version === 1)
  const url = method === 'POST' ? RESOURCE_TYPE : `${RESOURCE_TYPE}/${id}`
  const status = isNew ? '201 Created' : method === 'DELETE' ? '204 No Content' : '200 OK'
  const response = { status, etag: etagOf(stored), lastModified: new Date(updatedMs).toISOString() }
  const resource = content === '' ? '' : `"resource":${content},`
  const facts = writeJson({ request: { method, url }, response }).slice(1)
  return `{"fullUrl":${JSON.stringify(urlOf(base, stored))},${resource}${facts}`
}

export function urlOf(base: string, { id }: Pick<StoredVersion, 'id'>): string {
  return `${base}/${RESOURCE_TYPE}/${id}`
}

/** Stored contents are inserted as they are: a page parses nothing. */
function bundleText(type: string, total: number | null, links: readonly object[], entries: readonly string[]): string {
  const meta = { lastUpdated: new Date().toISOString() }
  const head = writeJson({ resourceType: 'Bundle', meta, type, ...(total === null ? {} : { total }), link: links })
  return entries.length === 0 ? head : `${head.slice(0, -1)},"entry":[${entries.join(',')}]}`
}

function linkOf(url: string, pairs: Pairs): string {
  const query = new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString()
  return query === '' ? url : `${url}?${query}`
}

type RangeReader = (value: string) => { readonly [Name in keyof HistoryRange]?: HistoryRange[Name] } | undefined

const RANGE_READERS: Readonly<Record<string, RangeReader>> = {
  _count: value => (/^\d{1,9}$/.test(value) ? { count: Math.min(Math.max(1, Number(value)), COUNT_MAX) } : undefined),
  _since: value => {
    const interval = dateTimeInterval(value.replace(' ', '+'))
    return interval === undefined ? undefined : { sinceMs: interval.start }
  },
  _at: value => {
    const interval = dateTimeInterval(value.replace(' ', '+'))
    return interval === undefined ? undefined : { at: { startMs: interval.start, endMs: interval.end } }
  },
  [CURSOR_PARAMETER]: value => (/^\d{1,15}$/.test(value) ? { before: Number(value) } : undefined),
  _format: () => ({}),
  _pretty: () => ({}),
}

function historyRange(pairs: Pairs, isStrict: boolean): HistoryRange {
  let range: HistoryRange = { count: COUNT_DEFAULT }
  const issues: Issue[] = []
  for (const [name, value] of pairs) {
    const isKnown = Object.hasOwn(RANGE_READERS, name)
    if (!isKnown && !isStrict) continue
    const found = isKnown ? RANGE_READERS[name]!(value) : undefined
    const text = isKnown ? 'the value is malformed' : 'the parameter is unknown'
    if (found === undefined) {
      issues.push({ severity: 'error', code: isKnown ? 'value' : 'processing', text, parameter: name.slice(0, 64) })
    } else range = { ...range, ...found }
  }
  if (hasErrors(issues)) throw new Refused(SITUATIONS['parameter-value'].status, issues)
  return range
}
