/** Responses of the API: an answer or a refusal with its header fields, in the media type that the client asked for. */
import type { MountedResponse } from '../interface.ts'
import { type Answer, etagOf, type Refused, RESOURCE_TYPE } from './interaction.ts'
import { type JsonObject, readJson, writeJson } from './json-text.ts'
import { operationOutcome } from './outcome.ts'
import { urlOf } from './read-interactions.ts'

/** Wishes of a request for the form of its response. */
export interface ResponseTerms {
  readonly mediaType: string
  readonly isPretty: boolean
  /** `Prefer: return`. */
  readonly wanted: 'minimal' | 'representation' | 'OperationOutcome'
  readonly base: string
}

type Fields = (readonly [name: string, value: string])[]

export function responseOf(answer: Answer, terms: ResponseTerms): MountedResponse {
  const { status, version, isLocated } = answer
  const fields: Fields = []
  if (version !== undefined) {
    fields.push(['ETag', etagOf(version)])
    if (version.method !== 'DELETE') fields.push(['Last-Modified', new Date(version.updatedMs).toUTCString()])
    if (isLocated === true) fields.push(['Location', `${urlOf(terms.base, version)}/_history/${version.version}`])
  }
  const body = bodyOf(answer, terms)
  // RFC 9110 15.4.5: 304 has those fields of 200 that caches go by.
  if (body === null) return { status, fields: status === 304 ? [...fields, ...CACHE_FIELDS] : fields }
  return { status, fields: [...fields, ...typeFields(terms)], body }
}

export function refusalResponse({ status, issues, fields }: Refused, terms: ResponseTerms): MountedResponse {
  const body = writeJson(operationOutcome(issues), terms.isPretty)
  return { status, fields: [...fields, ...typeFields(terms)], body }
}

function typeFields({ mediaType }: ResponseTerms): Fields {
  return [['Content-Type', `${mediaType}; charset=utf-8`], ...CACHE_FIELDS]
}

/** A resource belongs to whoever may read it. */
const CACHE_FIELDS: Fields = [
  ['Cache-Control', 'private, no-cache'],
  ['Vary', 'Accept, Authorization'],
]

function bodyOf({ resource, isChange, status, issues = [] }: Answer, terms: ResponseTerms): string | null {
  if (resource === null) return null
  if (isChange === true && terms.wanted === 'minimal') return null
  if (isChange === true && terms.wanted === 'OperationOutcome') {
    const text = `The ${RESOURCE_TYPE} is ${status === 201 ? 'created' : 'stored'}`
    const done = { severity: 'information', code: 'informational', text } as const
    return writeJson(operationOutcome([done, ...issues]), terms.isPretty)
  }
  return textOf(resource, terms.isPretty)
}

function textOf(resource: JsonObject | string, isPretty: boolean): string {
  if (typeof resource !== 'string') return writeJson(resource, isPretty)
  return isPretty ? writeJson(readJson(resource), true) : resource
}
