/** Strict parser for JSON (RFC 8259) from clients and remote servers: refuses text that parsers read differently. */
import { isUtf8 } from 'node:buffer'

export type JsonObject = Readonly<Record<string, unknown>>

/** Nesting of objects and arrays. */
const DEPTH_MAX = 16

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

/** The object, or a reason such as `not JSON` or `deeper than 16`. */
export function parseStrictJson(bytes: Buffer): JsonObject | string {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const text = bytes.toString('utf8')
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object'
    return ambiguityIn(text) ?? (value as JsonObject)
  } catch {
    return 'not JSON'
  }
}

const CODE = { QUOTE: 34, COMMA: 44, COLON: 58, LEFT_BRACKET: 91, BACKSLASH: 92, RIGHT_BRACKET: 93 } as const
const BRACE = { LEFT: 123, RIGHT: 125 } as const

/** Finds what parsers disagree about in valid JSON: duplicate members (RFC 8259 4), `__proto__`, depth. */
function ambiguityIn(text: string): string | undefined {
  /** Member names of each open object; null for an array. */
  const open: (Set<string> | null)[] = []
  let isName = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === CODE.QUOTE) {
      const end = endOfString(text, i)
      const name = isName ? (JSON.parse(text.slice(i, end + 1)) as string) : ''
      if (isName && (open.at(-1)!.has(name) || name === '__proto__')) return 'a duplicate member, or __proto__'
      if (isName) open.at(-1)!.add(name)
      i = end
    } else if (code === BRACE.LEFT || code === CODE.LEFT_BRACKET) {
      if (open.push(code === BRACE.LEFT ? new Set() : null) > DEPTH_MAX) return `deeper than ${DEPTH_MAX}`
      isName = code === BRACE.LEFT
    } else if (code === BRACE.RIGHT || code === CODE.RIGHT_BRACKET) open.pop()
    else if (code === CODE.COMMA) isName = open.at(-1) !== null
    else if (code === CODE.COLON) isName = false
  }
  return undefined
}

/** Index of the closing quote of the string that begins at `from`. */
function endOfString(text: string, from: number): number {
  let end = from + 1
  while (text.charCodeAt(end) !== CODE.QUOTE) end += text.charCodeAt(end) === CODE.BACKSLASH ? 2 : 1
  return end
}
