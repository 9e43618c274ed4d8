/**
 * Keeps connections that tenants ask for out of the operator's own networks. Names are resolved here, every address is
 * checked, and the socket connects to the checked addresses only, so that a second DNS answer cannot change the target.
 */
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { BlockList, connect, isIP, type Socket } from 'node:net'
import { SingleFlight } from '../runtime/single-flight.ts'
import { withTimeout } from '../runtime/with-timeout.ts'

/** Finds the addresses of a name; rejects with an error of the resolver. */
export type ResolveName = (name: string) => Promise<readonly LookupAddress[]>

/** IPv4 networks of special purpose (RFC 6890 and its successors), and one platform address of a large cloud. */
const REFUSED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const
/** Global unicast, and the forms that carry an IPv4 address: no other IPv6 address is on the internet. */
const GLOBAL_V6 = ['2000::/3', '::ffff:0:0/96', '64:ff9b::/96'] as const
/** Within global unicast: Teredo and other protocols, documentation, and documentation of RFC 9637. */
const REFUSED_V6 = ['2001::/23', '2001:db8::/32', '3fff::/20'] as const
/** Addresses of one name that are tried. */
const ADDRESSES_MAX = 16

const GLOBAL = networks(GLOBAL_V6)
const REFUSED = networks([...REFUSED_V4, ...REFUSED_V6])

/** The message is for the tenant: it names the host, and not what the host resolves to. */
export class AddressRefused extends Error {
  constructor(host: string) {
    super(`${host} is or resolves to an address that senders may not reach (loopback, link-local, private, reserved)`)
  }
}

export class AddressGuard {
  readonly #resolveName: ResolveName
  readonly #networks: BlockList
  /** Lower case, without the dot at the end. */
  readonly #names: ReadonlySet<string>
  /** By name: a name server that does not answer holds one thread of the system's resolver per name, not all. */
  readonly #lookups = new SingleFlight<readonly LookupAddress[]>()

  /** `allowed`: networks in CIDR notation, addresses, and names whose every address is allowed. */
  constructor(allowed: readonly string[], resolveName: ResolveName = name => lookup(name, { all: true })) {
    const isNetwork = (text: string): boolean => isIP(text.split('/')[0]!) !== 0
    this.#resolveName = resolveName
    this.#networks = networks(allowed.filter(isNetwork))
    this.#names = new Set(allowed.filter(text => !isNetwork(text)).map(canonicalName))
  }

  /**
   * The addresses of a host, all of them checked. Rejects with AddressRefused where one may not be reached: a name with
   * public and private addresses is either a mistake or an attack.
   */
  async resolve(host: string): Promise<readonly LookupAddress[]> {
    const name = canonicalName(host)
    const family = isIP(name)
    const found =
      family === 0 ? await this.#lookups.run(name, () => this.#resolveName(name)) : [{ address: name, family }]
    const mayReach = this.#names.has(name) || found.every(one => this.#mayReach(one))
    if (found.length === 0 || !mayReach) throw new AddressRefused(host)
    return found.slice(0, ADDRESSES_MAX)
  }

  /** Connects to a checked address. Rejects with AddressRefused, with the system's error, or after `timeoutMs`. */
  async connect(host: string, port: number, timeoutMs: number): Promise<Socket> {
    const endsMs = performance.now() + timeoutMs
    const late = (): Error => new Error(`no connection to ${host}:${port} within ${timeoutMs} ms`)
    const addresses = await withTimeout(this.resolve(host), timeoutMs, late)
    const socket = connect({
      // Node connects to a literal address, which `resolve` has checked, without a lookup.
      host: canonicalName(host),
      port,
      noDelay: true,
      autoSelectFamily: true,
      lookup: (_, { all }, done) =>
        all === true ? done(null, [...addresses]) : done(null, addresses[0]!.address, addresses[0]!.family),
    })
    try {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      socket.once('connect', resolve).once('error', reject)
      await withTimeout(promise, Math.max(1, endsMs - performance.now()), late)
      // The owner that comes next hears `close` too; an error without a listener would end the thread.
      socket.on('error', () => {}).off('error', reject)
      return socket
    } catch (error) {
      socket.on('error', () => {}).destroy()
      throw error
    }
  }

  #mayReach({ address, family }: LookupAddress): boolean {
    const [bare = ''] = address.split('%')
    const type = family === 6 ? 'ipv6' : 'ipv4'
    if (this.#networks.check(bare, type)) return true
    return (family !== 6 || GLOBAL.check(bare, type)) && !REFUSED.check(bare, type)
  }
}

/** Networks; those of IPv4 also as NAT64 (RFC 6052) and 6to4 (RFC 3056). BlockList itself knows the mapped form. */
function networks(all: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of all) {
    const [address = '', prefix] = network.split('/')
    const isV6 = isIP(address) === 6
    const bits = Number(prefix ?? (isV6 ? 128 : 32))
    list.addSubnet(address, bits, isV6 ? 'ipv6' : 'ipv4')
    if (isV6) continue
    const [a, b, c, d] = address.split('.').map(part => Number(part).toString(16).padStart(2, '0'))
    list.addSubnet(`64:ff9b::${a}${b}:${c}${d}`, 96 + bits, 'ipv6')
    list.addSubnet(`2002:${a}${b}:${c}${d}::`, 16 + bits, 'ipv6')
  }
  return list
}

/** Without the brackets of a URL and the dot at the end. */
function canonicalName(host: string): string {
  return host
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
}
