/**
 * Source text without what is not code. A scanner of our own, because the compiler offers no API to scripts: it knows
 * strings, templates, comments and regular expressions, and keeps every character at its place.
 */

export interface Scanned {
  /** Comments and the insides of strings blanked. */
  readonly code: string
  /** Comments blanked. */
  readonly uncommented: string
}

/** Behind these a slash begins a regular expression, not a division. */
const BEFORE_REGEXP = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|yield|await|throw))\s*$/

export function scan(text: string): Scanned {
  const code = [...text]
  const uncommented = [...text]
  const blank = (list: string[], from: number, to: number) => {
    for (let at = from; at < to; at++) if (list[at] !== '\n') list[at] = ' '
  }
  /** Depth of braces at which each template literal goes on. */
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

/** Behind the closing mark; a slash within brackets does not close a regular expression. */
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
  /** As far as it can be told; for a callback, what it is handed to. */
  readonly name: string
  readonly line: number
  readonly lines: number
  readonly body: string
}

const BRANCHES = new Set(['if', 'for', 'while', 'switch', 'catch', 'with'])

/** Every function with a body in braces: declarations, methods, arrow functions. */
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

/** The name of the function whose body opens at `start`, or undefined when it is some other brace. */
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
