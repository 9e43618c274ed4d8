/** Interface of the authentication schemes, with shared parts: denials, log events, parsing of credentials. */
import type { FaultCode } from '../faults/error-codes.ts'
import { KIND } from '../http1/field-kinds.ts'
import { arena } from '../http1/llhttp.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { isAddress, normalAddress } from '../runtime/ip-address.ts'
import type { AccessScheme } from './auth-plan.ts'
import type { Denial, Grant } from './grants.ts'
import type { ReactorAuth } from './reactor-auth.ts'

/** undefined: the request has no credentials of this scheme. */
export type AuthenticationResult = Grant | Denial | undefined

/** Looks for credentials of one scheme; the first authenticator that finds some decides. */
export interface Authenticator {
  readonly scheme: AccessScheme
  /** Strips credentials of this scheme from the request, whichever scheme decides; runs before `authenticate`. */
  readonly stripCredentials?: (exchange: Exchange) => void
  /** `field`: index of the field with tokens and passwords, -1 where it is missing. The head still has its bytes. */
  authenticate(exchange: Exchange, field: number): AuthenticationResult | Promise<AuthenticationResult>
}

/** Always synchronous: certificates were verified in the handshake. */
export interface CertificateAuthenticator extends Authenticator {
  authenticate(exchange: Exchange): AuthenticationResult
}

const denials = new Map<FaultCode, Denial>()

/** One frozen denial per code, because denials come in floods. */
export function denial(code: FaultCode): Denial {
  let denied = denials.get(code)
  if (denied === undefined) {
    denied = Object.freeze({ kind: 'denial', code })
    denials.set(code, denied)
  }
  return denied
}

/** 900900, a failure of the validation, is a warning to the operator; 900901 is the client's mistake. */
export function reportRefusal({ report }: ReactorAuth, exchange: Exchange, code: 900900 | 900901, cause: string): void {
  report(code === 900900 ? 'warn' : 'debug', code === 900900 ? 'credentials not checked' : 'credentials refused', {
    CAUSE_OF_ERROR: cause,
    ERROR_CODE: code,
    HTTP_URL: exchange.requestTarget,
    HTTP_METHOD: exchange.method,
    CLIENT_ADDRESS: exchange.clientAddress,
    CORRELATION_ID: exchange.correlationId,
  })
}

/** Address of the client: the peer, or behind a trusted proxy the last address of X-Forwarded-For. */
export function clientAddressOf({ isTrusted, head, clientAddress }: Exchange): string {
  if (!isTrusted || !head!.has(KIND.X_FORWARDED_FOR)) return clientAddress
  const last = head!.list(arena.bytes, KIND.X_FORWARDED_FOR).split(',').at(-1)!.trim()
  const address =
    WITH_PORT.exec(last)
      ?.slice(1)
      .find(one => one !== undefined) ?? last
  return isAddress(address) ? normalAddress(address) : clientAddress
}

/** Some proxies append the port: `192.0.2.1:443`, `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:([0-9.]+):[0-9]{1,5}|\[([^\]]*)\](?::[0-9]{1,5})?)$/

const SPACE = 32

/**
 * Start of the credentials in a field value (RFC 9110 11.4), -1 if it is of another scheme. The value is the bytes from
 * `at` to `end`. `scheme`: in lower case. Returns `end` where nothing follows the scheme.
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
