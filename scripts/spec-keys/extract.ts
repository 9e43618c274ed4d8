/** Extracts every documented key, and checks that nothing that looks like a key was missed. */
import { type Adapter, HEADING_SECTIONS, NON_KEYS, SENTENCES_WITHOUT_KEYS } from './adapters.ts'
import type { KeyProperties, FoundKey } from './properties.ts'
import { type Block, blocksOf, SpecError, ticksOf } from './markdown.ts'
import { type SectionName, sectionOf } from './names.ts'
import { TableReader } from './rows.ts'
import { readSentence } from './sentences.ts'

export interface SpecKey extends KeyProperties {
  readonly section: string
  /** `[[section]]` */
  readonly repeated: boolean
  readonly key: string
  /** Occurs only in an example, without a description. */
  readonly exampleOnly: boolean
  /** The key of the same section of which this is an alias; '' for a key itself. */
  readonly aliasOf: string
  readonly line: number
}

const PART = 'Resources and their fields'

/** Throws SpecError. */
export function extractKeys(markdown: string, adapters: readonly Adapter[]): readonly SpecKey[] {
  const unused = new Set(adapters)
  const rewrite = (text: string): string =>
    adapters.reduce((rewritten, adapter) => {
      const match = adapter.pattern.exec(rewritten)
      if (match === null) return rewritten
      unused.delete(adapter)
      return rewritten.replace(match[0], () => adapter.rewrite(...match.slice(1)))
    }, text)
  const blocks = blocksOf(markdown, PART, rewrite)
  const [idle] = unused
  if (idle !== undefined) throw new SpecError(1, `nothing matches ${idle.pattern}, needed because ${idle.reason}`)
  const extraction = new Extraction()
  for (const block of blocks) extraction.read(block)
  const lines = markdown.split('\n')
  for (const line of new Set(blocks.map(block => block.line))) extraction.checkTokens(lines[line - 1]!, line)
  extraction.checkNames()
  return extraction.keys
}

class Extraction {
  #keys: readonly SpecKey[] = []
  #heading: readonly SectionName[] = []
  #table: TableReader | undefined
  /** The current paragraph, and the sections of its next key. */
  #paragraph = 0
  #sections: readonly SectionName[] = []
  /** Line -> all names that were understood below its heading. */
  readonly #namedAt = new Map<number, Set<string>>()
  #named = new Set<string>()
  /** Sections in brackets -> the line. */
  readonly #bracketed = new Map<string, number>()
  readonly #abbreviations: { readonly name: string; readonly line: number }[] = []

  get keys(): readonly SpecKey[] {
    return this.#keys
  }

  read(block: Block): void {
    if (block.kind === 'heading') this.#named = new Set()
    this.#namedAt.set(block.line, this.#named)
    if (block.kind === 'row') {
      this.#table ??= new TableReader(this.#heading)
      for (const key of this.#table.read(block)) this.#add(key, block.line)
      return
    }
    this.#table = undefined
    if (block.kind === 'heading') this.#readHeading(block)
    else this.#readSentence(block)
  }

  #readHeading({ text, line }: Block): void {
    const given = HEADING_SECTIONS[text]
    this.#heading = given === undefined ? readSentence(text, [], line).sections : [{ name: given, repeated: false }]
    this.#noteSections(this.#heading, line)
  }

  #readSentence({ text, line, paragraph }: Block): void {
    if (SENTENCES_WITHOUT_KEYS.includes(text)) return
    if (paragraph !== this.#paragraph) this.#sections = this.#heading
    this.#paragraph = paragraph
    const [, which, only] = /^The (\w+) .*section has (.*) only$/.exec(text) ?? []
    if (which !== undefined && only !== undefined) {
      this.#keepOnly(which, only.split(', '), line)
      return
    }
    const { keys, sections, abbreviations } = readSentence(text, this.#sections, line)
    if (keys.length === 0 && abbreviations.length === 0 && !sections.some(({ name }) => text.includes(name))) {
      throw new SpecError(line, `no key was found in "${text}"`)
    }
    this.#noteSections(sections, line)
    this.#sections = sections
    this.#abbreviations.push(...abbreviations.map(name => ({ name, line })))
    for (const key of keys) this.#add(key, line)
  }

  #noteSections(sections: readonly SectionName[], line: number): void {
    for (const { name } of sections) {
      this.#named.add(name)
      this.#bracketed.set(name, line)
    }
  }

  #add({ section, name, aliasOf, exampleOnly, properties }: FoundKey, line: number): void {
    // Pairs have free names, so the documented key is that of their table.
    const key = properties.type === 'key-value pairs' ? `${name}.<name>` : name
    const known = this.#keys.find(other => other.section === section.name && other.key === key)
    if (known !== undefined) throw new SpecError(line, `${section.name}.${key} is documented on line ${known.line} too`)
    const found = { section: section.name, repeated: section.repeated, key, ...properties, exampleOnly, aliasOf, line }
    this.#keys = [...this.#keys, found]
    for (const text of [
      section.name,
      `${section.name}.${name}`,
      properties.defaultValue,
      properties.described,
      ...properties.choices,
    ]) {
      this.#named.add(text)
    }
  }

  /** Reads a sentence such as "The shared database section has type, url only". */
  #keepOnly(which: string, only: readonly string[], line: number): void {
    const section = this.#heading.find(({ name }) => name.includes(which))?.name
    if (section === undefined) throw new SpecError(line, `no section of the heading is the ${which} one`)
    for (const key of only) {
      if (!this.#keys.some(known => known.section === section && known.key === key)) {
        throw new SpecError(line, `${section} has no key ${key}`)
      }
    }
    this.#keys = this.#keys.filter(known => known.section !== section || only.includes(known.key))
  }

  /** Throws SpecError for a text in backticks, or a word that looks like a key, that was not read. */
  checkTokens(text: string, line: number): void {
    const named = this.#namedAt.get(line) ?? new Set()
    const words = text.replace(/`[^`]*`/g, ' ').match(/\b[A-Za-z]{2,}(?:[_.]\w{2,})+\b|\b[a-z]+[A-Z]\w*\b/g) ?? []
    for (const token of [...ticksOf(text), ...words]) {
      const parts = token.split('/').map(part => sectionOf(part)?.name ?? part.replace(/^\.(?=\w)/, ''))
      const strange = parts.find(part => !part.endsWith('...') && !NON_KEYS.has(part) && !isNamed(part, named))
      if (strange !== undefined) throw new SpecError(line, `"${strange}" is neither a key nor known to be none`)
    }
  }

  /** Throws SpecError for a section without keys, and for an abbreviated name without a key. */
  checkNames(): void {
    for (const [name, line] of this.#bracketed) {
      if (!this.#keys.some(({ section }) => section === name)) throw new SpecError(line, `[${name}] has no key`)
    }
    for (const { name, line } of this.#abbreviations) {
      if (this.#keys.some(({ key }) => key.startsWith(`${name}.`))) continue
      throw new SpecError(line, `no key begins with ${name}`)
    }
  }
}

function isNamed(part: string, named: ReadonlySet<string>): boolean {
  if (named.has(part)) return true
  // A part is named by the end or a group of a path, or by a longer default such as a list of fields.
  const isText = (text: string): boolean => /[^\w.]/.test(text) && !text.includes('<name>')
  return [...named].some(text => `.${text}.`.includes(`.${part}.`) || (isText(text) && text.includes(part)))
}
