/** A rule of RFC 9110 or 9112 that a message breaks, with the status for a client that sent it. */

export interface BadMessage {
  readonly status: number
  /** The broken rule, for the log and the description of the fault; holds no bytes of the message. */
  readonly rule: string
  /** Response lines that the status requires, each with its CRLF. */
  readonly lines: string
}

/** Rules are shared frozen rows, so refusing a bad message allocates nothing. */
export function bad(status: number, rule: string, lines = ''): BadMessage {
  return Object.freeze({ status, rule, lines })
}
