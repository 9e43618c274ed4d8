/** Access tokens (RFC 6750 2.1): `Bearer` and a token, in the field of the API. */
import type { Exchange } from '../exchange/exchange.ts'
import { arena } from '../http1/llhttp.ts'
import { trimmedEnd } from '../http1/strictness.ts'
import type { Denial, Grant } from '../identity/grants.ts'
import type { Identity } from '../identity/identity.ts'
import type { TokenEntry } from '../identity/token-verdict.ts'
import { type Authenticator, credentialsAt, denial, type Found, refused } from './authenticator.ts'
import type { TokenGrants } from './token-grants.ts'

/** Whether the client has shown the certificate of this SHA-256 thumbprint, in base64url (RFC 8705 3). */
type IsConfirmed = (exchange: Exchange, thumbprint: string) => boolean

export class BearerAuthenticator implements Authenticator {
  readonly scheme = 'oauth2'
  readonly #identity: Identity
  readonly #grants: TokenGrants
  readonly #isConfirmed: IsConfirmed

  constructor(identity: Identity, grants: TokenGrants, isConfirmed: IsConfirmed) {
    this.#identity = identity
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
    const entry = this.#identity.tokens.check(at, end - at)
    return entry instanceof Promise ? this.#foundLater(exchange, entry) : this.#found(exchange, entry)
  }

  async #foundLater(exchange: Exchange, entry: Promise<TokenEntry<Grant | Denial>>): Promise<Found> {
    return this.#found(exchange, await entry)
  }

  #found(exchange: Exchange, entry: TokenEntry<Grant | Denial>): Found {
    const { verdict } = entry
    if (verdict.kind === 'refused') return refused(this.#identity, exchange, verdict)
    // A key for an API is no access token, nor the other way round.
    if (verdict.apiKey !== null) return denial(900901)
    // RFC 8705 3: such a token is good in the hands of one client only, so this is asked of every request.
    if (verdict.confirmation !== '' && !this.#isConfirmed(exchange, verdict.confirmation)) return denial(900901)
    return this.#grants.of(entry, verdict)
  }
}
