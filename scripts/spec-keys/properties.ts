/** Reads the properties of a key from the specification: type, unit, default, required or not, choices. */
import { splitOutside, ticksOf } from './markdown.ts'
import type { SectionName } from './names.ts'

export interface KeyProperties {
  /** As documented, in the singular. */
  readonly type: string
  /** Unit of the documented default; '' for none. */
  readonly unit: '' | 'ms' | 's'
  /** As documented: 'none' where the specification says so, '' where it states no value. */
  readonly defaultValue: string
  /** A description instead of a default, such as "super admin credentials". */
  readonly described: string
  readonly required: boolean
  /** Named values; a single one does not mean that there are no others. */
  readonly choices: readonly string[]
}

/** A key from a row or a sentence. */
export interface FoundKey {
  readonly section: SectionName
  readonly name: string
  /** The key of which this is an alias; '' for a key itself. */
  readonly aliasOf: string
  /** Occurs only in an example, without a description. */
  readonly exampleOnly: boolean
  readonly properties: KeyProperties
}

export const NO_PROPERTIES: KeyProperties = {
  type: '',
  unit: '',
  defaultValue: '',
  described: '',
  required: false,
  choices: [],
}

const TYPE = new RegExp(
  `^(${[
    ...['string array', 'array of (?:string|name|table)s?', 'list of (?:strings|allowed IP addresses)'],
    ...['boolean or string', 'key-value pairs'],
    ...['strings?', 'integers?', 'int', 'number', 'booleans?', 'float', 'arrays?', 'class'],
  ].join('|')})\\b`,
)
const UNITS: Readonly<Record<string, KeyProperties['unit']>> = { ms: 'ms', milliseconds: 'ms', seconds: 's' }
const UNIT = /^(ms|milliseconds|seconds)\b/
/** Defaults of more than one word that are values, not descriptions. */
const LITERAL_WORDS = /^(?:SELECT 1|\d+ minutes|\w+(?:, \w+)+)$/
/** Single words after a key that are not its default. */
const REMARKS = ['custom']

/** The unit at the beginning of a text; '' for none. */
export function unitAtStart(text: string): KeyProperties['unit'] {
  return UNITS[UNIT.exec(text)?.[1] ?? ''] ?? ''
}

/** A text that could be a value in a file is a default; any other text describes one. */
function defaultFrom(text: string): Pick<KeyProperties, 'defaultValue' | 'described'> {
  const bare = text.replaceAll('`', '').trim()
  if (/^(?:none|not defined)$/.test(bare)) return { defaultValue: 'none', described: '' }
  const isLiteral = /^\[.*\]$/.test(bare) || LITERAL_WORDS.test(bare) || /^[^\s<>]+$/.test(bare)
  return isLiteral ? { defaultValue: bare, described: '' } : { defaultValue: '', described: bare }
}

/** The default in a cell of its own, without remarks in parentheses. */
export function defaultOfCell(cell: string): Pick<KeyProperties, 'defaultValue' | 'described'> {
  return defaultFrom(cell.replace(/\s+\(.*\)$/, ''))
}

/** `string, required`, `integer seconds`, `integer (ms)`. */
export function typeOfCell(cell: string): Pick<KeyProperties, 'type' | 'unit' | 'required'> {
  const { type, unit, required } = phraseProperties(cell.replace(/[()]/g, ' ').replace(/\s+/g, ' '), false)
  return { type, unit, required }
}

/** Properties in the text after a name: words, and remarks in parentheses. */
export function propertiesFrom(after: string): KeyProperties {
  let properties = NO_PROPERTIES
  for (const { text, isRemark } of phrasesOf(after))
    properties = mergeProperties(properties, phraseProperties(text, isRemark))
  const listed = choicesOf(after)
  return listed.length === 0 ? properties : { ...properties, choices: listed }
}

/** Properties of the first, completed by those of the second. */
export function mergeProperties(one: KeyProperties, other: KeyProperties): KeyProperties {
  const hasDefault = one.defaultValue !== '' || one.described !== ''
  return {
    type: one.type || other.type,
    unit: one.unit || other.unit,
    defaultValue: hasDefault ? one.defaultValue : other.defaultValue,
    described: hasDefault ? one.described : other.described,
    required: one.required || other.required,
    choices: one.choices.length > 0 ? one.choices : other.choices,
  }
}

interface Phrase {
  readonly text: string
  readonly isRemark: boolean
}

/** Words and remarks in order, each split at commas; a `default` extends to the end of its remark. */
function phrasesOf(after: string): readonly Phrase[] {
  // In "`a` (default) or `b`" the default is the choice before the remark.
  const plain = after.replace(/`([^`]+)` \(default\)/g, 'default $1, ')
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

function phraseProperties(phrase: string, isRemark: boolean): KeyProperties {
  let rest = phrase.trim()
  const type = TYPE.exec(rest)?.[1] ?? ''
  rest = rest.slice(type.length).trim()
  const unit = unitAtStart(rest)
  rest = rest.replace(UNIT, '').trim()
  const isRequired = /(?:^|\W)required$|^required\b/.test(rest)
  if (/^required\b/.test(rest)) rest = rest.slice('required'.length).trim()
  const stated = { ...NO_PROPERTIES, type: singular(type), unit, required: isRequired }
  if (/^(?:all )?(?:default to the )?super admin (?:default|credential)s?$/.test(rest)) {
    return { ...stated, described: 'super admin credentials' }
  }
  if (rest.startsWith('default ')) return { ...stated, ...defaultFrom(rest.slice('default '.length)) }
  // Remarks are mostly words, so a single word is a default only if it cannot be anything else.
  const isValue = isRemark ? /^(?:none|true|false|-?\d+(?:\.\d+)?|\/\S*|\S+:\/\/[^\s<>]+)$/ : /^[^\s`]+$/
  return isValue.test(rest) && !REMARKS.includes(rest) ? { ...stated, ...defaultFrom(rest) } : stated
}

function singular(type: string): string {
  return type.replace(/^(string|integer|boolean|array)s$/, '$1')
}

/** Choices at the beginning, or after a type and "none". */
const TICKED_LIST = /^(?:[\w ]+, none, )?[(\s]*(`[^`]+`(?: \(\w+\))?(?:(?:,| or|, or) `[^`]+`)*)/
const BARE_LIST = /(?:^|; )(?:one of|values) ([\w, -]+?)(?:$|;)/

/** `a` or `b`; a cell that begins with `a`, `b`, `c`; one of a, b, c; values a, b, c. */
export function choicesOf(text: string): readonly string[] {
  const bare = BARE_LIST.exec(text)?.[1]
  if (bare !== undefined) return bare.split(',').map(choice => choice.trim())
  return ticksOf(TICKED_LIST.exec(text)?.[1] ?? '')
}
