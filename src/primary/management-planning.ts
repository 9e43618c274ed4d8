/** From configuration and key stores to what the listener for management and key manager is told. */
import type { Configuration } from '../config/catalogue.ts'
import type { Fault } from '../config/fault.ts'
import type { AccessGatePlan, ManagementPlan } from '../management-plan.ts'
import { patternOf } from '../mediation/pattern.ts'
import { partsOf } from './node-parts.ts'
import type { Address } from './ports.ts'
import { hostName } from '../structure/host-name.ts'
import type { TlsPlans } from '../tls/tls-material.ts'

/** Whether this node has that listener at all. */
export function listensForManagement(configuration: Configuration): boolean {
  return configuration.management.enable && partsOf(configuration).runsKeyManager
}

export function managementAddress({ management, server }: Configuration): Address {
  const { port, bind_address: host } = management
  return { host, port: port === 0 ? 0 : port + server.offset, key: 'management.port' }
}

/** `tls`: of a node that listens on TLS. Null without the listener. */
export function managementPlan(configuration: Configuration, tls: TlsPlans | null): ManagementPlan | null {
  const identity = tls?.server
  if (!listensForManagement(configuration) || identity === null || identity === undefined) return null
  const { management, server } = configuration
  const { host, port } = managementAddress(configuration)
  const { minVersion, maxVersion, ciphers } = identity
  const outside = URL.parse(server.base_path)
  const named = [server.hostname, outside?.host ?? '', ...management.host_names].filter(name => name !== '')
  return {
    host,
    port,
    tls: { identity: identity.identity, minVersion, maxVersion, ciphers },
    origin: outside?.origin ?? `https://${server.hostname}:${port}`,
    hostNames: [...new Set(named.map(hostName))],
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

/** Patterns of `[[servlet_access_control_filter]]` that are none: nobody would know whom they let in. */
export function accessFaults(configuration: Configuration): readonly Fault[] {
  return configuration.servlet_access_control_filter.flatMap((filter, row) => {
    const { pattern, why, remedy } = patternOf(filter.allow_ip_regex)
    const key = `servlet_access_control_filter[${row}].allow_ip_regex`
    return pattern === undefined ? [{ where: '', key, given: filter.allow_ip_regex, expected: why, remedy }] : []
  })
}
