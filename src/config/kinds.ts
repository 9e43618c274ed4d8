/** The kinds of key: what each takes, what it makes of it, and what it says to somebody who gave it something else. */
import { readNetwork } from './cidr.ts'
import { except, type JsonSchema, type Key, NUMERAL, numberIn } from './key.ts'

interface Kind<T> {
  readonly kind: string
  readonly fallback: T
  readonly meaning: string
  readonly expects: string
  readonly schema: JsonSchema
  readonly range?: string
  readonly unit?: string
  readonly read: Key<T>['read']
}

const NONE_NAMED = {}
const NO_ALIASES: readonly string[] = []

// Property by property, and without copies of what they share: there are hundreds, and each start makes all of them.
function key<T>({ kind, fallback, meaning, expects, schema, range = '', unit = '', read }: Kind<T>): Key<T> {
  return {
    kind,
    fallback,
    meaning,
    expects,
    schema,
    range,
    unit,
    read,
    named: NONE_NAMED,
    secret: false,
    required: false,
    ceiling: '',
    follows: '',
    aliases: NO_ALIASES,
    isLive: false,
    inertReason: '',
  }
}

/** Many boolean-like keys are documented as strings, so both spellings are taken everywhere. */
export function flag(fallback: boolean, meaning: string): Key<boolean> {
  const schema = { anyOf: [{ type: 'boolean' }, { type: 'string', pattern: TRUTH.source }] }
  const read = (given: unknown): boolean | undefined => {
    if (typeof given === 'boolean') return given
    return typeof given === 'string' && TRUTH.test(given) ? given.toLowerCase() === 'true' : undefined
  }
  return key({ kind: 'boolean', fallback, meaning, expects: 'true or false', schema, read })
}

const TRUTH = /^([Tt]rue|TRUE|[Ff]alse|FALSE)$/

function numeral(value: number): string {
  return value === Number.MAX_SAFE_INTEGER ? '2^53 - 1' : String(value)
}

export function count(fallback: number, unit: string, from: number, to: number, meaning: string): Key<number> {
  const range = to === Number.MAX_SAFE_INTEGER ? `${from} or more` : `${from} to ${numeral(to)}`
  const expects = `a whole number${unit === '' ? '' : ` of ${unit}`}, ${range}`
  const schema = {
    anyOf: [
      { type: 'integer', minimum: from, maximum: to },
      { type: 'string', pattern: NUMERAL.source },
    ],
  }
  const read = (given: unknown): number | undefined => within(numberIn(given), from, to)
  return key({ kind: 'integer', fallback, meaning, expects, schema, range, unit, read })
}

function within(given: unknown, from: number, to: number): number | undefined {
  return typeof given === 'number' && Number.isInteger(given) && given >= from && given <= to ? given : undefined
}

const DECIMAL = /^\d{1,9}(\.\d{1,9})?$/

/** A number, quoted or not. */
export function decimal(fallback: number, unit: string, from: number, to: number, meaning: string): Key<number> {
  const range = `${from} to ${to}`
  const expects = `a number${unit === '' ? '' : ` of ${unit}`}, ${range}`
  const schema = {
    anyOf: [
      { type: 'number', minimum: from, maximum: to },
      { type: 'string', pattern: DECIMAL.source },
    ],
  }
  const read = (given: unknown): number | undefined => {
    const value = typeof given === 'string' && DECIMAL.test(given) ? Number(given) : given
    return typeof value === 'number' && value >= from && value <= to ? value : undefined
  }
  return key({ kind: 'number', fallback, meaning, expects, schema, range, unit, read })
}

export const MS_PER = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const UNIT_NAMES = { ms: 'milliseconds', s: 'seconds', m: 'minutes' } as const
export const DURATION = /^(\d{1,12})(ms|s|m|h|d)?$/

/** A number in the key's own unit, quoted or not, or text with a unit behind it: "500ms", "30s", "15m", "1h", "1d". */
export function duration(
  fallback: number,
  unit: keyof typeof UNIT_NAMES,
  from: number,
  to: number,
  meaning: string,
): Key<number> {
  const range = `${from} to ${to}`
  const expects = `a whole number of ${UNIT_NAMES[unit]}, ${range}, or text such as "30s"`
  const schema = {
    anyOf: [
      { type: 'integer', minimum: from, maximum: to },
      { type: 'string', pattern: DURATION.source },
    ],
  }
  const read = (given: unknown): number | undefined => {
    const [, digits, suffix = unit] = (typeof given === 'string' ? DURATION.exec(given) : null) ?? []
    if (digits === undefined) return within(given, from, to)
    return within((Number(digits) * MS_PER[suffix as keyof typeof MS_PER]) / MS_PER[unit], from, to)
  }
  return key({ kind: 'duration', fallback, meaning, expects, schema, range, unit, read })
}

/** 0 takes any free port, and `server.offset` is not added to it. */
export function port(fallback: number, meaning: string): Key<number> {
  return { ...except(0, 'any free one', count(fallback, '', 1, 65_535, meaning)), kind: 'port' }
}

// Text ends up in header fields and log lines: a control character in it would split them.
const CONTROL = /[\u0000-\u001f\u007f]/

function plainText(given: unknown): string | undefined {
  return typeof given === 'string' && !CONTROL.test(given) ? given : undefined
}

const TEXT = { type: 'string' } as const
const WORDS = { anyOf: [{ type: 'array', items: TEXT }, TEXT] } as const

export function text(fallback: string, meaning: string): Key<string> {
  const expects = 'text in quotes, without control characters'
  return key({ kind: 'string', fallback, meaning, expects, schema: TEXT, read: plainText })
}

/** Text, for values whose type the reader decides: numbers and flags are taken as they would be written. */
export function scalar(meaning: string): Key<string> {
  const schema = { anyOf: [TEXT, { type: 'number' }, { type: 'boolean' }] }
  const read = (given: unknown): string | undefined =>
    plainText(typeof given === 'number' || typeof given === 'boolean' ? String(given) : given)
  return key({ kind: 'scalar', fallback: '', meaning, expects: 'text, a number, true or false', schema, read })
}

export function secret(meaning: string): Key<string> {
  const expects = 'text in quotes, such as "$env{NAME}"'
  const read = (given: unknown): string | undefined => (typeof given === 'string' ? given : undefined)
  return { ...key({ kind: 'secret', fallback: '', meaning, expects, schema: TEXT, read }), secret: true }
}

export function choice<const O extends string>(fallback: O, options: readonly O[], meaning: string): Key<O> {
  const listed = options.map(option => `"${option}"`).join(', ')
  const read = (given: unknown): O | undefined => options.find(option => option === given)
  const schema = { enum: options }
  return key({ kind: 'choice', fallback, meaning, expects: `one of ${listed}`, schema, range: listed, read })
}

/** A list, or one text with commas in it: the documented files use both. */
export function words(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'a list of texts, or one text with commas'
  const read = (given: unknown): readonly string[] | undefined =>
    readWords(given, word => (CONTROL.test(word) ? '' : word))
  return key({ kind: 'list', fallback, meaning, expects, schema: WORDS, read })
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

export function isFieldName(text: string): boolean {
  return FIELD_NAME.test(text)
}

export function fieldName(fallback: string, meaning: string): Key<string> {
  const read = (given: unknown): string | undefined =>
    typeof given === 'string' && isFieldName(given) ? given : undefined
  const schema = { type: 'string', pattern: FIELD_NAME.source }
  return key({ kind: 'field name', fallback, meaning, expects: 'the name of a header field', schema, read })
}

export function fieldNames(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'names of header fields, a list or one text with commas'
  const read = (given: unknown): readonly string[] | undefined =>
    readWords(given, word => (isFieldName(word) ? word : ''))
  return key({ kind: 'field names', fallback, meaning, expects, schema: WORDS, read })
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
  return key({ kind: 'host', fallback, meaning, expects: 'a host name or an IP address', schema: TEXT, read })
}

// Far from all that is wrong with an address: enough to tell one from a name.
const NETWORK = '[0-9A-Fa-f.:]+(/\\d{1,3})?'
const NETWORKS = {
  anyOf: [
    { type: 'array', items: { type: 'string', pattern: `^\\s*(${NETWORK})?\\s*$` } },
    { type: 'string', pattern: `^\\s*(${NETWORK})?\\s*(,\\s*(${NETWORK})?\\s*)*$` },
  ],
} as const

/** Networks as `address/prefix`, in normal form; a bare address is a network of one. */
export function cidrs(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const expects =
    'networks such as "10.0.0.0/8" or "::1", a list or one text with commas, no bits set behind the prefix'
  const read = (given: unknown): readonly string[] | undefined => readWords(given, readNetwork)
  return key({ kind: 'networks', fallback, meaning, expects, schema: NETWORKS, read })
}

/** An absolute URL of one of these schemes, such as `https`. '' only where it is the key's default. */
export function url(fallback: string, schemes: readonly string[], meaning: string): Key<string> {
  const expects = `a URL, ${schemes.map(scheme => `${scheme}://…`).join(' or ')}`
  const read = (given: unknown): string | undefined => {
    if (given === '' && fallback === '') return ''
    return typeof given === 'string' ? readUrl(given, schemes) : undefined
  }
  return key({ kind: 'URL', fallback, meaning, expects, schema: TEXT, read })
}

/** A list of them, or one text with commas. */
export function urls(fallback: readonly string[], schemes: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = `addresses, ${schemes.map(scheme => `${scheme}://…`).join(' or ')}, a list or one text with commas`
  const read = (given: unknown): readonly string[] | undefined => readWords(given, word => readUrl(word, schemes) ?? '')
  return key({ kind: 'URLs', fallback, meaning, expects, schema: WORDS, read })
}

function readUrl(given: string, schemes: readonly string[]): string | undefined {
  const scheme = schemes.find(one => given.startsWith(`${one}://`))
  // The parser of URLs takes a host only of schemes that it knows.
  const known = scheme === undefined ? '' : `http${given.slice(scheme.length)}`
  return URL.canParse(known) && !CONTROL.test(given) && !given.includes(' ') ? given : undefined
}
