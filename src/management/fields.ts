/**
 * What a client may write, read strictly: JSON bodies and queries whose every member is known and of its type. What it
 * is allowed to send back of an answer is named and ignored, because clients change what they have got and send all of
 * it.
 */
import { isText, type JsonObject, strictObject } from '../structure/strict-json.ts'
import { invalid, Problem } from './problem.ts'

/** The value, or undefined where it will not do. */
export interface Field<T> {
  readonly expects: string
  readonly read: (given: unknown) => T | undefined
  /** Where it is left out; undefined: it must be there. */
  readonly fallback: T | undefined
}

type Fields = Readonly<Record<string, Field<unknown>>>
type Read<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }

const BODY_BYTES_MAX = 64 * 1024
const JSON_TYPE = /^application\/(?:[a-z]+\+)?json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** Throws Problem. */
export async function readBody<F extends Fields>(
  request: Request,
  fields: F,
  ignored: readonly string[] = [],
): Promise<Read<F>> {
  return readMembers(await readJson(request), fields, ignored)
}

/** Throws Problem: 415 where it is not JSON, because a page of another origin can send anything else unasked. */
async function readJson(request: Request): Promise<JsonObject> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) throw new Problem(415, 'a body is application/json')
  const bytes = Buffer.from(await request.arrayBuffer())
  if (bytes.byteLength > BODY_BYTES_MAX) throw new Problem(413, `a body has at most ${BODY_BYTES_MAX} bytes`)
  const value = strictObject(bytes)
  if (isText(value)) throw new Problem(400, `body: ${value}`)
  return value
}

/** Throws Problem, which names the member. */
export function readMembers<F extends Fields>(given: JsonObject, fields: F, ignored: readonly string[] = []): Read<F> {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(fields, name) && !ignored.includes(name)) throw invalid(name.slice(0, 100), 'is not known here')
  }
  const values: Record<string, unknown> = {}
  for (const [name, { read, fallback, expects }] of Object.entries(fields)) {
    const value = Object.hasOwn(given, name) ? (given[name] ?? undefined) : undefined
    const taken = value === undefined ? fallback : read(value)
    if (taken === undefined) throw invalid(name, value === undefined ? 'is missing' : `expected ${expects}`)
    values[name] = taken
  }
  return values as Read<F>
}

/** A query: a parameter that is sent twice is refused. Throws Problem. */
export function readQuery<F extends Fields>(request: Request, fields: F): Read<F> {
  const given: Record<string, string> = {}
  for (const [name, value] of new URL(request.url).searchParams) {
    if (Object.hasOwn(given, name)) throw invalid(name.slice(0, 100), 'was sent twice')
    given[name] = value
  }
  return readMembers(given, fields)
}

export function optional<T>(field: Field<T>, fallback: T): Field<T> {
  return { ...field, fallback }
}

/** No control characters: it is shown in terminals and logs. */
export function text(max: number, min = 1): Field<string> {
  const read = (given: unknown): string | undefined => {
    if (typeof given !== 'string' || given.length < min || given.length > max) return undefined
    return /\p{Cc}/u.test(given) || !given.isWellFormed() ? undefined : given
  }
  return { expects: `text of ${min} to ${max} characters`, read, fallback: undefined }
}

/** As `text`, and without white space at its ends: names are compared. */
export function nameText(max: number): Field<string> {
  const plain = text(max)
  const read = (given: unknown) => (typeof given === 'string' && given.trim() === given ? plain.read(given) : undefined)
  return { ...plain, read, expects: `${plain.expects}, without blanks at its ends` }
}

export function oneOf<const T extends string>(...words: readonly T[]): Field<T> {
  const read = (given: unknown) => words.find(word => word === given)
  return { expects: `one of ${words.join(', ')}`, read, fallback: undefined }
}

export function whole(min: number, max: number): Field<number> {
  const read = (given: unknown): number | undefined => {
    const value = typeof given === 'string' && /^-?\d{1,15}$/.test(given) ? Number(given) : given
    return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max ? value : undefined
  }
  return { expects: `a whole number, ${min} to ${max}`, read, fallback: undefined }
}

export function flag(): Field<boolean> {
  const read = (given: unknown) => (typeof given === 'boolean' ? given : undefined)
  return { expects: 'true or false', read, fallback: undefined }
}

export function list<T>(of: Field<T>, max: number): Field<readonly T[]> {
  const read = (given: unknown): readonly T[] | undefined => {
    if (!Array.isArray(given) || given.length > max) return undefined
    const values = given.map(each => of.read(each))
    return values.every(value => value !== undefined) ? values : undefined
  }
  return { expects: `a list of at most ${max}, each ${of.expects}`, read, fallback: undefined }
}

/** Names of the client's own, with texts. */
export function texts(max: number, valueMax: number): Field<Readonly<Record<string, string>>> {
  const key = text(100)
  const value = text(valueMax, 0)
  const read = (given: unknown): Readonly<Record<string, string>> | undefined => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
    const entries = Object.entries(given)
    const isRight = entries.every(([name, each]) => key.read(name) !== undefined && value.read(each) !== undefined)
    return isRight && entries.length <= max ? Object.fromEntries(entries) : undefined
  }
  return { expects: `an object of at most ${max} texts`, read, fallback: undefined }
}

/** A member whose inside is read like a body. */
export function group<F extends Fields>(fields: F): Field<Read<F>> {
  const read = (given: unknown): Read<F> | undefined => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
    return readMembers(given as JsonObject, fields)
  }
  return { expects: `an object of ${Object.keys(fields).join(', ')}`, read, fallback: undefined }
}

/** What every list takes. */
export const PAGE = { limit: optional(whole(1, 1000), 25), offset: optional(whole(0, 1_000_000_000), 0) }
