/** A set of IP addresses as disjoint intervals in ascending order, which a binary search finds. */
import { readNetwork } from '../config/cidr.ts'
import { isAddress, unmappedAddress } from '../runtime/ip-address.ts'

/** Bounds are included. IPv4 addresses are numbers below 2^32, IPv6 addresses begin at 2^32. */
export interface Interval {
  readonly from: bigint
  readonly to: bigint
}

const V4_SIZE = 1n << 32n
const LAST = V4_SIZE + (1n << 128n) - 1n

export class AddressIntervals {
  readonly #from: readonly bigint[]
  readonly #to: readonly bigint[]

  constructor(intervals: readonly Interval[]) {
    const merged: { from: bigint; to: bigint }[] = []
    for (const { from, to } of intervals.toSorted((one, other) => (one.from < other.from ? -1 : 1))) {
      const last = merged.at(-1)
      if (last === undefined || from > last.to + 1n) merged.push({ from, to })
      else if (to > last.to) last.to = to
    }
    this.#from = merged.map(({ from }) => from)
    this.#to = merged.map(({ to }) => to)
  }

  get isEmpty(): boolean {
    return this.#from.length === 0
  }

  /** Costs O(log intervals). False for a text that is no address. */
  has(address: string): boolean {
    const number = addressNumber(address)
    if (number === undefined) return false
    let low = 0
    let high = this.#from.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#from[middle]! <= number) low = middle + 1
      else high = middle
    }
    return low > 0 && number <= this.#to[low - 1]!
  }
}

/** Every address but those of the interval. */
export function complement({ from, to }: Interval): readonly Interval[] {
  return [
    { from: 0n, to: from - 1n },
    { from: to + 1n, to: LAST },
  ].filter(interval => interval.from <= interval.to)
}

/** The interval of an address, a network (CIDR), or two addresses as `from-to`; undefined for any other text. */
export function readInterval(text: string): Interval | undefined {
  const dash = text.indexOf('-')
  if (dash >= 0) {
    const first = text.slice(0, dash).trim()
    const last = text.slice(dash + 1).trim()
    const from = addressNumber(first)
    const to = addressNumber(last)
    if (from === undefined || to === undefined || from > to) return undefined
    // A range that begins in one family and ends in the other is a mistake.
    return from < V4_SIZE === to < V4_SIZE ? { from, to } : undefined
  }
  if (isAddress(text)) {
    const number = addressNumber(text)
    return number === undefined ? undefined : { from: number, to: number }
  }
  const [address, bits] = readNetwork(text).split('/') as [string, string | undefined]
  if (bits === undefined) return undefined
  const from = addressNumber(address)!
  const length = address.includes(':') ? 128n : 32n
  return { from, to: from + (1n << (length - BigInt(bits))) - 1n }
}

/** undefined for a text that is no address, or that names a zone. */
export function addressNumber(text: string): bigint | undefined {
  const address = unmappedAddress(text.toLowerCase())
  if (!isAddress(address) || address.includes('%')) return undefined
  if (!address.includes(':')) return address.split('.').reduce((sum, byte) => (sum << 8n) + BigInt(byte), 0n)
  const [start = '', end = ''] = withoutDots(address).split('::')
  const [first, last] = [start, end].map(part => (part === '' ? [] : part.split(':'))) as [string[], string[]]
  const zeros = new Array<string>(8 - first.length - last.length).fill('0')
  return [...first, ...zeros, ...last].reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n) + V4_SIZE
}

/** The two last groups in hexadecimal, where the text writes them as an IPv4 address (RFC 4291 2.2). */
function withoutDots(address: string): string {
  const at = address.lastIndexOf(':') + 1
  if (!address.includes('.')) return address
  const [a, b, c, d] = address.slice(at).split('.').map(Number) as [number, number, number, number]
  return `${address.slice(0, at)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}
