/**
 * DER as a tree of values, read and written by node-forge, and walked here by position. Whatever is not where a store
 * must have it is a StoreProblem.
 */
import { StoreProblem } from './store-contents.ts'

export interface Asn1 {
  readonly tagClass: number
  readonly type: number
  readonly constructed: boolean
  readonly value: string | readonly Asn1[]
}

export interface Asn1Codec {
  create(tagClass: number, type: number, constructed: boolean, value: string | readonly Asn1[]): Asn1
  fromDer(bytes: string, options: { readonly parseAllBytes: boolean; readonly decodeBitStrings: boolean }): Asn1
  toDer(node: Asn1): { getBytes(): string }
  derToOid(bytes: string): string
  oidToDer(oid: string): { getBytes(): string }
  dateToUtcTime(date: Date): string
}

export async function loadAsn1(): Promise<Asn1Codec> {
  return (await import('node-forge/lib/asn1.js')).default
}

export class DerReader {
  readonly #asn1: Asn1Codec

  constructor(asn1: Asn1Codec) {
    this.#asn1 = asn1
  }

  /** BER too: stores of older tools have lengths that are not known in advance. */
  parse(bytes: string): Asn1 {
    try {
      return this.#asn1.fromDer(bytes, { parseAllBytes: false, decodeBitStrings: false })
    } catch {
      throw new StoreProblem('unreadable', 'its DER is broken')
    }
  }

  /** The parts of a node, as it was encoded. */
  encode(node: Asn1): Buffer {
    return Buffer.from(this.#asn1.toDer(node).getBytes(), 'latin1')
  }

  parts(node: Asn1 | undefined): readonly Asn1[] {
    if (node === undefined || typeof node.value === 'string') throw new StoreProblem('unreadable', 'a part is missing')
    return node.value
  }

  /** A string of bytes, one character each; pieces of BER are put together. */
  bytes(node: Asn1 | undefined): string {
    if (node === undefined) throw new StoreProblem('unreadable', 'a part is missing')
    return typeof node.value === 'string' ? node.value : node.value.map(piece => this.bytes(piece)).join('')
  }

  oid(node: Asn1 | undefined): string {
    return this.#asn1.derToOid(this.bytes(node))
  }

  /** A whole number that fits 48 bits. */
  count(node: Asn1 | undefined): number {
    const bytes = Buffer.from(this.bytes(node), 'latin1')
    if (bytes.length === 0 || bytes.length > 6) throw new StoreProblem('unreadable', 'a number in it is too large')
    return bytes.readUIntBE(0, bytes.length)
  }
}
