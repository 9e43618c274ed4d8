/** Reads keys from prose: `[section]` and names in backticks, each with the text after it. */
import { type FoundKey, propertiesFrom, mergeProperties, NO_PROPERTIES } from './properties.ts'
import { enclosedEnd, SpecError, splitOutside, ticksOf } from './markdown.ts'
import { namesOfToken, type SectionName, sectionOf } from './names.ts'

interface SentenceKeys {
  readonly keys: readonly FoundKey[]
  /** Sections of the next sentence in the same paragraph. */
  readonly sections: readonly SectionName[]
  /** The beginnings of names that end with `...`. */
  readonly abbreviations: readonly string[]
}

/** A key whose text, up to the next key, is still being collected. */
interface PendingKey {
  readonly sections: readonly SectionName[]
  readonly name: string
  readonly exampleOnly: boolean
  /** "and" joins it to the next key; without properties of its own it gets those of that key. */
  after: string
  joined: boolean
}

/** Words that may stand directly before a name; others mean that the token was not understood. */
const BEFORE_A_NAME = /(?:^|[,:]|\b(?:and|with|each|has))$/
const EXAMPLES = /^(.*?)\b(?:[Ee]xample(?:-only)?) keys: (.*)$/

export function readSentence(sentence: string, sections: readonly SectionName[], line: number): SentenceKeys {
  const reader = new SentenceReader(sections, line)
  const [, head, examples] = EXAMPLES.exec(sentence) ?? []
  if (examples !== undefined) reader.readExamples(head!, examples)
  else for (const clause of splitOutside(sentence, /^;/)) reader.readClause(clause)
  return { keys: reader.keys, sections: reader.sections, abbreviations: reader.abbreviations }
}

class SentenceReader {
  readonly keys: FoundKey[] = []
  readonly abbreviations: string[] = []
  sections: readonly SectionName[]
  readonly #line: number
  #items: PendingKey[] = []
  /** The previous name: `.b` after `a.c` is `a.b`. */
  #nameBefore = ''
  /** Only commas and "and" stand between the last section and the current position. */
  #sectionsGoOn = false

  constructor(sections: readonly SectionName[], line: number) {
    this.sections = sections
    this.#line = line
  }

  /** Names of examples need no backticks, and the text after a name is about that name only. */
  readExamples(head: string, examples: string): void {
    this.readClause(head)
    for (const text of splitOutside(examples, /^,/)) {
      const [name, ...after] = text.replaceAll('`', '').split(' ')
      if (name!.endsWith('...')) this.abbreviations.push(name!.replace(/\.+$/, ''))
      else this.#begin(name!, after.join(' '), true)
    }
    this.#finish()
  }

  readClause(clause: string): void {
    let at = 0
    let words = ''
    while (at < clause.length) {
      const end = enclosedEnd(clause, at)
      const piece = clause.slice(at, Math.max(end, at + 1))
      at += piece.length
      if (piece.startsWith('`')) {
        this.#readToken(piece.slice(1, -1), words, clause.slice(at))
        words = ''
      } else if (piece.startsWith('(') && this.#isSectionRemark(piece)) {
        for (const token of ticksOf(piece)) this.#readToken(token, '', '')
      } else {
        words = piece.startsWith('(') ? '' : words + piece
        this.#append(piece)
      }
    }
    this.#finish()
  }

  /** True for a remark that names only sections. */
  #isSectionRemark(remark: string): boolean {
    const tokens = ticksOf(remark)
    return tokens.length > 0 && tokens.every(token => sectionOf(token) !== undefined)
  }

  #append(text: string): void {
    const item = this.#items.at(-1)
    if (item !== undefined) item.after += text
  }

  #readToken(token: string, words: string, after: string): void {
    const section = sectionOf(token)
    const before = words.trim()
    if (section !== undefined) {
      const goesOn = this.#sectionsGoOn && /^(?:,|and|)$/.test(before)
      this.#share()
      this.sections = goesOn ? [...this.sections, section] : [section]
      this.#sectionsGoOn = true
      return
    }
    this.#sectionsGoOn = false
    const item = this.#items.at(-1)
    if (item !== undefined && isChoice(before, after)) {
      item.after += `\`${token}\``
      return
    }
    if (!BEFORE_A_NAME.test(before)) {
      throw new SpecError(this.#line, `\`${token}\` after "${before}" is neither a key nor a choice of one`)
    }
    if (item !== undefined) {
      item.joined = /\band$/.test(before)
      item.after = item.after.trim().replace(/,?\s*(?:,|\band)$/, '')
    }
    for (const name of namesOfToken(token, this.#nameBefore, this.#line)) this.#begin(name, '', false)
  }

  #begin(name: string, after: string, exampleOnly: boolean): void {
    if (this.sections.length === 0) throw new SpecError(this.#line, `\`${name}\` stands in no section`)
    this.#items.push({ sections: this.sections, name, exampleOnly, after, joined: false })
    this.#nameBefore = name
  }

  #finish(): void {
    this.#share()
    this.#sectionsGoOn = false
  }

  /** Ends a run of names, which share properties: "`a` and `b` arrays", "`a`, `b` (strings)". */
  #share(): void {
    const last = this.#items.at(-1)
    const closing =
      last !== undefined && /^\s*\([^`]*[a-z][^`]*\)$/.test(last.after) ? propertiesFrom(last.after) : NO_PROPERTIES
    let next = NO_PROPERTIES
    const keys = this.#items.toReversed().flatMap(({ sections, name, exampleOnly, after, joined }) => {
      const own = propertiesFrom(after)
      const isBare = after.trim() === '' && !exampleOnly
      const properties = isBare ? mergeProperties(joined ? next : NO_PROPERTIES, closing) : own
      next = properties
      return sections.map(section => ({ section, name, aliasOf: '', exampleOnly, properties })).toReversed()
    })
    this.keys.push(...keys.toReversed())
    this.#items = []
  }
}

/** True for a choice: a token directly after the name, after "default" or "or", or before "or". */
function isChoice(before: string, after: string): boolean {
  return /(?:^|\bdefault|\bor)$/.test(before) || /^(?:\s*\([^)]*\))?,? or\b/.test(after)
}
