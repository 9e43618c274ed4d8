/** Reads DER and BER as a tree of ASN.1 values, parsed by node-forge. A missing or malformed part is a StoreError. */
import { StoreError } from './store-contents.ts'

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

  /** Accepts BER too, because older tools write stores with indefinite lengths. */
  parse(bytes: string): Asn1 {
    try {
      return this.#asn1.fromDer(bytes, { parseAllBytes: false, decodeBitStrings: false })
    } catch {
      throw new StoreError('malformed', 'invalid DER')
    }
  }

  encode(node: Asn1): Buffer {
    return Buffer.from(this.#asn1.toDer(node).getBytes(), 'latin1')
  }

  /** The elements of a constructed value. */
  parts(node: Asn1 | undefined): readonly Asn1[] {
    if (node === undefined || typeof node.value === 'string') throw new StoreError('malformed', 'an element is missing')
    return node.value
  }

  /** The bytes of an octet string, one character each; the segments of a BER string are joined. */
  bytes(node: Asn1 | undefined): string {
    if (node === undefined) throw new StoreError('malformed', 'an element is missing')
    return typeof node.value === 'string' ? node.value : node.value.map(segment => this.bytes(segment)).join('')
  }

  oid(node: Asn1 | undefined): string {
    return this.#asn1.derToOid(this.bytes(node))
  }

  /** An integer of at most 48 bits. */
  integer(node: Asn1 | undefined): number {
    const bytes = Buffer.from(this.bytes(node), 'latin1')
    if (bytes.length === 0 || bytes.length > 6) throw new StoreError('malformed', 'an integer is too large')
    return bytes.readUIntBE(0, bytes.length)
  }
}
