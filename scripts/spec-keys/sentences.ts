/** Keys in prose: `[section]` and names in backticks, each with what follows it. */
import { type FoundKey, factsFrom, merged, NOTHING_SAID } from './facts.ts'
import { enclosedEnd, SpecFault, splitOutside, ticksOf } from './markdown.ts'
import { namesOfToken, type SectionName, sectionOf } from './names.ts'

interface ReadSentence {
  readonly keys: readonly FoundKey[]
  /** Those that hold behind the sentence, in the same paragraph. */
  readonly sections: readonly SectionName[]
  /** Beginnings of names, cut off with dots. */
  readonly cutOff: readonly string[]
}

/** A key in the making: what stands behind it is gathered until the next one begins. */
interface Item {
  readonly sections: readonly SectionName[]
  readonly name: string
  readonly exampleOnly: boolean
  /** No facts of its own, and what joins it to the next: "and" gives it the facts of that one. */
  behind: string
  joined: boolean
}

/** Only what may stand directly before a name: nothing of the kind means that the token was not understood. */
const BEFORE_A_NAME = /(?:^|[,:]|\b(?:and|with|each|has))$/
const EXAMPLES = /^(.*?)\b(?:[Ee]xample(?:-only)?) keys: (.*)$/

export function readSentence(sentence: string, sections: readonly SectionName[], line: number): ReadSentence {
  const reader = new SentenceReader(sections, line)
  const [, head, examples] = EXAMPLES.exec(sentence) ?? []
  if (examples !== undefined) reader.readExamples(head!, examples)
  else for (const clause of splitOutside(sentence, /^;/)) reader.readClause(clause)
  return { keys: reader.keys, sections: reader.sections, cutOff: reader.cutOff }
}

class SentenceReader {
  readonly keys: FoundKey[] = []
  readonly cutOff: string[] = []
  sections: readonly SectionName[]
  readonly #line: number
  #items: Item[] = []
  /** The name read last: `.b` behind `a.c` is `a.b`. */
  #nameBefore = ''
  /** Between the last section and here stand only commas and "and". */
  #sectionsGoOn = false

  constructor(sections: readonly SectionName[], line: number) {
    this.sections = sections
    this.#line = line
  }

  /** Names need no backticks here, and what stands behind one is about no other. */
  readExamples(head: string, examples: string): void {
    this.readClause(head)
    for (const text of splitOutside(examples, /^,/)) {
      const [name, ...behind] = text.replaceAll('`', '').split(' ')
      if (name!.endsWith('...')) this.cutOff.push(name!.replace(/\.+$/, ''))
      else this.#begin(name!, behind.join(' '), true)
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

  /** A remark may name the section; one about a section holds no keys. */
  #isSectionRemark(remark: string): boolean {
    const tokens = ticksOf(remark)
    return tokens.length > 0 && tokens.every(token => sectionOf(token) !== undefined)
  }

  #append(text: string): void {
    const item = this.#items.at(-1)
    if (item !== undefined) item.behind += text
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
      item.behind += `\`${token}\``
      return
    }
    if (!BEFORE_A_NAME.test(before)) {
      throw new SpecFault(this.#line, `\`${token}\` behind "${before}" is neither a key nor a choice of one`)
    }
    if (item !== undefined) {
      item.joined = /\band$/.test(before)
      item.behind = item.behind.trim().replace(/,?\s*(?:,|\band)$/, '')
    }
    for (const name of namesOfToken(token, this.#nameBefore, this.#line)) this.#begin(name, '', false)
  }

  #begin(name: string, behind: string, exampleOnly: boolean): void {
    if (this.sections.length === 0) throw new SpecFault(this.#line, `\`${name}\` stands in no section`)
    this.#items.push({ sections: this.sections, name, exampleOnly, behind, joined: false })
    this.#nameBefore = name
  }

  #finish(): void {
    this.#share()
    this.#sectionsGoOn = false
  }

  /** Ends a run of names: "`a` and `b` arrays", "`a`, `b` (strings)" say something of both. */
  #share(): void {
    const last = this.#items.at(-1)
    const closing =
      last !== undefined && /^\s*\([^`]*[a-z][^`]*\)$/.test(last.behind) ? factsFrom(last.behind) : NOTHING_SAID
    let next = NOTHING_SAID
    const keys = this.#items.toReversed().flatMap(({ sections, name, exampleOnly, behind, joined }) => {
      const own = factsFrom(behind)
      const isBare = behind.trim() === '' && !exampleOnly
      const facts = isBare ? merged(joined ? next : NOTHING_SAID, closing) : own
      next = facts
      return sections.map(section => ({ section, name, aliasOf: '', exampleOnly, facts })).toReversed()
    })
    this.keys.push(...keys.toReversed())
    this.#items = []
  }
}

/** Directly behind the name, behind "default" or "or", or before "or". */
function isChoice(before: string, after: string): boolean {
  return /(?:^|\bdefault|\bor)$/.test(before) || /^(?:\s*\([^)]*\))?,? or\b/.test(after)
}
