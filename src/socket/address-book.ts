/**
 * Addresses of backend names, all of them, in the order of the resolver. Owns a bounded cache; a name that resolves is
 * not asked again for `dns.cache_seconds`, a name that does not is asked again at the next request.
 */
import { lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { LRUCache } from 'lru-cache'

const NAMES_MAX = 1000

export class AddressBook {
  readonly #cache: LRUCache<string, readonly string[]> | null

  constructor(cacheSeconds: number) {
    this.#cache = cacheSeconds > 0 ? new LRUCache({ max: NAMES_MAX, ttl: cacheSeconds * 1000 }) : null
  }

  /** Numeric addresses of a host; known ones at once. The callback gets an errno name or addresses. */
  find(host: string, callback: (error: string | null, addresses: readonly string[]) => void): void {
    const literal = host.startsWith('[') ? host.slice(1, -1) : host
    if (isIP(literal) !== 0) {
      callback(null, [literal])
      return
    }
    const known = this.#cache?.get(host)
    if (known !== undefined) {
      callback(null, known)
      return
    }
    lookup(host, { all: true, order: 'verbatim' }, (error, found) => {
      if (error !== null) callback(error.code ?? 'ENOTFOUND', [])
      else {
        const addresses = found.map(({ address }) => address)
        this.#cache?.set(host, addresses)
        callback(null, addresses)
      }
    })
  }
}

/** Whether an address lies in one of the networks, which are CIDRs or single addresses. */
export class Networks {
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
    const plain = plainAddress(address)
    return this.#list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
  }
}

/** `::ffff:192.0.2.1`, as a dual-stack listener reports it, is 192.0.2.1. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}
