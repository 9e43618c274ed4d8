/** Access tokens (RFC 6750 2.1): `Bearer` and a token, in the field of the API. */
import type { Exchange } from '../exchange/exchange.ts'
import { arena } from '../http1/llhttp.ts'
import { trimmedEnd } from '../http1/strictness.ts'
import type { Denial } from '../identity/grants.ts'
import type { AcceptedToken } from '../identity/token-verdict.ts'
import { type Authenticator, credentialsAt, denial, type Found } from './authenticator.ts'
import type { TokenGrants } from './token-grants.ts'

/** Whether the client has shown the certificate of this SHA-256 thumbprint, in base64url (RFC 8705 3). */
type IsConfirmed = (exchange: Exchange, thumbprint: string) => boolean

export class BearerAuthenticator implements Authenticator {
  readonly scheme = 'oauth2'
  readonly #grants: TokenGrants
  readonly #isConfirmed: IsConfirmed

  constructor(grants: TokenGrants, isConfirmed: IsConfirmed) {
    this.#grants = grants
    this.#isConfirmed = isConfirmed
  }

  authenticate(exchange: Exchange, field: number): Found | Promise<Found> {
    if (field < 0) return undefined
    const { bytes } = arena
    const head = exchange.head!
    const end = trimmedEnd(bytes, head, field)
    const at = credentialsAt(bytes, head.valueAt(field), end, 'bearer')
    if (at < 0) return undefined
    if (at === end) return denial(900901)
    return this.#grants.check(exchange, at, end - at, this)
  }

  denialOf(exchange: Exchange, { apiKey, confirmation }: AcceptedToken): Denial | undefined {
    // A key for an API is no access token, nor the other way round.
    if (apiKey !== null) return denial(900901)
    // RFC 8705 3: such a token is good in the hands of one client only.
    return confirmation === '' || this.#isConfirmed(exchange, confirmation) ? undefined : denial(900901)
  }
}
