/**
 * One YAML file (JSON included), read by path. A value that is missing or of the wrong kind becomes an error with its
 * line. Values are built at once, positions only when the first diagnostic needs a line.
 */
import * as yaml from 'js-yaml'
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'

const { DOCUMENT, SEQUENCE, MAPPING, SCALAR, ALIAS, POP } = yaml.EVENT_ID
/** Numbers keep their spelling: the version 1.10 must not become 1.1. */
const AS_WRITTEN = yaml.FAILSAFE_SCHEMA.withTags(yaml.nullCoreTag, yaml.boolCoreTag)

/** Keys of maps, and indexes of lists from 0. */
export type Path = readonly (string | number)[]

/** The rule that a value violates, the remedy, and how to show the value if it may hold credentials. */
export type Violation = readonly [expected: string, hint: string, shown?: string]

/** Diagnostics of one kind for one file; further ones are cut. */
const DIAGNOSTICS_MAX = 50
const CONTENT_DEPTH_MAX = 8
/** Exports and tools write JSON into files that are called YAML. */
const JSON_START = /^\s*(?:\{\s*["}]|\[\s*[{"])/

/** Remedies by words of the parser's reason; the first that fits holds. */
const REMEDIES: readonly (readonly [reason: RegExp, remedy: string])[] = [
  [/duplicated mapping key/, 'keep one of them'],
  [
    /deficient indentation|unexpected end of the (?:stream|document)/,
    'close the bracket, brace or quotation mark before it',
  ],
  [/indentation of a mapping entry/, 'put a text with a colon in quotation marks, or indent like the entries before'],
  [/indentation/, 'indent like the entries before'],
  [/alias|anchor|tag/, 'put a text that begins with &, * or ! in quotation marks'],
  [/separator is expected/, 'put a text that begins with @, % or a quotation mark in quotation marks'],
  [/second document/, 'make a file of each'],
]

export class YamlFile {
  readonly errors: Diagnostic[] = []
  /** Values that are accepted and have no effect. */
  readonly warnings: Diagnostic[] = []
  readonly label: string
  /** True if values come from elsewhere (`$env{}`, `$file{}`): an unchanged file may then mean something else. */
  hasExternalValues = false
  readonly #source: string
  #events: yaml.Event[] = []
  #positions: Position | undefined
  /** Offsets of the line feeds; undefined until a line is asked for. */
  #lineFeeds: readonly number[] | undefined
  /** The document as written: numbers are text. An alias is the very object that it refers to. */
  readonly root: unknown

  constructor(label: string, source: string) {
    this.label = label
    this.#source = source
    this.root = this.#guarded(() => {
      this.#events = yaml.parseEvents(source, {})
      const documents = yaml.constructFromEvents(this.#events, { source, schema: AS_WRITTEN })
      if (documents.length > 1) this.#invalid(this.#secondDocument(), 'there is a second document in it')
      return documents[0]
    })
  }

  /** The document with numbers as numbers, as a schema validator needs it. */
  typed(): unknown {
    const options = { source: this.#source, schema: yaml.CORE_SCHEMA }
    return this.#guarded(() => yaml.constructFromEvents(this.#events, options)[0])
  }

  /** Hostile files make the parser throw more than its own exceptions. */
  #guarded(parse: () => unknown): unknown {
    try {
      return parse()
    } catch (error) {
      const { reason, mark } = error as yaml.YAMLException
      // Quoted text and tags are pieces of the file, which may hold a password.
      const cause = reason === undefined ? 'it is nested too deeply' : reason.replace(/ *["!<][\s\S]*$/, '')
      this.#invalid(mark?.position ?? 0, cause)
      return undefined
    }
  }

  #invalid(yamlOffset: number, yamlReason: string): void {
    const isJson = /\.json$/i.test(this.label) || JSON_START.test(this.#source)
    const { offset = yamlOffset, reason = yamlReason } = isJson ? jsonError(this.#source) : {}
    const line = this.#lineAt(offset)
    const column = offset - this.#source.lastIndexOf('\n', offset - 1)
    const expected = `not valid ${isJson ? 'JSON' : 'YAML'}: ${reason}`
    const where = `${this.label}:${line}:${offset === 0 ? 1 : column}`
    const isTabbed = !isJson && /^ *\t/.test(this.#source.split('\n')[line - 1] ?? '')
    const remedy = REMEDIES.find(([words]) => words.test(reason))?.[1] ?? 'correct the file there'
    const hint = isTabbed ? 'indent with spaces, not with tabs' : remedy
    this.errors.push({ where, key: '', given: '', expected, hint })
  }

  #secondDocument(): number {
    const second = this.#events.findLastIndex(({ type }) => type === DOCUMENT)
    return Math.max(0, startOf(this.#events[second + 1]))
  }

  /** The value as written; undefined for a missing value and for null. */
  value(path: Path): unknown {
    let value = this.root
    for (const name of path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof name === 'number')) return
      value = Object.hasOwn(value, name) ? (value as Readonly<Record<string | number, unknown>>)[name] : undefined
    }
    return value ?? undefined
  }

  has(path: Path): boolean {
    return this.value(path) !== undefined
  }

  /** Keys of the map at a path; empty for anything else. */
  keys(path: Path): readonly string[] {
    const value = this.value(path)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
  }

  /** Items of the list at a path; undefined for anything else. */
  lengthOf(path: Path): number | undefined {
    const value = this.value(path)
    return Array.isArray(value) ? value.length : undefined
  }

  /** A required text; numbers as they are spelled. */
  text(path: Path): string | undefined {
    const value = this.value(path)
    if (typeof value === 'string') return value
    if (value === undefined) this.missing(path)
    else this.error(path, undefined, 'expected text', 'write one value')
    return undefined
  }

  /** An optional text without surrounding space; '' for a missing value. */
  optional(path: Path): string {
    return this.has(path) ? (this.text(path) ?? '').trim() : ''
  }

  /** The texts of a list, or a single text in place of a list; empty for a missing value. */
  texts(path: Path): readonly string[] {
    const length = this.lengthOf(path)
    if (length === undefined) return [this.optional(path)].filter(text => text !== '')
    return Array.from({ length }, (_, item) => this.text([...path, item]) ?? '')
  }

  /** Like `texts`, for values that decide nothing: skips whatever is no text. */
  looseTexts(path: Path): readonly string[] {
    const value = this.value(path)
    const items: readonly unknown[] = Array.isArray(value) ? value : [value]
    return items.filter(item => typeof item === 'string').flatMap(text => text.trim() || [])
  }

  /** True if the value, or anything within it, is neither null nor false nor empty. */
  hasContent(path: Path): boolean {
    return hasContent(this.value(path))
  }

  flag(path: Path, fallback: boolean): boolean {
    const value = this.value(path)
    if (value === undefined) return fallback
    const given = typeof value === 'object' ? undefined : value
    // Some exports write "True" and "False".
    if (/^true$/i.test(String(given))) return true
    if (/^false$/i.test(String(given))) return false
    this.error(path, given, 'expected true or false', `leave it out for ${fallback}`)
    return fallback
  }

  error(path: Path, given: unknown, expected: string, hint: string): void {
    this.#add(this.errors, path, given, expected, hint)
  }

  missing(path: Path): void {
    this.error(path, undefined, 'is missing', 'add it')
  }

  /** Adds an error for the violation, if there is one. */
  report(path: Path, given: string, violation: Violation | undefined): void {
    if (violation === undefined) return
    const [expected, hint, shown = given] = violation
    this.error(path, shown, expected, hint)
  }

  warn(path: Path, given: unknown, expected: string, hint: string): void {
    this.#add(this.warnings, path, given, expected, hint)
  }

  #add(diagnostics: Diagnostic[], path: Path, given: unknown, expected: string, hint: string): void {
    if (diagnostics.length > DIAGNOSTICS_MAX) return
    if (diagnostics.length === DIAGNOSTICS_MAX) {
      const cut = 'holds more errors than are shown'
      diagnostics.push({ where: this.label, key: '', given: '', expected: cut, hint: 'correct these first' })
      return
    }
    diagnostics.push(this.diagnostic(path, given, expected, hint))
  }

  /** A diagnostic that is not reported yet. */
  diagnostic(path: Path, given: unknown, expected: string, hint: string): Diagnostic {
    const parts = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    const key = parts.join('').replace(/^\./, '')
    return { where: this.where(path), key, given: formatValue(given), expected, hint }
  }

  /** File and line of the key or item at a path, or of the nearest value around it that exists. */
  where(path: Path): string {
    this.#positions ??= positionsOf(this.#events, this.#source)
    let position: Position | undefined = this.#positions
    let offset = 0
    for (const name of path) {
      position = position.children.get(name)
      if (position === undefined) break
      // An empty value has no offset of its own.
      if (position.offset >= 0) offset = position.offset
    }
    return `${this.label}:${this.#lineAt(offset)}`
  }

  /** By binary search: a project may have a line for each of thousands of policies. */
  #lineAt(offset: number): number {
    this.#lineFeeds ??= Array.from(this.#source.matchAll(/\n/g), ({ index }) => index)
    let [low, high] = [0, this.#lineFeeds.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#lineFeeds[middle]! < offset) low = middle + 1
      else high = middle
    }
    return low + 1
  }
}

/** `seen`: aliases may lead to one object in many ways, or back into an object that holds them. */
function hasContent(value: unknown, depth = CONTENT_DEPTH_MAX, seen = new Set<object>()): boolean {
  if (typeof value !== 'object' || value === null) return !/^(?:false|null|undefined|)$/i.test(String(value).trim())
  if (depth === 0) return true
  if (seen.has(value)) return false
  seen.add(value)
  return Object.values(value).some(each => hasContent(each, depth - 1, seen))
}

/** The error of the JSON parser, without pieces of the text; it may name no position. Empty: it accepts the text. */
function jsonError(source: string): { readonly offset?: number; readonly reason?: string } {
  try {
    JSON.parse(source)
    return {}
  } catch (error) {
    const { message } = error as Error
    const [, at] = / at position (\d+)/.exec(message) ?? []
    const reason = message.replace(/ (?:in|after) JSON at position[\s\S]*|, [."][\s\S]*/, '')
    if (at !== undefined) return { reason, offset: Number(at) }
    return message === reason ? { reason, offset: source.length } : { reason }
  }
}

/** Offset of a value, or of its key in a map, -1 if it has none; an alias has the children of its node. */
interface Position {
  readonly offset: number
  readonly children: Map<string | number, Position>
}

/** Positions of the first document. `events` is empty if the file could not be parsed. */
function positionsOf(events: readonly yaml.Event[], source: string): Position {
  const anchors = new Map<string, Position['children']>()
  // The first event opens the document.
  let at = 1
  const isAtEnd = (): boolean => events[at] === undefined || events[at]!.type === POP
  const read = (): Position => {
    const event = events[at++]!
    const offset = startOf(event)
    const anchor = 'anchorStart' in event ? source.slice(event.anchorStart, event.anchorEnd) : ''
    if (event.type === ALIAS) return { offset, children: anchors.get(anchor) ?? new Map() }
    const children: Position['children'] = new Map()
    // Before the children are read: one of them may refer to this node.
    if (anchor !== '') anchors.set(anchor, children)
    if (event.type === SEQUENCE) for (let item = 0; !isAtEnd(); item++) children.set(item, read())
    while (event.type === MAPPING && !isAtEnd()) {
      const key = events[at]!
      const keyPosition = read()
      const value = read()
      if (key.type !== SCALAR) continue
      children.set(yaml.getScalarValue(source, key), { offset: keyPosition.offset, children: value.children })
    }
    // The event that closes a collection.
    if (event.type !== SCALAR) at++
    return { offset, children }
  }
  return isAtEnd() ? { offset: 0, children: new Map() } : read()
}

function startOf(event: yaml.Event | undefined): number {
  if (event === undefined) return 0
  if ('valueStart' in event) return event.valueStart
  if ('start' in event) return event.start
  return 'anchorStart' in event ? event.anchorStart : 0
}
