/** Handlers of the operator, as both sides of the proxy see them. */
import type { Head } from '../../http1/head.ts'
import type { HeadEdit } from './head-edit.ts'

/** The handlers of one exchange of an API, whether or not its request has come to them. None of these throws. */
export interface ExchangeHandlers {
  /** The edit of the request for the backend, with the changes of the handlers behind those of mediation. */
  requestEdit(edit: HeadEdit | null): HeadEdit | null
  /** Runs the response phase on the head of a response; the same for the client. */
  responseEdit(head: Head, edit: HeadEdit | null): HeadEdit | null
  /** Runs the response phase on a response of the gateway itself; returns its lines, each with its CRLF. */
  localLines(status: number, lines: string): string
  /** The exchange is over. */
  ended(): void
}
