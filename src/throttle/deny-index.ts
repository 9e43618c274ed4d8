/**
 * Deny policies of one version: exact values by hash, addresses by binary search. An inverted policy denies every other
 * address of both families.
 */
import { AddressIntervals, complement, type Interval, readInterval } from './address-intervals.ts'
import type { DenyPolicy } from './policy.ts'

/** Client addresses whose result is remembered; a full memory is emptied. */
const REMEMBERED_MAX = 4096

type Exact = Exclude<DenyPolicy['type'], 'IP' | 'IPRANGE'>

export class DenyIndex {
  readonly #exact: Readonly<Record<Exact, ReadonlySet<string>>>
  readonly #addresses: AddressIntervals
  readonly #remembered = new Map<string, boolean>()

  /** A policy that is not enabled, or whose value names no address where it must, is left out. */
  constructor(policies: readonly DenyPolicy[]) {
    const enabled = policies.filter(policy => policy.enabled)
    const valuesOf = (type: Exact): ReadonlySet<string> =>
      new Set(enabled.filter(policy => policy.type === type).map(({ value }) => value))
    this.#exact = {
      API: valuesOf('API'),
      APPLICATION: valuesOf('APPLICATION'),
      USER: valuesOf('USER'),
      SUBSCRIPTION: valuesOf('SUBSCRIPTION'),
    }
    this.#addresses = new AddressIntervals(enabled.flatMap(intervalsOf))
  }

  /** True if no address is denied: the filter before authentication then has nothing to ask of the address. */
  get isOpenToAllAddresses(): boolean {
    return this.#addresses.isEmpty
  }

  /** True if any policy of this type is enabled: without one the caller need not compose a value. */
  has(type: Exact): boolean {
    return this.#exact[type].size > 0
  }

  /** `value`: as in `DenyPolicy.value`. */
  denies(type: Exact, value: string): boolean {
    return this.#exact[type].has(value)
  }

  /** `address`: of the client, as the exchange has it. */
  deniesAddress(address: string): boolean {
    if (this.#addresses.isEmpty) return false
    const known = this.#remembered.get(address)
    if (known !== undefined) return known
    const denied = this.#addresses.has(address)
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear()
    this.#remembered.set(address, denied)
    return denied
  }
}

function intervalsOf({ type, value, inverted }: DenyPolicy): readonly Interval[] {
  if (type !== 'IP' && type !== 'IPRANGE') return []
  const interval = readInterval(value)
  if (interval === undefined) return []
  return inverted ? complement(interval) : [interval]
}
