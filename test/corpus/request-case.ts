/**
 * A raw request and how it must be read: the status that its sender gets, and what the backend receives of it, to the
 * byte. The API under test is /echo, its backend has no path of its own.
 */

export interface RequestCase {
  /** The clause it proves. */
  readonly name: string
  /** One character per byte. */
  readonly raw: string
  readonly status: number
  /** What the backend must receive; absent: not one complete request. */
  readonly reaches?: Reached
  /** A refused request whose connection goes on all the same. */
  readonly keeps?: boolean
  /** A served request after which the connection ends. */
  readonly closes?: boolean
  /** The head may reach the backend before the body breaks; its connection must then be cut. */
  readonly breaks?: boolean
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
}

export interface Reached {
  /** Request line. */
  readonly line: string
  /** The client's field lines that pass, in order, to the byte; Host and the gateway's own lines are not among them. */
  readonly fields?: readonly string[]
  readonly body?: string
  /** The body leaves in chunks. */
  readonly chunked?: boolean
  readonly trailers?: readonly string[]
  /** X-Forwarded-Host, '' when the client named no host; `gateway.test` when absent. */
  readonly host?: string
  /** The gateway's own lines instead of the usual ones. */
  readonly own?: readonly string[]
}

const HOST = 'Host: gateway.test'

function lines(fields: readonly string[]): string {
  return fields.map(field => `${field}\r\n`).join('')
}

/** `GET /echo/x` with Host and these fields. */
export function get(...fields: readonly string[]): string {
  return `GET /echo/x HTTP/1.1\r\n${HOST}\r\n${lines(fields)}\r\n`
}

/** `POST /echo/x` with Host, these fields, and whatever follows the head. */
export function post(fields: readonly string[], rest: string): string {
  return `POST /echo/x HTTP/1.1\r\n${HOST}\r\n${lines(fields)}\r\n${rest}`
}

/** A request with a chunked body, given as it stands on the wire. */
export function chunked(rest: string): string {
  return post(['Transfer-Encoding: chunked'], rest)
}

/** A request line in front of Host. */
export function line(start: string, ...fields: readonly string[]): string {
  return `${start}\r\n${HOST}\r\n${lines(fields)}\r\n`
}

/** The fields of a request that has nothing else, Host included if it is wanted. */
export function only(...fields: readonly string[]): string {
  return `GET /echo/x HTTP/1.1\r\n${lines(fields)}\r\n`
}

export const GET_X = 'GET /x HTTP/1.1'
export const POST_X = 'POST /x HTTP/1.1'
