/** Every documented key, and the proof that nothing that looks like one was passed over. */
import { type Adapter, HEADING_SECTIONS, NON_KEYS, PLAIN_SENTENCES } from './adapters.ts'
import type { Facts, FoundKey } from './facts.ts'
import { type Block, blocksOf, SpecFault, ticksOf } from './markdown.ts'
import { type SectionName, sectionOf } from './names.ts'
import { TableReader } from './rows.ts'
import { readSentence } from './sentences.ts'

export interface SpecKey extends Facts {
  readonly section: string
  /** `[[section]]` */
  readonly repeated: boolean
  readonly key: string
  /** Shown in an example, and nothing said of it. */
  readonly exampleOnly: boolean
  /** The key of the same section that this is another spelling of; '' for a key itself. */
  readonly aliasOf: string
  readonly line: number
}

const PART = 'Resources and their fields'

/** Throws SpecFault. */
export function extractKeys(markdown: string, adapters: readonly Adapter[]): readonly SpecKey[] {
  const unused = new Set(adapters)
  const rewrite = (text: string): string =>
    adapters.reduce((rewritten, adapter) => {
      const match = adapter.pattern.exec(rewritten)
      if (match === null) return rewritten
      unused.delete(adapter)
      return rewritten.replace(match[0], () => adapter.means(...match.slice(1)))
    }, text)
  const blocks = blocksOf(markdown, PART, rewrite)
  const [idle] = unused
  if (idle !== undefined) throw new SpecFault(1, `nothing fits ${idle.pattern}, needed because ${idle.because}`)
  const extraction = new Extraction()
  for (const block of blocks) extraction.read(block)
  const lines = markdown.split('\n')
  for (const line of new Set(blocks.map(block => block.line))) extraction.account(lines[line - 1]!, line)
  extraction.accountForNames()
  return extraction.keys
}

class Extraction {
  #keys: readonly SpecKey[] = []
  #heading: readonly SectionName[] = []
  #table: TableReader | undefined
  /** The paragraph that is being read, and the sections that its next key stands in. */
  #paragraph = 0
  #sections: readonly SectionName[] = []
  /** Whatever was understood below one heading, for each of its lines. */
  readonly #namedAt = new Map<number, Set<string>>()
  #named = new Set<string>()
  /** Sections in brackets -> the line. */
  readonly #bracketed = new Map<string, number>()
  readonly #cutOff: { readonly name: string; readonly line: number }[] = []

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
    if (PLAIN_SENTENCES.includes(text)) return
    if (paragraph !== this.#paragraph) this.#sections = this.#heading
    this.#paragraph = paragraph
    const [, which, only] = /^The (\w+) .*section has (.*) only$/.exec(text) ?? []
    if (which !== undefined && only !== undefined) {
      this.#keepOnly(which, only.split(', '), line)
      return
    }
    const { keys, sections, cutOff } = readSentence(text, this.#sections, line)
    if (keys.length === 0 && cutOff.length === 0 && !sections.some(({ name }) => text.includes(name))) {
      throw new SpecFault(line, `no key was found in "${text}"`)
    }
    this.#noteSections(sections, line)
    this.#sections = sections
    this.#cutOff.push(...cutOff.map(name => ({ name, line })))
    for (const key of keys) this.#add(key, line)
  }

  #noteSections(sections: readonly SectionName[], line: number): void {
    for (const { name } of sections) {
      this.#named.add(name)
      this.#bracketed.set(name, line)
    }
  }

  #add({ section, name, aliasOf, exampleOnly, facts }: FoundKey, line: number): void {
    // Pairs of any name: the key is the table they stand in.
    const key = facts.type === 'key-value pairs' ? `${name}.<name>` : name
    const known = this.#keys.find(other => other.section === section.name && other.key === key)
    if (known !== undefined) throw new SpecFault(line, `${section.name}.${key} is documented on line ${known.line} too`)
    const found = { section: section.name, repeated: section.repeated, key, ...facts, exampleOnly, aliasOf, line }
    this.#keys = [...this.#keys, found]
    for (const text of [section.name, `${section.name}.${name}`, facts.fallback, facts.described, ...facts.choices]) {
      this.#named.add(text)
    }
  }

  /** "The shared database section has type, url only." */
  #keepOnly(which: string, only: readonly string[], line: number): void {
    const section = this.#heading.find(({ name }) => name.includes(which))?.name
    if (section === undefined) throw new SpecFault(line, `no section of the heading is the ${which} one`)
    for (const key of only) {
      if (!this.#keys.some(known => known.section === section && known.key === key)) {
        throw new SpecFault(line, `${section} has no key ${key}`)
      }
    }
    this.#keys = this.#keys.filter(known => known.section !== section || only.includes(known.key))
  }

  /** Everything in backticks, and every word that is spelt like a key, has been understood as something. */
  account(text: string, line: number): void {
    const named = this.#namedAt.get(line) ?? new Set()
    const words = text.replace(/`[^`]*`/g, ' ').match(/\b[A-Za-z]{2,}(?:[_.]\w{2,})+\b|\b[a-z]+[A-Z]\w*\b/g) ?? []
    for (const token of [...ticksOf(text), ...words]) {
      const parts = token.split('/').map(part => sectionOf(part)?.name ?? part.replace(/^\.(?=\w)/, ''))
      const strange = parts.find(part => !part.endsWith('...') && !NON_KEYS.has(part) && !isNamed(part, named))
      if (strange !== undefined) throw new SpecFault(line, `"${strange}" is neither a key nor known to be none`)
    }
  }

  /** Every section that is named has keys, and every name that is cut off goes on somewhere. */
  accountForNames(): void {
    for (const [name, line] of this.#bracketed) {
      if (!this.#keys.some(({ section }) => section === name)) throw new SpecFault(line, `[${name}] has no key`)
    }
    for (const { name, line } of this.#cutOff) {
      if (this.#keys.some(({ key }) => key.startsWith(`${name}.`))) continue
      throw new SpecFault(line, `no key begins with ${name}`)
    }
  }
}

function isNamed(part: string, named: ReadonlySet<string>): boolean {
  if (named.has(part)) return true
  // By the end of its path or as a group of it; or within a longer default, such as a list of fields.
  const isText = (text: string): boolean => /[^\w.]/.test(text) && !text.includes('<name>')
  return [...named].some(text => `.${text}.`.includes(`.${part}.`) || (isText(text) && text.includes(part)))
}
