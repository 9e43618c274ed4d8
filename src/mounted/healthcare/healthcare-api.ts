/**
 * The healthcare-service API as a mounted module (`sluice:healthcare`). Settings: `body_bytes_max`,
 * `bundle_entries_max`, `bundle_search_ms_max`, `bundle_response_bytes_max`, `sample_services` (services that an empty
 * database gets), `token_url` (of the token endpoint; default: `/token` of the gateway).
 */
import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BodyTooLong, type MountedRequest, type MountedResponse, type OpenMountedApi } from '../interface.ts'
import { BundleRequests } from './bundle-requests.ts'
import { capabilityStatement, smartConfiguration } from './capabilities.ts'
import { type Answer, type Interaction, type InteractionContent, jsonOfBody, Refused, refused } from './interaction.ts'
import { Interactions } from './interactions.ts'
import { writeJson } from './json-text.ts'
import { HEALTH_JSON, JSON_TYPES, responseType, sentType } from './media-types.ts'
import { refusalResponse, type ResponseTerms, responseOf } from './responses.ts'
import { grantedLetters } from './scopes.ts'
import { searchPairs } from './search-query.ts'
import { sampleServices } from './storage-sample.ts'
import type { HealthcareTables } from './storage-schema.ts'
import { ServiceStorage, StorageRefusal } from './storage.ts'

interface HealthcareSettings {
  /** Longest body of a request. */
  readonly bodyBytesMax: number
  readonly bundleEntriesMax: number
  readonly bundleSearchMsMax: number
  readonly bundleResponseBytesMax: number
  readonly sampleServices: number
  readonly tokenUrl: string
}

const BODY_BYTES_MAX = 2_097_152
const BUNDLE_ENTRIES_MAX = 500
const BUNDLE_SEARCH_MS_MAX = 10_000
const BUNDLE_RESPONSE_BYTES_MAX = 33_554_432
const SAMPLE_SERVICES_MAX = 10_000
const SAMPLE_SERVICES_AT_ONCE = 50
const REQUEST_ID_CHARS_MAX = 128
const METADATA = 'metadata'
const WELL_KNOWN = '.well-known/smart-configuration'

export const open: OpenMountedApi = async context => {
  const settings = readSettings(context.settings)
  const storage = await ServiceStorage.open(context.database<HealthcareTables>())
  if (settings.sampleServices > 0) await addSample(storage, settings.sampleServices)
  const api = new HealthcareApi(storage, settings, new Date().toISOString())
  return { handle: request => api.handle(request) }
}

class HealthcareApi {
  readonly #settings: HealthcareSettings
  readonly #interactions: Interactions
  readonly #bundles: BundleRequests
  readonly #openedAt: string

  constructor(storage: ServiceStorage, settings: HealthcareSettings, openedAt: string) {
    this.#settings = settings
    this.#interactions = new Interactions(storage)
    this.#bundles = new BundleRequests(this.#interactions, storage)
    this.#openedAt = openedAt
  }

  async handle(request: MountedRequest): Promise<MountedResponse> {
    const response = await this.#respond(request)
    return { ...response, fields: [...(response.fields ?? []), ...idsOf(request)] }
  }

  async #respond(request: MountedRequest): Promise<MountedResponse> {
    const terms = termsOf(request)
    try {
      if (terms === undefined) throw refused('not-acceptable', { parameter: 'Accept' })
      return await this.#answer(request, terms)
    } catch (error) {
      const refusal = error instanceof BodyTooLong ? refused('body-too-large') : error
      if (!(refusal instanceof Refused)) throw refusal
      return refusalResponse(refusal, terms ?? DEFAULT_TERMS)
    }
  }

  async #answer(request: MountedRequest, terms: ResponseTerms): Promise<MountedResponse> {
    const segments = segmentsOf(request.path)
    const path = segments.join('/')
    if (path === METADATA) return this.#metadata(request, terms)
    if (path === WELL_KNOWN) {
      refuseOther(request, ['GET'])
      const body = writeJson(smartConfiguration(this.#tokenUrl(request)))
      return { status: 200, fields: [['Content-Type', 'application/json']], body }
    }
    if (path === '') return responseOf(await this.#bundle(request, terms), terms)
    return responseOf(await this.#interactions.run(this.#interactionOf(request, segments)), terms)
  }

  #metadata(request: MountedRequest, terms: ResponseTerms): MountedResponse {
    refuseOther(request, ['GET'])
    const facts = { base: request.url, date: this.#openedAt, tokenUrl: this.#tokenUrl(request) }
    const statement = capabilityStatement(facts)
    const mode = searchPairs(request.query).find(([name]) => name === 'mode')?.[1] ?? 'full'
    if (!['full', 'normative'].includes(mode)) throw refused('parameter-not-supported', { parameter: 'mode' })
    // The time of the thread does not make another statement.
    const digest = createHash('sha256')
      .update(writeJson({ ...statement, date: '' }))
      .digest('base64url')
      .slice(0, 16)
    const etag = `W/"${digest}"`
    const fields = [['ETag', etag]] as const
    if (request.field('if-none-match') === etag) return { status: 304, fields }
    const response = responseOf({ status: 200, resource: statement }, terms)
    return { ...response, fields: [...fields, ...(response.fields ?? [])] }
  }

  #tokenUrl({ url }: MountedRequest): string {
    return this.#settings.tokenUrl || `${new URL(url).origin}/token`
  }

  async #bundle(request: MountedRequest, terms: ResponseTerms): Promise<Answer> {
    refuseOther(request, ['POST'])
    const { base, isStrict, content, may, waiter } = this.#interactionOf(request, [])
    const isFull = terms.wanted === 'representation'
    const { bundleEntriesMax, bundleSearchMsMax, bundleResponseBytesMax } = this.#settings
    const limits = {
      entriesMax: bundleEntriesMax,
      searchMsMax: bundleSearchMsMax,
      responseBytesMax: bundleResponseBytesMax,
    }
    return this.#bundles.run(await content.json(), { base, isStrict, may, waiter, isFull, ...limits })
  }

  #interactionOf(request: MountedRequest, segments: readonly string[]): Interaction {
    const { caller, method, query, url } = request
    const letters = grantedLetters(caller.scopes)
    return {
      method: method === 'HEAD' ? 'GET' : method,
      segments,
      query,
      conditions: {
        ifMatch: request.field('if-match') ?? '',
        ifNoneMatch: request.field('if-none-match') ?? '',
        ifModifiedSince: request.field('if-modified-since') ?? '',
        ifNoneExist: request.field('if-none-exist') ?? '',
      },
      isStrict: preference(request, 'handling') === 'strict',
      base: url,
      content: new RequestContent(request, this.#settings.bodyBytesMax),
      // An operation that needs no credentials is open by the will of its operator.
      may: letter => caller.method === 'none' || letters.has(letter),
      waiter: { isGone: () => request.signal.aborted, mayBeGone: () => request.hasClientEnded },
    }
  }
}

class RequestContent implements InteractionContent {
  readonly mediaType: string
  readonly #request: MountedRequest
  readonly #bytesMax: number

  constructor(request: MountedRequest, bytesMax: number) {
    const type = sentType(request.field('content-type'))
    this.mediaType = type ?? 'unsupported'
    this.#request = request
    this.#bytesMax = bytesMax
  }

  async text(): Promise<string> {
    const coding = this.#request.field('content-encoding') ?? ''
    // RFC 9110 8.4: what is encoded would be read as what it is not.
    if (!/^(?:identity)?$/i.test(coding.trim())) throw refused('media-type', { parameter: 'Content-Encoding' })
    const bytes = await this.#request.body.bytes(this.#bytesMax)
    try {
      return DECODER.decode(bytes)
    } catch {
      throw refused('json-syntax', { diagnostics: 'The body is not UTF-8' })
    }
  }

  async json(): Promise<unknown> {
    const isPatch = this.mediaType === 'application/json-patch+json' && this.#request.method === 'PATCH'
    if (!isPatch && !JSON_TYPES.includes(this.mediaType)) throw refused('media-type', { parameter: 'Content-Type' })
    return jsonOfBody(await this.text())
  }
}

const DECODER = new TextDecoder('utf-8', { fatal: true })
const DEFAULT_TERMS: ResponseTerms = { mediaType: HEALTH_JSON, isPretty: false, wanted: 'representation', base: '' }

/**
 * Ids of the client come back (R4, http.html#custom). A request without X-Request-Id gets the id of the gateway, one
 * without X-Correlation-Id gets none.
 */
function idsOf(request: MountedRequest): readonly (readonly [name: string, value: string])[] {
  const given = (name: string): string => {
    const id = request.field(name) ?? ''
    return id.length <= REQUEST_ID_CHARS_MAX ? id : ''
  }
  const correlationId = given('x-correlation-id')
  const own = ['X-Request-Id', given('x-request-id') || request.correlationId] as const
  return correlationId === '' ? [own] : [own, ['X-Correlation-Id', correlationId]]
}

/** Undefined: no media type is acceptable. */
function termsOf(request: MountedRequest): ResponseTerms | undefined {
  const pairs = request.query === '' ? [] : searchPairs(request.query)
  const queryValue = (name: string): string | undefined => pairs.findLast(pair => pair[0] === name)?.[1]
  const mediaType = responseType(request.field('accept'), queryValue('_format'))
  if (mediaType === undefined) return undefined
  const wanted = preference(request, 'return')
  return {
    mediaType,
    isPretty: queryValue('_pretty') === 'true',
    wanted: wanted === 'minimal' || wanted === 'OperationOutcome' ? wanted : 'representation',
    base: request.url,
  }
}

/** A preference of the field Prefer (RFC 7240); '' where it is missing. */
function preference(request: MountedRequest, name: string): string {
  const field = request.field('prefer')
  if (field === undefined) return ''
  for (const part of field.split(/[,;]/)) {
    const [key = '', value = ''] = part.split('=', 2).map(text => text.trim())
    if (key.toLowerCase() === name) return value.replace(/^"|"$/g, '')
  }
  return ''
}

function segmentsOf(path: string): readonly string[] {
  const segments = path.split('/').filter(segment => segment !== '')
  try {
    return segments.map(segment => decodeURIComponent(segment))
  } catch {
    return segments
  }
}

function refuseOther({ method }: MountedRequest, allowed: readonly string[]): void {
  if (allowed.includes(method === 'HEAD' ? 'GET' : method)) return
  throw refused('method-not-allowed', {}, [['Allow', allowed.join(', ')]])
}

/** Throws RangeError for a setting that is no number of its range: the API does not open then. */
function readSettings(given: Readonly<Record<string, unknown>>): HealthcareSettings {
  const number = (name: string, normal: number, most: number): number => {
    const value = given[name] === undefined ? normal : Number(given[name])
    if (Number.isSafeInteger(value) && value >= 0 && value <= most) return value
    throw new RangeError(`the setting ${name} is a number from 0 to ${most}`)
  }
  return {
    bodyBytesMax: number('body_bytes_max', BODY_BYTES_MAX, 67_108_864),
    bundleEntriesMax: number('bundle_entries_max', BUNDLE_ENTRIES_MAX, 10_000),
    bundleSearchMsMax: number('bundle_search_ms_max', BUNDLE_SEARCH_MS_MAX, 600_000),
    bundleResponseBytesMax: number('bundle_response_bytes_max', BUNDLE_RESPONSE_BYTES_MAX, 268_435_456),
    sampleServices: number('sample_services', 0, SAMPLE_SERVICES_MAX),
    tokenUrl: typeof given.token_url === 'string' ? given.token_url : '',
  }
}

/** Several threads open at once: one of them adds the sample, and only to a database without any service. */
async function addSample(storage: ServiceStorage, count: number): Promise<void> {
  if (!(await storage.isEmpty())) return
  try {
    await storage.write(async writer => {
      let number = 0
      for (const service of sampleServices(count)) {
        // A thread that answers no message for seconds would be replaced.
        if (++number % SAMPLE_SERVICES_AT_ONCE === 0) await nextTurn()
        await writer.create(service, String(service.id))
      }
    })
  } catch (error) {
    if (!(error instanceof StorageRefusal)) throw error
  }
}
