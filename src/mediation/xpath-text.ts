/** Texts of XPath: what is changed in them before the library reads them. */
import { endOfGroup } from './closing-bracket.ts'

/** Thrown and caught within the parser of expressions. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
  readonly hint: string

  constructor(why: string, hint: string) {
    super(why)
    this.hint = hint
  }
}

/** A text in quotes, or the prefix of a function. */
const PREFIX = /'[^']*'|"[^"]*"|([\p{L}_][\p{L}\p{N}_.-]*):(?=[\w-]+\s*\()/gu

/** Drops the prefixes of functions that `isDropped` tells: the library finds its own functions without one only. */
export function withoutPrefixes(text: string, isDropped: (prefix: string) => boolean): string {
  return text.replace(PREFIX, (found, prefix?: string) => (prefix !== undefined && isDropped(prefix) ? '' : found))
}

/** How a bare JSONPath begins. */
const PATH = /[$[\p{L}_]/u

/** Quotes the bare JSONPath in `json-eval($.a)` or `json-eval(a)`; texts in quotes are left alone. */
export function withQuotedPaths(text: string): string {
  const CALL = /json-eval\(\s*/y
  let quoted = ''
  for (let at = 0; at < text.length; ) {
    const character = text[at]!
    if (character === "'" || character === '"') {
      const end = text.indexOf(character, at + 1)
      const next = end === -1 ? text.length : end + 1
      quoted += text.slice(at, next)
      at = next
      continue
    }
    CALL.lastIndex = at
    const call = CALL.exec(text)
    if (call === null || !PATH.test(text[at + call[0].length] ?? '')) {
      quoted += character
      at++
      continue
    }
    const start = at + call[0].length
    const behind = endOfGroup(text, start, '()')
    if (behind === -1) throw new ExpressionError('json-eval() is not closed', 'add )')
    const end = behind - 1
    quoted += `${call[0]}${quote(text.slice(start, end).trimEnd())}`
    at = end
  }
  return quoted
}

/** XPath 1.0 has no escapes: a text with one kind of quotes is put in the other kind. */
function quote(path: string): string {
  if (!path.includes("'")) return `'${path}'`
  if (!path.includes('"')) return `"${path}"`
  throw new ExpressionError('has a JSONPath with both kinds of quotes', 'use one kind')
}
