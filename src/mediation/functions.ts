/**
 * Functions of expressions that need no document: those of XPath 1.0 (section 4) and of the sequence language. The
 * primary checks calls against this table, and a reactor compiles calls from it.
 */
import { numberOf, textOf, booleanOf, type Value } from './value.ts'

interface FunctionRow {
  readonly least: number
  readonly most: number
  apply(values: readonly Value[]): Value
}

/** Namespace of the elements and functions of the sequence language. */
export const SEQUENCE_NAMESPACE = 'http://ws.apache.org/ns/synapse'
/** Namespace of XPath's own functions, for calls with a prefix. */
export const FUNCTIONS_NAMESPACE = 'http://www.w3.org/2005/xpath-functions'

const ARGUMENTS_MAX = 100
/** Characters as XPath counts them: a surrogate pair is one. */
const characters = (value: Value): string[] => Array.from(textOf(value))

export const FUNCTIONS: Readonly<Record<string, FunctionRow>> = {
  true: { least: 0, most: 0, apply: () => true },
  false: { least: 0, most: 0, apply: () => false },
  boolean: { least: 1, most: 1, apply: ([value]) => booleanOf(value!) },
  not: { least: 1, most: 1, apply: ([value]) => !booleanOf(value!) },
  string: { least: 1, most: 1, apply: ([value]) => textOf(value) },
  number: { least: 1, most: 1, apply: ([value]) => numberOf(value!) },
  floor: { least: 1, most: 1, apply: ([value]) => Math.floor(numberOf(value!)) },
  ceiling: { least: 1, most: 1, apply: ([value]) => Math.ceil(numberOf(value!)) },
  round: { least: 1, most: 1, apply: ([value]) => Math.round(numberOf(value!)) },
  concat: { least: 2, most: ARGUMENTS_MAX, apply: values => values.map(textOf).join('') },
  contains: { least: 2, most: 2, apply: ([text, part]) => textOf(text).includes(textOf(part)) },
  'starts-with': { least: 2, most: 2, apply: ([text, part]) => textOf(text).startsWith(textOf(part)) },
  'ends-with': { least: 2, most: 2, apply: ([text, part]) => textOf(text).endsWith(textOf(part)) },
  'string-length': { least: 1, most: 1, apply: ([text]) => characters(text!).length },
  'normalize-space': { least: 1, most: 1, apply: ([text]) => normalized(textOf(text)) },
  substring: { least: 2, most: 3, apply: ([text, from, length]) => substring(text!, from!, length) },
  'substring-before': { least: 2, most: 2, apply: ([text, part]) => split(textOf(text), textOf(part))[0] },
  'substring-after': { least: 2, most: 2, apply: ([text, part]) => split(textOf(text), textOf(part))[1] },
  translate: { least: 3, most: 3, apply: ([text, from, to]) => translated(text!, from!, to!) },
  'upper-case': { least: 1, most: 1, apply: ([text]) => textOf(text).toUpperCase() },
  'lower-case': { least: 1, most: 1, apply: ([text]) => textOf(text).toLowerCase() },
  base64Encode: { least: 1, most: 2, apply: ([text, charset]) => encoded(textOf(text), textOf(charset)) },
  base64Decode: { least: 1, most: 2, apply: ([text, charset]) => decoded(textOf(text), textOf(charset)) },
  'url-encode': { least: 1, most: 2, apply: ([text]) => urlEncoded(textOf(text)) },
}

/** Functions of the sequence language that are not XPath. */
export const EXTENSIONS = ['base64Encode', 'base64Decode', 'url-encode', 'get-property', 'json-eval']

/** Functions of later XPath versions. They need no prefix, as on the reference platform. */
export const LATER_FUNCTIONS = ['upper-case', 'lower-case', 'ends-with']

/** Charsets of the base64 functions, with their Node names. */
export const CHARSETS: Readonly<Record<string, 'utf8' | 'utf16le' | 'latin1' | 'ascii'>> = {
  '': 'utf8',
  'UTF-8': 'utf8',
  'UTF-16LE': 'utf16le',
  'ISO-8859-1': 'latin1',
  'US-ASCII': 'ascii',
}

function normalized(text: string): string {
  return text.replace(/[ \t\r\n]+/g, ' ').replace(/^ | $/g, '')
}

/** XPath 1.0 4.2: positions start at 1, are rounded, and may be NaN or infinite. */
function substring(value: Value, from: Value, length: Value | undefined): string {
  const first = Math.round(numberOf(from))
  const beyond = length === undefined ? Number.POSITIVE_INFINITY : first + Math.round(numberOf(length))
  return characters(value)
    .filter((_, at) => at + 1 >= first && at + 1 < beyond)
    .join('')
}

function split(text: string, part: string): readonly [before: string, after: string] {
  const at = text.indexOf(part)
  return at === -1 ? ['', ''] : [text.slice(0, at), text.slice(at + part.length)]
}

function translated(value: Value, from: Value, to: Value): string {
  const [wanted, instead] = [characters(from), characters(to)]
  const map = new Map<string, string>()
  wanted.forEach((character, at) => {
    if (!map.has(character)) map.set(character, instead[at] ?? '')
  })
  return characters(value)
    .map(character => map.get(character) ?? character)
    .join('')
}

function encoded(text: string, charset: string): string {
  return Buffer.from(text, CHARSETS[charset] ?? 'utf8').toString('base64')
}

function decoded(text: string, charset: string): string {
  return Buffer.from(text, 'base64').toString(CHARSETS[charset] ?? 'utf8')
}

/** Form encoding (a space is a plus sign), as on the reference platform. */
function urlEncoded(text: string): string {
  return new URLSearchParams([['', text.toWellFormed()]]).toString().slice(1)
}
