/**
 * `/token` and `/revoke` on the ports of the gateway: they lead to the key manager, on this node or elsewhere, as any
 * API leads to its backend, without asking for credentials. An API of the operator's at one of these paths wins.
 */
import { type ApiDefinition, NO_ENDPOINTS } from '../config/api-definition.ts'
import { apiPaths } from '../config/api-paths.ts'
import { NO_SCHEME } from '../config/api-access.ts'
import type { Configuration } from '../config/catalogue.ts'
import { DEFAULT_SETTINGS } from '../config/endpoint-settings.ts'
import { listensForManagement, managementAddress } from './management-planning.ts'
import { partsOf } from './node-parts.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import { TOKEN_APIS } from '../token-apis.ts'
import type { TlsPlans } from '../tls/tls-material.ts'

const PATHS = ['/token', '/revoke'] as const
const EVERY_ADDRESS = ['', '0.0.0.0', '::']
const FIRST_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/

/** None where there is no key manager, or its port is not known yet. */
export function tokenApis(configuration: Configuration, others: readonly ApiDefinition[]): readonly ApiDefinition[] {
  const origin = keyManagerOrigin(configuration)
  if (origin === '') return []
  const taken = new Set(
    others.flatMap(({ hosts, context, version, isDefaultVersion }) => {
      return hosts.length === 0 ? apiPaths(context, version, isDefaultVersion) : []
    }),
  )
  return PATHS.flatMap((path, at) =>
    taken.has(path) ? [] : [tokenApi(TOKEN_APIS[at]!, path, `${origin}/oauth2${path}`)],
  )
}

/** How the key manager of this node is believed by its own gateway: by its very certificate, whatever name is in it. */
export function ownTrust(configuration: Configuration, tls: TlsPlans): readonly (readonly [string, TlsClientPlan])[] {
  const leaf = FIRST_CERTIFICATE.exec(tls.server?.identity.cert ?? '')?.[0]
  const standard = tls.clients.find(({ match }) => match === 'default')
  if (!listensForManagement(configuration) || leaf === undefined || standard === undefined) return []
  const plan: TlsClientPlan = { ...standard.plan, ca: [leaf], identity: null, hostname: 'none' }
  return [[ownAddress(configuration), plan]]
}

function keyManagerOrigin(configuration: Configuration): string {
  const { runsGateway, runsKeyManager } = partsOf(configuration)
  if (!runsGateway) return ''
  if (listensForManagement(configuration)) {
    return managementAddress(configuration).port === 0 ? '' : `https://${ownAddress(configuration)}`
  }
  if (runsKeyManager) return ''
  return URL.parse(configuration['apim.key_manager'].service_url)?.origin ?? ''
}

function ownAddress(configuration: Configuration): string {
  const { host, port } = managementAddress(configuration)
  const reached = EVERY_ADDRESS.includes(host) ? '127.0.0.1' : host
  return `${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

function tokenApi(name: string, path: string, url: string): ApiDefinition {
  // It is the only one, and there is nothing to suspend it for.
  const settings = { ...DEFAULT_SETTINGS, initialMs: 0 }
  return {
    // All of the path is its version: another one would be part of the path.
    ...{ name, context: '/{version}', version: path.slice(1), isDefaultVersion: false, lifecycle: 'PUBLISHED' },
    ...{
      transports: ['http', 'https'],
      hosts: [],
      keyType: 'PRODUCTION',
      isAi: false,
      clientCertificates: [],
      credentials: { production: null, sandbox: null },
    },
    cors: null,
    access: { provider: '', plans: [], tier: '', authHeader: '', securitySchemes: [NO_SCHEME], scopeRoles: {} },
    resources: [{ template: '/', verb: 'POST', authType: 'None', tier: 'Unlimited', scopes: [] }],
    endpoints: { ...NO_ENDPOINTS, endpoints: [{ url, settings }] },
    sandbox: NO_ENDPOINTS,
  }
}
