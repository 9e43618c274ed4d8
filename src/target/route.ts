/** The way to a backend: where it is, what lies in between, and what secures it. */
import type { Dialer } from '../socket/byte-socket.ts'
import type { AddressBook } from '../socket/address-book.ts'
import type { TlsClient } from '../socket/tls.ts'

/** A forward proxy on the way. */
export interface ForwardProxy {
  readonly host: string
  readonly port: number
  /** Value of Proxy-Authorization, '' without credentials. Secret. */
  readonly authorization: string
}

/** As the primary has planned it. Endpoints with the same row share a pool of connections. */
export interface Route {
  /** Row in the shared gauge of connections. */
  readonly row: number
  readonly secured: boolean
  readonly host: string
  readonly port: number
  /** Whose terms secure it where none are for this backend; '' where it is not secured. */
  readonly tlsClient: string
  /** null: directly. A secured route goes through it by CONNECT. */
  readonly proxy: ForwardProxy | null
  /** Plain, but by CONNECT all the same: what goes through it is WebSocket (RFC 6455 4.1). */
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

/** Whom the connection is made to: the backend, or the proxy in front of it. */
export function hopOf(route: Route): { readonly host: string; readonly port: number } {
  return route.proxy ?? route
}

/** Through a tunnel, so that the proxy sees no request (RFC 9110 9.3.6). */
export function isTunnelled({ proxy, secured, connectsThroughProxy }: Route): boolean {
  return proxy !== null && (secured || connectsThroughProxy)
}

/** By a proxy that reads each request: its target is in absolute-form (RFC 9112 3.2.2). */
export function isForwarded(route: Route): boolean {
  return route.proxy !== null && !isTunnelled(route)
}

/** For messages. */
export function nameOfProxy({ host, port }: ForwardProxy): string {
  return `proxy ${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** What a 407 means, which is said to the gateway. */
export function withoutCredentials(proxy: ForwardProxy): string {
  return `${nameOfProxy(proxy)} answered 407: it was given no credentials, or wrong ones`
}

export function schemeOf({ secured }: Route): 'http' | 'https' {
  return secured ? 'https' : 'http'
}

/** As the URL of the endpoint begins; http stands for https as well. */
export function socketKindOf({ secured, tlsClient, connectsThroughProxy }: Route): 'http' | 'ws' | 'wss' {
  if (secured) return tlsClient === 'wss' ? 'wss' : 'http'
  return connectsThroughProxy ? 'ws' : 'http'
}
