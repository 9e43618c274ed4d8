/** The kinds of key: accepted values, their conversion, and their description in messages and schema. */
import { readNetwork } from './cidr.ts'
import { readLogTemplate, readStatusShare } from './log-template.ts'
import { withSpecialValue, type JsonSchema, type Key, NUMERAL, numberIn } from './key.ts'

interface KindDefinition<T> {
  readonly kind: string
  readonly defaultValue: T
  readonly meaning: string
  readonly expects: string
  readonly schema: JsonSchema
  readonly range?: string
  readonly unit?: string
  readonly read: Key<T>['read']
}

const NO_SPECIAL_VALUES = {}
const NO_ALIASES: readonly string[] = []
const NO_REQUIREMENTS: Key<unknown>['requirements'] = []

// Without spreads, and with shared constants, because every start makes hundreds of keys.
function key<T>({
  kind,
  defaultValue,
  meaning,
  expects,
  schema,
  range = '',
  unit = '',
  read,
}: KindDefinition<T>): Key<T> {
  return {
    kind,
    defaultValue,
    meaning,
    expects,
    schema,
    range,
    unit,
    read,
    specialValues: NO_SPECIAL_VALUES,
    secret: false,
    required: false,
    cappedBy: '',
    follows: '',
    aliases: NO_ALIASES,
    isLive: false,
    inertReason: '',
    requirements: NO_REQUIREMENTS,
  }
}

/** Accepts text too, because many flags are documented as strings. */
export function flag(defaultValue: boolean, meaning: string): Key<boolean> {
  const schema = { anyOf: [{ type: 'boolean' }, { type: 'string', pattern: TRUTH.source }] }
  const read = (given: unknown): boolean | undefined => {
    if (typeof given === 'boolean') return given
    return typeof given === 'string' && TRUTH.test(given) ? given.toLowerCase() === 'true' : undefined
  }
  return key({ kind: 'boolean', defaultValue, meaning, expects: 'true or false', schema, read })
}

const TRUTH = /^([Tt]rue|TRUE|[Ff]alse|FALSE)$/

function numeral(value: number): string {
  return value === Number.MAX_SAFE_INTEGER ? '2^53 - 1' : String(value)
}

export function integer(defaultValue: number, unit: string, from: number, to: number, meaning: string): Key<number> {
  const range = to === Number.MAX_SAFE_INTEGER ? `${from} or more` : `${from} to ${numeral(to)}`
  const expects = `a whole number${unit === '' ? '' : ` of ${unit}`}, ${range}`
  const schema = {
    anyOf: [
      { type: 'integer', minimum: from, maximum: to },
      { type: 'string', pattern: NUMERAL.source },
    ],
  }
  const read = (given: unknown): number | undefined => within(numberIn(given), from, to)
  return key({ kind: 'integer', defaultValue, meaning, expects, schema, range, unit, read })
}

function within(given: unknown, from: number, to: number): number | undefined {
  return typeof given === 'number' && Number.isInteger(given) && given >= from && given <= to ? given : undefined
}

const DECIMAL = /^\d{1,9}(\.\d{1,9})?$/

/** A number, also in quotes. */
export function decimal(defaultValue: number, unit: string, from: number, to: number, meaning: string): Key<number> {
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
  return key({ kind: 'number', defaultValue, meaning, expects, schema, range, unit, read })
}

export const MS_PER = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const UNIT_NAMES = { ms: 'milliseconds', s: 'seconds', m: 'minutes' } as const
export const DURATION = /^(\d{1,12})(ms|s|m|h|d)?$/

/** A number in the key's unit, also in quotes, or text with a unit: "500ms", "30s", "15m", "1h", "1d". */
export function duration(
  defaultValue: number,
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
  return key({ kind: 'duration', defaultValue, meaning, expects, schema, range, unit, read })
}

/** 0 is any free port, to which `server.offset` is not added. */
export function port(defaultValue: number, meaning: string): Key<number> {
  return { ...withSpecialValue(0, 'any free one', integer(defaultValue, '', 1, 65_535, meaning)), kind: 'port' }
}

// Text ends up in header fields and log lines, which control characters would split.
const CONTROL = /[\u0000-\u001f\u007f]/

function plainText(given: unknown): string | undefined {
  return typeof given === 'string' && !CONTROL.test(given) ? given : undefined
}

const TEXT = { type: 'string' } as const
const LIST_SCHEMA = { anyOf: [{ type: 'array', items: TEXT }, TEXT] } as const

export function text(defaultValue: string, meaning: string): Key<string> {
  const expects = 'text in quotes, without control characters'
  return key({ kind: 'string', defaultValue, meaning, expects, schema: TEXT, read: plainText })
}

/** A path of requests, such as `/readyz`; empty for none. */
export function targetPath(meaning: string): Key<string> {
  const one = /^(?:\/[!-~]*)?$/
  const read = (given: unknown): string | undefined =>
    typeof given === 'string' && one.test(given) ? given : undefined
  const schema = { type: 'string', pattern: one.source }
  return key({ kind: 'string', defaultValue: '', meaning, expects: 'a path such as "/readyz", or ""', schema, read })
}

/** One mailbox, with a name or without. */
export function mailAddress(meaning: string): Key<string> {
  const expects = 'a mail address such as "a@example.com" or "Name <a@example.com>"'
  const one = /^(?:[^<>@,]*<[^\s<>@,]+@[^\s<>@,]+>|[^\s<>@,]+@[^\s<>@,]+)$/
  const read = (given: unknown): string | undefined => {
    const address = plainText(given)
    return address !== undefined && (address === '' || one.test(address)) ? address : undefined
  }
  return key({ kind: 'string', defaultValue: '', meaning, expects, schema: TEXT, read })
}

/** Text for values whose reader decides their type; numbers and flags become text. */
export function scalar(meaning: string): Key<string> {
  const schema = { anyOf: [TEXT, { type: 'number' }, { type: 'boolean' }] }
  const read = (given: unknown): string | undefined =>
    plainText(typeof given === 'number' || typeof given === 'boolean' ? String(given) : given)
  return key({ kind: 'scalar', defaultValue: '', meaning, expects: 'text, a number, true or false', schema, read })
}

export function secret(meaning: string): Key<string> {
  const expects = 'text in quotes, such as "$env{NAME}"'
  const read = (given: unknown): string | undefined => (typeof given === 'string' ? given : undefined)
  return { ...key({ kind: 'secret', defaultValue: '', meaning, expects, schema: TEXT, read }), secret: true }
}

export function choice<const O extends string>(defaultValue: O, options: readonly O[], meaning: string): Key<O> {
  const listed = options.map(option => `"${option}"`).join(', ')
  const read = (given: unknown): O | undefined => options.find(option => option === given)
  const schema = { enum: options }
  return key({ kind: 'choice', defaultValue, meaning, expects: `one of ${listed}`, schema, range: listed, read })
}

/** A list, or one text with commas; documented files have both. */
export function list(defaultValue: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'a list of texts, or one text with commas'
  const read = (given: unknown): readonly string[] | undefined =>
    readList(given, word => (CONTROL.test(word) ? '' : word))
  return key({ kind: 'list', defaultValue, meaning, expects, schema: LIST_SCHEMA, read })
}

/** Undefined for a list of anything but texts, and where `accept` returns '' for an item. */
function readList(given: unknown, accept: (word: string) => string): readonly string[] | undefined {
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

export function fieldName(defaultValue: string, meaning: string): Key<string> {
  const read = (given: unknown): string | undefined =>
    typeof given === 'string' && isFieldName(given) ? given : undefined
  const schema = { type: 'string', pattern: FIELD_NAME.source }
  return key({ kind: 'field name', defaultValue, meaning, expects: 'the name of a header field', schema, read })
}

export function fieldNames(defaultValue: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'names of header fields, a list or one text with commas'
  const read = (given: unknown): readonly string[] | undefined =>
    readList(given, word => (isFieldName(word) ? word : ''))
  return key({ kind: 'field names', defaultValue, meaning, expects, schema: LIST_SCHEMA, read })
}

// A label of a host name; names of containers have underscores.
const LABEL = /^[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?$/

/** A host name or an IP address without brackets. '' only where it is the key's default. */
export function host(defaultValue: string, meaning: string): Key<string> {
  const read = (given: unknown): string | undefined => {
    if (typeof given !== 'string' || given.length > 253 || given.includes('/')) return undefined
    if (given === '') return defaultValue === '' ? given : undefined
    const named = given.includes(':') ? readNetwork(given) !== '' : given.split('.').every(label => LABEL.test(label))
    return named ? given : undefined
  }
  return key({ kind: 'host', defaultValue, meaning, expects: 'a host name or an IP address', schema: TEXT, read })
}

// The schema only tells addresses from names; `readNetwork` is strict.
const NETWORK = '[0-9A-Fa-f.:]+(/\\d{1,3})?'
const NETWORKS = {
  anyOf: [
    { type: 'array', items: { type: 'string', pattern: `^\\s*(${NETWORK})?\\s*$` } },
    { type: 'string', pattern: `^\\s*(${NETWORK})?\\s*(,\\s*(${NETWORK})?\\s*)*$` },
  ],
} as const

/** Networks as `address/prefix` in normal form; an address alone gets its full prefix. */
export function networks(defaultValue: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'networks such as "10.0.0.0/8" or "::1", a list or one text with commas, no bits set after the prefix'
  const read = (given: unknown): readonly string[] | undefined => readList(given, readNetwork)
  return key({ kind: 'networks', defaultValue, meaning, expects, schema: NETWORKS, read })
}

/** An absolute URL of one of these schemes, such as `https`. '' only where it is the key's default. */
export function url(defaultValue: string, schemes: readonly string[], meaning: string): Key<string> {
  const expects = `a URL, ${schemes.map(scheme => `${scheme}://…`).join(' or ')}`
  const read = (given: unknown): string | undefined => {
    if (given === '' && defaultValue === '') return ''
    return typeof given === 'string' ? readUrl(given, schemes) : undefined
  }
  return key({ kind: 'URL', defaultValue, meaning, expects, schema: TEXT, read })
}

/** A list of URLs, or one text with commas. */
export function urls(
  defaultValue: readonly string[],
  schemes: readonly string[],
  meaning: string,
): Key<readonly string[]> {
  const expects = `addresses, ${schemes.map(scheme => `${scheme}://…`).join(' or ')}, a list or one text with commas`
  const read = (given: unknown): readonly string[] | undefined => readList(given, word => readUrl(word, schemes) ?? '')
  return key({ kind: 'URLs', defaultValue, meaning, expects, schema: LIST_SCHEMA, read })
}

function readUrl(given: string, schemes: readonly string[]): string | undefined {
  const scheme = schemes.find(one => given.startsWith(`${one}://`))
  // URL.canParse requires a host only for schemes that it knows.
  const known = scheme === undefined ? '' : `http${given.slice(scheme.length)}`
  return URL.canParse(known) && !CONTROL.test(given) && !given.includes(' ') ? given : undefined
}

/** True if a URL is plain HTTP to another machine. */
export function isReadableByOthers(url: string): boolean {
  return /^http:\/\/(?!(localhost|127(\.\d+){3}|\[::1\])(?![^:/]))/i.test(url)
}

/** A template of access log lines. '' only where it is the key's default. */
export function logTemplate(defaultValue: string, meaning: string): Key<string> {
  const expects = 'at most 1,024 characters with variables of nginx ($status) or directives of Apache (%>s), no others'
  const read = (given: unknown): string | undefined => {
    const template = plainText(given)
    if (template === undefined || (template === '' && defaultValue === '')) return template
    return readLogTemplate(template) === undefined ? undefined : template
  }
  return key({ kind: 'template', defaultValue, meaning, expects, schema: TEXT, read })
}

/** Shares of lines by status, a list or one text with commas. */
export function statusShares(defaultValue: readonly string[], meaning: string): Key<readonly string[]> {
  const expects = 'shares by status such as "2xx=0.01" or "404=0", a list or one text with commas'
  const read = (given: unknown): readonly string[] | undefined =>
    readList(given, word => (readStatusShare(word) === undefined ? '' : word))
  return key({ kind: 'status shares', defaultValue, meaning, expects, schema: LIST_SCHEMA, read })
}
