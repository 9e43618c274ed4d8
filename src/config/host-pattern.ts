/**
 * Patterns of host names, as they are written for proxies: names, addresses, `*`, sets of sub-domains. The reference
 * platform reads them as regular expressions (`.*.example.com`, `.*\.example\.com`), everybody else as wildcards
 * (`*.example.com`, `10.1.*`). One small language takes both: `*`, and `.*` but behind the front of an IPv4 address, is
 * any run of characters; `\.` and every other dot is a dot. Nothing else of expressions is there, so none can run wild.
 */
import { readNetwork } from './cidr.ts'

const PLAIN = /^[0-9a-z_.:-]*$/
/** What a URL could take for something else than a part of its host. */
const NOT_IN_A_NAME = /[\s/?#@\\%[\]]/
const V4_FRONT = /^\d{1,3}(\.\d{1,3}){0,2}$/

export class HostPattern {
  /** What stands in front of, between and behind the runs; one piece for a pattern without any. */
  readonly #pieces: readonly string[]

  /** Undefined when the text is no pattern. */
  static read(text: string): HostPattern | undefined {
    const pieces = piecesOf(withoutFrame(text.trim().toLowerCase()))
    if (pieces.length > 1) return pieces.every(piece => PLAIN.test(piece)) ? new HostPattern(pieces) : undefined
    const name = plainHost(pieces[0]!)
    return name === '' ? undefined : new HostPattern([name])
  }

  private constructor(pieces: readonly string[]) {
    this.#pieces = pieces
  }

  /** Fits every host. */
  get isAny(): boolean {
    return this.#pieces.length > 1 && this.#pieces.every(piece => piece === '')
  }

  /** `host`: in the spelling of `URL.hostname`. */
  matches(host: string): boolean {
    const name = withoutFrame(host)
    const pieces = this.#pieces
    const first = pieces[0]!
    const last = pieces.at(-1)!
    if (pieces.length === 1) return name === first
    const end = name.length - last.length
    if (!name.startsWith(first) || !name.endsWith(last)) return false
    let at = first.length
    for (const piece of pieces.slice(1, -1)) {
      const found = name.indexOf(piece, at)
      if (found === -1) return false
      at = found + piece.length
    }
    return at <= end
  }
}

function piecesOf(text: string): string[] {
  const pieces = ['']
  for (let at = 0; at < text.length; at++) {
    const piece = pieces.at(-1)!
    const pair = text.slice(at, at + 2)
    if (pair === '.*' && !(pieces.length === 1 && V4_FRONT.test(piece))) at++
    else if (pair === '\\.') at++
    if (text[at] === '*') pieces.push('')
    else pieces[pieces.length - 1] = piece + text[at]
  }
  return pieces
}

/** A name or an address without its frame, as `URL.hostname` spells it; '' when it is none. */
function plainHost(text: string): string {
  if (text === '' || NOT_IN_A_NAME.test(text)) return ''
  if (text.includes(':')) return readNetwork(text).replace(/\/128$/, '')
  const name = URL.parse(`http://${text}/`)?.hostname ?? ''
  return PLAIN.test(name) ? name : ''
}

/** Without the brackets of an IPv6 address, or the dot at the end of a name. */
function withoutFrame(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host.replace(/\.$/, '')
}
