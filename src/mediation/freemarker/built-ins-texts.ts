/** Built-ins of texts. */
import { compilePattern } from '../../runtime/pattern.ts'
import { jsonOf } from '../formats/json-text.ts'
import { parsePattern } from '../pattern.ts'
import type { BuiltIn, BuiltInCall } from './built-in-call.ts'
import { parseNumber } from './numbers.ts'
import { changed, replacedIn } from './pieces.ts'
import { isNumber, RegexMatch, type TemplateValue } from './values.ts'

/** Longest text for a regular expression, as in all sequences. */
const SUBJECT_MAX = 8192
const FLAGS = /^[rifms]*$/
/** Words between two looks at the limit of items. */
const WORDS = 1024

const firstUp = (text: string): string => text.replace(/\S/, first => first.toUpperCase())

const IN_XML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

const inXml = (text: string): string => text.replace(/[&<>"']/g, sign => IN_XML[sign] ?? '&apos;')
const inHtml = (text: string): string => text.replace(/[&<>"']/g, sign => IN_XML[sign] ?? '&#39;')

/** Escapes for JSON and JavaScript; `quote`: the quotes that are escaped. */
function inScript(text: string, quote: RegExp): string {
  const escaped = text.replace(quote, '\\$&').replace(/<\/|\]\]>|<!|<\?/g, found => inMarkup(found))
  return escaped.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, sign => SHORT[sign] ?? codeOf(sign))
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\f': '\\f', '\b': '\\b' }

/** Escapes characters that would end a script or CDATA section around the text. */
function inMarkup(found: string): string {
  return found === '</' ? '<\\/' : found === ']]>' ? ']]\\u003E' : `\\u003C${found[1]}`
}

function codeOf(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}

function inUrl(text: string): string {
  const encoded = encodeURIComponent(text.toWellFormed())
  return encoded.replace(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function escaped(call: BuiltInCall, change: (text: string) => string): string {
  return changed(call.text, call.env, change)
}

function padded(call: BuiltInCall, isLeft: boolean): string {
  const { text } = call
  const fill = call.args.length > 1 ? call.textAt(1) : ' '
  if (fill === '') return call.fail('has no text to fill with')
  const length = call.numberAt(0)
  call.env.makes(Math.max(text.length, length))
  if (isLeft) return text.padStart(length, fill)
  // The fill begins as if it stood behind the beginning of the text.
  const missing = length - text.length
  const from = text.length % fill.length
  return missing <= 0 ? text : text + fill.repeat(Math.ceil(missing / fill.length) + 1).slice(from, from + missing)
}

/** The part of the text before or behind the place; the whole text, or '', without the place. */
function kept(call: BuiltInCall, side: 'before' | 'behind', isLast: boolean): string {
  const [{ text }, part] = [call, call.textAt(0)]
  const at = isLast ? text.lastIndexOf(part) : text.indexOf(part)
  if (at === -1) return side === 'before' ? text : ''
  return side === 'before' ? text.slice(0, at) : text.slice(at + part.length)
}

/** Source of a regular expression with flags; `r`: the text is one, else it stands for itself. */
function patternOf(call: BuiltInCall, text: string, flags: string, isPattern: boolean): string {
  const source = isPattern ? text : `\\Q${text.replaceAll('\\E', '\\E\\\\E\\Q')}\\E`
  const modes = flags.replace(/[rf]/g, '')
  const pattern = modes === '' ? source : `(?${modes})${source}`
  const { why } = parsePattern(pattern)
  if (why !== '') return call.fail(`has a pattern that ${why.replace(/: .*$/, '')}`)
  if (call.text.length > SUBJECT_MAX)
    return call.fail(`has a text of more than ${SUBJECT_MAX} characters for a pattern`)
  call.env.spend(call.text.length)
  return pattern
}

function flagsAt(call: BuiltInCall, at: number): string {
  const flags = call.args.length > at ? call.textAt(at) : ''
  return FLAGS.test(flags) ? flags : call.fail('has unknown flags')
}

function replaced(call: BuiltInCall): string {
  const [{ text }, from, to] = [call, call.textAt(0), call.textAt(1)]
  const flags = flagsAt(call, 2)
  if (flags.includes('r') || flags.includes('i')) {
    const isPattern = flags.includes('r')
    const matcher = compilePattern(patternOf(call, from, flags, isPattern)).matcher(text)
    const by = isPattern ? to : to.replace(/[\\$]/g, '\\$&')
    return call.made(flags.includes('f') ? matcher.replaceFirst(by) : matcher.replaceAll(by))
  }
  if (flags.includes('f')) return call.made(text.replace(from, () => to))
  if (from !== '') return replacedIn(text, from, to, call.env)
  call.env.makes(text.length + (text.length + 1) * to.length)
  return text.replaceAll('', () => to)
}

function occurrences(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count++
  return count
}

function split(call: BuiltInCall): TemplateValue {
  const [{ text }, by] = [call, call.textAt(0)]
  call.env.collects(by === '' ? text.length : occurrences(text, by) + 1)
  return text.split(by)
}

function substring(call: BuiltInCall): string {
  const { text } = call
  const from = call.numberAt(0)
  const to = call.args.length > 1 ? call.numberAt(1) : text.length
  if (!(from >= 0 && from <= to && to <= text.length)) return call.fail('is shorter than the part')
  return call.made(text.slice(from, to))
}

/** JSON with the limits of bodies. */
function evaluated(call: BuiltInCall): TemplateValue {
  const payload = call.env.parseJson(call.text)
  return payload === undefined ? call.fail('is no JSON') : jsonOf(payload)
}

function capitalized(call: BuiltInCall): string {
  let isInWord = false
  return changed(call.text.toLowerCase(), call.env, piece => {
    const words = piece.replace(/\S+/g, (word, at: number) => (at === 0 && isInWord ? word : firstUp(word)))
    isInWord = /\S$/.test(piece)
    return words
  })
}

export const OF_TEXTS: Readonly<Record<string, BuiltIn>> = {
  cap_first: call => call.made(firstUp(call.text)),
  uncap_first: call => call.made(call.text.replace(/\S/, first => first.toLowerCase())),
  capitalize: capitalized,
  upper_case: call => call.made(call.text.toUpperCase()),
  lower_case: call => call.made(call.text.toLowerCase()),
  contains: call => call.text.includes(call.textAt(0)),
  starts_with: call => call.text.startsWith(call.textAt(0)),
  ends_with: call => call.text.endsWith(call.textAt(0)),
  index_of: call => call.text.indexOf(call.textAt(0), call.args.length > 1 ? call.numberAt(1) : 0),
  last_index_of: call => {
    return call.args.length > 1
      ? call.text.lastIndexOf(call.textAt(0), call.numberAt(1))
      : call.text.lastIndexOf(call.textAt(0))
  },
  ensure_starts_with: call => {
    return call.text.startsWith(call.textAt(0)) ? call.text : call.made(call.textAt(0) + call.text)
  },
  ensure_ends_with: call => {
    return call.text.endsWith(call.textAt(0)) ? call.text : call.made(call.text + call.textAt(0))
  },
  remove_beginning: call => {
    return call.text.startsWith(call.textAt(0)) ? call.text.slice(call.textAt(0).length) : call.text
  },
  remove_ending: call => {
    return call.text.endsWith(call.textAt(0)) ? call.text.slice(0, call.text.length - call.textAt(0).length) : call.text
  },
  keep_after: call => kept(call, 'behind', false),
  keep_after_last: call => kept(call, 'behind', true),
  keep_before: call => kept(call, 'before', false),
  keep_before_last: call => kept(call, 'before', true),
  html: call => escaped(call, inHtml),
  xhtml: call => escaped(call, inHtml),
  xml: call => escaped(call, inXml),
  url: call => escaped(call, inUrl),
  url_path: call => escaped(call, text => inUrl(text).replaceAll('%2F', '/')),
  js_string: call => escaped(call, text => inScript(text, /["'\\]/g).replaceAll('>', '\\>')),
  json_string: call => escaped(call, text => inScript(text, /["\\]/g)),
  j_string: call => escaped(call, text => inScript(text, /["\\]/g)),
  left_pad: call => padded(call, true),
  right_pad: call => padded(call, false),
  length: call => call.text.length,
  matches: call => {
    const matcher = compilePattern(patternOf(call, call.textAt(0), flagsAt(call, 1), true)).matcher(call.text)
    if (!matcher.matches()) return new RegexMatch(null)
    const groups: string[] = []
    const count = compilePattern(call.textAt(0)).groupCount()
    for (let group = 0; group <= count; group++) groups.push(matcher.group(group) ?? '')
    return new RegexMatch(groups)
  },
  replace: replaced,
  split,
  substring,
  trim: call => call.made(call.text.trim()),
  word_list: call => {
    const words: string[] = []
    for (const [word] of call.text.matchAll(/\S+/g)) {
      if (words.push(word) % WORDS === 0) call.env.collects(words.length)
    }
    return words
  },
  chop_linebreak: call => call.text.replace(/(?:\r\n|\r|\n)$/, ''),
  eval_json: evaluated,
  number: call => {
    if (isNumber(call.target)) return call.target
    return parseNumber(call.text) ?? call.fail('is no number')
  },
  boolean: call => {
    if (typeof call.target === 'boolean') return call.target
    const { text } = call
    return text === 'true' || text === 'false' ? text === 'true' : call.fail('is neither true nor false')
  },
}
