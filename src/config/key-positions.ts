/**
 * Finds the line of each key and header in a TOML text. Reads only texts that smol-toml has accepted, so values are
 * skipped without validation. README.md says why no library does this.
 */
import { parse } from 'smol-toml'

/** A number is an index in an array of tables. */
export type KeyPath = readonly (string | number)[]

export interface KeyPosition {
  readonly path: KeyPath
  /** Counted from 1. */
  readonly line: number
  /** Path of the header above the key. */
  readonly table: KeyPath
}

/** A header, or an inline table in an array that stands for one. */
export interface HeaderPosition {
  readonly path: KeyPath
  readonly line: number
  /** Opens the next row of an array of tables. */
  readonly repeated: boolean
}

interface Positions {
  /** Every key with a value that is not an inline table with keys of its own, in the order of the text. */
  readonly keys: readonly KeyPosition[]
  readonly headers: readonly HeaderPosition[]
}

/** True if the array at a path is an array of tables, `x = [{ a = 1 }]` for `[[x]]`, and not a value. */
type IsArrayOfTables = (path: KeyPath) => boolean

export function findPositions(source: string, isArrayOfTables: IsArrayOfTables = () => false): Positions {
  return new Scanner(source, isArrayOfTables).scan()
}

const BLANK = /[ \t]*/y
const BLANK_OR_COMMENT = /(?:[ \t\r\n\ufeff]|#[^\n]*)*/y
const BARE_KEY = /[A-Za-z0-9_-]+/y
const STRING = /"""(?:[^\\]|\\[\s\S])*?"{3,5}(?!")|'''[\s\S]*?'{3,5}(?!')|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y
const NEITHER_BRACKET_NOR_STRING = /[^[\]{}"'#]*/y
const SCALAR = /[^,\]}\s#]+(?: \d[^,\]}\s#]*)?/y

class Scanner {
  readonly #source: string
  readonly #keys: KeyPosition[] = []
  readonly #headers: HeaderPosition[] = []
  readonly #isArrayOfTables: IsArrayOfTables
  /** Path of an array of tables, as JSON -> index of its last row. */
  readonly #lastRows = new Map<string, number>()
  #at = 0
  #line = 1
  #countedTo = 0
  #table: KeyPath = []

  constructor(source: string, isArrayOfTables: IsArrayOfTables) {
    this.#source = source
    this.#isArrayOfTables = isArrayOfTables
  }

  scan(): Positions {
    this.#take(BLANK_OR_COMMENT)
    while (this.#at < this.#source.length) {
      if (this.#source[this.#at] === '[') this.#header()
      else this.#keyAndValue(this.#table)
      this.#take(BLANK_OR_COMMENT)
    }
    return { keys: this.#keys, headers: this.#headers }
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const taken = pattern.exec(this.#source)?.[0] ?? ''
    this.#at += taken.length
    return taken
  }

  #currentLine(): number {
    for (; this.#countedTo < this.#at; this.#countedTo++) if (this.#source[this.#countedTo] === '\n') this.#line++
    return this.#line
  }

  #header(): void {
    const line = this.#currentLine()
    const repeated = this.#source[this.#at + 1] === '['
    this.#at += repeated ? 2 : 1
    const names = this.#keyNames()
    this.#at += repeated ? 2 : 1
    this.#table = this.#withIndexes(names, repeated)
    this.#headers.push({ path: this.#table, line, repeated })
  }

  /** `[[a]]` opens the next row of `a`; `[a.b]` after it is the `b` of the last row. */
  #withIndexes(names: readonly string[], repeated: boolean): KeyPath {
    const path: (string | number)[] = []
    names.forEach((name, index) => {
      path.push(name)
      const array = JSON.stringify(path)
      const last = this.#lastRows.get(array)
      if (repeated && index === names.length - 1) {
        const next = (last ?? -1) + 1
        this.#lastRows.set(array, next)
        path.push(next)
      } else if (last !== undefined) path.push(last)
    })
    return path
  }

  #keyNames(): readonly string[] {
    const names: string[] = []
    for (;;) {
      this.#take(BLANK)
      const quote = this.#source[this.#at]
      names.push(quote === '"' || quote === "'" ? unquoted(this.#take(STRING)) : this.#take(BARE_KEY))
      this.#take(BLANK)
      if (this.#source[this.#at] !== '.') return names
      this.#at++
    }
  }

  #keyAndValue(table: KeyPath): void {
    const line = this.#currentLine()
    const path = [...table, ...this.#keyNames()]
    this.#at++ // the equals sign
    this.#take(BLANK)
    const first = this.#source[this.#at]
    if (first === '[' && this.#isArrayOfTables(path)) {
      this.#inlineRows(path)
      return
    }
    if (first === '{' && this.#inlineTable(path)) return
    if (first !== '{') this.#skipValue()
    this.#keys.push({ path, line, table: this.#table })
  }

  /** False for an empty table, which counts as a value. */
  #inlineTable(path: KeyPath): boolean {
    let isEmpty = true
    this.#at++
    this.#take(BLANK_OR_COMMENT)
    while (this.#at < this.#source.length && this.#source[this.#at] !== '}') {
      isEmpty = false
      this.#keyAndValue(path)
      this.#skipComma()
    }
    this.#at++
    return !isEmpty
  }

  /** An array that holds nothing but inline tables. */
  #inlineRows(path: KeyPath): void {
    this.#at++
    this.#take(BLANK_OR_COMMENT)
    for (let index = 0; this.#source[this.#at] === '{'; index++) {
      const row = [...path, index]
      this.#headers.push({ path: row, line: this.#currentLine(), repeated: true })
      this.#inlineTable(row)
      this.#skipComma()
    }
    this.#at++
  }

  #skipComma(): void {
    this.#take(BLANK_OR_COMMENT)
    if (this.#source[this.#at] === ',') this.#at++
    this.#take(BLANK_OR_COMMENT)
  }

  #skipValue(): void {
    const first = this.#source[this.#at]
    if (first === '[' || first === '{') this.#skipBrackets()
    else this.#take(first === '"' || first === "'" ? STRING : SCALAR)
  }

  /** Skips an array with all that is in it; brackets in strings and comments do not count. */
  #skipBrackets(): void {
    let depth = 0
    do {
      const character = this.#source[this.#at]
      if (character === '"' || character === "'") this.#take(STRING)
      else if (character === '#') this.#take(BLANK_OR_COMMENT)
      else {
        if (character === '[' || character === '{') depth++
        if (character === ']' || character === '}') depth--
        this.#at++
      }
      if (depth > 0) this.#take(NEITHER_BRACKET_NOR_STRING)
    } while (depth > 0 && this.#at < this.#source.length)
  }
}

/** Only smol-toml reads escapes, so that a key has the same name here as in the parsed tree. */
function unquoted(quoted: string): string {
  return quoted.includes('\\') ? Object.keys(parse(`${quoted} = 0`))[0]! : quoted.slice(1, -1)
}

/** `a.b[0].c`; an index stands in brackets. */
export function dottedPath(path: KeyPath): string {
  return path.reduce<string>((dotted, name) => {
    if (typeof name === 'number') return `${dotted}[${name}]`
    return dotted === '' ? name : `${dotted}.${name}`
  }, '')
}
