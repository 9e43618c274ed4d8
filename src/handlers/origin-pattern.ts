/**
 * A pattern of origins, such as `https://*.example.com` or `http://localhost:*`: `*` is a run of at least one character
 * that can stand in a host name or a port. Nothing else of an origin can be in it, so that no scheme, user, port or
 * fragment hides behind a star (`https://evil.example#.example.com`). Takes time in proportion to both lengths.
 */

const DOT = 46
const HYPHEN = 45
const UNDERSCORE = 95

export class OriginPattern {
  readonly text: string
  /** What stands in front of, between and behind the stars. */
  readonly #pieces: readonly string[]

  /** Browsers write scheme and host in lower case (WHATWG URL), and so is what they are compared with. */
  constructor(text: string) {
    this.text = text
    this.#pieces = text.toLowerCase().split(/\*+/)
  }

  matches(origin: string): boolean {
    const pieces = this.#pieces
    const first = pieces[0]!
    const last = pieces[pieces.length - 1]!
    if (!origin.startsWith(first) || !origin.endsWith(last)) return false
    let at = first.length
    // The first place where a piece fits will do: what a star cannot hold there, it cannot hold further on either.
    for (let i = 1; i < pieces.length - 1; i++) {
      const found = origin.indexOf(pieces[i]!, at + 1)
      if (found < 0 || !isRun(origin, at, found)) return false
      at = found + pieces[i]!.length
    }
    return isRun(origin, at, origin.length - last.length)
  }
}

function isRun(origin: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const code = origin.charCodeAt(i)
    const isLetter = code >= 97 && code <= 122
    const isDigit = code >= 48 && code <= 57
    if (!isLetter && !isDigit && code !== DOT && code !== HYPHEN && code !== UNDERSCORE) return false
  }
  return to > from
}
