/** How a client may identify itself: each way looks for its own credentials, and the first that finds some decides. */
import type { FaultCode } from '../errors/catalogue.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Denial, Grant } from '../identity/grants.ts'
import type { Identity } from '../identity/identity.ts'
import type { AccessScheme } from '../identity/identity-plan.ts'
import type { RefusedToken } from '../identity/token-verdict.ts'

/** What credentials come to; undefined: there are none of that kind. */
export type Found = Grant | Denial | undefined

export interface Authenticator {
  readonly scheme: AccessScheme
  /** Takes credentials of its own kind out of what goes on, whoever decides; called right before anybody is asked. */
  readonly take?: (exchange: Exchange) => void
  /** `field`: the one that carries tokens and passwords, -1 where it is not there. The head stands as it was read. */
  authenticate(exchange: Exchange, field: number): Found | Promise<Found>
}

/** One that never waits: what a certificate comes to was known with the handshake. */
export interface CertificateAuthenticator extends Authenticator {
  authenticate(exchange: Exchange): Found
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

/** Of a token that is not good. */
export function refused(identity: Identity, exchange: Exchange, { code, description }: RefusedToken): Denial {
  told(identity, exchange, code, description)
  return denial(code)
}

/** That nobody could find out is an operator's trouble; that a token is bad is a client's. */
export function told({ report }: Identity, exchange: Exchange, code: 900900 | 900901, cause: string): void {
  report(code === 900900 ? 'warn' : 'debug', code === 900900 ? 'credentials not checked' : 'credentials refused', {
    CAUSE_OF_ERROR: cause,
    ERROR_CODE: code,
    HTTP_URL: exchange.requestTarget,
    HTTP_METHOD: exchange.method,
    CLIENT_ADDRESS: exchange.clientAddress,
    CORRELATION_ID: exchange.correlationId,
  })
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
