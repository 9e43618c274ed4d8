/** A raw response of a backend, what the client must get, and whether the backend connection must be reused. */

export interface ResponseCase {
  /** Test title: the clause that the case proves. */
  readonly name: string
  /** One character per byte. */
  readonly raw: string
  /** The request of the client; a GET over HTTP/1.1 when absent. */
  readonly request?: string
  /** How the backend ends the connection after the response; absent: it leaves the connection open. */
  readonly ends?: 'FIN' | 'RST'
  readonly gets: Expected | 'fault' | 'cut'
  /** The backend connection is reused for the next request. */
  readonly reused: boolean
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
}

export interface Expected {
  /** Status line. */
  readonly start: string
  /** The forwarded field lines of the backend, in order, to the byte; without the lines that the gateway adds. */
  readonly fields?: readonly string[]
  readonly framing?: 'none' | 'length' | 'chunked' | 'close'
  readonly body?: string
  readonly trailers?: readonly string[]
  /** Whole heads of 1xx responses. */
  readonly interims?: readonly string[]
  /** The client connection is closed after the response. */
  readonly closes?: boolean
  /** The response to an HTTP/1.0 client has `Connection: keep-alive`. */
  readonly hasKeepAlive?: boolean
}

export const GET = 'GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\n\r\n'
export const HEAD = 'HEAD /echo/x HTTP/1.1\r\nHost: gateway.test\r\n\r\n'
export const GET_10 = 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\n\r\n'
export const KEEP_10 = 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: keep-alive\r\n\r\n'

export const DATE = 'Date: Thu, 01 Jan 1970 00:00:00 GMT'
export const OK = 'HTTP/1.1 200 OK'

/** A response with Date and these fields; `rest` follows the head. */
export function response(fields: readonly string[], rest: string, start = OK): string {
  return `${start}\r\n${[DATE, ...fields].map(field => `${field}\r\n`).join('')}\r\n${rest}`
}
