/**
 * Where each key of a TOML text stands. Reads only texts that a TOML parser has accepted, so it skips values without
 * judging them and never meets a mistake.
 */

export interface Statement {
  /** The whole path; a number is a place in a repeated table. */
  readonly segments: readonly (string | number)[]
  /** Counted from 1. */
  readonly line: number
  /** The header it stands under. */
  readonly table: readonly (string | number)[]
}

/** A header, or an inline table that stands for one. */
export interface Header extends Pick<Statement, 'segments' | 'line'> {
  /** It opens the next place of a repeated table. */
  readonly repeated: boolean
}

interface Outline {
  /** Every key with a value that is not an inline table with keys of its own, in the order of the text. */
  readonly statements: readonly Statement[]
  readonly headers: readonly Header[]
}

/** Whether the array at this place is a repeated table, `x = [{ a = 1 }]` for `[[x]]`, and no value. */
type IsRows = (segments: Statement['segments']) => boolean

export function outlineOf(source: string, isRows: IsRows = () => false): Outline {
  return new Scanner(source, isRows).all()
}

const BLANK = /[ \t]*/y
const VOID = /(?:[ \t\r\n\ufeff]|#[^\n]*)*/y
const BARE_KEY = /[A-Za-z0-9_-]+/y
const STRING = /"""(?:[^\\]|\\[\s\S])*?"{3,5}(?!")|'''[\s\S]*?'{3,5}(?!')|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y
const SCALAR = /[^,\]}\s#]+(?: \d[^,\]}\s#]*)?/y

class Scanner {
  readonly #source: string
  readonly #found: Statement[] = []
  readonly #headers: Header[] = []
  readonly #isRows: IsRows
  readonly #repeats = new Map<string, number>()
  #at = 0
  #line = 1
  #countedTo = 0
  #table: readonly (string | number)[] = []

  constructor(source: string, isRows: IsRows) {
    this.#source = source
    this.#isRows = isRows
  }

  all(): Outline {
    this.#take(VOID)
    while (this.#at < this.#source.length) {
      if (this.#source[this.#at] === '[') this.#header()
      else this.#keyAndValue(this.#table)
      this.#take(VOID)
    }
    return { statements: this.#found, headers: this.#headers }
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const taken = pattern.exec(this.#source)?.[0] ?? ''
    this.#at += taken.length
    return taken
  }

  #lineHere(): number {
    for (; this.#countedTo < this.#at; this.#countedTo++) if (this.#source[this.#countedTo] === '\n') this.#line++
    return this.#line
  }

  #header(): void {
    const line = this.#lineHere()
    const repeated = this.#source[this.#at + 1] === '['
    this.#at += repeated ? 2 : 1
    const written = this.#key()
    this.#at += repeated ? 2 : 1
    this.#table = this.#placed(written, repeated)
    this.#headers.push({ segments: this.#table, line, repeated })
  }

  /** `[[a]]` opens the next place of `a`; `[a.b]` after it means the `b` of the last place. */
  #placed(written: readonly string[], repeated: boolean): readonly (string | number)[] {
    const placed: (string | number)[] = []
    written.forEach((segment, index) => {
      placed.push(segment)
      const name = JSON.stringify(placed)
      const place = this.#repeats.get(name)
      if (repeated && index === written.length - 1) {
        const next = (place ?? -1) + 1
        this.#repeats.set(name, next)
        placed.push(next)
      } else if (place !== undefined) placed.push(place)
    })
    return placed
  }

  #key(): readonly string[] {
    const segments: string[] = []
    for (;;) {
      this.#take(BLANK)
      const quote = this.#source[this.#at]
      segments.push(unquote(this.#take(quote === '"' || quote === "'" ? STRING : BARE_KEY)))
      this.#take(BLANK)
      if (this.#source[this.#at] !== '.') return segments
      this.#at++
    }
  }

  #keyAndValue(table: readonly (string | number)[]): void {
    const line = this.#lineHere()
    const segments = [...table, ...this.#key()]
    this.#at++ // the equals sign
    this.#take(BLANK)
    if (this.#source[this.#at] === '{') {
      if (this.#inlineTable(segments)) return
    } else if (this.#source[this.#at] === '[' && this.#isRows(segments)) {
      this.#inlineRows(segments)
      return
    } else this.#value()
    this.#found.push({ segments, line, table: this.#table })
  }

  /** False for an empty one, which is a value like any other. */
  #inlineTable(segments: readonly (string | number)[]): boolean {
    let isEmpty = true
    this.#at++
    this.#take(VOID)
    while (this.#at < this.#source.length && this.#source[this.#at] !== '}') {
      isEmpty = false
      this.#keyAndValue(segments)
      this.#take(VOID)
      if (this.#source[this.#at] === ',') this.#at++
      this.#take(VOID)
    }
    this.#at++
    return !isEmpty
  }

  /** An array of nothing but inline tables. */
  #inlineRows(segments: readonly (string | number)[]): void {
    this.#at++
    this.#take(VOID)
    for (let place = 0; this.#source[this.#at] === '{'; place++) {
      const row = [...segments, place]
      this.#headers.push({ segments: row, line: this.#lineHere(), repeated: true })
      this.#inlineTable(row)
      this.#take(VOID)
      if (this.#source[this.#at] === ',') this.#at++
      this.#take(VOID)
    }
    this.#at++
  }

  #value(): void {
    const first = this.#source[this.#at]
    if (first === '[' || first === '{') this.#bracketed()
    else this.#take(first === '"' || first === "'" ? STRING : SCALAR)
  }

  /** An array, or an inline table within one: passed over whole, strings and comments heeded. */
  #bracketed(): void {
    let depth = 0
    do {
      this.#take(VOID)
      const character = this.#source[this.#at]
      if (character === '"' || character === "'") this.#take(STRING)
      else {
        if (character === '[' || character === '{') depth++
        if (character === ']' || character === '}') depth--
        this.#at++
      }
    } while (depth > 0 && this.#at < this.#source.length)
  }
}

function unquote(taken: string): string {
  if (taken.startsWith("'")) return taken.slice(1, -1)
  if (!taken.startsWith('"')) return taken
  return taken.slice(1, -1).replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))/g, character)
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r', e: '\u001b' }

function character(_: string, short: string, long: string, byte: string, letter: string): string {
  const digits = short ?? long ?? byte
  return digits === undefined ? (ESCAPES[letter] ?? letter) : String.fromCodePoint(Number.parseInt(digits, 16))
}

/** Numbers are places in a repeated table: `[[a.b]]` gives `a.b[0]`, `a.b[1]`. */
export function pathOf(segments: Statement['segments']): string {
  return segments.reduce<string>((path, segment) => {
    if (typeof segment === 'number') return `${path}[${segment}]`
    return path === '' ? segment : `${path}.${segment}`
  }, '')
}
