/**
 * Addresses of backend names, all of them, in the order of the resolver. Owns a bounded cache; a name that resolves is
 * not asked again for `dns.cache_seconds`, a name that does not is asked again after a second. The resolver occupies a
 * thread of a small pool for each question, so one name is asked once at a time.
 */
import { lookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { LRUCache } from 'lru-cache'

const NAMES_MAX = 1000
const FAILURE_MS = 1000

/** Gets an errno name or addresses. */
type Found = (error: string | null, addresses: readonly string[]) => void
type Resolver = (
  host: string,
  options: { readonly all: true; readonly order: 'verbatim' },
  callback: (error: NodeJS.ErrnoException | null, found: readonly { readonly address: string }[]) => void,
) => void

export class AddressBook {
  #cache: LRUCache<string, readonly string[]> | null
  #cacheSeconds: number
  /** Error of each name that did not resolve lately. */
  readonly #failures: LRUCache<string, string>
  /** Who waits for each name that is being resolved. */
  readonly #waiting = new Map<string, Found[]>()
  readonly #resolver: Resolver

  constructor(cacheSeconds: number, resolver: Resolver = lookup, failureMs = FAILURE_MS) {
    this.#cache = cacheFor(cacheSeconds)
    this.#cacheSeconds = cacheSeconds
    this.#failures = new LRUCache({ max: NAMES_MAX, ttl: failureMs })
    this.#resolver = resolver
  }

  /** Names are asked for anew, and kept for so long. */
  keepFor(cacheSeconds: number): void {
    if (cacheSeconds === this.#cacheSeconds) return
    this.#cache = cacheFor(cacheSeconds)
    this.#cacheSeconds = cacheSeconds
  }

  /** Numeric addresses of a host; what is known, a failure too, at once. */
  find(host: string, callback: Found): void {
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
    const failure = this.#failures.get(host)
    if (failure !== undefined) {
      callback(failure, [])
      return
    }
    const waiting = this.#waiting.get(host)
    if (waiting === undefined) this.#resolve(host, callback)
    else waiting.push(callback)
  }

  #resolve(host: string, first: Found): void {
    const waiting = [first]
    this.#waiting.set(host, waiting)
    this.#resolver(host, { all: true, order: 'verbatim' }, (error, found) => {
      this.#waiting.delete(host)
      const code = error === null ? null : (error.code ?? 'ENOTFOUND')
      const addresses = code === null ? found.map(({ address }) => address) : []
      if (code === null) this.#cache?.set(host, addresses)
      else this.#failures.set(host, code)
      // Each on its own: one that throws must not keep the answer from the others.
      for (const callback of waiting) process.nextTick(callback, code, addresses)
    })
  }
}

/** null: nothing is kept. */
function cacheFor(seconds: number): LRUCache<string, readonly string[]> | null {
  return seconds > 0 ? new LRUCache({ max: NAMES_MAX, ttl: seconds * 1000 }) : null
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

export function isAddress(text: string): boolean {
  return isIP(text) !== 0
}

/** `::ffff:192.0.2.1`, as a dual-stack listener reports it, is 192.0.2.1. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}
