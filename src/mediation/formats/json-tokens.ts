/** Tokens of well-formed JSON, in order: with every member of an object, also those whose names repeat. */
import { showLife } from '../../runtime/signs-of-life.ts'
import { endOfString, isName } from './json-text.ts'

interface JsonToken {
  /** `text`, `scalar`, `array` and `object` begin a value; `end` ends an array or object. */
  readonly kind: 'name' | 'text' | 'scalar' | 'array' | 'object' | 'end'
  readonly start: number
  /** Index behind the token. */
  readonly end: number
}

/** Tokens between two signs of life. */
const TOKENS_PER_SIGN = 65_536

/** Yields the tokens of a text, which is well-formed JSON, in linear time. */
export function* jsonTokens(text: string): Generator<JsonToken> {
  let tokens = 0
  for (let start = 0; start < text.length; ) {
    const code = text.charCodeAt(start)
    if (code <= SPACE || code === COMMA || code === COLON) {
      start++
      continue
    }
    if (++tokens % TOKENS_PER_SIGN === 0) showLife()
    const structure = STRUCTURE.get(code)
    const end =
      structure !== undefined ? start + 1 : code === QUOTE ? endOfString(text, start) + 1 : endOfScalar(text, start)
    yield { kind: structure ?? (code !== QUOTE ? 'scalar' : isName(text, end) ? 'name' : 'text'), start, end }
    start = end
  }
}

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const STRUCTURE: ReadonlyMap<number, JsonToken['kind']> = new Map([
  [0x5b, 'array'],
  [0x5d, 'end'],
  [0x7b, 'object'],
  [0x7d, 'end'],
])

/** Returns the characters of a name or text, without escapes. */
export function decodedText(text: string, { start, end }: JsonToken): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : raw
}

/** Returns the index behind a number, true, false or null. */
function endOfScalar(text: string, start: number): number {
  let at = start + 1
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code <= SPACE || code === COMMA || STRUCTURE.has(code)) break
  }
  return at
}
