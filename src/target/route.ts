/** The way to a backend: where it is, what lies in between, and what secures it. */
import type { Dialer } from '../socket/byte-socket.ts'
import type { AddressBook } from '../socket/address-book.ts'
import type { TlsClient } from '../socket/tls.ts'

/** A forward proxy on the way. */
interface Proxy {
  readonly host: string
  readonly port: number
  /** Value of Proxy-Authorization, '' without credentials. Secret. */
  readonly authorization: string
}

/** As the primary has planned it. */
export interface Route {
  readonly row: number
  readonly secured: boolean
  readonly host: string
  readonly port: number
  /** Whose terms secure it where none are for this backend; '' where it is not secured. */
  readonly tlsClient: string
  readonly proxy: Proxy | null
  readonly connectsThroughProxy: boolean
}

/** What connections are opened with. One per thread. */
export interface Paths {
  readonly dialer: Dialer
  readonly addresses: AddressBook
  /** The client's side of TLS for a secured route. */
  tlsFor(route: Route): TlsClient
}

/** Host as in Host and in messages: the port only where it is not that of the scheme. */
export function authorityOf({ secured, host, port }: Route): string {
  return port === (secured ? 443 : 80) ? host : `${host}:${port}`
}

export function schemeOf({ secured }: Route): 'http' | 'https' {
  return secured ? 'https' : 'http'
}
