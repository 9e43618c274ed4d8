/** Members that repeat within an object of JSON: one reader takes the first of them, another one the last. */
import { decodedText, jsonTokens } from './json-tokens.ts'

interface Level {
  /** Names so far; null: an array. */
  readonly names: Set<string> | null
  /** Name of the member, or index of the item, that is read. */
  at: string | number
}

/** Returns JSON Pointers (RFC 6901) of repeated members, at most `max`, in linear time. `text`: well-formed JSON. */
export function repeatedMembers(text: string, max: number): readonly string[] {
  const found: string[] = []
  const levels: Level[] = []
  for (const token of jsonTokens(text)) {
    const { kind } = token
    const level = levels.at(-1)
    if (kind === 'end') levels.pop()
    else if (kind === 'name') {
      const { names } = level!
      level!.at = decodedText(text, token)
      if (names!.has(level!.at)) found.push(pointerOf(levels))
      if (found.length >= max) break
      names!.add(level!.at)
    } else {
      if (typeof level?.at === 'number') level.at++
      if (kind === 'object') levels.push({ names: new Set(), at: '' })
      else if (kind === 'array') levels.push({ names: null, at: -1 })
    }
  }
  return found
}

function pointerOf(levels: readonly Level[]): string {
  return levels.map(({ at }) => `/${String(at).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
