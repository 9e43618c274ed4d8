/**
 * Patterns of host names, as operators write them for proxies. The reference platform reads regular expressions
 * (`.*.example.com`, `.*\.example\.com`), other proxies wildcards (`*.example.com`, `10.1.*`). Both forms are read: `*`
 * and `.*` are any run of characters (but `10.1.*` keeps its dot), `\.` and `.` are a dot, and matching is linear.
 */
import { readNetwork } from './cidr.ts'

const PLAIN = /^[0-9a-z_.:-]*$/
/** Characters that a URL does not read as part of its host. */
const NOT_IN_A_NAME = /[\s/?#@\\%[\]]/
const V4_FRONT = /^\d{1,3}(\.\d{1,3}){0,2}$/

export class HostPattern {
  /** Literal texts before, between and after the runs; one piece for a pattern without runs. */
  readonly #pieces: readonly string[]

  /** Undefined for a text that is no pattern. */
  static read(text: string): HostPattern | undefined {
    const pieces = piecesOf(bareHost(text.trim().toLowerCase()))
    if (pieces.length > 1) return pieces.every(piece => PLAIN.test(piece)) ? new HostPattern(pieces) : undefined
    const name = canonicalHost(pieces[0]!)
    return name === '' ? undefined : new HostPattern([name])
  }

  private constructor(pieces: readonly string[]) {
    this.#pieces = pieces
  }

  /** True if the pattern matches every host. */
  get isAny(): boolean {
    return this.#pieces.length > 1 && this.#pieces.every(piece => piece === '')
  }

  /** `host`: in the spelling of `URL.hostname`. */
  matches(host: string): boolean {
    const name = bareHost(host)
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

/** `10.1.*`: behind the front of an IPv4 address `.*` is a dot and a run. */
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

/** A name, or an address without brackets, as `URL.hostname` spells it; '' for an invalid one. */
function canonicalHost(text: string): string {
  if (text === '' || NOT_IN_A_NAME.test(text)) return ''
  if (text.includes(':')) return readNetwork(text).replace(/\/128$/, '')
  const name = URL.parse(`http://${text}/`)?.hostname ?? ''
  return PLAIN.test(name) ? name : ''
}

/** Removes the brackets of an IPv6 address, or the dot at the end of a name. */
function bareHost(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host.replace(/\.$/, '')
}
