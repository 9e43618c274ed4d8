/**
 * Representations of entities in the formats of the reference platform's REST APIs. Only the response that creates a
 * secret contains it.
 */
import { nameBasedUuid } from '../../runtime/name-based-uuid.ts'
import type { Application, Client, Page, Subscription, Workflow } from '../registry/entities.ts'
import type { ManagedApi, AdminServices, PortalAddresses, PortalEnvironment } from './admin-services.ts'

export function apiIdOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return nameBasedUuid('api', name, version)
}

export function keyMappingIdOf(consumerKey: string): string {
  return nameBasedUuid('key', consumerKey)
}

function keyManagerIdOf(issuer: string): string {
  return nameBasedUuid('key manager', issuer)
}

/** Representation of a list with links to the next and previous page. */
export function listRepresentation<T>(path: string, list: readonly T[], { offset, limit }: Page, total: number) {
  const pageUrl = (from: number): string => `${path}${path.includes('?') ? '&' : '?'}limit=${limit}&offset=${from}`
  const next = offset + limit < total ? pageUrl(offset + limit) : ''
  const previous = offset > 0 ? pageUrl(Math.max(0, offset - limit)) : ''
  return { count: list.length, list, pagination: { offset, limit, total, next, previous } }
}

/** The API calls ACTIVE subscriptions UNBLOCKED. */
function statusRepresentation(status: Subscription['status']): string {
  return status === 'ACTIVE' ? 'UNBLOCKED' : status
}

export function applicationRepresentation(
  application: Application,
  subscriptionCount: number,
  status: Workflow['status'] = 'APPROVED',
) {
  const { id, name, tier, description, tokenType, attributes, owner, createdMs } = application
  return {
    applicationId: id,
    name,
    throttlingPolicy: tier,
    description,
    tokenType,
    status,
    groups: [],
    subscriptionCount,
    attributes,
    subscriptionScopes: [],
    owner,
    hashEnabled: true,
    createdTime: String(createdMs),
  }
}

/** `secret`: '' to omit it. */
export function keyRepresentation(client: Client, secret: string, { tokens }: AdminServices) {
  const { consumerKey, grants, redirectUris, keyType, validityS } = client
  return {
    keyMappingId: keyMappingIdOf(consumerKey),
    keyManager: 'Resident Key Manager',
    consumerKey,
    ...(secret === '' ? {} : { consumerSecret: secret }),
    supportedGrantTypes: grants,
    callbackUrl: redirectUris.join(','),
    keyState: 'APPROVED',
    keyType,
    mode: 'CREATED',
    groupId: '',
    additionalProperties: { application_access_token_expiry_time: validityS === 0 ? 'N/A' : String(validityS) },
    issuer: tokens.issuer,
  }
}

/** A request for keys in place of the keys; there is no consumer key yet. */
export function keyRequestRepresentation({ id, kind, status, properties }: Workflow, { tokens }: AdminServices) {
  const keyType: Client['keyType'] = kind === 'AM_APPLICATION_REGISTRATION_SANDBOX' ? 'SANDBOX' : 'PRODUCTION'
  return {
    keyMappingId: id,
    keyManager: 'Resident Key Manager',
    consumerKey: null,
    supportedGrantTypes: (properties.grantTypes ?? '').split(' ').filter(grant => grant !== ''),
    callbackUrl: properties.callbackUrl ?? '',
    keyState: status,
    keyType,
    mode: 'CREATED',
    groupId: '',
    additionalProperties: {},
    issuer: tokens.issuer,
  }
}

export function apiInfoRepresentation(api: ManagedApi) {
  const { name, version, context, provider, state, transports, tiers } = api
  return {
    id: apiIdOf(api),
    name,
    version,
    context,
    provider,
    type: 'HTTP',
    transport: transports,
    lifeCycleStatus: state,
    throttlingPolicies: tiers,
  }
}

export function apiRepresentation(api: ManagedApi) {
  const { operations, isDefaultVersion, tiers } = api
  return { ...apiInfoRepresentation(api), isDefaultVersion, policies: tiers, operations }
}

/** URLs of an API in the environments of the portal's console. */
export function endpointUrls(api: ManagedApi, environments: readonly PortalEnvironment[]) {
  return environments
    .filter(({ isInConsole }) => isInConsole)
    .flatMap(({ name, type, addresses }) => {
      const [served] = addresses.filter(each => servesAt(api, each))
      if (served === undefined) return []
      const withoutVersion = api.context.replace(new RegExp(`/${RegExp.escape(api.version)}$`), '')
      return {
        environmentName: name,
        environmentDisplayName: name,
        environmentType: type,
        URLs: urlsBelow(served, api.context, api),
        defaultVersionURLs: urlsBelow(served, api.isDefaultVersion ? withoutVersion : null, api),
      }
    })
}

function servesAt({ hosts }: ManagedApi, addresses: PortalAddresses): boolean {
  return hosts.length === 0 || hosts.includes(URL.parse(addresses.https)?.hostname ?? '')
}

/** `path`: null for no URLs. */
function urlsBelow({ http, https, ws, wss }: PortalAddresses, path: string | null, { transports }: ManagedApi) {
  const url = (address: string, transport: string): string | null =>
    path === null || address === '' || !transports.includes(transport) ? null : `${address}${path}`
  return { http: url(http, 'http'), https: url(https, 'https'), ws: url(ws, 'http'), wss: url(wss, 'https') }
}

/** The key manager, without addresses that only gateways ask. */
export function keyManagerRepresentation({ tokens, origin, portal }: AdminServices) {
  return {
    id: keyManagerIdOf(tokens.issuer),
    name: 'Resident Key Manager',
    type: 'default',
    enabled: true,
    issuer: tokens.issuer,
    tokenEndpoint: portal.tokenEndpoint,
    revokeEndpoint: portal.revokeEndpoint,
    userInfoEndpoint: `${origin}/oauth2/userinfo`,
    availableGrantTypes: tokens.grants,
  }
}

/** An environment with the hosts of its addresses. */
export function environmentRepresentation({ name, type, description, isInConsole, addresses }: PortalEnvironment) {
  const vhosts = addresses.map(({ http, https, ws, wss }) => ({
    host: URL.parse(https)?.hostname ?? '',
    httpContext: URL.parse(https)?.pathname.replace(/^\/$/, '') ?? '',
    ...{ httpUrl: http, httpsUrl: https, wsUrl: ws, wssUrl: wss },
  }))
  return {
    id: name,
    name,
    displayName: name,
    type,
    description,
    isReadOnly: true,
    showInApiConsole: isInConsole,
    vhosts,
  }
}

/** `api`: null where it is no longer deployed. `pendingTier`: the policy that waits for approval; '' for none. */
export function subscriptionRepresentation(
  { id, applicationId, apiName, apiVersion, tier, status }: Subscription,
  { name, owner }: Application,
  api: ManagedApi | null,
  pendingTier = '',
) {
  const named = { name: apiName, version: apiVersion }
  return {
    subscriptionId: id,
    applicationId,
    apiId: apiIdOf(named),
    apiInfo: api === null ? { id: apiIdOf(named), ...named } : apiInfoRepresentation(api),
    applicationInfo: { applicationId, name, owner },
    throttlingPolicy: tier,
    requestedThrottlingPolicy: pendingTier || tier,
    status: pendingTier === '' ? statusRepresentation(status) : 'TIER_UPDATE_PENDING',
    redirectionParams: '',
  }
}
