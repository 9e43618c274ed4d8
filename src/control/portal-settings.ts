/** Settings that the portals' REST APIs show: environments with their addresses, endpoints, listed APIs. */
import type { Configuration } from '../config/catalogue.ts'
import { planListeners } from '../plan/listener-planning.ts'
import type { PortalAddresses, PortalEnvironment, PortalSettings } from './admin-api/admin-services.ts'

type Environment = Configuration['apim.gateway.environment'][number]
type VirtualHost = Environment['virtual_host'][number]

/** `origin`: `https://host:port` of the management listener. */
export function portalSettings(configuration: Configuration, origin: string): PortalSettings {
  const rows = configuration['apim.gateway.environment']
  const portal = configuration['apim.devportal']
  const shown = rows.find(({ show_as_token_endpoint_url: isShown }) => isShown)
  return {
    environments: rows.length === 0 ? [ownEnvironment(configuration)] : rows.map(environmentOf),
    tokenEndpoint: shown === undefined ? `${origin}/oauth2/token` : `${withoutSlash(shown.https_endpoint)}/token`,
    revokeEndpoint: configuration['apim.oauth_config'].revoke_endpoint,
    showsDeprecatedApis: portal.display_deprecated_apis,
    showsAllVersions: portal.display_multiple_versions,
  }
}

function environmentOf(row: Environment): PortalEnvironment {
  const { name, type, description, display_in_api_console: isInConsole } = row
  const own = { http: row.http_endpoint, https: row.https_endpoint, ws: row.ws_endpoint, wss: '' }
  // One key has the WebSocket address, on TLS or not.
  const addresses = /^wss:/i.test(own.ws) ? { ...own, ws: '', wss: own.ws } : own
  return {
    name,
    type,
    description,
    isInConsole,
    addresses: [addresses, ...row.virtual_host.map(addressesOf)].map(trimmed),
  }
}

/** The defaults that the keys of a virtual host document. */
function addressesOf(row: VirtualHost): PortalAddresses {
  const host = URL.parse(row.https_endpoint)?.hostname ?? ''
  return {
    https: row.https_endpoint,
    http: row.http_endpoint || `http://${host}`,
    ws: row.ws_endpoint || `ws://${host}:9099`,
    wss: row.wss_endpoint || `wss://${host}:8099`,
  }
}

/** Without a row: the open listeners of this node, by its name. */
function ownEnvironment(configuration: Configuration): PortalEnvironment {
  const listeners = planListeners(configuration)
  const address = (kind: keyof PortalAddresses): string => {
    const listener = listeners.find(each => each.kind === kind && each.port !== 0)
    return listener === undefined ? '' : `${kind}://${configuration.server.hostname}:${listener.port}`
  }
  const addresses = [{ http: address('http'), https: address('https'), ws: address('ws'), wss: address('wss') }]
  return { name: 'Default', type: 'hybrid', description: 'This gateway', isInConsole: true, addresses }
}

function trimmed({ http, https, ws, wss }: PortalAddresses): PortalAddresses {
  return { http: withoutSlash(http), https: withoutSlash(https), ws: withoutSlash(ws), wss: withoutSlash(wss) }
}

function withoutSlash(address: string): string {
  return address.replace(/\/$/, '')
}
