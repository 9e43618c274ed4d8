/** What the specification says about a key behind its name: type, unit, default, required or not, choices. */
import { splitOutside, ticksOf } from './markdown.ts'
import type { SectionName } from './names.ts'

export interface Facts {
  /** As documented, in the singular. */
  readonly type: string
  /** Of the documented default: '' where none is said. */
  readonly unit: '' | 'ms' | 's'
  /** As documented; 'none' where the specification says so, '' where it says nothing or only describes it. */
  readonly fallback: string
  /** Words in the place of a default, such as "super admin credentials". */
  readonly described: string
  readonly required: boolean
  /** Values that are named; one alone is not all there are. */
  readonly choices: readonly string[]
}

/** A key as a row or a sentence has it. */
export interface FoundKey {
  readonly section: SectionName
  readonly name: string
  /** The name that this is another spelling of; '' for a key itself. */
  readonly aliasOf: string
  /** Shown in an example, and nothing said of it. */
  readonly exampleOnly: boolean
  readonly facts: Facts
}

export const NOTHING_SAID: Facts = { type: '', unit: '', fallback: '', described: '', required: false, choices: [] }

const TYPE = new RegExp(
  `^(${[
    ...['string array', 'array of (?:string|name|table)s?', 'list of (?:strings|allowed IP addresses)'],
    ...['boolean or string', 'key-value pairs'],
    ...['strings?', 'integers?', 'int', 'number', 'booleans?', 'float', 'arrays?', 'class'],
  ].join('|')})\\b`,
)
const UNITS: Readonly<Record<string, Facts['unit']>> = { ms: 'ms', milliseconds: 'ms', seconds: 's' }
const UNIT = /^(ms|milliseconds|seconds)\b/
/** A default of more than one word that can be written down as it is. */
const LITERAL_WORDS = /^(?:SELECT 1|\d+ minutes|\w+(?:, \w+)+)$/
/** A single word behind a key that is no default of it. */
const REMARKS = ['custom']

/** Of words that begin with one; '' for others. */
export function unitAtStart(text: string): Facts['unit'] {
  return UNITS[UNIT.exec(text)?.[1] ?? ''] ?? ''
}

/** A default is what could stand in a file; anything else describes one. */
function defaultFrom(text: string): Pick<Facts, 'fallback' | 'described'> {
  const bare = text.replaceAll('`', '').trim()
  if (/^(?:none|not defined)$/.test(bare)) return { fallback: 'none', described: '' }
  const isLiteral = /^\[.*\]$/.test(bare) || LITERAL_WORDS.test(bare) || /^[^\s<>]+$/.test(bare)
  return isLiteral ? { fallback: bare, described: '' } : { fallback: '', described: bare }
}

/** Of a cell of its own, remarks in parentheses left out. */
export function defaultOfCell(cell: string): Pick<Facts, 'fallback' | 'described'> {
  return defaultFrom(cell.replace(/\s+\(.*\)$/, ''))
}

/** `string, required`, `integer seconds`, `integer (ms)`. */
export function typeOfCell(cell: string): Pick<Facts, 'type' | 'unit' | 'required'> {
  const { type, unit, required } = phraseFacts(cell.replace(/[()]/g, ' ').replace(/\s+/g, ' '), false)
  return { type, unit, required }
}

/** What follows a name in a sentence: words, and remarks in parentheses. */
export function factsFrom(behind: string): Facts {
  let facts = NOTHING_SAID
  for (const { text, isRemark } of phrasesOf(behind)) facts = merged(facts, phraseFacts(text, isRemark))
  const listed = choicesOf(behind)
  return listed.length === 0 ? facts : { ...facts, choices: listed }
}

/** What is known of one and added by the other. */
export function merged(one: Facts, other: Facts): Facts {
  const hasDefault = one.fallback !== '' || one.described !== ''
  return {
    type: one.type || other.type,
    unit: one.unit || other.unit,
    fallback: hasDefault ? one.fallback : other.fallback,
    described: hasDefault ? one.described : other.described,
    required: one.required || other.required,
    choices: one.choices.length > 0 ? one.choices : other.choices,
  }
}

interface Phrase {
  readonly text: string
  readonly isRemark: boolean
}

/** Words and remarks in their order, each split at commas; a `default` goes on to the end of its remark. */
function phrasesOf(behind: string): readonly Phrase[] {
  // "`a` (default) or `b`" says of the choice before it that it is the default.
  const plain = behind.replace(/`([^`]+)` \(default\)/g, 'default $1, ')
  const pieces = [...plain.matchAll(/\(((?:[^()]|\([^()]*\))*)\)|[^()]+/g)]
  return pieces.flatMap(([whole, remark]) => {
    const [, before, last] = /^(.*?)(\bdefault .*)$/.exec(remark ?? '') ?? []
    const texts = remark === undefined || last === undefined ? [remark ?? whole] : [before!, last]
    return texts.flatMap(text => {
      const parts = text === last ? splitOutside(text, /^;/) : splitOutside(text, /^(?:[,;]|:(?=\s|$))/)
      return parts.filter(part => part !== '').map(part => ({ text: part, isRemark: remark !== undefined }))
    })
  })
}

function phraseFacts(phrase: string, isRemark: boolean): Facts {
  let rest = phrase.trim()
  const type = TYPE.exec(rest)?.[1] ?? ''
  rest = rest.slice(type.length).trim()
  const unit = unitAtStart(rest)
  rest = rest.replace(UNIT, '').trim()
  const isRequired = /(?:^|\W)required$|^required\b/.test(rest)
  if (/^required\b/.test(rest)) rest = rest.slice('required'.length).trim()
  const said = { ...NOTHING_SAID, type: singular(type), unit, required: isRequired }
  if (/^(?:all )?(?:default to the )?super admin (?:default|credential)s?$/.test(rest)) {
    return { ...said, described: 'super admin credentials' }
  }
  if (rest.startsWith('default ')) return { ...said, ...defaultFrom(rest.slice('default '.length)) }
  // A remark is mostly words: one of them alone is a default only if it could be nothing else.
  const isValue = isRemark ? /^(?:none|true|false|-?\d+(?:\.\d+)?|\/\S*|\S+:\/\/[^\s<>]+)$/ : /^[^\s`]+$/
  return isValue.test(rest) && !REMARKS.includes(rest) ? { ...said, ...defaultFrom(rest) } : said
}

function singular(type: string): string {
  return type.replace(/^(string|integer|boolean|array)s$/, '$1')
}

/** At the beginning, or behind a type and "none". */
const TICKED_LIST = /^(?:[\w ]+, none, )?[(\s]*(`[^`]+`(?: \(\w+\))?(?:(?:,| or|, or) `[^`]+`)*)/
const BARE_LIST = /(?:^|; )(?:one of|values) ([\w, -]+?)(?:$|;)/

/** `a` or `b`; a cell that begins with `a`, `b`, `c`; one of a, b, c; values a, b, c. */
export function choicesOf(text: string): readonly string[] {
  const bare = BARE_LIST.exec(text)?.[1]
  if (bare !== undefined) return bare.split(',').map(choice => choice.trim())
  return ticksOf(TICKED_LIST.exec(text)?.[1] ?? '')
}
