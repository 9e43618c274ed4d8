/**
 * A raw request, the status that the client must get, and the request that the backend must receive, to the byte. The
 * API under test is /echo; its backend URL has no path.
 */

export interface RequestCase {
  /** Test title: the clause that the case proves. */
  readonly name: string
  /** One character per byte. */
  readonly raw: string
  readonly status: number
  /** The request that the backend must receive; absent: no complete request. */
  readonly reaches?: Reached
  /** The request is refused, and the connection stays open. */
  readonly staysOpen?: boolean
  /** The request is served, and the connection is closed after the response. */
  readonly closes?: boolean
  /** The head may reach the backend before the invalid body; the backend connection must then be closed. */
  readonly mayReachPartially?: boolean
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
}

export interface Reached {
  /** Request line. */
  readonly line: string
  /**
   * The forwarded field lines of the client, in order, to the byte; without Host and the lines that the gateway adds.
   */
  readonly fields?: readonly string[]
  readonly body?: string
  /** The body reaches the backend in chunks. */
  readonly chunked?: boolean
  readonly trailers?: readonly string[]
  /** Value of the forwarded Host; that of the backend when absent. */
  readonly backendHost?: string
  /** X-Forwarded-Host, '' when the client named no host; `gateway.test` when absent. */
  readonly host?: string
  /** The lines that the gateway adds, if they are not the usual ones. */
  readonly added?: readonly string[]
}

const HOST = 'Host: gateway.test'

function lines(fields: readonly string[]): string {
  return fields.map(field => `${field}\r\n`).join('')
}

/** `GET /echo/x` with Host and these fields. */
export function get(...fields: readonly string[]): string {
  return `GET /echo/x HTTP/1.1\r\n${HOST}\r\n${lines(fields)}\r\n`
}

/** `POST /echo/x` with Host and these fields; `rest` follows the head. */
export function post(fields: readonly string[], rest: string): string {
  return `POST /echo/x HTTP/1.1\r\n${HOST}\r\n${lines(fields)}\r\n${rest}`
}

/** A POST with Transfer-Encoding: chunked; `rest` is the encoded body. */
export function chunked(rest: string): string {
  return post(['Transfer-Encoding: chunked'], rest)
}

/** A request with this request line, Host and these fields. */
export function line(start: string, ...fields: readonly string[]): string {
  return `${start}\r\n${HOST}\r\n${lines(fields)}\r\n`
}

/** `GET /echo/x` with exactly these fields, without Host. */
export function only(...fields: readonly string[]): string {
  return `GET /echo/x HTTP/1.1\r\n${lines(fields)}\r\n`
}

export const GET_X = 'GET /x HTTP/1.1'
export const POST_X = 'POST /x HTTP/1.1'
