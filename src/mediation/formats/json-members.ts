/** Members that repeat within an object of JSON: one reader takes the first of them, another one the last. */
import { endOfString, isName } from './json-text.ts'

const QUOTE = 0x22
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const COMMA = 0x2c

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
      at = endOfString(text, start)
      const { names } = levels.at(-1) ?? { names: null }
      if (names === null || !isName(text, at + 1)) continue
      const raw = text.slice(start + 1, at)
      const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
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

function pointerOf(levels: readonly Level[]): string {
  return levels.map(({ at }) => `/${String(at).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
