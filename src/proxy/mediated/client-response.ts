/** Responses that a worker has made, on their way to the client: of mediated exchanges and of mounted APIs. */
import { CHUNKED, isBodiless, RESET_CONTENT } from '../../http1/framing.ts'
import { RESPONSE_FAILED } from '../../protocol/failure-table.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { SourceSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { BodyFeed, type FeedSink } from './body-feed.ts'
import { type BodySource, emptySource } from './body-source.ts'
import { type Fields, feedResponse } from './fed-message.ts'

interface ClientResponse {
  readonly head: { readonly status: number; readonly reason: string; readonly fields: Fields }
  readonly source: BodySource
  /** Hands the parts of the body to `client`. */
  readonly sink: FeedSink
  /** The connection of the client, or a flow in front of it. */
  readonly client: SourceSide
  /** The head is valid, and nothing of it was sent. `feed`: sends the body. */
  readonly begins: (feed: BodyFeed) => void
}

/** Sends a response. Returns the rule that its head breaks, '' for none; a response that breaks one is not sent. */
export function sendResponse(exchange: Exchange, response: ClientResponse, context: ConnectionContext): string {
  const { head, sink, client, begins } = response
  const isReset = head.status === RESET_CONTENT
  if (isReset) response.source.close()
  const source = isReset ? emptySource() : response.source
  const isBodyless = exchange.isHead || isBodiless(head.status)
  // RFC 9110 8.6: a response to HEAD claims no empty body where only a GET would have one.
  const isUnknown = source.length < 0 || (exchange.isHead && source.length === 0)
  const length = isUnknown ? CHUNKED : source.length
  // The rest of an incomplete request is not waited for.
  if (exchange.requestDoneMs === 0) exchange.persists = false
  const broken = feedResponse(head, head.fields, length, context, (fed, at) => {
    if (isBodyless) source.close()
    const feed = new BodyFeed(isBodyless ? emptySource() : source, sink, context)
    begins(feed)
    client.responseHead(fed, at, isBodyless ? 0 : length)
    feed.begin()
  })
  if (broken !== '') source.close()
  return broken
}

/** Ends a response of which the client has a part: it must not look whole. `cause`: without any text of a client. */
export function cutResponse(client: SourceSide, cause: string): void {
  client.fail({ base: RESPONSE_FAILED, state: 0, kind: 'transport', code: '', cause, status: 0 })
}
