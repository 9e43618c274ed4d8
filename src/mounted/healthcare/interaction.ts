/** One interaction of the API (R4, http.html), free of its transport: a request of its own, or an entry of a Bundle. */
import { type JsonObject, JsonSyntaxError, readJson } from './json-text.ts'
import type { Issue } from './outcome.ts'
import { SITUATIONS, type Situation, situationIssue } from './situations.ts'
import type { StoredVersion } from './storage-rows.ts'
import type { ServiceWriter } from './storage.ts'

export const RESOURCE_TYPE = 'HealthcareService'

/** Letters of SMART scopes: create, read, update, delete, search. */
export type ScopeLetter = 'c' | 'r' | 'u' | 'd' | 's'

/** Preconditions of an interaction, as they are written; '' for none. */
interface Conditions {
  readonly ifMatch: string
  readonly ifNoneMatch: string
  /** A date of HTTP. */
  readonly ifModifiedSince: string
  /** Query of a search. */
  readonly ifNoneExist: string
}

export interface Interaction {
  /** HEAD is GET here. */
  readonly method: string
  /** Decoded segments behind the base: `HealthcareService`, `7`. */
  readonly segments: readonly string[]
  /** Without its question mark. */
  readonly query: string
  readonly conditions: Conditions
  /** `Prefer: handling=strict`. */
  readonly isStrict: boolean
  /** URL of the base, without a slash at its end. */
  readonly base: string
  readonly content: InteractionContent
  /** True if the caller holds a scope with the letter. */
  may(letter: ScopeLetter): boolean
  readonly waiter: Waiter
}

/** The client that waits for an answer. */
export interface Waiter {
  /** Returns whether the client has left. */
  isGone(): boolean
  /** The client has sent FIN: it waits for the answer, or has left. */
  mayBeGone(): boolean
}

export interface InteractionContent {
  /** Without parameters, in lower case; '' for none. */
  readonly mediaType: string
  /** The text of the body. Rejects with Refused. */
  text(): Promise<string>
  /** The JSON value of the body. Rejects with Refused. */
  json(): Promise<unknown>
}

/** The result of an interaction. */
export interface Answer {
  readonly status: number
  /** Null: no body. Text is JSON of a resource that was stored. */
  readonly resource: JsonObject | string | null
  /** The version that a change has made, for header fields and `Prefer: return`. */
  readonly version?: StoredVersion
  readonly isChange?: boolean
  /** The change was a creation: Location is sent. */
  readonly isLocated?: boolean
  /** Warnings about what was accepted. */
  readonly issues?: readonly Issue[]
}

/** Runs a change in a transaction: its own, or that of a Bundle. */
export type WriteRun = <T>(work: (writer: ServiceWriter) => Promise<T>) => Promise<T>

/** The interaction is refused with an OperationOutcome. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number
  readonly issues: readonly Issue[]
  readonly fields: readonly (readonly [name: string, value: string])[]

  constructor(status: number, issues: readonly Issue[], fields: Refused['fields'] = []) {
    super(`refused with ${status}`)
    this.status = status
    this.issues = issues
    this.fields = fields
  }
}

/** `more`: what is special in this case. */
export function refused(situation: Situation, more: Partial<Issue> = {}, fields: Refused['fields'] = []): Refused {
  return new Refused(SITUATIONS[situation].status, [situationIssue(situation, more)], fields)
}

/** The JSON value of a body. Throws Refused. */
export function jsonOfBody(text: string): unknown {
  try {
    return readJson(text)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw refused('json-syntax', { diagnostics: error.message })
  }
}

export function etagOf({ version }: StoredVersion): string {
  return `W/"${version}"`
}

/** Throws Refused where the caller lacks one of the letters. */
export function demand({ may }: Interaction, letters: readonly ScopeLetter[]): void {
  const missing = letters.filter(letter => !may(letter))
  if (missing.length === 0) return
  const diagnostics = `needed: ${missing.map(letter => `${RESOURCE_TYPE}.${letter}`).join(' and ')}`
  throw refused('scope-missing', { diagnostics })
}

/**
 * The stored version named by If-Match must be current. Undefined: any. -1: none matches. `*` holds for any version
 * that is there, which `current` says.
 */
export function expectedVersion(ifMatch: string, current: StoredVersion | undefined): number | undefined {
  if (ifMatch === '') return undefined
  const isThere = current !== undefined && current.method !== 'DELETE'
  if (ifMatch.trim() === '*') return isThere ? current.version : -1
  const named = versionsIn(ifMatch)
  if (named.length === 0)
    throw refused('parameter-value', { parameter: 'If-Match', diagnostics: 'it has no entity tag' })
  return isThere && named.includes(current.version) ? current.version : -1
}

/** Numbers of versions in a list of entity tags, compared weakly (RFC 9110 8.8.3.2). Other tags match nothing: -1. */
export function versionsIn(tags: string): readonly number[] {
  return [...tags.matchAll(/(?:W\/)?"([^"]*)"/g)].map(([, tag]) => (/^[1-9]\d{0,9}$/.test(tag!) ? Number(tag) : -1))
}
