/**
 * Who may reach the management listener, before anything is read of what they want: by address
 * (`[admin_console.control_access]`, `[web_app.control_access]`, `[[servlet_access_control_filter]]`), and by the name
 * they ask for, so that a page in a browser cannot reach it under a name of its own (DNS rebinding).
 */
import type { Socket } from 'node:net'
import type { AccessFilterPlan, AccessGatePlan, ManagementPlan } from '../management-plan.ts'
import { matcherOf } from '../mediation/pattern.ts'
import { Networks, plainAddress } from '../socket/address-book.ts'
import { hostName } from '../structure/host-name.ts'

const THIS_MACHINE = new Networks(['127.0.0.0/8', '::1/128'])
const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]']

/** The part of it that an address asks for. */
export type GateName = 'console' | 'web'

/** Both ends of a connection, as the system writes addresses. */
type Ends = Pick<Socket, 'remoteAddress' | 'localAddress'>

interface Filter {
  readonly name: string
  readonly isFor: (path: string) => boolean
  readonly letsIn: (address: string) => boolean
}

export class AccessGate {
  readonly #networks: Readonly<Record<GateName, Networks | null>>
  readonly #filters: readonly Filter[]
  readonly #hostNames: ReadonlySet<string>

  constructor({ console, web, filters, hostNames }: ManagementPlan) {
    this.#networks = { console: networksOf(console), web: networksOf(web) }
    this.#filters = filters.map(filterOf)
    this.#hostNames = new Set([...LOCAL_NAMES, ...hostNames])
  }

  /** Whether a Host field names this machine. `host`: as it came; undefined without one. */
  isOwnName(host: string | undefined, { localAddress }: Ends): boolean {
    if (host === undefined) return false
    const name = hostName(host)
    if (this.#hostNames.has(name)) return true
    const address = plainAddress(localAddress ?? '')
    // An address is no name that somebody else could point here.
    return name === (address.includes(':') ? `[${address}]` : address)
  }

  /** '' where it is let in, or what has refused it. */
  refusal(gate: GateName, path: string, ends: Ends): string {
    const address = plainAddress(ends.remoteAddress ?? '')
    const networks = this.#networks[gate]
    if (networks !== null && !isThisMachine(ends) && !networks.includes(address)) {
      return gate === 'console' ? 'admin_console.control_access' : 'web_app.control_access'
    }
    const filter = this.#filters.find(({ isFor, letsIn }) => isFor(path) && !letsIn(address))
    return filter === undefined ? '' : `servlet_access_control_filter ${filter.name}`
  }
}

/** Over loopback, or from the very address that it was sent to. */
function isThisMachine({ remoteAddress = '', localAddress }: Ends): boolean {
  return THIS_MACHINE.includes(remoteAddress) || (remoteAddress !== '' && remoteAddress === localAddress)
}

function networksOf({ networks }: AccessGatePlan): Networks | null {
  return networks === null ? null : new Networks(networks)
}

function filterOf({ name, urlPattern, addressPattern }: AccessFilterPlan): Filter {
  const match = matcherOf(addressPattern, () => {})
  return { name, isFor: pathMatcher(urlPattern), letsIn: address => match(address) !== null }
}

/** Jakarta Servlet 6.0, 12.2. */
function pathMatcher(pattern: string): (path: string) => boolean {
  if (pattern === '' || pattern === '/*' || pattern === '/') return () => true
  if (pattern.endsWith('/*')) {
    const folder = pattern.slice(0, -2)
    return path => path === folder || path.startsWith(`${folder}/`)
  }
  if (pattern.startsWith('*.')) return path => path.endsWith(pattern.slice(1))
  return path => path === pattern
}
