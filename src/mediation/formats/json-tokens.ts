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
    const structure = structureOf(code)
    let end = start + 1
    if (structure !== undefined) yield { kind: structure, start, end }
    else if (code === QUOTE) {
      end = endOfString(text, start) + 1
      yield { kind: isName(text, end) ? 'name' : 'text', start, end }
    } else {
      end = endOfScalar(text, start)
      yield { kind: 'scalar', start, end }
    }
    start = end
  }
}

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a

/** Returns the kind of a bracket or brace, undefined for other characters. */
function structureOf(code: number): JsonToken['kind'] | undefined {
  switch (code) {
    case 0x5b:
      return 'array'
    case 0x7b:
      return 'object'
    case 0x5d:
    case 0x7d:
      return 'end'
    default:
      return undefined
  }
}

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
    if (code <= SPACE || code === COMMA || structureOf(code) !== undefined) break
  }
  return at
}
