/** Index entries of a resource: terms, texts, the values it is sorted by, and which parameters have a value. */
import { isObject, type JsonObject } from './json-text.ts'
import { SEARCH_PARAMETERS, type SearchParameter } from './search-parameters.ts'
import { foldCode, foldText, termOf, tokenTerms, urlPaths } from './search-terms.ts'

export interface IndexEntries {
  /** Each once. */
  readonly terms: readonly bigint[]
  /** Folded texts for searches by their beginning or a part. */
  readonly texts: readonly IndexedText[]
  /** Bit n: the parameter with number n has a value. */
  readonly present: number
  /** The folded name, cut to `TEXT_CHARS`. */
  readonly name: string
  /** By name of a parameter: the first and last of its values in order, cut to `SORT_CHARS`. */
  readonly sorts: ReadonlyMap<string, { readonly low: string; readonly high: string }>
}

/** `isStart`: the text begins here; others are later pieces of a long text. */
interface IndexedText {
  readonly parameter: SearchParameter
  readonly isStart: boolean
  readonly text: string
}

/** Characters of a text in the index. A longer text is indexed in pieces that overlap by half. */
export const TEXT_CHARS = 180
const SORT_CHARS = 64
/** Longest text that a search looks for: it is within one piece, wherever it stands. */
export const SEARCHED_CHARS_MAX = TEXT_CHARS / 2

/** `resource`: valid. Entries depend on the resource alone, so that those of an old version can be removed. */
export function indexEntries(resource: JsonObject): IndexEntries {
  const collector = new EntryCollector()
  for (const parameter of SEARCH_PARAMETERS.values()) {
    // The table of resources has both as columns.
    if (parameter.name === '_id' || parameter.name === '_lastUpdated') continue
    for (const value of valuesAt(resource, parameter.path)) collector.add(parameter, value)
  }
  return collector.entries()
}

function valuesAt(resource: JsonObject, path: readonly string[]): readonly unknown[] {
  let value: unknown = resource
  for (const name of path) value = isObject(value) ? value[name] : undefined
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value.filter(item => item !== null) : [value]
}

class EntryCollector {
  readonly #terms = new Set<bigint>()
  readonly #texts = new Map<string, IndexedText>()
  readonly #sorts = new Map<string, { low: string; high: string }>()
  #present = 0
  #name = ''

  entries(): IndexEntries {
    return {
      terms: [...this.#terms],
      texts: [...this.#texts.values()],
      present: this.#present,
      name: this.#name,
      sorts: this.#sorts,
    }
  }

  add(parameter: SearchParameter, value: unknown): void {
    this.#present |= 1 << parameter.number
    if (parameter.shape === 'string') this.#string(parameter, String(value))
    else if (parameter.shape === 'uri') this.#uri(parameter, String(value))
    else if (!isObject(value)) this.#token(parameter, '', String(value))
    else if (parameter.shape === 'Coding') this.#coding(parameter, value)
    else if (parameter.shape === 'CodeableConcept') this.#concept(parameter, value)
    else if (parameter.shape === 'Identifier') this.#identifier(parameter, value)
    else if (parameter.shape === 'Reference') this.#reference(parameter, value)
  }

  #token(parameter: SearchParameter, system: string, code: string): void {
    for (const term of tokenTerms(parameter, system, code)) this.#terms.add(term)
    if (code !== '') this.#sort(parameter, foldCode(code))
  }

  #coding(parameter: SearchParameter, coding: JsonObject): void {
    this.#token(parameter, textOf(coding.system), textOf(coding.code))
    this.#text(parameter, textOf(coding.display))
  }

  #concept(parameter: SearchParameter, concept: JsonObject): void {
    for (const coding of listOf(concept.coding)) if (isObject(coding)) this.#coding(parameter, coding)
    this.#text(parameter, textOf(concept.text))
    if (concept.coding === undefined) this.#sort(parameter, foldText(textOf(concept.text)))
  }

  #identifier(parameter: SearchParameter, identifier: JsonObject): void {
    const value = textOf(identifier.value)
    this.#token(parameter, textOf(identifier.system), value)
    if (!isObject(identifier.type)) return
    this.#text(parameter, textOf(identifier.type.text))
    for (const coding of listOf(identifier.type.coding)) {
      if (!isObject(coding)) continue
      const [system, code] = [textOf(coding.system), textOf(coding.code)]
      if (system === '' || code === '' || value === '') continue
      this.#terms.add(termOf(parameter, 'of type', system, foldCode(code), foldCode(value)))
    }
  }

  #string(parameter: SearchParameter, value: string): void {
    this.#terms.add(termOf(parameter, 'exact', value))
    const folded = this.#text(parameter, value)
    this.#name = cut(folded, TEXT_CHARS)
    this.#sort(parameter, folded)
  }

  #uri(parameter: SearchParameter, uri: string): void {
    const [unversioned = ''] = uri.split('|', 1)
    this.#terms.add(termOf(parameter, 'exact', uri)).add(termOf(parameter, 'exact', unversioned))
    for (const path of urlPaths(unversioned)) this.#terms.add(termOf(parameter, 'below', path))
    this.#sort(parameter, uri)
  }

  #reference(parameter: SearchParameter, { reference, identifier, display }: JsonObject): void {
    const text = textOf(reference)
    if (isObject(identifier)) {
      const [system, value] = [textOf(identifier.system), textOf(identifier.value)]
      for (const term of tokenTerms(parameter, system, value, 'identifier ')) this.#terms.add(term)
    }
    this.#sort(parameter, text || foldText(textOf(display)))
    // A fragment names a contained resource, which has no identity outside.
    if (text === '' || text.startsWith('#')) return
    const [, path = text, version = ''] = /^(.*)\/_history\/([^/]+)$/.exec(text) ?? []
    const isLocal = /^[A-Z][A-Za-z]*\/[^/]+$/.test(path)
    this.#terms.add(termOf(parameter, isLocal ? 'local' : 'url', path))
    if (isLocal) this.#terms.add(termOf(parameter, 'local id', path.slice(path.indexOf('/') + 1)))
    if (version === '') return
    this.#terms.add(termOf(parameter, isLocal ? 'local version' : 'url version', path, version))
  }

  /** Returns the folded text. */
  #text(parameter: SearchParameter, text: string): string {
    const folded = foldText(text)
    if (folded === '') return ''
    const characters = folded.length > TEXT_CHARS ? [...folded] : []
    const pieces =
      characters.length <= TEXT_CHARS
        ? [folded]
        : Array.from({ length: Math.ceil(characters.length / SEARCHED_CHARS_MAX) }, (_, index) =>
            characters.slice(index * SEARCHED_CHARS_MAX, index * SEARCHED_CHARS_MAX + TEXT_CHARS).join(''),
          )
    for (const [index, piece] of pieces.entries()) {
      const isStart = index === 0
      this.#texts.set(`${parameter.number} ${isStart} ${piece}`, { parameter, isStart, text: piece })
    }
    return folded
  }

  #sort({ name }: SearchParameter, text: string): void {
    if (text === '') return
    const value = cut(text, SORT_CHARS)
    const known = this.#sorts.get(name)
    if (known === undefined) this.#sorts.set(name, { low: value, high: value })
    else if (compareText(value, known.low) < 0) known.low = value
    else if (compareText(value, known.high) > 0) known.high = value
  }
}

/** By code points, as all databases compare with binary collations. */
function compareText(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other))
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text : [...text].slice(0, characters).join('')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
