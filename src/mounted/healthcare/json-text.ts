/**
 * JSON (RFC 8259) as resources use it: numbers keep their text, because the precision of a decimal is significant, and
 * text that parsers read differently is refused: members that are repeated, characters behind the value, comments.
 */

export type JsonObject = { [name: string]: unknown }

/** Nesting of objects and arrays. */
const DEPTH_MAX = 64
const SPACES = 2

/** Text that is no JSON, or deeper than resources are. `message` is for the client and has no part of the text. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError'
  /** `duplicate`: a member is repeated. `depth`: more levels than resources may have. */
  readonly kind: 'syntax' | 'duplicate' | 'depth'

  constructor(kind: JsonSyntaxError['kind'], message: string, text: string, at: number) {
    const before = text.slice(0, at)
    const line = before.split('\n').length
    const column = at - before.lastIndexOf('\n')
    super(`${message} at line ${line}, column ${column}`)
    this.kind = kind
  }
}

/**
 * Parses JSON text. Numbers whose text is not that of their value (`1.00`, `1e3`) become raw JSON values, which
 * `writeJson` writes as they were. Throws JsonSyntaxError.
 */
export function readJson(text: string): unknown {
  const reader = new JsonReader(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
  return reader.document()
}

/** JSON text of a value of `readJson`; `isPretty`: with line breaks and indents. */
export function writeJson(value: unknown, isPretty = false): string {
  return isPretty ? JSON.stringify(value, null, SPACES) : JSON.stringify(value)
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
}

export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || JSON.isRawJSON(value)
}

/** The text of a number, as it was written. */
export function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : (value as { readonly rawJSON: string }).rawJSON
}

/** A copy that shares no object with `value`. */
export function copyJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyJson) as T
  if (!isObject(value)) return value
  const copy: JsonObject = {}
  for (const [name, member] of Object.entries(value)) setMember(copy, name, copyJson(member))
  return copy as T
}

/** True if two values are the same JSON value (RFC 6902 4.6): numbers by value, members in any order. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (isNumber(one) && isNumber(other)) return sameNumber(numberText(one), numberText(other))
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => sameJson(item, other[at]))
  }
  if (!isObject(one)) return one === other
  const names = Object.keys(one)
  return (
    isObject(other) &&
    names.length === Object.keys(other).length &&
    names.every(name => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
  )
}

function sameNumber(one: string, other: string): boolean {
  return one === other || Number(one) === Number(other)
}

/** Sets an own member, `__proto__` too. */
export function setMember(object: JsonObject, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
/** Characters of a string up to its end, an escape or a character that must be escaped. */
const PLAIN = /[^"\\\0-\x1f]*/y
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' },
}
const CODE = { TAB: 9, LINE_FEED: 10, CARRIAGE_RETURN: 13, SPACE: 32 } as const

class JsonReader {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  document(): unknown {
    const value = this.#value()
    this.#skipSpace()
    if (this.#at < this.#text.length) throw this.#error('syntax', 'Text after the JSON value')
    return value
  }

  #value(): unknown {
    this.#skipSpace()
    switch (this.#text[this.#at]) {
      case '{':
        return this.#nested(() => this.#object())
      case '[':
        return this.#nested(() => this.#array())
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > DEPTH_MAX) throw this.#error('depth', `More than ${DEPTH_MAX} levels`)
    this.#at++
    const value = read()
    this.#depth--
    return value
  }

  #object(): JsonObject {
    const object: JsonObject = {}
    if (this.#take('}')) return object
    do {
      this.#skipSpace()
      if (this.#text[this.#at] !== '"') throw this.#error('syntax', 'No name of a member')
      const start = this.#at
      const name = this.#string()
      if (Object.hasOwn(object, name)) {
        this.#at = start
        throw this.#error('duplicate', 'The name of the member is repeated')
      }
      if (!this.#take(':')) throw this.#error('syntax', 'No ":"')
      setMember(object, name, this.#value())
    } while (this.#take(','))
    if (!this.#take('}')) throw this.#error('syntax', 'No "," or "}"')
    return object
  }

  #array(): unknown[] {
    const array: unknown[] = []
    if (this.#take(']')) return array
    do array.push(this.#value())
    while (this.#take(','))
    if (!this.#take(']')) throw this.#error('syntax', 'No "," or "]"')
    return array
  }

  #string(): string {
    let value = ''
    this.#at++
    for (;;) {
      PLAIN.lastIndex = this.#at
      value += PLAIN.exec(this.#text)![0]
      this.#at = PLAIN.lastIndex
      const end = this.#text[this.#at]
      if (end === '"') break
      if (end !== '\\') throw this.#error('syntax', 'A string that does not end, or has a control character')
      value += this.#escape()
    }
    this.#at++
    return value
  }

  #escape(): string {
    const char = this.#text[this.#at + 1] ?? ''
    if (char === 'u') {
      const digits = this.#text.slice(this.#at + 2, this.#at + 6)
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.#error('syntax', 'An escape without four digits')
      this.#at += 6
      return String.fromCharCode(Number.parseInt(digits, 16))
    }
    if (!Object.hasOwn(ESCAPES, char)) throw this.#error('syntax', 'An unknown escape')
    this.#at += 2
    return ESCAPES[char]!
  }

  #number(): unknown {
    NUMBER.lastIndex = this.#at
    const found = NUMBER.exec(this.#text)
    if (found === null) throw this.#error('syntax', 'No JSON value')
    this.#at = NUMBER.lastIndex
    const value = Number(found[0])
    return String(value) === found[0] ? value : JSON.rawJSON(found[0])
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#error('syntax', 'No JSON value')
    this.#at += word.length
    return value
  }

  /** True if the next character behind white space is this one; goes behind it. */
  #take(char: string): boolean {
    this.#skipSpace()
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== CODE.SPACE && code !== CODE.LINE_FEED && code !== CODE.CARRIAGE_RETURN && code !== CODE.TAB) return
      this.#at++
    }
  }

  #error(kind: JsonSyntaxError['kind'], message: string): JsonSyntaxError {
    return new JsonSyntaxError(kind, message, this.#text, this.#at)
  }
}
