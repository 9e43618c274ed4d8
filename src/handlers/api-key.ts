/**
 * Keys for APIs: signed tokens that name an application, in the field `apikey` or in the query, and good from certain
 * places only where they say so. Neither field nor parameter goes any further.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { fieldNamed, KIND } from '../http1/field-kinds.ts'
import { arena } from '../http1/llhttp.ts'
import { trimmedEnd } from '../http1/strictness.ts'
import type { Denial } from '../identity/grants.ts'
import type { AcceptedToken, ApiKeyTerms } from '../identity/token-verdict.ts'
import { Networks } from '../socket/address-book.ts'
import { addressOf } from './client-address.ts'
import { type Authenticator, denial, type Found } from './authenticator.ts'
import type { TokenGrants } from './token-grants.ts'

const NAME = 'apikey'
const REFERER_CHARS_MAX = 2048

/** From where a key may be used. */
interface Places {
  /** Null: from any address. */
  readonly networks: Networks | null
  /** What stands between the stars of each pattern; none: whatever the page. */
  readonly referers: readonly (readonly string[])[]
}

/**
 * Where the one key of a request stands in the arena; its text is never made. One place for all APIs of the reactor is
 * enough, and spares an object per request: `take` sets it anew and `authenticate` is done with it in the same turn,
 * with nothing awaited between the two, so that no other request comes in between.
 */
const place = { at: 0, length: 0, count: 0 }

export class ApiKeyAuthenticator implements Authenticator {
  readonly scheme = 'api_key'
  readonly #grants: TokenGrants
  readonly #places = new WeakMap<ApiKeyTerms, Places | null>()

  constructor(grants: TokenGrants) {
    this.#grants = grants
  }

  take(exchange: Exchange): void {
    takeKeys(exchange)
  }

  authenticate(exchange: Exchange): Found | Promise<Found> {
    if (place.count === 0) return undefined
    // Of two keys nobody could say which one the backend was meant to see as used.
    if (place.count > 1 || place.length === 0) return denial(900901)
    return this.#grants.check(exchange, place.at, place.length, this)
  }

  denialOf(exchange: Exchange, { apiKey }: AcceptedToken): Denial | undefined {
    if (apiKey === null) return denial(900901)
    const isBound = apiKey.permittedIps.length + apiKey.permittedReferers.length > 0
    return isBound ? this.#denialAt(exchange, apiKey) : undefined
  }

  #denialAt(exchange: Exchange, terms: ApiKeyTerms): Denial | undefined {
    let places = this.#places.get(terms)
    if (places === undefined) {
      places = placesOf(terms)
      this.#places.set(terms, places)
    }
    if (places === null) return denial(900901)
    const { networks, referers } = places
    if (networks !== null && !networks.includes(addressOf(exchange))) return denial(900908)
    if (referers.length === 0) return undefined
    const head = exchange.head!
    const field = head.find(KIND.REFERER)
    const referer = field < 0 ? '' : head.value(arena.bytes, field)
    const isPermitted =
      referer !== '' && referer.length <= REFERER_CHARS_MAX && referers.some(pieces => fits(pieces, referer))
    return isPermitted ? undefined : denial(900908)
  }
}

/** Takes the keys out of what goes on, and notes the first. */
function takeKeys(exchange: Exchange): void {
  place.count = 0
  const head = exchange.head!
  for (let field = fieldNamed(arena.bytes, head, NAME); field >= 0; ) {
    note(head.valueAt(field), trimmedEnd(arena.bytes, head, field))
    head.kinds[field] = KIND.CREDENTIAL
    field = fieldNamed(arena.bytes, head, NAME, field + 1)
  }
  const { target } = exchange
  const query = target.indexOf('?')
  if (query >= 0 && target.includes(`${NAME}=`, query + 1)) takeFromQuery(exchange, query)
}

function note(from: number, to: number): void {
  if (place.count++ > 0) return
  place.at = from
  place.length = to - from
}

/** The query stands in the head as it does in the target, up to its last character. */
function takeFromQuery(exchange: Exchange, query: number): void {
  const { target, requestTarget } = exchange
  const inHead = exchange.head!.targetAt + requestTarget.length - target.length
  const others: string[] = []
  for (let at = query + 1; at <= target.length; ) {
    const next = target.indexOf('&', at)
    const end = next < 0 ? target.length : next
    if (target.startsWith(`${NAME}=`, at)) note(inHead + at + NAME.length + 1, inHead + end)
    else others.push(target.slice(at, end))
    at = end + 1
  }
  exchange.target = target.slice(0, query) + (others.length === 0 ? '' : `?${others.join('&')}`)
}

/** Null where the key says something that no request could be held to. */
function placesOf({ permittedIps, permittedReferers }: ApiKeyTerms): Places | null {
  try {
    const networks = permittedIps.length === 0 ? null : new Networks(permittedIps)
    return { networks, referers: permittedReferers.map(pattern => pattern.split(/\*+/)) }
  } catch {
    return null
  }
}

/** `pieces`: what stands between stars. The first place where a piece fits will do. */
function fits(pieces: readonly string[], text: string): boolean {
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
