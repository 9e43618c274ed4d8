/** The choice of an endpoint in a group that holds groups, for example failover within load balancing. */
import type { EndpointPart } from '../../apis/api-definition.ts'

export interface Nesting {
  /** Groups within the group, which follow each other in its endpoints. */
  readonly parts: readonly EndpointPart[]
  /** Parts are tried in order; else in turn. */
  readonly isInOrder: boolean
  /** A request that failed in one part goes to the next one. */
  readonly failsOver: boolean
}

interface PlacedPart extends EndpointPart {
  readonly start: number
  /** Place of the next endpoint in turn. */
  turn: number
}

/** Tells whether the endpoint of that index may get the request. */
type Eligible = (index: number, tried: number, avoidsDoubtful: boolean) => boolean

/** Returns a function to the index of an endpoint that is not in `tried` (a bit each), or -1. */
export function nestedChoice({ parts: given, isInOrder, failsOver }: Nesting, isEligible: Eligible) {
  let end = 0
  const parts: readonly PlacedPart[] = given.map(part => {
    end += part.size
    return { ...part, start: end - part.size, turn: 0 }
  })
  let turn = 0

  const within = (part: PlacedPart, tried: number, avoidsDoubtful: boolean): number => {
    const from = part.isInOrder ? 0 : part.turn
    for (let step = 0; step < part.size; step++) {
      const place = (from + step) % part.size
      if (!isEligible(part.start + place, tried, avoidsDoubtful)) continue
      part.turn = place + 1
      return part.start + place
    }
    return -1
  }

  return (tried: number, avoidsDoubtful: boolean): number => {
    if (tried !== 0) {
      // The group that has failed goes on before another one gets the request.
      const index = parts.reduce(
        (found, part) =>
          found < 0 && part.failsOver && isTried(part, tried) ? within(part, tried, avoidsDoubtful) : found,
        -1,
      )
      if (index >= 0 || !failsOver) return index
    }
    const from = isInOrder ? 0 : turn
    for (let step = 0; step < parts.length; step++) {
      const place = (from + step) % parts.length
      const part = parts[place]!
      const index = isTried(part, tried) ? -1 : within(part, tried, avoidsDoubtful)
      if (index < 0) continue
      turn = place + 1
      return index
    }
    return -1
  }
}

function isTried({ start, size }: PlacedPart, tried: number): boolean {
  for (let index = start; index < start + size; index++) if ((tried & (1 << index)) !== 0) return true
  return false
}
