/** A rule of RFC 9110 or 9112 that a message broke, and the status its sender deserves when it is a client. */

export interface BadMessage {
  readonly status: number
  /** What is wrong, for the log and the fault's description; holds no bytes of the message. */
  readonly rule: string
  /** Response lines that the status requires, each with its CRLF. */
  readonly lines: string
}

/** Rules are shared frozen rows: refusing a bad message allocates nothing. */
export function bad(status: number, rule: string, lines = ''): BadMessage {
  return Object.freeze({ status, rule, lines })
}
