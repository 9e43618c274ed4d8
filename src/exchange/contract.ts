/**
 * What the rooms offer each other. The source room knows a target only as `Target` and `Upstream`, a target knows the
 * client only as `Downstream`; neither imports the other.
 */
import type { Head } from '../http1/head.ts'
import type { Written } from '../socket/byte-socket.ts'
import type { Exchange } from './exchange.ts'
import type { Inbox } from './inbox.ts'
import type { Outcome } from './outcome.ts'
import type { BackendParty } from './tunnel.ts'

/** undefined: carry on. A promise holds the request back until it is known. */
export type Verdict = Outcome | undefined | Promise<Outcome | undefined>

/** One step between routing and the target. An API's chain is an array, built when it is deployed. */
export interface Handler {
  readonly name: string
  request(exchange: Exchange): Verdict
}

/** Where an API is answered. */
export interface Target {
  readonly name: string
  /**
   * Takes the exchange over: sets `exchange.upstream` before it returns, and answers through `exchange.downstream`,
   * then or later. The request head is valid only during the call.
   */
  send(exchange: Exchange): void
}

/** The body bytes of one read, as `execute` left them in `found` and `bodySpans`, and where they stand. */
export interface BodyPart {
  readonly spans: number
  /** First byte in front of the spans that may be overwritten. */
  readonly floor: number
  /** The message is complete with it. */
  readonly last: boolean
  /** Trailer section, read only when `last`. */
  readonly trailers: Head
  readonly inbox: Inbox
}

/** The rest of a request on its way to a target. */
export interface Upstream {
  /** It takes no bytes now; `resumeRequest` will say when it does. */
  readonly isBlocked: boolean
  /** Body bytes, or the end of the body. Also called once for a request without a body, with no spans and `last`. */
  requestPart(part: BodyPart): Written
  /** The client takes bytes again: reading may go on. */
  resumeReply(): void
  /** The client is gone or must not get more: abort. */
  abandon(): void
}

/** How a connection to a backend or its response failed, and what it means. */
export interface Failure {
  readonly base: number
  /** Documented state number of the target connection, 0 to 8. */
  readonly state: number
  /** For the log: errno name or rule. */
  readonly cause: string
  /** Status of the answer where it is not that of the base code; 0: it is. */
  readonly status: number
}

/** The way back to the client. */
export interface Downstream {
  /** The client takes no bytes now; `resumeReply` will say when it does. */
  readonly isBlocked: boolean
  /** A 1xx head whose first byte stands at `at`. */
  interim(head: Head, at: number): void
  /**
   * The final head, whose first byte stands at `at`, with a body of that framing; parts follow. `connection` says what
   * its Connection field says.
   */
  reply(head: Head, at: number, framing: number): void
  /** Body bytes, or the end of the body. Called at least once after `reply`, with `last`. */
  replyPart(part: BodyPart): Written
  /**
   * A 101 to what the client asked for, whose first byte stands at `at`. The client's socket and the backend's are from
   * here on those of a tunnel, unless the client gets an answer instead: then the backend's is closed.
   */
  switchProtocols(head: Head, at: number, backend: BackendParty): void
  /** The target takes bytes again: reading may go on. */
  resumeRequest(): void
  /** A whole answer of the gateway's own; `lines` are response lines, each with its CRLF. */
  answer(status: number, reason: string, lines: string, body: string): void
  /** The target failed: a fault if nothing was answered yet, else the response is cut short and the client sees it. */
  fail(failure: Failure): void
}
