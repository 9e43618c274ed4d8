/** The Allow field of a place (RFC 9110 10.2.1). */
import type { ResourcePath } from '../exchange/resource.ts'

/** `answersOptions`: the gateway answers OPTIONS there itself. */
export function allowOf({ allow }: ResourcePath, answersOptions: boolean): string {
  if (!answersOptions || allow.split(', ').includes('OPTIONS')) return allow
  return allow === '' ? 'OPTIONS' : `${allow}, OPTIONS`
}
