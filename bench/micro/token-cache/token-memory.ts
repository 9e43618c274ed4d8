/** Memory like the arena (a Buffer over WebAssembly memory), tokens of requests, and their comparison and hashes. */

/** The part of WebAssembly in use; the library for servers has no types for it. */
interface WebAssemblyHere {
  Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer }
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: Record<string, unknown> }
}

const wasm = (globalThis as unknown as { WebAssembly: WebAssemblyHere }).WebAssembly
const memory = new wasm.Memory({ initial: 2048 })
export const bytes: Buffer = Buffer.from(memory.buffer)
const view = new DataView(memory.buffer)

/** Offset of the token of a request in the read buffer: odd, as after "Authorization: Bearer ". */
export const TOKEN_AT = 65_536 + 417
/** Offset of the tokens of future requests. */
const STORE_AT = 1 << 20
/** Offset of the copies of the caches; each comparison clears them. */
const SLAB_AT = 32 << 20
let slabEnd = SLAB_AT

export function clearSlab(): void {
  slabEnd = SLAB_AT
}

export function allocate(size: number): number {
  const at = slabEnd
  slabEnd += size
  if (slabEnd > bytes.length) throw new Error('the slab is exhausted')
  return at
}

/**
 * `isSame(a, b, length)` of two offsets, for at least 16 bytes: 16 bytes at a time in constant time, so timing does not
 * reveal where they differ. Its source:
 *
 *     last = a + length - 16
 *     do { sum |= *a ^ *b; a += 16; b += 16 } while (a < last)
 *     return !any_true(sum | *last ^ *(b + last - a))
 */
const MODULE =
  'AGFzbQEAAAABCAFgA39/fwF/Ag8BA2VudgZtZW1vcnkCAAEDAgEABwoBBmlzU2FtZQAACl0BWwIBfwF7IAAgAkEQa2ohAwNAIAQgAP0AAAAgAf0A' +
  'AAD9Uf1QIQQgAEEQaiEAIAFBEGohASAAIANIDQALIAEgAyAAa2ohASAEIAP9AAAAIAH9AAAA/VH9UP1TRQs='
const instance = new wasm.Instance(new wasm.Module(Buffer.from(MODULE, 'base64')), { env: { memory } })
export const isSameInWasm = instance.exports.isSame as (a: number, b: number, length: number) => number

export class TokenStore {
  readonly length: number
  readonly count: number
  readonly #stride: number

  /** `count` tokens of `length` characters; they differ in claims and signature, not in header and issuer. */
  constructor(count: number, length: number) {
    this.length = length
    this.count = count
    // Odd, so that tokens have all alignments.
    this.#stride = (length + 64) | 1
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    let seed = 42
    for (let token = 0; token < count; token++) {
      const place = this.at(token)
      for (let i = 0; i < length; i++) {
        if (i === 160) seed = (seed + token * 7919) | 0
        if (i < 160) bytes[place + i] = alphabet.charCodeAt((i * 37) & 63)
        else {
          seed = Math.imul(seed, 1103515245) + 12345
          bytes[place + i] = alphabet.charCodeAt(seed >>> 26)
        }
      }
      bytes[place + 60] = 46
      bytes[place + length - 343] = 46
    }
  }

  at(token: number): number {
    return STORE_AT + token * this.#stride
  }

  /** Copies the token to its place in the read buffer, as if a request had arrived. */
  arrive(token: number): void {
    const at = this.at(token)
    bytes.copyWithin(TOKEN_AT, at, at + this.length)
  }
}

/** A copy in whole words; the rest of the last one is zero. */
export function copyOf(at: number, length: number): Int32Array {
  const copy = new Int32Array((length + 3) >> 2)
  new Uint8Array(copy.buffer).set(bytes.subarray(at, at + length))
  return copy
}

/** Compares four bytes at a time, in constant time. */
export function isSameByWords(at: number, length: number, copy: Int32Array): boolean {
  const whole = length >> 2
  let difference = 0
  for (let i = 0; i < whole; i++) difference |= view.getInt32(at + (i << 2), true) ^ copy[i]!
  if ((length & 3) !== 0) difference |= lastWord(at, length) ^ copy[whole]!
  return difference === 0
}

function lastWord(at: number, length: number): number {
  let word = 0
  for (let i = length & ~3, shift = 0; i < length; i++, shift += 8) word |= bytes[at + i]! << shift
  return word
}

/** Compares byte by byte up to the first difference. */
export function isSameByBytes(at: number, length: number, copy: Uint8Array): boolean {
  for (let i = 0; i < length; i++) if (bytes[at + i] !== copy[i]) return false
  return true
}

/** Hashed bytes at the end of a token. They are part of the signature, which attackers cannot choose. */
const TAIL = 32

/** A seeded hash of the length and the last 32 bytes; 31 bits, so that it is a small integer. */
export function tailHash(at: number, length: number, seed: number): number {
  let hash = seed ^ length
  const from = length > TAIL ? at + length - TAIL : at
  const to = at + length - 3
  for (let i = from; i < to; i += 4) {
    hash = Math.imul(hash ^ view.getInt32(i, true), 0x5bd1e995)
    hash ^= hash >>> 15
  }
  return hash & 0x7fffffff
}

/** The same hash of all bytes. */
export function fullHash(at: number, length: number, seed: number): number {
  let hash = seed ^ length
  const to = at + length - 3
  for (let i = at; i < to; i += 4) {
    hash = Math.imul(hash ^ view.getInt32(i, true), 0x5bd1e995)
    hash ^= hash >>> 15
  }
  return hash & 0x7fffffff
}

/** "Bearer " in any case (RFC 9110 11.1): setting bit 5 makes a letter lower case and no other byte a letter. */
export function isBearer(at: number): boolean {
  return (
    (view.getInt32(at, true) | 0x20202020) === 0x72616562 &&
    (view.getInt16(at + 4, true) | 0x2020) === 0x7265 &&
    bytes[at + 6] === 32
  )
}
