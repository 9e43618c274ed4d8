/** How a client may identify itself: each way looks for its own credentials, and the first that finds some decides. */
import type { FaultCode } from '../errors/catalogue.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Denial, Grant } from '../identity/grants.ts'
import type { AccessScheme } from '../identity/identity-plan.ts'

/** What credentials come to; undefined: there are none of that kind. */
export type Found = Grant | Denial | undefined

export interface Authenticator {
  readonly scheme: AccessScheme
  /** `field`: the one that carries tokens and passwords, -1 where it is not there. The head stands as it was read. */
  authenticate(exchange: Exchange, field: number): Found | Promise<Found>
}

const denials = new Map<FaultCode, Denial>()

/** That of a code, made once: floods of them come. */
export function denial(code: FaultCode): Denial {
  let denied = denials.get(code)
  if (denied === undefined) {
    denied = Object.freeze({ kind: 'denial', code })
    denials.set(code, denied)
  }
  return denied
}

const SPACE = 32

/**
 * Where the credentials of a scheme begin that the bytes from `at` to `end` name (RFC 9110 11.4), -1 where they name
 * another one. `scheme`: in lower case. `end` itself: nothing follows.
 */
export function credentialsAt(bytes: Uint8Array, at: number, end: number, scheme: string): number {
  if (end - at < scheme.length) return -1
  for (let i = 0; i < scheme.length; i++) if ((bytes[at + i]! | 32) !== scheme.charCodeAt(i)) return -1
  let from = at + scheme.length
  if (from === end) return end
  if (bytes[from] !== SPACE) return -1
  while (from < end && bytes[from] === SPACE) from++
  return from
}
