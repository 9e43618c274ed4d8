/**
 * The fields that tell a backend where a request came from: X-Forwarded-For, -Host, -Proto, Forwarded (RFC 7239), Via
 * (RFC 9110 7.6.3). What an untrusted client says of itself is dropped; what a trusted proxy says is extended.
 */
import { type Kind, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'

type ForwardedForm = 'x-forwarded' | 'forwarded' | 'both' | 'none'

const VIA = 'Via: 1.1 sluice\r\n'
/** Of a request that came as HTTP/1.0; as long as the other one. */
const VIA_10 = 'Via: 1.0 sluice\r\n'

/** The lines of one client connection. */
export class ForwardedLines {
  readonly #form: ForwardedForm
  readonly #trusted: boolean
  readonly #address: string
  readonly #scheme: string
  /** What never changes for this connection. */
  readonly #constant: string
  /** Host of the last request and its lines: nearly always those of the next one. */
  #host = ''
  #lines: string

  /** `address`: numeric; `trusted`: the client is a proxy of ours. */
  constructor(form: ForwardedForm, address: string, scheme: 'http' | 'https', trusted: boolean) {
    this.#form = form
    this.#trusted = trusted
    this.#address = address
    this.#scheme = scheme
    const x = form === 'x-forwarded' || form === 'both'
    this.#constant = x ? `${VIA}X-Forwarded-For: ${address}\r\nX-Forwarded-Proto: ${scheme}\r\n` : VIA
    this.#lines = this.#ofUntrusted('')
  }

  /** Whole lines, each with its CRLF. `host`: the authority that the client asked for, '' when it named none. */
  lines(bytes: Buffer, head: Head, host: string): string {
    const lines = this.#of11(bytes, head, host)
    return head.minorVersion === 0 ? VIA_10 + lines.slice(VIA_10.length) : lines
  }

  /** The lines for a request that came as HTTP/1.1. */
  #of11(bytes: Buffer, head: Head, host: string): string {
    if (this.#form === 'none') return VIA
    if (this.#trusted) return this.#extended(bytes, head, host)
    if (host !== this.#host) {
      this.#host = host
      this.#lines = this.#ofUntrusted(host)
    }
    return this.#lines
  }

  #ofUntrusted(host: string): string {
    const x = this.#form !== 'forwarded' && host !== '' ? `X-Forwarded-Host: ${host}\r\n` : ''
    const standard = this.#form === 'x-forwarded' ? '' : `Forwarded: ${this.#element(host)}\r\n`
    return this.#constant + x + standard
  }

  /** The authority in these bytes; that of the last request is not made again. */
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

  #extended(bytes: Buffer, head: Head, host: string): string {
    let lines = VIA
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

function append(list: string, element: string): string {
  return list === '' ? element : `${list}, ${element}`
}

function has(head: Head, kind: Kind): boolean {
  return head.find(kind) >= 0
}

/**
 * Kinds of the client's fields that are replaced. An untrusted client's are dropped in both forms, whichever is
 * written: a backend may believe the other one.
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
