/**
 * The APIs `/token` and `/revoke` on the ports of the gateway, which lead to the key manager of this or another node.
 * The gateway asks for no credentials there, and a declared API with one of these paths wins.
 */
import { NO_SCHEME } from '../apis/api-access.ts'
import { type ApiDefinition, DEFAULT_ENDPOINT_SETTINGS, NO_ENDPOINTS, NO_HARD_LIMITS } from '../apis/api-definition.ts'
import { apiPaths } from '../apis/api-paths.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import type { TlsPlans } from '../tls/tls-material.ts'
import { hasManagementListener, managementAddress } from './management-plan.ts'
import { nodeComponents } from './node-components.ts'
import { TOKEN_API_NAMES } from './reactor-plan.ts'

/** In the order of TOKEN_API_NAMES. */
const PATHS = ['/token', '/revoke'] as const
const EVERY_ADDRESS = ['', '0.0.0.0', '::']
const FIRST_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/

/** Empty without a key manager, or while its port is unknown. `declared`: the APIs of the home. */
export function tokenApis(configuration: Configuration, declared: readonly ApiDefinition[]): readonly ApiDefinition[] {
  const origin = keyManagerOrigin(configuration)
  if (origin === '') return []
  const { token_tier, revoke_tier } = configuration['apim.throttling']
  const tiers = { '/token': token_tier, '/revoke': revoke_tier }
  const taken = new Set(
    declared.flatMap(({ hosts, context, version, isDefaultVersion, isUnversioned }) => {
      return hosts.length === 0 ? apiPaths(context, version, isDefaultVersion, isUnversioned) : []
    }),
  )
  return PATHS.flatMap((path, at) =>
    taken.has(path) ? [] : [tokenApi(TOKEN_API_NAMES[at]!, path, `${origin}/oauth2${path}`, tiers[path])],
  )
}

/** TLS to the built-in key manager, by `host:port`: trusts its very certificate, whatever name is in it. */
export function keyManagerTrust(
  configuration: Configuration,
  tls: TlsPlans,
): readonly (readonly [string, TlsClientPlan])[] {
  const leaf = FIRST_CERTIFICATE.exec(tls.server?.identity.cert ?? '')?.[0]
  const standard = tls.clients.find(({ match }) => match === 'default')
  if (!hasManagementListener(configuration) || leaf === undefined || standard === undefined) return []
  const plan: TlsClientPlan = { ...standard.plan, ca: [leaf], identity: null, hostname: 'none' }
  return [[ownAddress(configuration), plan]]
}

function keyManagerOrigin(configuration: Configuration): string {
  const { runsGateway, runsKeyManager } = nodeComponents(configuration)
  if (!runsGateway) return ''
  if (hasManagementListener(configuration)) {
    return managementAddress(configuration).port === 0 ? '' : `https://${ownAddress(configuration)}`
  }
  if (runsKeyManager) return ''
  return URL.parse(configuration['apim.key_manager'].service_url)?.origin ?? ''
}

/** `host:port` of the management listener, as this node reaches it. */
function ownAddress(configuration: Configuration): string {
  const { host, port } = managementAddress(configuration)
  const reachable = EVERY_ADDRESS.includes(host) ? '127.0.0.1' : host
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** `tier`: advanced policy of the whole API; '' for none. */
function tokenApi(name: string, path: string, url: string, tier: string): ApiDefinition {
  // Never suspended: there is no other endpoint to use meanwhile.
  const settings = { ...DEFAULT_ENDPOINT_SETTINGS, suspensionMs: 0 }
  return {
    name,
    // The version is the whole path, because a real version would add a segment.
    context: '/{version}',
    version: path.slice(1),
    isDefaultVersion: false,
    lifecycle: 'PUBLISHED',
    transports: ['http', 'https'],
    hosts: [],
    keyType: 'PRODUCTION',
    escapedSlashes: 'refuse',
    isAi: false,
    hardLimits: NO_HARD_LIMITS,
    access: { provider: '', plans: [], tier, authHeader: '', securitySchemes: [NO_SCHEME], scopeRoles: {} },
    clientCertificates: [],
    credentials: { production: null, sandbox: null },
    cors: null,
    resources: [{ template: '/', verb: 'POST', authType: 'None', tier: 'Unlimited', scopes: [] }],
    endpoints: { ...NO_ENDPOINTS, endpoints: [{ url, settings }] },
    sandbox: NO_ENDPOINTS,
    mounted: null,
    mediation: null,
  }
}
