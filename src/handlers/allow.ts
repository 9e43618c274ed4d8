/** The Allow field of a place (RFC 9110 10.2.1). */
import type { ResourcePath } from '../exchange/resource.ts'

/** `answersOptions`: the gateway answers OPTIONS there itself. */
export function allowOf(place: ResourcePath, answersOptions: boolean): string {
  const isOffered = !answersOptions || place.resource('OPTIONS') !== undefined
  return isOffered ? place.allow : `${place.allow}, OPTIONS`
}
