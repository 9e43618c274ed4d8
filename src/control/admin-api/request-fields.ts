/**
 * Validates JSON bodies and queries: every member must be known and have its type. Read-only members of representations
 * are ignored, because clients send them back.
 */
import { isString, type JsonObject, parseStrictJson } from '../../auth/strict-json.ts'
import { invalidProblem, Problem } from './problem.ts'

/** A field reader: the parsed value, or undefined for an invalid one. */
export interface Field<T> {
  readonly expected: string
  readonly read: (input: unknown) => T | undefined
  /** Value of an omitted field; undefined for a required field. */
  readonly fallback: T | undefined
}

type Fields = Readonly<Record<string, Field<unknown>>>
type FieldValues<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }

const BODY_BYTES_MAX = 64 * 1024
const JSON_TYPE = /^application\/(?:[a-z]+\+)?json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** Throws Problem. */
export async function readBody<F extends Fields>(
  request: Request,
  fields: F,
  ignored: readonly string[] = [],
): Promise<FieldValues<F>> {
  return readMembers(await readJson(request), fields, ignored)
}

/** Rejects with Problem: 415 for other media types, which pages of other origins can send without preflight. */
export async function readJson(request: Request): Promise<JsonObject> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? ''))
    throw new Problem(415, 'the body must be application/json')
  const bytes = Buffer.from(await request.arrayBuffer())
  if (bytes.byteLength > BODY_BYTES_MAX) throw new Problem(413, `the body must have at most ${BODY_BYTES_MAX} bytes`)
  const value = parseStrictJson(bytes)
  if (isString(value)) throw new Problem(400, `body: ${value}`)
  return value
}

/** Throws Problem, which names the member. */
export function readMembers<F extends Fields>(
  members: JsonObject,
  fields: F,
  ignored: readonly string[] = [],
): FieldValues<F> {
  for (const name of Object.keys(members)) {
    if (!Object.hasOwn(fields, name) && !ignored.includes(name)) throw invalidProblem(name.slice(0, 100), 'is unknown')
  }
  const values: Record<string, unknown> = {}
  for (const [name, { read, fallback, expected }] of Object.entries(fields)) {
    const input = Object.hasOwn(members, name) ? (members[name] ?? undefined) : undefined
    const value = input === undefined ? fallback : read(input)
    if (value === undefined) throw invalidProblem(name, input === undefined ? 'is missing' : `expected ${expected}`)
    values[name] = value
  }
  return values as FieldValues<F>
}

/** Reads a query. Throws Problem, also for a repeated parameter. */
export function readQuery<F extends Fields>(request: Request, fields: F): FieldValues<F> {
  const parameters: Record<string, string> = {}
  for (const [name, value] of new URL(request.url).searchParams) {
    if (Object.hasOwn(parameters, name)) throw invalidProblem(name.slice(0, 100), 'is repeated')
    parameters[name] = value
  }
  return readMembers(parameters, fields)
}

export function optional<T>(field: Field<T>, fallback: T): Field<T> {
  return { ...field, fallback }
}

/** Text without control characters, because it appears in terminals and logs. */
export function text(max: number, min = 1): Field<string> {
  const read = (input: unknown): string | undefined => {
    if (typeof input !== 'string' || input.length < min || input.length > max) return undefined
    return /\p{Cc}/u.test(input) || !input.isWellFormed() ? undefined : input
  }
  return { expected: `text of ${min} to ${max} characters`, read, fallback: undefined }
}

/** Text without white space at its ends, because names are compared. */
export function nameText(max: number): Field<string> {
  const plain = text(max)
  const read = (input: unknown) => (typeof input === 'string' && input.trim() === input ? plain.read(input) : undefined)
  return { ...plain, read, expected: `${plain.expected}, without spaces at its ends` }
}

/** A single scope (RFC 6749 3.3); a text with a space would be two. */
export function scopeText(): Field<string> {
  const read = (input: unknown) =>
    typeof input === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/.test(input) ? input : undefined
  return { expected: 'a scope of 1 to 255 characters, without spaces', read, fallback: undefined }
}

export function oneOf<const T extends string>(...words: readonly T[]): Field<T> {
  const read = (input: unknown) => words.find(word => word === input)
  return { expected: `one of ${words.join(', ')}`, read, fallback: undefined }
}

export function integer(min: number, max: number): Field<number> {
  const read = (input: unknown): number | undefined => {
    const value = typeof input === 'string' && /^-?\d{1,15}$/.test(input) ? Number(input) : input
    return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max ? value : undefined
  }
  return { expected: `a whole number, ${min} to ${max}`, read, fallback: undefined }
}

export function boolean(): Field<boolean> {
  const read = (input: unknown) => (typeof input === 'boolean' ? input : undefined)
  return { expected: 'true or false', read, fallback: undefined }
}

export function list<T>(of: Field<T>, max: number): Field<readonly T[]> {
  const read = (input: unknown): readonly T[] | undefined => {
    if (!Array.isArray(input) || input.length > max) return undefined
    const values = input.map(each => of.read(each))
    return values.every(value => value !== undefined) ? values : undefined
  }
  return { expected: `a list of at most ${max}, each ${of.expected}`, read, fallback: undefined }
}

/** An object of strings with arbitrary names. */
export function textMap(max: number, valueMax: number): Field<Readonly<Record<string, string>>> {
  const key = text(100)
  const value = text(valueMax, 0)
  const read = (input: unknown): Readonly<Record<string, string>> | undefined => {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return undefined
    const entries = Object.entries(input)
    const isValid = entries.every(([name, each]) => key.read(name) !== undefined && value.read(each) !== undefined)
    return isValid && entries.length <= max ? Object.fromEntries(entries) : undefined
  }
  return { expected: `an object of at most ${max} texts`, read, fallback: undefined }
}

/** A nested object that is validated like a body. */
export function object<F extends Fields>(fields: F): Field<FieldValues<F>> {
  const read = (input: unknown): FieldValues<F> | undefined => {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return undefined
    return readMembers(input as JsonObject, fields)
  }
  return { expected: `an object of ${Object.keys(fields).join(', ')}`, read, fallback: undefined }
}

/** Paging parameters of every list. */
export const PAGE = { limit: optional(integer(1, 1000), 25), offset: optional(integer(0, 1_000_000_000), 0) }
