/** JSON of strangers (RFC 8259), read so that whoever reads it after us finds the same in it. */
import { isUtf8 } from 'node:buffer'

export type JsonObject = Readonly<Record<string, unknown>>

/** Objects and lists within each other. */
const DEPTH_MAX = 16

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** The object, or what is wrong with it: `not JSON`, `deeper than 16`. */
export function strictObject(bytes: Buffer): JsonObject | string {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const text = bytes.toString('utf8')
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object'
    return ambiguity(text) ?? (value as JsonObject)
  } catch {
    return 'not JSON'
  }
}

const CODE = { QUOTE: 34, COMMA: 44, COLON: 58, LEFT_BRACKET: 91, BACKSLASH: 92, RIGHT_BRACKET: 93 } as const
const BRACE = { LEFT: 123, RIGHT: 125 } as const

/** What parsers disagree about, in a text that is JSON: members twice (RFC 8259 4), prototypes, depth. */
function ambiguity(text: string): string | undefined {
  /** Member names of the objects that are open; null for a list. */
  const open: (Set<string> | null)[] = []
  let isName = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === CODE.QUOTE) {
      const end = endOfText(text, i)
      const name = isName ? (JSON.parse(text.slice(i, end + 1)) as string) : ''
      if (isName && (open.at(-1)!.has(name) || name === '__proto__'))
        return 'a member that is there twice, or __proto__'
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

/** The closing quote of the text that begins at `from`. */
function endOfText(text: string, from: number): number {
  let end = from + 1
  while (text.charCodeAt(end) !== CODE.QUOTE) end += text.charCodeAt(end) === CODE.BACKSLASH ? 2 : 1
  return end
}
