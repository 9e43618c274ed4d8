/**
 * One YAML file (JSON is YAML too), asked by path. Notes a fault, with its line, for whatever is not there or not of
 * the right kind. Values are made at once; lines are looked for only where one is to be named.
 */
import * as yaml from 'js-yaml'
import type { Objection } from './api-syntax.ts'
import { type Fault, show } from './fault.ts'

const { DOCUMENT, SEQUENCE, MAPPING, SCALAR, ALIAS, POP } = yaml.EVENT_ID
/** Numbers keep their spelling: the version 1.10 must not become 1.1. */
const AS_WRITTEN = yaml.FAILSAFE_SCHEMA.withTags(yaml.nullCoreTag, yaml.boolCoreTag)

/** Names of keys, and places in lists from 0. */
export type Path = readonly (string | number)[]

/** So many faults of one file are told: each costs a search for its line. */
const FAULTS_MAX = 50
const LINE_FEED = 10

export class YamlFile {
  readonly faults: Fault[] = []
  /** What is accepted and not acted on. */
  readonly warnings: Fault[] = []
  readonly label: string
  /** Something of what it means stands elsewhere: that it has not changed says nothing. */
  readsOutside = false
  readonly #source: string
  #events: yaml.Event[] = []
  /** As written: numbers are text. Aliases stand for one and the same object. */
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

  /** The same as the file means it: numbers are numbers. */
  typed(): unknown {
    const options = { source: this.#source, schema: yaml.CORE_SCHEMA }
    return this.#guarded(() => yaml.constructFromEvents(this.#events, options)[0])
  }

  /** The parser ends at the first thing that it does not take, and on hostile files in more ways than its own. */
  #guarded(parse: () => unknown): unknown {
    try {
      return parse()
    } catch (error) {
      const { reason, mark } = error as yaml.YAMLException
      // What stands quoted in it, or as a tag, is a piece of the file, which may hold a password.
      const said = reason === undefined ? 'it is nested too deeply' : reason.replace(/ *["!<][\s\S]*$/, '')
      this.#invalid(mark?.position ?? 0, said)
      return undefined
    }
  }

  #invalid(offset: number, reason: string): void {
    const line = this.#lineAt(offset)
    const column = offset - this.#source.lastIndexOf('\n', offset - 1)
    const expected = `not valid YAML: ${reason}`
    const where = `${this.label}:${line}:${offset === 0 ? 1 : column}`
    this.faults.push({ where, key: '', given: '', expected, remedy: '' })
  }

  #secondDocument(): number {
    const second = this.#events.findLastIndex(({ type }) => type === DOCUMENT)
    return Math.max(0, startOf(this.#events[second + 1]))
  }

  has(path: Path): boolean {
    return this.value(path) !== undefined
  }

  /** How many items the list at a path has; undefined where there is no list. */
  lengthOf(path: Path): number | undefined {
    const value = this.value(path)
    return Array.isArray(value) ? value.length : undefined
  }

  /** Numbers are as they are spelled. */
  text(path: Path): string | undefined {
    const value = this.value(path)
    if (typeof value === 'string') return value
    if (value === undefined) this.lacks(path)
    else this.object(path, undefined, 'expected text', 'write one value')
    return undefined
  }

  /** '' where there is nothing, or nothing but space. */
  optional(path: Path): string {
    return this.has(path) ? (this.text(path) ?? '').trim() : ''
  }

  /** The texts of a list, or the one text that stands in its place; empty where there is nothing. */
  texts(path: Path): readonly string[] {
    const length = this.lengthOf(path)
    if (length === undefined) return [this.optional(path)].filter(text => text !== '')
    return Array.from({ length }, (_, item) => this.text([...path, item]) ?? '')
  }

  /** The same of what decides nothing: what is no text is left out. */
  words(path: Path): readonly string[] {
    const value = this.value(path)
    const items: readonly unknown[] = Array.isArray(value) ? value : [value]
    return items.filter(item => typeof item === 'string').flatMap(text => text.trim() || [])
  }

  /** Whether anything stands at a path, or within it, that is not null, false or empty. */
  says(path: Path): boolean {
    return isSomething(this.value(path))
  }

  flag(path: Path, fallback: boolean): boolean {
    const value = this.value(path)
    if (value === undefined) return fallback
    const given = typeof value === 'object' ? undefined : value
    // Exports write some of them as "True" and "False".
    if (/^true$/i.test(String(given))) return true
    if (/^false$/i.test(String(given))) return false
    this.object(path, given, 'expected true or false', `leave it out for ${fallback}`)
    return fallback
  }

  /** Notes that the value at a path will not do. */
  object(path: Path, given: unknown, expected: string, remedy: string): void {
    this.#note(this.faults, path, given, expected, remedy)
  }

  /** The same as somebody objects to it; nothing where nobody does. */
  objectAs(path: Path, given: string, objection: Objection | undefined): void {
    if (objection === undefined) return
    const [expected, remedy, shown = given] = objection
    this.object(path, shown, expected, remedy)
  }

  /** Notes that the value at a path is accepted and does nothing. */
  warn(path: Path, given: unknown, expected: string, remedy: string): void {
    this.#note(this.warnings, path, given, expected, remedy)
  }

  #note(findings: Fault[], path: Path, given: unknown, expected: string, remedy: string): void {
    if (findings.length > FAULTS_MAX) return
    if (findings.length === FAULTS_MAX) {
      const more = 'there is more that is wrong in this file'
      findings.push({ where: this.label, key: '', given: '', expected: more, remedy: 'begin with these' })
      return
    }
    const key = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
    const shown = key.replace(/^\./, '')
    findings.push({ where: this.where(path), key: shown, given: show(given), expected, remedy })
  }

  /** Notes that there is nothing at a path. */
  lacks(path: Path): void {
    this.object(path, undefined, 'is missing', 'add it')
  }

  /** The file and line of a path, or of the nearest thing around it that is there. */
  where(path: Path): string {
    return `${this.label}:${this.#lineAt(this.#offsetOf(path))}`
  }

  #lineAt(offset: number): number {
    let line = 1
    for (let at = 0; at < offset; at++) if (this.#source.charCodeAt(at) === LINE_FEED) line++
    return line
  }

  /** As written; undefined where there is nothing. */
  value(path: Path): unknown {
    let value = this.root
    for (const name of path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof name === 'number')) return
      value = Object.hasOwn(value, name) ? (value as Readonly<Record<string | number, unknown>>)[name] : undefined
    }
    return value ?? undefined
  }

  /** Of the key where a map has it, and of the item itself in a list. */
  #offsetOf(path: Path): number {
    let offset = 0
    // Behind that of the document.
    let at = 1
    for (const name of path) {
      at = this.#resolved(at)
      const type = this.#events[at]?.type
      const found = type === MAPPING ? this.#entryOf(at, name) : type === SEQUENCE ? this.#itemOf(at, name) : null
      if (found === null) break
      offset = startOf(this.#events[found.shown])
      at = found.at
    }
    return offset
  }

  #entryOf(map: number, name: string | number): Place | null {
    for (let at = map + 1; this.#events[at]!.type !== POP; ) {
      const key = this.#events[at]!
      const value = this.#behind(at)
      const isIt = key.type === SCALAR && yaml.getScalarValue(this.#source, key) === String(name)
      if (isIt) return { shown: at, at: value }
      at = this.#behind(value)
    }
    return null
  }

  #itemOf(list: number, place: string | number): Place | null {
    let at = list + 1
    for (let item = 0; this.#events[at]!.type !== POP; item++) {
      if (item === place) return { shown: at, at }
      at = this.#behind(at)
    }
    return null
  }

  /** Where that begins which follows a node. */
  #behind(node: number): number {
    let depth = 0
    for (let at = node; ; at++) {
      const { type } = this.#events[at]!
      if (type === MAPPING || type === SEQUENCE) depth++
      else if (type === POP) depth--
      if (depth === 0) return at + 1
    }
  }

  /** What an alias stands for: the last node before it with that anchor. */
  #resolved(at: number): number {
    const alias = this.#events[at]
    if (alias?.type !== ALIAS) return at
    const name = this.#source.slice(alias.anchorStart, alias.anchorEnd)
    const isMeant = (event: yaml.Event | undefined): boolean =>
      event !== undefined && 'tagStart' in event && this.#source.slice(event.anchorStart, event.anchorEnd) === name
    let meant = at - 1
    while (meant > 0 && !isMeant(this.#events[meant])) meant--
    return meant
  }
}

/** `seen`: aliases may lead to one thing in many ways, or back to where it stands. */
function isSomething(value: unknown, depth = DEPTH_MAX, seen = new Set<object>()): boolean {
  if (typeof value !== 'object' || value === null) return !/^(?:false|null|undefined|)$/i.test(String(value).trim())
  if (depth === 0) return true
  if (seen.has(value)) return false
  seen.add(value)
  return Object.values(value).some(each => isSomething(each, depth - 1, seen))
}
const DEPTH_MAX = 8

/** Events by their places: which one is shown, and which one begins the value. */
interface Place {
  readonly shown: number
  readonly at: number
}

function startOf(event: yaml.Event | undefined): number {
  if (event === undefined) return 0
  if ('valueStart' in event) return event.valueStart
  if ('start' in event) return event.start
  return 'anchorStart' in event ? event.anchorStart : 0
}
