/** Routes to backends: address, forward proxy, TLS; and the dialer, DNS cache and TLS that open their connections. */
import type { Dialer } from '../../socket/byte-socket.ts'
import type { DnsCache } from '../../socket/dns-cache.ts'
import type { TlsClient } from '../../socket/tls.ts'
import type { Failure } from '../exchange/contract.ts'

/** Slot of the shared gauge that counts the connections of all routes, behind those that count clients. */
export const ALL_ROUTES_SLOT = 2
/** Slot of the first route. */
export const FIRST_ROUTE_SLOT = 3

export interface ForwardProxy {
  readonly host: string
  readonly port: number
  /** Value of Proxy-Authorization, '' without credentials. Secret. */
  readonly authorization: string
}

/** A route, as planned by the primary. Endpoints with the same slot share a pool of connections. */
export interface Route {
  /** Slot in the shared gauge of connections. */
  readonly slot: number
  readonly secured: boolean
  readonly host: string
  readonly port: number
  /** Name of the TLS profile for backends without a profile of their own; '' where the route is not secured. */
  readonly tlsClient: string
  /** null: directly. A secured route goes through the proxy by CONNECT. */
  readonly proxy: ForwardProxy | null
  /** A plain route that goes through its proxy by CONNECT all the same, because it is for WebSocket (RFC 6455 4.1). */
  readonly connectsThroughProxy: boolean
  /** Each connection begins with a PROXY header, version 2, about its client. Left out: none does. */
  readonly sendsProxyHeader?: boolean
}

/** The means to open connections; one per thread. */
export interface Network {
  readonly dialer: Dialer
  readonly dns: DnsCache
  /** TLS for a secured route. */
  tlsFor(route: Route): TlsClient
}

/** Why a backend cannot be used; the part of a Failure that its source knows. */
export type FailureCause = Required<Pick<Failure, 'kind' | 'code' | 'cause'>>

export function outOfDescriptors(code: string): FailureCause {
  return { kind: 'descriptors', code: '', cause: `no descriptor is left for a connection (${code}, ulimit -n)` }
}

export function outOfMemory(cause: string): FailureCause {
  return { kind: 'memory', code: '', cause }
}

/** Host and port as in Host and in messages; the port of the scheme is left out. */
export function authorityOf({ secured, host, port }: Route): string {
  return port === (secured ? 443 : 80) ? host : `${host}:${port}`
}

/** The peer of the connection: the backend, or the proxy in front of it. */
export function nextHop(route: Route): { readonly host: string; readonly port: number } {
  return route.proxy ?? route
}

/** True if the route goes through a tunnel, so that the proxy sees no request (RFC 9110 9.3.6). */
export function isTunnelled({ proxy, secured, connectsThroughProxy, sendsProxyHeader = false }: Route): boolean {
  return proxy !== null && (secured || connectsThroughProxy || sendsProxyHeader)
}

/** True if a proxy reads each request: the request target is then in absolute-form (RFC 9112 3.2.2). */
export function isForwarded(route: Route): boolean {
  return route.proxy !== null && !isTunnelled(route)
}

/** The proxy in messages. */
export function proxyName({ host, port }: ForwardProxy): string {
  return `proxy ${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** A forward proxy that refuses the gateway's request with a status of its own. */
export function proxyRefusal(proxy: ForwardProxy, status: number): FailureCause {
  const why = status === 407 ? 'answered 407: it got no credentials, or wrong ones' : `answered ${status} to CONNECT`
  return { kind: 'proxy', code: String(status), cause: `${proxyName(proxy)} ${why}` }
}

export function schemeOf({ secured }: Route): 'http' | 'https' {
  return secured ? 'https' : 'http'
}

/** Scheme of the endpoint's URL; http stands for https as well. */
export function socketKindOf({ secured, tlsClient, connectsThroughProxy }: Route): 'http' | 'ws' | 'wss' {
  if (secured) return tlsClient === 'wss' ? 'wss' : 'http'
  return connectsThroughProxy ? 'ws' : 'http'
}
