/** Final responses that concern the gateway itself: a proxy that asks it for credentials, a 500 worth a warning. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { fieldNamed } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { mediaTypeOf } from '../http1/media-type.ts'
import { type ForwardProxy, isForwarded, type Route, withoutCredentials } from './route.ts'

/** Content types of `sender.warnOnHTTP500` by the kind of route; '' for none. */
export interface WarnOn500 {
  readonly plain: string
  readonly secured: string
}

const ANY_TYPE = '*'

export class StatusWatch {
  readonly #route: Route
  readonly #around: Surroundings
  /** The proxy that answers in place of the backend where it cannot reach it; null where none reads requests. */
  readonly #proxy: ForwardProxy | null
  /** Media types of 500s that are warned of, in lower case, and the list that names them. */
  #types: ReadonlySet<string>
  #list: string

  constructor(route: Route, warnOn500: WarnOn500, around: Surroundings) {
    this.#route = route
    this.#around = around
    this.#proxy = isForwarded(route) ? route.proxy : null
    this.#list = listFor(route, warnOn500)
    this.#types = typesIn(this.#list)
  }

  /** What is warned of from now on. */
  renew(warnOn500: WarnOn500): void {
    const list = listFor(this.#route, warnOn500)
    if (list === this.#list) return
    this.#list = list
    this.#types = typesIn(list)
  }

  /** Why the response is not the client's; '' when it is. To be asked for 407 and 500 only. */
  objection(exchange: Exchange, head: Head): string {
    // RFC 9110 15.5.8: whoever answers 407 means the one that sent the request to it, which is the gateway.
    if (head.status === 407) return this.#proxy === null ? '' : withoutCredentials(this.#proxy)
    if (this.#types.size > 0) this.#warn(exchange, head)
    return ''
  }

  #warn(exchange: Exchange, head: Head): void {
    const type = contentType(this.#around.arena.bytes, head)
    if (!this.#types.has(ANY_TYPE) && !this.#types.has(mediaTypeOf(type))) return
    this.#around.report('warn', 'back end answered 500', {
      API: exchange.apiName,
      CONTENT_TYPE: type,
      TARGET_HOST: this.#route.host,
      TARGET_PORT: this.#route.port,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-outgoing-${exchange.targetId}`,
    })
  }
}

function listFor({ secured }: Route, { plain, secured: behindTls }: WarnOn500): string {
  return secured ? behindTls : plain
}

function typesIn(list: string): ReadonlySet<string> {
  const types = list.split(/[|,]/).map(mediaTypeOf)
  return new Set(types.filter(type => type !== ''))
}

/** '' when there is none. */
function contentType(bytes: Buffer, head: Head): string {
  const field = fieldNamed(bytes, head, 'content-type')
  return field < 0 ? '' : head.value(bytes, field)
}
