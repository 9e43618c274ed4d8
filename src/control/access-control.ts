/**
 * Access control of the management listener, before a request is read. It checks the address
 * (`[admin_console.control_access]`, `[web_app.control_access]`, `[[servlet_access_control_filter]]`) and the Host
 * field. So a page in a browser cannot reach the listener under a name of its own (DNS rebinding).
 */
import type { Socket } from 'node:net'
import type { AccessFilterPlan, AccessGatePlan, ManagementPlan } from '../plan/management-plan.ts'
import { compileMatcher } from '../mediation/pattern.ts'
import { CidrList, unmappedAddress } from '../runtime/ip-address.ts'
import { hostName } from '../http1/host-name.ts'

const THIS_MACHINE = new CidrList(['127.0.0.0/8', '::1/128'])
const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]']

/** `console`: what changes the gateway. `web`: what applications and their users call. */
export type AccessArea = 'console' | 'web'

/** Addresses of both ends of a connection, as the system writes them. */
type Ends = Pick<Socket, 'remoteAddress' | 'localAddress'>

interface AddressFilter {
  readonly name: string
  readonly coversPath: (path: string) => boolean
  readonly allows: (address: string) => boolean
}

export class AccessControl {
  readonly #networks: Readonly<Record<AccessArea, CidrList | null>>
  readonly #filters: readonly AddressFilter[]
  readonly #hostNames: ReadonlySet<string>

  constructor({ console, web, filters, hostNames }: ManagementPlan) {
    this.#networks = { console: networksOf(console), web: networksOf(web) }
    this.#filters = filters.map(filterOf)
    this.#hostNames = new Set([...LOCAL_NAMES, ...hostNames])
  }

  /** True if a Host field names this machine. `host`: as received; undefined for none. */
  isOwnName(host: string | undefined, { localAddress }: Ends): boolean {
    if (host === undefined) return false
    const name = hostName(host)
    if (this.#hostNames.has(name)) return true
    const address = unmappedAddress(localAddress ?? '')
    // DNS rebinding points a name at this machine; an address in Host cannot be rebound.
    return name === (address.includes(':') ? `[${address}]` : address)
  }

  /** Name of the rule that refuses the request; '' where it is allowed. */
  refusal(area: AccessArea, path: string, ends: Ends): string {
    const address = unmappedAddress(ends.remoteAddress ?? '')
    const networks = this.#networks[area]
    if (networks !== null && !isThisMachine(ends) && !networks.includes(address)) {
      return area === 'console' ? 'admin_console.control_access' : 'web_app.control_access'
    }
    const filter = this.#filters.find(({ coversPath, allows }) => coversPath(path) && !allows(address))
    return filter === undefined ? '' : `servlet_access_control_filter ${filter.name}`
  }
}

/** True if the peer is this machine: over loopback, or both ends have one address. */
function isThisMachine({ remoteAddress = '', localAddress }: Ends): boolean {
  return THIS_MACHINE.includes(remoteAddress) || (remoteAddress !== '' && remoteAddress === localAddress)
}

function networksOf({ networks }: AccessGatePlan): CidrList | null {
  return networks === null ? null : new CidrList(networks)
}

function filterOf({ name, urlPattern, addressPattern }: AccessFilterPlan): AddressFilter {
  const match = compileMatcher(addressPattern, () => {})
  return { name, coversPath: pathMatcher(urlPattern), allows: address => match(address) !== null }
}

/** URL patterns of Jakarta Servlet 6.0, 12.2. */
function pathMatcher(pattern: string): (path: string) => boolean {
  if (pattern === '' || pattern === '/*' || pattern === '/') return () => true
  if (pattern.endsWith('/*')) {
    const folder = pattern.slice(0, -2)
    return path => path === folder || path.startsWith(`${folder}/`)
  }
  if (pattern.startsWith('*.')) return path => path.endsWith(pattern.slice(1))
  return path => path === pattern
}
