/** Entities as the reference platform's REST APIs show them. Secrets are in none but the answer that has made them. */
import type { Application, Client, Subscription } from '../registry/entities.ts'
import { apiIdOf, keyMappingIdOf } from './names.ts'
import type { ManagedApi, ManagementRoom } from './room.ts'

/** ACTIVE is called so in the registry, and UNBLOCKED in the API. */
function statusShape(status: Subscription['status']): string {
  return status === 'ACTIVE' ? 'UNBLOCKED' : status
}

export function applicationShape(application: Application, subscriptionCount: number) {
  const { id, name, tier, description, tokenType, attributes, owner, createdMs } = application
  return {
    applicationId: id,
    name,
    throttlingPolicy: tier,
    description,
    tokenType,
    status: 'APPROVED',
    groups: [],
    subscriptionCount,
    attributes,
    subscriptionScopes: [],
    owner,
    hashEnabled: true,
    createdTime: String(createdMs),
  }
}

/** `secret`: '' where it is not told. */
export function keyShape(client: Client, secret: string, { tokens }: ManagementRoom) {
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

export function apiInfoShape(api: ManagedApi) {
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

export function apiShape(api: ManagedApi) {
  const { operations, isDefaultVersion, tiers } = api
  return { ...apiInfoShape(api), isDefaultVersion, policies: tiers, operations }
}

/** `api`: null where it is not deployed any more. */
export function subscriptionShape(
  { id, applicationId, apiName, apiVersion, tier, status }: Subscription,
  { name, owner }: Application,
  api: ManagedApi | null,
) {
  const named = { name: apiName, version: apiVersion }
  return {
    subscriptionId: id,
    applicationId,
    apiId: apiIdOf(named),
    apiInfo: api === null ? { id: apiIdOf(named), ...named } : apiInfoShape(api),
    applicationInfo: { applicationId, name, owner },
    throttlingPolicy: tier,
    requestedThrottlingPolicy: tier,
    status: statusShape(status),
    redirectionParams: '',
  }
}
