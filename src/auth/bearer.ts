/** Authenticates access tokens: `Bearer` and a token (RFC 6750 2.1), in the header field of the API. */
import { trimmedEnd } from '../http1/head-rules.ts'
import { arena } from '../http1/llhttp.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type AuthenticationResult, type Authenticator, credentialsAt, denial } from './authenticator.ts'
import type { Denial } from './grants.ts'
import { matchesClientCertificate } from './mutual-tls.ts'
import type { TokenGrants } from './token-grants.ts'
import type { AcceptedToken } from './token-result.ts'

export class BearerAuthenticator implements Authenticator {
  readonly scheme = 'oauth2'
  readonly admitsBearers = true
  readonly #grants: TokenGrants

  constructor(grants: TokenGrants) {
    this.#grants = grants
  }

  authenticate(exchange: Exchange, field: number): AuthenticationResult | Promise<AuthenticationResult> {
    if (field < 0) return undefined
    const { bytes } = arena
    const head = exchange.head!
    const end = trimmedEnd(bytes, head, field)
    const at = credentialsAt(bytes, head.valueAt(field), end, 'bearer')
    if (at < 0) return undefined
    if (at === end) return denial(900901)
    return this.#grants.authenticate(exchange, at, end - at, this)
  }

  denialOf(exchange: Exchange, { apiKey, confirmation }: AcceptedToken): Denial | undefined {
    // An API key is no access token.
    if (apiKey !== null) return denial(900901)
    // RFC 8705 3: a bound token is valid only with the client certificate that it names.
    return confirmation === '' || matchesClientCertificate(exchange, confirmation) ? undefined : denial(900901)
  }
}
