/**
 * A scanner that blanks comments and strings of a source text and keeps all offsets. It knows strings, templates,
 * comments and regular expressions; the compiler has no API for this.
 */

export interface Scanned {
  /** Comments and contents of strings are blanked. */
  readonly code: string
  /** Comments are blanked. */
  readonly uncommented: string
}

/** Matches text after which a slash begins a regular expression and not a division. */
const BEFORE_REGEXP = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|yield|await|throw))\s*$/

export function scan(text: string): Scanned {
  const code = [...text]
  const uncommented = [...text]
  const blank = (list: string[], from: number, to: number) => {
    for (let at = from; at < to; at++) if (list[at] !== '\n') list[at] = ' '
  }
  /** For each open template literal the depth of braces at which it continues. */
  const templates: number[] = []
  let depth = 0
  let at = 0
  const skipTemplate = () => {
    const from = at
    while (at < code.length && text[at] !== '`' && !text.startsWith('${', at)) at += text[at] === '\\' ? 2 : 1
    blank(code, from, at)
    if (text[at] === '`') at++
    else {
      templates.push(depth++)
      at += 2
    }
  }
  while (at < code.length) {
    const from = at
    const char = text[at]!
    if (text.startsWith('//', at) || text.startsWith('/*', at)) {
      const end = char + text[at + 1]! === '//' ? text.indexOf('\n', at) : text.indexOf('*/', at) + 2
      at = end < from + 2 ? text.length : end
      blank(code, from, at)
      blank(uncommented, from, at)
    } else if (char === "'" || char === '"') {
      at = endOfLiteral(text, at, char)
      blank(code, from + 1, at - 1)
    } else if (char === '`') {
      at++
      skipTemplate()
    } else if (char === '/' && BEFORE_REGEXP.test(code.slice(Math.max(0, from - 12), from).join(''))) {
      at = endOfLiteral(text, at, '/')
      blank(code, from + 1, at - 1)
    } else if (char === '{') {
      depth++
      at++
    } else if (char === '}') {
      depth--
      at++
      if (templates.at(-1) === depth) {
        templates.pop()
        skipTemplate()
      }
    } else at++
  }
  return { code: code.join(''), uncommented: uncommented.join('') }
}

/** Index after the closing mark; a slash in a character class does not close a regular expression. */
function endOfLiteral(text: string, start: number, mark: string): number {
  let isInClass = false
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at]!
    if (char === '\\') at++
    else if (char === '\n') return at
    else if (mark === '/' && char === '[') isInClass = true
    else if (mark === '/' && char === ']') isInClass = false
    else if (char === mark && !isInClass) return at + 1
  }
  return text.length
}

interface FoundFunction {
  /** For a callback the name of the called function; '' if there is none. */
  readonly name: string
  readonly line: number
  readonly lines: number
  readonly body: string
}

const BRANCHES = new Set(['if', 'for', 'while', 'switch', 'catch', 'with'])

/** All functions with a body in braces: declarations, methods, arrow functions. */
export function functionsOf({ code, uncommented }: Scanned): FoundFunction[] {
  const found: FoundFunction[] = []
  const open: number[] = []
  for (let at = 0; at < code.length; at++) {
    if (code[at] === '{') open.push(at)
    if (code[at] !== '}') continue
    const start = open.pop()
    if (start === undefined) continue
    const name = functionBefore(code, start)
    if (name === undefined) continue
    const body = uncommented.slice(start, at + 1)
    found.push({ name, line: lineAt(code, start), lines: body.split('\n').length, body })
  }
  return found
}

/** The name of the function whose body opens at `start`; undefined for other braces. */
function functionBefore(code: string, start: number): string | undefined {
  const before = code.slice(Math.max(0, start - 400), start)
  const head = /(=>\s*|\)\s*(?::[^;{}=]*)?)$/.exec(before)
  if (head === null) return undefined
  let at = head.index
  if (head[0].startsWith('=>')) {
    const call = /(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)?$/.exec(
      before.slice(0, at).replace(/\([^()]*\)\s*(?::[^=]*)?$|\w+\s*$/, ''),
    )
    return call?.[1] ?? ''
  }
  for (let depth = 0; at >= 0; at--) {
    if (before[at] === ')') depth++
    else if (before[at] === '(' && --depth === 0) break
  }
  const word = /([\w#$]+)\s*(?:<[^<>]*>)?\s*$/.exec(before.slice(0, at))?.[1] ?? ''
  return BRANCHES.has(word) ? undefined : word
}

export function lineAt(text: string, at: number): number {
  let line = 1
  for (let next = text.indexOf('\n'); next !== -1 && next < at; next = text.indexOf('\n', next + 1)) line++
  return line
}
