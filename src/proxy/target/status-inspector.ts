/**
 * Inspects final responses that concern the gateway itself. With a 407 a forward proxy asks the gateway for
 * credentials. A 500 with a content type of `sender.warnOnHTTP500` is logged.
 */
import { fieldNamed } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import { mediaTypeOf } from '../../http1/media-type.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type FailureCause, type ForwardProxy, isForwarded, proxyRefusal, type Route } from './route.ts'

/** Content types of `sender.warnOnHTTP500` by the kind of route; '' for none. */
export interface WarnOn500 {
  readonly plain: string
  readonly secured: string
}

const ANY_TYPE = '*'

export class StatusInspector {
  readonly #route: Route
  readonly #context: ConnectionContext
  /** The proxy that reads requests and may answer in place of the backend; null without one. */
  readonly #proxy: ForwardProxy | null
  /** Media types of 500s that are logged, in lower case, and the configured list. */
  #types: ReadonlySet<string>
  #list: string

  constructor(route: Route, warnOn500: WarnOn500, context: ConnectionContext) {
    this.#route = route
    this.#context = context
    this.#proxy = isForwarded(route) ? route.proxy : null
    this.#list = listFor(route, warnOn500)
    this.#types = typesIn(this.#list)
  }

  update(warnOn500: WarnOn500): void {
    const list = listFor(this.#route, warnOn500)
    if (list === this.#list) return
    this.#list = list
    this.#types = typesIn(list)
  }

  /** Why the response must not reach the client; null where it may. Only for 407 and 500. */
  inspect(exchange: Exchange, head: Head): FailureCause | null {
    // RFC 9110 15.5.8: a 407 is meant for the sender of the request to the proxy, which is the gateway.
    if (head.status === 407) return this.#proxy === null ? null : proxyRefusal(this.#proxy, 407)
    if (this.#types.size > 0) this.#warn(exchange, head)
    return null
  }

  #warn(exchange: Exchange, head: Head): void {
    const type = contentType(head)
    if (!this.#types.has(ANY_TYPE) && !this.#types.has(mediaTypeOf(type))) return
    this.#context.report('warn', 'backend answered 500', {
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

function listFor({ secured }: Route, warnOn500: WarnOn500): string {
  return secured ? warnOn500.secured : warnOn500.plain
}

function typesIn(list: string): ReadonlySet<string> {
  const types = list.split(/[|,]/).map(mediaTypeOf)
  return new Set(types.filter(type => type !== ''))
}

/** '' without a Content-Type. */
function contentType(head: Head): string {
  const field = fieldNamed(arena.bytes, head, 'content-type')
  return field < 0 ? '' : head.value(arena.bytes, field)
}
