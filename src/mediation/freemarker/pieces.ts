/** Long texts of templates, made and changed piece by piece: neither matches nor parts of them fill the heap. */
import type { Environment } from './environment.ts'

/** Characters of a text that are changed at once, and parts that are joined at once. */
const CHARACTERS = 65_536
const PARTS = 4096
const CHARACTERS_JOINED = 1_048_576

/** A text in the making. */
export class Pieces {
  readonly #env: Environment
  #text = ''
  #length = 0
  /** Length at which the parts are joined, and the limits looked at. */
  #next = CHARACTERS_JOINED
  #parts: string[] = []

  constructor(env: Environment) {
    this.#env = env
  }

  /** Throws MediationFault where the text is beyond a limit. */
  add(part: string): void {
    this.#length += part.length
    if (this.#parts.push(part) >= PARTS || this.#length >= this.#next) this.#join()
  }

  get text(): string {
    this.#join()
    return this.#text
  }

  #join(): void {
    this.#env.makes(this.#length)
    this.#text += this.#parts.join('')
    this.#parts = []
    this.#next = this.#length + CHARACTERS_JOINED
  }
}

/** The text with each piece changed; a pair of surrogates stays together. */
export function changed(text: string, env: Environment, change: (piece: string) => string): string {
  const pieces = new Pieces(env)
  for (let from = 0; from < text.length; ) {
    const end = from + CHARACTERS
    const isWithinPair = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800
    const to = isWithinPair ? end + 1 : end
    pieces.add(change(text.slice(from, to)))
    from = to
  }
  return pieces.text
}

/** The text with another one in place of a part, which is not ''. */
export function replacedIn(text: string, part: string, by: string, env: Environment): string {
  const pieces = new Pieces(env)
  let from = 0
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, from)) {
    pieces.add(text.slice(from, at) + by)
    from = at + part.length
  }
  pieces.add(text.slice(from))
  return pieces.text
}

/** The text without white space at its ends; each run of it within is one line break, or one space. */
export function compressed(text: string, env: Environment): string {
  let space = ''
  const within = changed(text, env, piece => {
    const whole = (space + piece).replace(/[^\S\r\n]+/g, ' ').replace(/ ?[\r\n][ \r\n]*/g, '\n')
    // White space at the end may go on in the next piece.
    space = /\s$/.exec(whole)?.[0] ?? ''
    return whole.slice(0, whole.length - space.length)
  })
  return within.trim()
}
