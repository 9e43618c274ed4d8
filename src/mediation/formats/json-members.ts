/** Members that repeat within an object of JSON: one reader takes the first of them, another one the last. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const COMMA = 0x2c
const COLON = 0x3a

interface Level {
  /** Names so far; null: an array. */
  readonly names: Set<string> | null
  /** The member or the item that is read. */
  at: string | number
}

/** JSON Pointers (RFC 6901) of repeated members, at most `max`. `text`: well-formed JSON. The work is linear. */
export function repeatedMembers(text: string, max: number): readonly string[] {
  const found: string[] = []
  const levels: Level[] = []
  for (let at = 0; at < text.length && found.length < max; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const start = at
      at = closingQuote(text, start)
      const { names } = levels.at(-1) ?? { names: null }
      if (names === null || !isName(text, at + 1)) continue
      const name = JSON.parse(text.slice(start, at + 1)) as string
      levels.at(-1)!.at = name
      if (names.has(name)) found.push(pointerOf(levels))
      names.add(name)
    } else if (code === OPEN_OBJECT) levels.push({ names: new Set(), at: '' })
    else if (code === OPEN_ARRAY) levels.push({ names: null, at: 0 })
    else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) levels.pop()
    else if (code === COMMA) {
      const level = levels.at(-1)!
      if (typeof level.at === 'number') level.at++
    }
  }
  return found
}

function closingQuote(text: string, open: number): number {
  let at = open + 1
  while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}

function isName(text: string, from: number): boolean {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at++
  return text.charCodeAt(at) === COLON
}

function pointerOf(levels: readonly Level[]): string {
  return levels.map(({ at }) => `/${String(at).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
