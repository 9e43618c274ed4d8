/** A raw response of a backend, and how it must be read: what the client gets, and whether the connection serves on. */

export interface ResponseCase {
  /** The clause it proves. */
  readonly name: string
  /** One character per byte. */
  readonly raw: string
  /** What the client asks with; a GET over HTTP/1.1 when absent. */
  readonly request?: string
  /** The backend's next move; it waits when absent. */
  readonly ends?: 'FIN' | 'RST'
  readonly gets: Got | 'fault' | 'cut'
  /** The backend connection serves the next request as well. */
  readonly reused: boolean
  /** Keys of `[transport.passthru_http]`. */
  readonly http?: Readonly<Record<string, unknown>>
}

export interface Got {
  /** Status line. */
  readonly start: string
  /** The backend's field lines that pass, in order, to the byte; the gateway's own lines are not among them. */
  readonly fields?: readonly string[]
  readonly framing?: 'none' | 'length' | 'chunked' | 'close'
  readonly body?: string
  readonly trailers?: readonly string[]
  /** Whole heads of 1xx responses. */
  readonly interims?: readonly string[]
  /** The client's connection ends behind it. */
  readonly closes?: boolean
  /** It says `Connection: keep-alive`, to a client of HTTP/1.0. */
  readonly keepsAlive?: boolean
}

export const GET = 'GET /echo/x HTTP/1.1\r\nHost: gateway.test\r\n\r\n'
export const HEAD = 'HEAD /echo/x HTTP/1.1\r\nHost: gateway.test\r\n\r\n'
export const GET_10 = 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\n\r\n'
export const KEEP_10 = 'GET /echo/x HTTP/1.0\r\nHost: gateway.test\r\nConnection: keep-alive\r\n\r\n'

export const DATE = 'Date: Thu, 01 Jan 1970 00:00:00 GMT'
export const OK = 'HTTP/1.1 200 OK'

/** A response with these fields, and whatever follows the head. */
export function response(fields: readonly string[], rest: string, start = OK): string {
  return `${start}\r\n${[DATE, ...fields].map(field => `${field}\r\n`).join('')}\r\n${rest}`
}
