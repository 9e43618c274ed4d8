/** Divides the expressions of a template into tokens. */
import { TemplateSyntaxError } from './template-error.ts'

export interface Token {
  /** `end`: behind the last token. */
  readonly kind: 'name' | 'number' | 'text' | 'raw-text' | 'sign' | 'end'
  /** Name without escapes, content of a text as written, number, or sign. */
  readonly text: string
  readonly from: number
  readonly to: number
}

/** What ends the tokens: the bracket of a tag, the brace of an interpolation, or the end of the source. */
type Closer = '>' | '}' | ''

interface Tokens {
  readonly tokens: readonly Token[]
  /** Character behind the closer. */
  readonly end: number
  /** The tag ends with `/>`. */
  readonly isEmptyTag: boolean
}

/** Longer signs first. Signs of XML are those of authors who may not write `<` and `&`. */
const SIGNS = [
  ...['&amp;&amp;', '&lt;=', '&gt;=', '&lt;', '&gt;', '...', '..<', '..!', '..*', '..', '->', '??', '!=', '=='],
  ...['<=', '>=', '&&', '||', '+=', '-=', '*=', '/=', '%=', '++', '--', '**'],
  ...['?', '!', '=', '<', '>', '&', '|', '+', '-', '*', '/', '%', '(', ')', '[', ']', '{', '}', ',', ':', ';', '.'],
]
const SAME: Readonly<Record<string, string>> = {
  '&amp;&amp;': '&&',
  '&': '&&',
  '|': '||',
  '&lt;=': '<=',
  '&gt;=': '>=',
  '&lt;': '<',
  '&gt;': '>',
  '..!': '..<',
}

const SPACE = /\s+|<#--[\s\S]*?-->/y
const NAME = /(?:[\p{L}_$@]|\\[-.:])(?:[\p{L}\p{Nd}_$@]|\\[-.:])*/uy
const NUMBER = /\d+(?:\.\d+)?/y
const TEXT = /(r?)("(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*')/y
const RAW_TEXT = /r(?:"([^"]*)"|'([^']*)')/y

/** Throws TemplateSyntaxError. */
export function tokensIn(source: string, from: number, closer: Closer): Tokens {
  const tokens: Token[] = []
  const open: string[] = []
  let at = from
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    return pattern.exec(source)
  }
  const push = (kind: Token['kind'], text: string, length: number): void => {
    tokens.push({ kind, text, from: at, to: at + length })
    at += length
  }
  const ended = (length: number, isEmptyTag = false): Tokens => {
    const end: Token = { kind: 'end', text: '', from: at, to: at }
    return { tokens: [...tokens, end], end: at + length, isEmptyTag }
  }
  for (;;) {
    const space = match(SPACE)
    if (space !== null) {
      at += space[0].length
      continue
    }
    if (at >= source.length) {
      if (closer === '') return ended(0)
      throw new TemplateSyntaxError(`has no ${closer} that ends it`, from, 'close it')
    }
    if (open.length === 0 && closer !== '') {
      if (source[at] === closer) return ended(1)
      if (closer === '>' && source.startsWith('/>', at)) return ended(2, true)
    }
    const raw = match(RAW_TEXT)
    if (raw !== null) {
      push('raw-text', raw[1] ?? raw[2]!, raw[0].length)
      continue
    }
    const text = match(TEXT)
    if (text !== null) {
      push('text', text[2]!.slice(1, -1), text[0].length)
      continue
    }
    const number = match(NUMBER)
    if (number !== null) {
      push('number', number[0], number[0].length)
      continue
    }
    const name = match(NAME)
    if (name !== null) {
      push('name', name[0].replaceAll('\\', ''), name[0].length)
      continue
    }
    const sign = signAt(source, at)
    if (sign === undefined) throw new TemplateSyntaxError('has an unknown sign or a text without its end', at)
    if ('([{'.includes(sign)) open.push(sign)
    else if (')]}'.includes(sign) && !isPair(open.pop(), sign)) {
      throw new TemplateSyntaxError(`has a ${sign} that nothing opens`, at)
    }
    // Only in parentheses `>` compares; else it ends the tag.
    const isCut = closer === '>' && sign.includes('>') && !sign.startsWith('&') && !open.includes('(') && sign !== '->'
    if (isCut) throw new TemplateSyntaxError('has a > within brackets', at, 'write gt, or parentheses around it')
    push('sign', SAME[sign] ?? sign, sign.length)
  }
}

function signAt(source: string, at: number): string | undefined {
  return SIGNS.find(sign => source.startsWith(sign, at))
}

function isPair(open: string | undefined, close: string): boolean {
  return open !== undefined && `${open}${close}`.match(/^(?:\(\)|\[\]|\{\})$/) !== null
}

const ESCAPES: Readonly<Record<string, string>> = {
  ...{ n: '\n', r: '\r', t: '\t', f: '\f', b: '\b', g: '>', l: '<', a: '&' },
}

/** The text within quotes without its escapes. Throws TemplateSyntaxError with `at`. */
export function unescaped(text: string, at: number): string {
  return text.replace(/\\(?:x([0-9A-Fa-f]{1,4})|([\s\S]))/g, (_, code: string | undefined, sign: string) => {
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
    if ('"\'\\{='.includes(sign)) return sign
    const meant = ESCAPES[sign]
    if (meant === undefined) throw new TemplateSyntaxError('has an unknown escape in a text', at, 'write \\\\ for \\')
    return meant
  })
}
