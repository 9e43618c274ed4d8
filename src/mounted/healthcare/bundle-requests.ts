/**
 * Batch and transaction Bundles (R4, http.html#transaction). The entries of a batch succeed and fail each for itself; a
 * transaction changes everything or nothing. Its reads run after its changes, on what is stored then (D324).
 */
import { randomUUID } from 'node:crypto'
import {
  type Answer,
  etagOf,
  type Interaction,
  jsonOfBody,
  Refused,
  refused,
  RESOURCE_TYPE,
  type WriteRun,
} from './interaction.ts'
import type { Interactions } from './interactions.ts'
import { isObject, type JsonObject, setMember, writeJson } from './json-text.ts'
import { sentType } from './media-types.ts'
import { hasErrors, type Issue, operationOutcome } from './outcome.ts'
import { urlOf } from './read-interactions.ts'
import { SITUATIONS } from './situations.ts'
import type { ServiceStorage, ServiceWriter } from './storage.ts'
import { validateResource } from './validation.ts'
import { criteriaOf, onlyMatch } from './write-interactions.ts'

/** Members of the request that every entry of its Bundle shares. */
type BundleContext = Pick<Interaction, 'base' | 'isStrict' | 'may' | 'waiter'> & {
  readonly entriesMax: number
  /** Milliseconds from the begin of the Bundle in which its searches may begin. */
  readonly searchMsMax: number
  /** Bytes of the response from which on no further entry runs. */
  readonly responseBytesMax: number
  /** True if stored resources are part of the response. */
  readonly isFull: boolean
}

interface Entry {
  readonly index: number
  readonly fullUrl: string
  readonly interaction: Interaction
  readonly resource: JsonObject | null
}

/** Entries of a batch that run at once, so that their commits are shared. */
const AT_ONCE = 16
const REASONS: Readonly<Record<number, string>> = {
  ...{ 200: 'OK', 201: 'Created', 204: 'No Content', 304: 'Not Modified', 400: 'Bad Request', 403: 'Forbidden' },
  ...{ 404: 'Not Found', 405: 'Method Not Allowed', 409: 'Conflict', 410: 'Gone', 412: 'Precondition Failed' },
  ...{ 415: 'Unsupported Media Type', 422: 'Unprocessable Content', 500: 'Internal Server Error' },
  503: 'Service Unavailable',
}
/** Order of the changes of a transaction. */
const CHANGES: readonly string[] = ['DELETE', 'POST', 'PUT', 'PATCH']

export class BundleRequests {
  readonly #interactions: Interactions
  readonly #storage: ServiceStorage

  constructor(interactions: Interactions, storage: ServiceStorage) {
    this.#interactions = interactions
    this.#storage = storage
  }

  /** `value`: of the body. Rejects with Refused, and with errors of the database. */
  async run(value: unknown, context: BundleContext): Promise<Answer> {
    const issues = validateResource(value, 'Bundle')
    const isBatch = isObject(value) && value.type === 'batch'
    // A batch refuses its entries one by one.
    const ofBundle = isBatch
      ? issues.filter(({ expression = '' }) => !/^Bundle\.entry\[\d+\]\.resource/.test(expression))
      : issues
    if (hasErrors(ofBundle)) throw new Refused(SITUATIONS['resource-structure'].status, ofBundle)
    const bundle = value as JsonObject
    if (bundle.type !== 'batch' && bundle.type !== 'transaction') {
      const diagnostics = 'A Bundle of the type batch or transaction is expected'
      throw refused('parameter-not-supported', { diagnostics, expression: 'Bundle.type' })
    }
    const given = (bundle.entry ?? []) as readonly JsonObject[]
    if (given.length > context.entriesMax) {
      throw refused('too-costly', { diagnostics: `A Bundle has at most ${context.entriesMax} entries` })
    }
    const entries = given.map((entry, index) => entryOf(entry, index, context))
    const cost = new BundleCost(context)
    const texts = isBatch ? await this.#batch(entries, context, cost) : await this.#transaction(entries, context, cost)
    const head = writeJson({ resourceType: 'Bundle', id: randomUUID(), type: `${String(bundle.type)}-response` })
    const resource = texts.length === 0 ? head : `${head.slice(0, -1)},"entry":[${texts.join(',')}]}`
    return { status: 200, resource }
  }

  async #batch(entries: readonly Entry[], context: BundleContext, cost: BundleCost): Promise<readonly string[]> {
    const texts: string[] = []
    for (let at = 0; at < entries.length; at += AT_ONCE) {
      const group = entries.slice(at, at + AT_ONCE)
      texts.push(...(await Promise.all(group.map(entry => this.#runAlone(entry, context, cost)))))
    }
    return texts
  }

  async #runAlone({ interaction }: Entry, context: BundleContext, cost: BundleCost): Promise<string> {
    try {
      cost.check(interaction)
      return cost.counted(entryText(await this.#interactions.run(interaction), context))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      return refusedText(error)
    }
  }

  async #transaction(entries: readonly Entry[], context: BundleContext, cost: BundleCost): Promise<readonly string[]> {
    refuseOverlaps(entries)
    const texts: string[] = new Array(entries.length).fill('')
    const changes = CHANGES.flatMap(method => entries.filter(({ interaction }) => interaction.method === method))
    const reads = entries.filter(entry => !changes.includes(entry))
    await this.#storage.write(async writer => {
      cost.forget()
      const write: WriteRun = work => work(writer)
      const { resources, ids } = await resolveReferences(entries, writer, context.base, cost)
      for (const { index, interaction } of changes) {
        const content = contentWith(interaction, resources.get(index))
        const own = ids.get(index)
        const change = async (): Promise<Answer> => {
          cost.check(interaction)
          return this.#interactions.run({ ...interaction, content }, write, own)
        }
        texts[index] = cost.counted(entryText(await atEntry(index, change), context))
      }
    })
    for (const entry of reads) texts[entry.index] = await this.#runAlone(entry, context, cost)
    return texts
  }
}

/**
 * Bounds the time of one request and the memory of its response: each search has limits, but a Bundle may have hundreds
 * of the most costly ones.
 */
class BundleCost {
  readonly #begunMs = performance.now()
  readonly #searchMsMax: number
  readonly #bytesMax: number
  #bytes = 0

  constructor({ searchMsMax, responseBytesMax }: BundleContext) {
    this.#searchMsMax = searchMsMax
    this.#bytesMax = responseBytesMax
  }

  /** Throws Refused where the response is long enough, and where `interaction` searches too late. */
  check({ method, segments, query, conditions }: Interaction): void {
    if (this.#bytes >= this.#bytesMax) {
      throw refused('too-costly', {
        text: 'The response is too long',
        diagnostics: `No entry of a Bundle runs once its response has ${this.#bytesMax} bytes`,
      })
    }
    const isRead = method === 'GET' || segments[1] === '_search'
    const isSearch = isRead ? segments[1] === undefined || segments[1].startsWith('_') : query !== ''
    if (!isSearch && conditions.ifNoneExist === '') return
    if (performance.now() - this.#begunMs <= this.#searchMsMax) return
    throw refused('too-costly', { diagnostics: `The searches of a Bundle begin within ${this.#searchMsMax} ms` })
  }

  /** `text`: of the response of an entry. */
  counted(text: string): string {
    this.#bytes += Buffer.byteLength(text)
    return text
  }

  /** The entries run again from the first one. */
  forget(): void {
    this.#bytes = 0
  }
}

/** Rejects with what `step` rejects with; a refusal names the entry. */
async function atEntry<T>(index: number, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw placed(error, index)
  }
}

/** A refusal of an entry refuses the whole transaction, and names the entry. */
function placed(error: unknown, index: number): unknown {
  if (!(error instanceof Refused)) return error
  const issues = error.issues.map((issue): Issue => {
    const at = `Bundle.entry[${index}]`
    const { expression } = issue
    return {
      ...issue,
      expression: expression === undefined ? at : `${at}.resource.ofType(${expression.replace('.', ').')}`,
    }
  })
  return new Refused(error.status, issues)
}

function entryOf(entry: JsonObject, index: number, context: BundleContext): Entry {
  const request = entry.request as Readonly<Record<string, unknown>>
  const { base, isStrict, may, waiter } = context
  const text = (name: string): string => (typeof request[name] === 'string' ? request[name] : '')
  const url = text('url')
  const relative = url.startsWith(`${base}/`) ? url.slice(base.length + 1) : url.replace(/^\//, '')
  const [path = '', query = ''] = splitOnce(relative, '?')
  const method = text('method')
  const resource = isObject(entry.resource) ? entry.resource : null
  const since = text('ifModifiedSince')
  const interaction: Interaction = {
    method: method === 'HEAD' ? 'GET' : method,
    segments: path === '' ? [] : path.replace(/\/$/, '').split('/'),
    query,
    conditions: {
      ifMatch: text('ifMatch'),
      ifNoneMatch: text('ifNoneMatch'),
      ifModifiedSince: since,
      ifNoneExist: text('ifNoneExist'),
    },
    ...{ isStrict, base, may, waiter },
    content: contentOf(resource),
  }
  return { index, fullUrl: typeof entry.fullUrl === 'string' ? entry.fullUrl : '', interaction, resource }
}

/** A Binary holds a body that is no resource, such as a JSON Patch. */
function contentOf(resource: JsonObject | null): Interaction['content'] {
  if (resource?.resourceType === 'Binary') {
    const text = Buffer.from(String(resource.data ?? ''), 'base64').toString()
    const mediaType = sentType(String(resource.contentType)) ?? 'unsupported'
    return { mediaType, text: async () => text, json: async () => jsonOfBody(text) }
  }
  const mediaType = resource === null ? '' : 'application/health+json'
  return { mediaType, text: async () => (resource === null ? '' : writeJson(resource)), json: async () => resource }
}

function contentWith({ content }: Interaction, resource: JsonObject | undefined): Interaction['content'] {
  return resource === undefined ? content : { ...content, json: async () => resource }
}

/** Two entries of a transaction must not change the same service (R4, http.html#trules). */
function refuseOverlaps(entries: readonly Entry[]): void {
  const known = new Set<string>()
  for (const { index, interaction } of entries) {
    const { method, segments, query } = interaction
    if (!CHANGES.includes(method) || method === 'POST' || query !== '') continue
    const target = segments.join('/')
    if (known.has(target)) {
      const diagnostics = 'Another entry changes the same resource'
      throw refused('patch-malformed', {
        code: 'invalid',
        text: 'The transaction is ambiguous',
        diagnostics,
        expression: `Bundle.entry[${index}]`,
      })
    }
    known.add(target)
  }
}

interface Resolved {
  /** By entry: the resource with the references that its server will have. */
  readonly resources: ReadonlyMap<number, JsonObject>
  /** By entry: the id of a new service. */
  readonly ids: ReadonlyMap<number, string>
}

/** References to the fullUrl of an entry become those to its service. */
async function resolveReferences(
  entries: readonly Entry[],
  writer: ServiceWriter,
  base: string,
  cost: BundleCost,
): Promise<Resolved> {
  const ids = new Map<number, string>()
  const references = new Map<string, string>()
  for (const { index, fullUrl, interaction } of entries) {
    if (interaction.method !== 'POST' || interaction.segments.length !== 1) continue
    const { ifNoneExist } = interaction.conditions
    const found = await atEntry(index, async () => {
      if (ifNoneExist === '') return undefined
      cost.check(interaction)
      return onlyMatch(writer, criteriaOf(ifNoneExist.replace(/^\?/, ''), 'If-None-Exist'), interaction)
    })
    const id = found?.id ?? randomUUID()
    if (found === undefined) ids.set(index, id)
    if (fullUrl !== '') references.set(fullUrl, `${RESOURCE_TYPE}/${id}`)
  }
  const resources = new Map<number, JsonObject>()
  if (references.size === 0) return { resources, ids }
  for (const { index, resource } of entries) {
    if (resource !== null && resource.resourceType !== 'Binary') {
      resources.set(index, withReferences(resource, references, base) as JsonObject)
    }
  }
  return { resources, ids }
}

/** A copy in which texts that are a key of `references` are replaced: references, and values of URI types. */
function withReferences(value: unknown, references: ReadonlyMap<string, string>, base: string): unknown {
  if (Array.isArray(value)) return value.map(item => withReferences(item, references, base))
  if (!isObject(value)) return value
  const copy: JsonObject = {}
  for (const [name, member] of Object.entries(value)) {
    const found = typeof member === 'string' ? references.get(member) : undefined
    if (found !== undefined && name === 'reference') setMember(copy, name, found)
    else if (found !== undefined && /^value(?:Uri|Url|Canonical)$/.test(name)) setMember(copy, name, `${base}/${found}`)
    else setMember(copy, name, withReferences(member, references, base))
  }
  return copy
}

function entryText(
  { status, resource, version, isChange, isLocated }: Answer,
  { base, isFull }: BundleContext,
): string {
  const response: JsonObject = { status: statusText(status) }
  if (version !== undefined) {
    if (isLocated === true) response.location = `${urlOf(base, version)}/_history/${version.version}`
    response.etag = etagOf(version)
    response.lastModified = new Date(version.updatedMs).toISOString()
  }
  const isShown = resource !== null && (isChange !== true || isFull)
  const shown = isShown ? `"resource":${typeof resource === 'string' ? resource : writeJson(resource)},` : ''
  const url = version === undefined ? '' : `"fullUrl":${JSON.stringify(urlOf(base, version))},`
  return `{${url}${shown}"response":${writeJson(response)}}`
}

function refusedText({ status, issues }: Refused): string {
  return writeJson({ response: { status: statusText(status), outcome: operationOutcome(issues) } })
}

function statusText(status: number): string {
  return `${status} ${REASONS[status] ?? ''}`.trim()
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
