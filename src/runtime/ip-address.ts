/** IP addresses as text, and lists of networks. */
import { BlockList, isIP, SocketAddress } from 'node:net'

/** A list of networks, each a CIDR or a single address. */
export class CidrList {
  readonly #list = new BlockList()
  readonly isEmpty: boolean

  constructor(cidrs: readonly string[]) {
    this.isEmpty = cidrs.length === 0
    for (const cidr of cidrs) {
      const [address = '', bits] = cidr.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(bits), family)
    }
  }

  includes(address: string): boolean {
    if (this.isEmpty) return false
    const unmapped = unmappedAddress(address)
    return this.#list.check(unmapped, isIP(unmapped) === 6 ? 'ipv6' : 'ipv4')
  }
}

export function isAddress(text: string): boolean {
  return isIP(text) !== 0
}

/** The network of one client: an IPv4 address, or the first 64 bits of an IPv6 address, which one client may vary. */
export function networkOf(address: string): string {
  const unmapped = unmappedAddress(address)
  if (!unmapped.includes(':')) return unmapped
  const [start = '', end = ''] = unmapped.split('::')
  const [first, last] = [start, end].map(part => (part === '' ? [] : part.split(':'))) as [string[], string[]]
  const zeros = new Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0')
  return [...first, ...zeros, ...last].slice(0, 4).join(':')
}

/** The IPv4 address of an IPv4-mapped one: a dual-stack listener reports 192.0.2.1 as `::ffff:192.0.2.1`. */
export function unmappedAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}

/** One text per address, because limits, deny policies and logs compare texts. An address of a zone stays as it is. */
export function normalAddress(address: string): string {
  if (!address.includes(':') || address.includes('%')) return address
  return unmappedAddress(new SocketAddress({ address, family: 'ipv6' }).address)
}
