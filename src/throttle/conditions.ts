/**
 * Conditions of advanced policies, compiled once per version of the policies. The first group whose conditions all hold
 * decides which counter a request is charged to.
 */
import { fieldNamed } from '../http1/field-kinds.ts'
import { arena } from '../http1/llhttp.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { compilePattern, type Pattern } from '../runtime/pattern.ts'
import { AddressIntervals, readInterval } from './address-intervals.ts'
import type { Condition, ConditionGroup } from './policy.ts'

/** Longer values of clients match no pattern. */
const VALUE_CHARS_MAX = 8192

/** A request, and the address that it counts for. */
type Holds = (exchange: Exchange, address: string) => boolean

/** The group of no condition: the default limit applies. */
export const NO_GROUP = -1

export class ConditionGroups {
  readonly #groups: readonly (readonly Holds[])[]

  /** Throws where a pattern is no regular expression, or an address is none. */
  constructor(groups: readonly ConditionGroup[]) {
    this.#groups = groups.map(({ conditions }) => conditions.map(compiled))
  }

  /** Index of the first group whose conditions all hold; NO_GROUP without one. */
  find(exchange: Exchange, address: string): number {
    const groups = this.#groups
    for (let group = 0; group < groups.length; group++) {
      if (holdAll(groups[group]!, exchange, address)) return group
    }
    return NO_GROUP
  }
}

function holdAll(conditions: readonly Holds[], exchange: Exchange, address: string): boolean {
  for (const holds of conditions) if (!holds(exchange, address)) return false
  return true
}

function compiled(condition: Condition): Holds {
  const holds = plainly(condition)
  return condition.inverted ? (exchange, address) => !holds(exchange, address) : holds
}

function plainly(condition: Condition): Holds {
  switch (condition.type) {
    case 'address':
      return within(condition.address)
    case 'range':
      return within(`${condition.from}-${condition.to}`)
    case 'header': {
      const name = condition.name.toLowerCase()
      return matching(condition.pattern, exchange => fieldOf(exchange, name))
    }
    case 'query':
      return matching(condition.pattern, exchange => parameterOf(exchange, condition.name))
    case 'claim':
      return matching(condition.pattern, ({ caller }) => claimText(caller?.claims[condition.name]))
  }
}

/** `text`: an address, a network, or `from-to`. An address of the other family is in no range. */
function within(text: string): Holds {
  const interval = readInterval(text)
  if (interval === undefined) throw new Error(`${text} names no addresses`)
  const addresses = new AddressIntervals([interval])
  return (_exchange, address) => addresses.has(address)
}

/** A missing value matches no pattern, not even an empty one. */
function matching(text: string, read: (exchange: Exchange) => string | undefined): Holds {
  const pattern: Pattern = compilePattern(text)
  return exchange => {
    const value = read(exchange)
    return value !== undefined && value.length <= VALUE_CHARS_MAX && pattern.matcher(value).matches()
  }
}

/** The first field of the name; `name` in lower case. */
function fieldOf({ head }: Exchange, name: string): string | undefined {
  if (head === null) return undefined
  const field = fieldNamed(arena.bytes, head, name)
  return field < 0 ? undefined : head.value(arena.bytes, field)
}

/** The first parameter of the name, decoded (WHATWG URL, application/x-www-form-urlencoded). */
function parameterOf({ canonicalTarget }: Exchange, name: string): string | undefined {
  const query = canonicalTarget.indexOf('?')
  if (query < 0) return undefined
  return new URLSearchParams(canonicalTarget.slice(query + 1)).get(name) ?? undefined
}

function claimText(claim: unknown): string | undefined {
  if (typeof claim === 'string') return claim
  return typeof claim === 'number' || typeof claim === 'boolean' ? String(claim) : undefined
}
