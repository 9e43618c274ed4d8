/**
 * Fields that tell a backend where a request came from: X-Forwarded-For, -Host, -Proto, Forwarded (RFC 7239), Via (RFC
 * 9110 7.6.3). Those of an untrusted client are dropped; those of a trusted proxy are extended.
 */
import { type Kind, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { encoded } from './writer.ts'

type ForwardedForm = 'x-forwarded' | 'forwarded' | 'both' | 'none'

/** Via up to the version that was received; both have the same length. */
const VIA_11 = 'Via: 1.1 '
const VIA_10 = encoded('Via: 1.0 ')

/** Forwarding lines for the requests of one client address. */
export class ForwardedLines {
  readonly #form: ForwardedForm
  readonly #trusted: boolean
  readonly #address: string
  readonly #scheme: string
  readonly #via: string
  readonly #viaAlone: Uint8Array
  /** Lines that are the same for all requests of the address. */
  readonly #constant: string
  /** Cache: host of the last request and its lines, nearly always those of the next one too. */
  #host = ''
  #lines: Uint8Array

  /** `address`: numeric. `trusted`: the client is one of the trusted proxies. `pseudonym`: name of this node in Via. */
  constructor(form: ForwardedForm, address: string, scheme: 'http' | 'https', trusted: boolean, pseudonym: string) {
    this.#form = form
    this.#trusted = trusted
    this.#address = address
    this.#scheme = scheme
    const x = form === 'x-forwarded' || form === 'both'
    const via = `${VIA_11}${pseudonym}\r\n`
    this.#via = via
    this.#viaAlone = encoded(via)
    this.#constant = x ? `${via}X-Forwarded-For: ${address}\r\nX-Forwarded-Proto: ${scheme}\r\n` : via
    this.#lines = encoded(this.#untrustedLines(''))
  }

  /** Whole lines in latin1, each with its CRLF. `host`: authority of the request, '' without one. */
  lines(bytes: Buffer, head: Head, host: string): Uint8Array {
    const lines = this.#http11Lines(bytes, head, host)
    if (head.minorVersion !== 0) return lines
    const lines10 = lines.slice()
    lines10.set(VIA_10)
    return lines10
  }

  /** The lines for a request that came as HTTP/1.1. */
  #http11Lines(bytes: Buffer, head: Head, host: string): Uint8Array {
    if (this.#form === 'none') return this.#viaAlone
    if (this.#trusted) return encoded(this.#extendedLines(bytes, head, host))
    if (host !== this.#host) {
      this.#host = host
      this.#lines = encoded(this.#untrustedLines(host))
    }
    return this.#lines
  }

  #untrustedLines(host: string): string {
    const x = this.#form !== 'forwarded' && host !== '' ? `X-Forwarded-Host: ${host}\r\n` : ''
    const standard = this.#form === 'x-forwarded' ? '' : `Forwarded: ${this.#element(host)}\r\n`
    return this.#constant + x + standard
  }

  /** The authority in these bytes; the string of the last request is used again where it is equal. */
  host(bytes: Buffer, at: number, end: number): string {
    const host = this.#host
    if (end - at !== host.length) return bytes.latin1Slice(at, end)
    for (let i = 0; i < host.length; i++) {
      if (bytes[at + i] !== host.charCodeAt(i)) return bytes.latin1Slice(at, end)
    }
    return host
  }

  #element(host: string): string {
    const node = this.#address.includes(':') ? `"[${this.#address}]"` : this.#address
    const named = host === '' ? '' : `;host="${host}"`
    return `for=${node}${named};proto=${this.#scheme}`
  }

  #extendedLines(bytes: Buffer, head: Head, host: string): string {
    let lines = this.#via
    if (this.#form !== 'forwarded') {
      lines += `X-Forwarded-For: ${append(head.list(bytes, KIND.X_FORWARDED_FOR), this.#address)}\r\n`
      if (!has(head, KIND.X_FORWARDED_PROTO)) lines += `X-Forwarded-Proto: ${this.#scheme}\r\n`
      if (!has(head, KIND.X_FORWARDED_HOST) && host !== '') lines += `X-Forwarded-Host: ${host}\r\n`
    }
    if (this.#form !== 'x-forwarded') {
      lines += `Forwarded: ${append(head.list(bytes, KIND.FORWARDED), this.#element(host))}\r\n`
    }
    return lines
  }
}

/** Entries of a list of Via that name `pseudonym` as the recipient: `1.1 name (comment)`, in any case. */
export function viaEntriesOf(list: string, pseudonym: string): number {
  const name = pseudonym.toLowerCase()
  const isOwn = (entry: string) => entry.trim().split(/[\t ]+/, 2)[1] === name
  return list.toLowerCase().split(',').filter(isOwn).length
}

function append(list: string, element: string): string {
  return list === '' ? element : `${list}, ${element}`
}

function has(head: Head, kind: Kind): boolean {
  return head.find(kind) >= 0
}

/**
 * Kinds of the client's fields that are replaced. Those of an untrusted client are dropped in both forms, whichever
 * form is written: a backend may believe the other one.
 */
export function forwardedKinds(form: ForwardedForm, trusted: boolean): readonly Kind[] {
  if (!trusted) {
    return [KIND.X_FORWARDED_FOR, KIND.X_FORWARDED_PROTO, KIND.X_FORWARDED_HOST, KIND.X_FORWARDED_OTHER, KIND.FORWARDED]
  }
  const kinds: Kind[] = []
  if (form === 'x-forwarded' || form === 'both') kinds.push(KIND.X_FORWARDED_FOR)
  if (form === 'forwarded' || form === 'both') kinds.push(KIND.FORWARDED)
  return kinds
}
