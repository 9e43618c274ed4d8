/**
 * The plan of the management listener, which serves the management API and the key manager. Plain data; a reload
 * replaces everything but the address.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import { hostName } from '../http1/host-name.ts'
import { parsePattern } from '../mediation/pattern.ts'
import type { TlsIdentity, TlsProtocolSettings } from '../socket/tls.ts'
import type { TlsPlans } from '../tls/tls-material.ts'
import { openFileLimit, reservedConnections } from './descriptor-planning.ts'
import { nodeComponents } from './node-components.ts'
import type { ListenAddress } from './ports.ts'

/** The networks that may reach a part of the listener. */
export interface AccessGatePlan {
  /** Allowed networks beside this machine; null for everybody. */
  readonly networks: readonly string[] | null
}

/** A row of `[[servlet_access_control_filter]]`. */
export interface AccessFilterPlan {
  /** For the log. */
  readonly name: string
  /** A URL pattern of servlets: a path, `/folder/*`, `*.ending`, or `/*` and '' for all. */
  readonly urlPattern: string
  /** Matches the whole of an allowed address. */
  readonly addressPattern: string
}

export interface ManagementPlan {
  /** '' for all addresses. */
  readonly host: string
  /** With `server.offset`; 0 for any free port. */
  readonly port: number
  /** Largest number of connections. */
  readonly connectionsMax: number
  /** Origin of `server.base_path`: `https://host:port`. */
  readonly origin: string
  readonly tls: TlsProtocolSettings & { readonly identity: TlsIdentity }
  /** Allowed hosts of requests beside those of this machine, in lower case, without a port. */
  readonly hostNames: readonly string[]
  /** `[admin_console.control_access]`: everything that changes the gateway. */
  readonly console: AccessGatePlan
  /** `[web_app.control_access]`: key manager and developer portal. */
  readonly web: AccessGatePlan
  readonly filters: readonly AccessFilterPlan[]
}

export function hasManagementListener(configuration: Configuration): boolean {
  return configuration.management.enable && nodeComponents(configuration).runsKeyManager
}

export function managementAddress({ management, server }: Configuration): ListenAddress {
  const { port, bind_address: host } = management
  return { host, port: port === 0 ? 0 : port + server.offset, key: 'management.port' }
}

/** Null without the listener. `tls`: null on a node without TLS listeners. */
export function managementPlan(configuration: Configuration, tls: TlsPlans | null): ManagementPlan | null {
  const tlsServer = tls?.server
  if (!hasManagementListener(configuration) || tlsServer === null || tlsServer === undefined) return null
  const { management, server } = configuration
  const { host, port } = managementAddress(configuration)
  const { identity, minVersion, maxVersion, ciphers } = tlsServer
  const base = URL.parse(server.base_path)
  const names = [server.hostname, base?.host ?? '', ...management.host_names].filter(name => name !== '')
  return {
    host,
    port,
    connectionsMax: reservedConnections(openFileLimit()).management,
    tls: { identity, minVersion, maxVersion, ciphers },
    origin: base?.origin ?? `https://${server.hostname}:${port}`,
    hostNames: [...new Set(names.map(hostName))],
    console: gateOf(configuration['admin_console.control_access']),
    web: gateOf(configuration['web_app.control_access']),
    filters: configuration.servlet_access_control_filter.map(filter => ({
      name: filter.filter_name,
      urlPattern: filter.url_pattern,
      addressPattern: filter.allow_ip_regex,
    })),
  }
}

function gateOf(access: Configuration['web_app.control_access']): AccessGatePlan {
  return { networks: access.enable ? access.allow : null }
}

/** Errors for invalid patterns in `[[servlet_access_control_filter]]`, because it is unclear whom they admit. */
export function accessErrors(configuration: Configuration): readonly Diagnostic[] {
  return configuration.servlet_access_control_filter.flatMap((filter, row) => {
    const { pattern, why, hint } = parsePattern(filter.allow_ip_regex)
    const key = `servlet_access_control_filter[${row}].allow_ip_regex`
    return pattern === undefined ? [{ where: '', key, given: filter.allow_ip_regex, expected: why, hint }] : []
  })
}
