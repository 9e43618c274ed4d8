/**
 * Authenticates API keys: signed tokens that name an application, sent in the header `apikey` or in the query, and
 * optionally restricted to client addresses and referers. Header and query parameter are stripped from the request.
 */
import { fieldNamed, KIND } from '../http1/field-kinds.ts'
import { trimmedEnd } from '../http1/head-rules.ts'
import { arena } from '../http1/llhttp.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { CidrList } from '../runtime/ip-address.ts'
import { type AuthenticationResult, type Authenticator, clientAddressOf, denial } from './authenticator.ts'
import type { Denial } from './grants.ts'
import type { TokenGrants } from './token-grants.ts'
import type { AcceptedToken, ApiKeyClaims } from './token-result.ts'

const NAME = 'apikey'
const REFERER_CHARS_MAX = 2048

/** Where a key may be used from. */
interface Restrictions {
  /** Null: any address. */
  readonly networks: CidrList | null
  /** Each pattern split at its `*`; none: any referer. */
  readonly referers: readonly (readonly string[])[]
}

export class ApiKeyAuthenticator implements Authenticator {
  readonly scheme = 'api_key'
  readonly admitsBearers = false
  readonly #grants: TokenGrants
  readonly #restrictions = new WeakMap<ApiKeyClaims, Restrictions | null>()
  /**
   * Position of the first key in the arena, and number of keys. `stripCredentials` sets them and `authenticate` reads
   * them in the same synchronous step, so that no other request can overwrite them and no object is allocated.
   */
  #at = 0
  #length = 0
  #count = 0

  constructor(grants: TokenGrants) {
    this.#grants = grants
  }

  stripCredentials(exchange: Exchange): void {
    this.#count = 0
    const head = exchange.head!
    for (let field = fieldNamed(arena.bytes, head, NAME); field >= 0; ) {
      this.#found(head.valueAt(field), trimmedEnd(arena.bytes, head, field))
      head.kinds[field] = KIND.CREDENTIAL
      field = fieldNamed(arena.bytes, head, NAME, field + 1)
    }
    const { canonicalTarget } = exchange
    const query = canonicalTarget.indexOf('?')
    if (query >= 0 && canonicalTarget.includes(`${NAME}=`, query + 1)) this.#stripParameters(exchange, query)
  }

  authenticate(exchange: Exchange): AuthenticationResult | Promise<AuthenticationResult> {
    if (this.#count === 0) return undefined
    // With two keys it is ambiguous which one counts.
    if (this.#count > 1 || this.#length === 0) return denial(900901)
    return this.#grants.authenticate(exchange, this.#at, this.#length, this)
  }

  denialOf(exchange: Exchange, { apiKey }: AcceptedToken): Denial | undefined {
    if (apiKey === null) return denial(900901)
    const isRestricted = apiKey.permittedIps.length + apiKey.permittedReferers.length > 0
    return isRestricted ? this.#restrictionDenial(exchange, apiKey) : undefined
  }

  #restrictionDenial(exchange: Exchange, claims: ApiKeyClaims): Denial | undefined {
    let restrictions = this.#restrictions.get(claims)
    if (restrictions === undefined) {
      restrictions = restrictionsOf(claims)
      this.#restrictions.set(claims, restrictions)
    }
    if (restrictions === null) return denial(900901)
    const { networks, referers } = restrictions
    if (networks !== null && !networks.includes(clientAddressOf(exchange))) return denial(900908)
    if (referers.length === 0) return undefined
    const head = exchange.head!
    const field = head.find(KIND.REFERER)
    const referer = field < 0 ? '' : head.value(arena.bytes, field)
    const isPermitted =
      referer !== '' && referer.length <= REFERER_CHARS_MAX && referers.some(pieces => matchesWildcard(pieces, referer))
    return isPermitted ? undefined : denial(900908)
  }

  #found(from: number, to: number): void {
    if (this.#count++ > 0) return
    this.#at = from
    this.#length = to - from
  }

  /** The request target, whose bytes are in the head, and the canonical target end with the same query. */
  #stripParameters(exchange: Exchange, query: number): void {
    const { canonicalTarget, requestTarget } = exchange
    const inHead = exchange.head!.targetAt + requestTarget.length - canonicalTarget.length
    const others: string[] = []
    for (let at = query + 1; at <= canonicalTarget.length; ) {
      const next = canonicalTarget.indexOf('&', at)
      const end = next < 0 ? canonicalTarget.length : next
      if (canonicalTarget.startsWith(`${NAME}=`, at)) this.#found(inHead + at + NAME.length + 1, inHead + end)
      else others.push(canonicalTarget.slice(at, end))
      at = end + 1
    }
    exchange.canonicalTarget = canonicalTarget.slice(0, query) + (others.length === 0 ? '' : `?${others.join('&')}`)
  }
}

/** Null for a malformed restriction: such a key is refused. */
function restrictionsOf({ permittedIps, permittedReferers }: ApiKeyClaims): Restrictions | null {
  try {
    const networks = permittedIps.length === 0 ? null : new CidrList(permittedIps)
    return { networks, referers: permittedReferers.map(pattern => pattern.split(/\*+/)) }
  } catch {
    return null
  }
}

/** `pieces`: a pattern split at `*`. Takes the first match of each piece, so that the time is linear. */
function matchesWildcard(pieces: readonly string[], text: string): boolean {
  const first = pieces[0]!
  const last = pieces.at(-1)!
  if (pieces.length === 1) return text === first
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  const end = text.length - last.length
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}
