/**
 * The kinds of key a configuration section is made of. A key owns its default, its meaning and the reading of one given
 * value; it knows neither its own name nor where the value was written, so that a section stays plain data.
 */
import { readNetwork } from './cidr.ts'

export interface Key<T> {
  readonly kind: string
  readonly fallback: T
  readonly meaning: string
  /** What a value must be, as a noun phrase for faults and the reference page. */
  readonly expects: string
  /** '' where the value has no unit. */
  readonly unit: string
  /** '' where every value of the kind will do. */
  readonly range: string
  /** Values with a meaning of their own, such as -1 for unlimited. */
  readonly named: Readonly<Record<string, string>>
  readonly secret: boolean
  /** A row of a repeated table must set it. */
  readonly required: boolean
  /** The key of the same section that the default never exceeds; '' for a default that stands by itself. */
  readonly ceiling: string
  /** Why the gateway accepts the key and does not act on it; '' for a key that is acted on. */
  readonly inertReason: string
  /** The value of the key's own type, or undefined when what was given will not do. */
  readonly read: (given: unknown) => T | undefined
}

type Keys = Readonly<Record<string, Key<unknown>>>

/** What a room receives of a section: the documented spelling, typed. Keys with a free name are there, untyped. */
export type Values<K> = {
  readonly [P in keyof K as P extends `${string}${typeof FREE_NAME}` ? never : P]: K[P] extends Key<infer T> ? T : never
}

/** Ends the name of a key that stands for every key with the same beginning. */
export const FREE_NAME = '<name>'

/** Something several keys have to agree on. A warning does not keep the gateway from starting. */
export interface Rule<V> {
  readonly keys: readonly (keyof V & string)[]
  readonly must: string
  readonly severity: 'fault' | 'warning'
  holds(values: V): boolean
}

export interface Section<N extends string, K extends Keys, R extends boolean = boolean> {
  readonly name: N
  readonly meaning: string
  /** Written `[[name]]`, once per row, and a list of rows to its reader. */
  readonly repeated: R
  readonly keys: K
  readonly rules: readonly Rule<Values<K>>[]
}

export function section<const N extends string, K extends Keys>(
  name: N,
  meaning: string,
  keys: K,
  rules: readonly Rule<Values<K>>[] = [],
): Section<N, K, false> {
  return { name, meaning, repeated: false, keys, rules }
}

export function repeatedSection<const N extends string, K extends Keys>(
  name: N,
  meaning: string,
  keys: K,
  rules: readonly Rule<Values<K>>[] = [],
): Section<N, K, true> {
  return { name, meaning, repeated: true, keys, rules }
}

function key<T>(
  kind: string,
  fallback: T,
  meaning: string,
  expects: string,
  read: Key<T>['read'],
  range = '',
  unit = '',
): Key<T> {
  const plain = { named: {}, secret: false, required: false, ceiling: '', inertReason: '' }
  return { kind, fallback, meaning, expects, unit, range, ...plain, read }
}

/** A key without which its row makes no sense; empty will not do either. */
export function required<T>(wrapped: Key<T>): Key<T> {
  const read = (given: unknown): T | undefined => {
    const value = wrapped.read(given)
    return value === '' || (Array.isArray(value) && value.length === 0) ? undefined : value
  }
  return { ...wrapped, required: true, read }
}

/** A key that is accepted so that documented files load, and acted on by nothing. Setting it warns once at start. */
export function inert<T>(wrapped: Key<T>, reason: string): Key<T> {
  return { ...wrapped, inertReason: reason }
}

/** Many boolean-like keys are documented as strings, so both spellings are taken everywhere. */
export function flag(fallback: boolean, meaning: string): Key<boolean> {
  return key('boolean', fallback, meaning, 'true or false', given => {
    if (typeof given === 'boolean') return given
    if (given === 'true') return true
    return given === 'false' ? false : undefined
  })
}

function numeral(value: number): string {
  return value === Number.MAX_SAFE_INTEGER ? '2^53 - 1' : String(value)
}

export function count(fallback: number, unit: string, from: number, to: number, meaning: string): Key<number> {
  const range = to === Number.MAX_SAFE_INTEGER ? `${from} or more` : `${from} to ${numeral(to)}`
  const expects = `a whole number${unit === '' ? '' : ` of ${unit}`}, ${range}`
  return key('integer', fallback, meaning, expects, given => within(given, from, to), range, unit)
}

function within(given: unknown, from: number, to: number): number | undefined {
  return typeof given === 'number' && Number.isInteger(given) && given >= from && given <= to ? given : undefined
}

/** One value outside the range that has a meaning of its own, such as -1 for unlimited. */
export function except(value: number, means: string, wrapped: Key<number>): Key<number> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or ${value} (${means})`,
    range: `${wrapped.range}, or ${value} (${means})`,
    named: { ...wrapped.named, [value]: means },
    read: given => (given === value ? value : wrapped.read(given)),
  }
}

/** A default that gives way where another key of the section is set lower, so that lowering one key never takes two. */
export function upTo(ceiling: string, wrapped: Key<number>): Key<number> {
  return { ...wrapped, ceiling }
}

/** For keys that are documented as strings and hold a number. */
export function orText(wrapped: Key<number>): Key<number> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, quoted or not`,
    read: given => wrapped.read(typeof given === 'string' && /^-?\d{1,15}$/.test(given) ? Number(given) : given),
  }
}

const MS_PER = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const
const UNIT_NAMES = { ms: 'milliseconds', s: 'seconds' } as const

/** A number in the key's own unit, or text with a unit behind it: "500ms", "30s", "15m", "1h". */
export function duration(
  fallback: number,
  unit: keyof typeof UNIT_NAMES,
  from: number,
  to: number,
  meaning: string,
): Key<number> {
  const range = `${from} to ${to}`
  const expects = `a whole number of ${UNIT_NAMES[unit]}, ${range}, or text such as "30s"`
  const read = (given: unknown): number | undefined => {
    const [, digits, suffix] = (typeof given === 'string' ? /^(\d{1,12})(ms|s|m|h)$/.exec(given) : null) ?? []
    if (digits === undefined) return within(given, from, to)
    return within((Number(digits) * MS_PER[suffix as keyof typeof MS_PER]) / MS_PER[unit], from, to)
  }
  return key('duration', fallback, meaning, expects, read, range, unit)
}

/** 0 takes any free port, and `server.offset` is not added to it. */
export function port(fallback: number, meaning: string): Key<number> {
  return { ...except(0, 'any free one', count(fallback, '', 1, 65_535, meaning)), kind: 'port' }
}

// Text ends up in header fields and log lines: a control character in it would split them.
const CONTROL = /[\u0000-\u001f\u007f]/

export function text(fallback: string, meaning: string): Key<string> {
  const expects = 'text in quotes, without control characters'
  return key('string', fallback, meaning, expects, given =>
    typeof given === 'string' && !CONTROL.test(given) ? given : undefined,
  )
}

export function secret(meaning: string): Key<string> {
  const expects = 'text in quotes, such as "$env{NAME}"'
  const read = (given: unknown): string | undefined => (typeof given === 'string' ? given : undefined)
  return { ...key('secret', '', meaning, expects, read), secret: true }
}

export function choice<const O extends string>(fallback: O, options: readonly O[], meaning: string): Key<O> {
  const listed = options.map(option => `"${option}"`).join(', ')
  return key('choice', fallback, meaning, `one of ${listed}`, given => options.find(option => option === given), listed)
}

/** A list, or one text with commas in it: the documented files use both. */
export function words(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'a list of texts, or one text with commas'
  return key('list', fallback, meaning, expects, given => readWords(given, word => (CONTROL.test(word) ? '' : word)))
}

/** Undefined when the list is no list of texts, or when `accept` answers '' for a word of it. */
function readWords(given: unknown, accept: (word: string) => string): readonly string[] | undefined {
  const listed = typeof given === 'string' ? given.split(',') : given
  if (!Array.isArray(listed) || !listed.every(word => typeof word === 'string')) return undefined
  const trimmed = listed.map(word => word.trim()).filter(word => word !== '')
  const accepted = trimmed.map(accept)
  return accepted.includes('') ? undefined : accepted
}

// RFC 9110 5.1: a field name is a token.
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/

export function fieldName(fallback: string, meaning: string): Key<string> {
  return key('field name', fallback, meaning, 'the name of a header field', given =>
    typeof given === 'string' && FIELD_NAME.test(given) ? given : undefined,
  )
}

export function fieldNames(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'names of header fields, a list or one text with commas'
  return key('field names', fallback, meaning, expects, given =>
    readWords(given, word => (FIELD_NAME.test(word) ? word : '')),
  )
}

// A label of a host name; underscores occur in the names of containers.
const LABEL = /^[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?$/

/** A host name or an IP address without brackets. '' only where it is the key's default. */
export function host(fallback: string, meaning: string): Key<string> {
  const read = (given: unknown): string | undefined => {
    if (typeof given !== 'string' || given.length > 253 || given.includes('/')) return undefined
    if (given === '') return fallback === '' ? given : undefined
    const named = given.includes(':') ? readNetwork(given) !== '' : given.split('.').every(label => LABEL.test(label))
    return named ? given : undefined
  }
  return key('host', fallback, meaning, 'a host name or an IP address', read)
}

/** Networks as `address/prefix`, in normal form; a bare address is a network of one. */
export function cidrs(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const expects =
    'networks such as "10.0.0.0/8" or "::1", a list or one text with commas, no bits set behind the prefix'
  return key('networks', fallback, meaning, expects, given => readWords(given, readNetwork))
}
