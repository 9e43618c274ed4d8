/** Tokens of well-formed JSON, in order: with every member of an object, also those whose names repeat. */

interface JsonToken {
  /** `text`, `scalar`, `array` and `object` begin a value; `end` ends an array or object. */
  readonly kind: 'name' | 'text' | 'scalar' | 'array' | 'object' | 'end'
  readonly start: number
  /** Index behind the token. */
  readonly end: number
}

/** The work is linear. `text`: well-formed JSON. */
export function* jsonTokens(text: string): Generator<JsonToken> {
  for (let start = 0; start < text.length; ) {
    const character = text[start]!
    if (character === '"') {
      const end = endOfString(text, start)
      yield { kind: isName(text, end) ? 'name' : 'text', start, end }
      start = end
      continue
    }
    const kind = STRUCTURE[character]
    if (kind !== undefined) yield { kind, start, end: start + 1 }
    if (kind !== undefined || !isScalarPart(text.charCodeAt(start))) {
      start++
      continue
    }
    let end = start + 1
    while (isScalarPart(text.charCodeAt(end))) end++
    yield { kind: 'scalar', start, end }
    start = end
  }
}

const STRUCTURE: Readonly<Record<string, JsonToken['kind']>> = {
  '[': 'array',
  '{': 'object',
  ']': 'end',
  '}': 'end',
}

/** Characters of a name or text, without escapes. */
export function decodedText(text: string, { start, end }: JsonToken): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : raw
}

/** Index behind the closing quote. */
function endOfString(text: string, open: number): number {
  let at = open + 1
  for (; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++
  return at + 1
}

function isName(text: string, from: number): boolean {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at++
  return text[at] === ':'
}

/** Of a number, true, false or null. NaN, which stands for the end of the text, is none. */
function isScalarPart(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x7a) || SCALAR_MARKS.has(code)
}
const SCALAR_MARKS: ReadonlySet<number> = new Set(Array.from('+-.E', mark => mark.charCodeAt(0)))
