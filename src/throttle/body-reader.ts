/** Reads members of a body (a parsed REST body or file) and collects what is wrong, each problem with its path. */
import { nearest } from '../config/nearest.ts'

export type BodyPath = readonly (string | number)[]

export interface BodyProblem {
  readonly path: BodyPath
  /** Undefined where the value is missing, or is no plain value. */
  readonly given: unknown
  readonly expected: string
  readonly hint: string
}

export class BodyReader {
  readonly errors: BodyProblem[] = []
  readonly warnings: BodyProblem[] = []
  readonly #body: unknown

  constructor(body: unknown) {
    this.#body = body
  }

  /** undefined for a missing value and for null. */
  value(path: BodyPath): unknown {
    let value = this.#body
    for (const name of path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof name === 'number')) return
      value = Object.hasOwn(value, name) ? (value as Readonly<Record<string | number, unknown>>)[name] : undefined
    }
    return value ?? undefined
  }

  has(path: BodyPath): boolean {
    return this.value(path) !== undefined
  }

  error(path: BodyPath, given: unknown, expected: string, hint: string): void {
    this.errors.push({ path, given: typeof given === 'object' ? undefined : given, expected, hint })
  }

  /** The value must be a map whose names are all known; false, with an error, for anything else. */
  map(path: BodyPath, known: readonly string[]): boolean {
    const value = this.value(path)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      if (value === undefined && path.length > 0) this.error(path, undefined, 'is missing', 'add it')
      else this.error(path, value, 'expected names with their values', 'write name: value')
      return false
    }
    for (const name of Object.keys(value)) {
      if (known.includes(name)) continue
      const guess = nearest(name, known)
      const hint = guess === '' ? 'leave it out' : `did you mean ${guess}?`
      this.error([...path, name], undefined, 'is no member that is known here', hint)
    }
    return true
  }

  /** Paths of the items of a list of at most `max`; a missing list is empty. */
  items(path: BodyPath, max: number): readonly BodyPath[] {
    const value = this.value(path) ?? []
    if (!Array.isArray(value)) {
      this.error(path, value, 'expected a list', 'begin rows with -')
      return []
    }
    if (value.length > max) this.error(path, value.length, `has more than ${max} items`, 'leave some out')
    return value.slice(0, max).map((_, at) => [...path, at])
  }

  /** A required text without surrounding space; '' with an error for anything else. */
  text(path: BodyPath, max = 255): string {
    const value = this.value(path)
    const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    if (text === undefined) this.error(path, undefined, 'is missing', 'add it')
    else if (typeof text !== 'string') this.error(path, undefined, 'expected text', 'write one value')
    else if (text.trim() === '' || text.length > max || /(?![\n\r\t])\p{Cc}/u.test(text)) {
      this.error(path, text.slice(0, 80), `expected text of 1 to ${max} characters`, 'write another one')
    } else return text.trim()
    return ''
  }

  /** A required whole number; `least` with an error for anything else. */
  integer(path: BodyPath, least: number, most: number): number {
    const value = this.value(path)
    const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most) return number
    if (value === undefined) this.error(path, undefined, 'is missing', 'add it')
    else this.error(path, value, `expected a whole number from ${least} to ${most}`, 'write another one')
    return least
  }

  flag(path: BodyPath, fallback: boolean): boolean {
    const value = this.value(path)
    if (value === undefined) return fallback
    if (/^true$/i.test(String(value))) return true
    if (/^false$/i.test(String(value))) return false
    this.error(path, value, 'expected true or false', `leave it out for ${fallback}`)
    return fallback
  }

  /** One of these words, whatever its case. `fallback` for a missing value; undefined: the value is required. */
  choice<const T extends string>(path: BodyPath, words: readonly T[], fallback?: T): T {
    if (!this.has(path) && fallback !== undefined) return fallback
    const given = this.text(path)
    const choice = words.find(word => word.toLowerCase() === given.toLowerCase())
    if (choice === undefined && given !== '') {
      const guess = nearest(given, [...words])
      const hint = guess === '' ? 'write one of them' : `did you mean ${guess}?`
      this.error(path, given, `expected one of ${words.join(', ')}`, hint)
    }
    return choice ?? fallback ?? words[0]!
  }
}
