/**
 * Types of the tables, and mappings from rows to entities and to records for gateways. Flags are 0 or 1, lists and maps
 * are JSON, times are milliseconds since 1970.
 */
import type {
  ApplicationRecord,
  ConsumerKeyRecord,
  RevocationRecord,
  SubscriptionRecord,
  SubscriptionStatus,
} from '../../auth/records.ts'
import type { DenyPolicy, PolicyLevel } from '../../throttle/policy.ts'
import type { Application, Client, ClientRegistration, IssuedToken, Subscription, Workflow } from './entities.ts'

export interface Tables {
  readonly sluice_schema: { part: string; version: number }
  readonly sluice_settings: { name: string; value: string }
  readonly sluice_tenants: { domain: string; created_ms: number }
  readonly sluice_users: UserRow
  readonly sluice_roles: { tenant: string; name: string }
  readonly sluice_user_roles: { user_id: string; tenant: string; role: string }
  readonly sluice_applications: ApplicationRow
  readonly sluice_clients: ClientRow
  readonly sluice_subscriptions: SubscriptionRow
  readonly sluice_client_registrations: ClientRegistrationRow
  readonly sluice_workflows: WorkflowRow
  readonly sluice_families: { family: string; state: 'ACTIVE' | 'REVOKED'; expires_ms: number }
  readonly sluice_tokens: TokenRow
  readonly sluice_token_audit: Omit<TokenRow, 'hash' | 'data' | 'kept'>
  readonly sluice_revocations: { revocation_key: string; consumer_key: string; expires_ms: number }
  readonly sluice_change_counter: { id: number; value: number }
  readonly sluice_signing_keys: SigningKeyRow
  /** `issuer`: of the tokens of this node's key manager. */
  readonly sluice_issuer: { id: number; issuer: string }
  readonly sluice_nodes: { node: string; issuer: string; seen_ms: number }
  readonly sluice_policies: PolicyRow
  readonly sluice_deny_policies: DenyPolicyRow
  readonly sluice_changes: { seq: number; node: string; made_ms: number; kind: ChangeKind; ref: string }
}

/** Subject of a change. `ref` is an id, a consumer key, a revocation key, the name of a removed role, or a `kid`. */
export type ChangeKind = 'application' | 'key' | 'subscription' | 'revoked' | 'user' | 'signing_key' | 'policy'

export interface PolicyRow {
  id: string
  level: PolicyLevel
  name: string
  /** JSON of the REST body. */
  body: string
}

export interface DenyPolicyRow {
  id: string
  kind: DenyPolicy['type']
  value: string
  is_inverted: number
  is_enabled: number
}

export interface UserRow {
  id: string
  tenant: string
  name: string
  /** Normalised name for comparison. */
  name_key: string
  password_hash: string
  claims: string
  is_locked: number
  created_ms: number
}

export interface ApplicationRow {
  id: string
  tenant: string
  owner: string
  name: string
  description: string
  tier: string
  attributes: string
  token_type: Application['tokenType']
  created_ms: number
}

export interface ClientRow {
  consumer_key: string
  name: string
  application_id: string | null
  key_type: Client['keyType']
  owner: string
  tenant: string
  grants: string
  redirect_uris: string
  is_public: number
  token_type: Client['tokenType']
  validity_s: number
  /** '' for a public client. */
  secret_hash: string
  created_ms: number
}

interface ClientRegistrationRow {
  consumer_key: string
  /** SHA-256 of the registration access token, base64url. */
  token_hash: string
  auth_method: ClientRegistration['authMethod']
  logout_uris: string
  created_ms: number
}

export interface WorkflowRow {
  id: string
  kind: Workflow['kind']
  application_id: string
  subject: string
  tenant: string
  requester: string
  status: Workflow['status']
  properties: string
  description: string
  created_ms: number
  updated_ms: number
  /** The workflow engine has it, or none is called. */
  is_sent: number
  /** Time of the last attempt to call the engine; 0: none. */
  tried_ms: number
}

export interface SubscriptionRow {
  id: string
  application_id: string
  api_name: string
  api_version: string
  tier: string
  status: SubscriptionStatus
  created_ms: number
}

export interface TokenRow {
  id: string
  /** SHA-256 of the token, base64url. */
  hash: string
  kind: IssuedToken['kind']
  revocation_key: string
  consumer_key: string
  user_name: string
  tenant: string
  is_application: number
  scopes: string
  issued_ms: number
  expires_ms: number
  state: IssuedToken['state']
  family: string
  data: string
  /** Always '': earlier releases kept encrypted tokens here, which nothing read. */
  kept: string
}

export interface SigningKeyRow {
  kid: string
  created_ms: number
  signs_from_ms: number
  until_ms: number
  /** Encrypted PKCS#8. */
  private_key: string
}

export function applicationOf(row: ApplicationRow): Application {
  const { id, name, owner, tenant, description, tier } = row
  return {
    ...{ id, name, owner, tenant, description, tier },
    attributes: JSON.parse(row.attributes),
    tokenType: row.token_type,
    createdMs: Number(row.created_ms),
  }
}

export function clientOf(row: ClientRow): Client {
  const { name, owner, tenant } = row
  return {
    consumerKey: row.consumer_key,
    ...{ name, owner, tenant },
    applicationId: row.application_id,
    keyType: row.key_type,
    grants: JSON.parse(row.grants),
    redirectUris: JSON.parse(row.redirect_uris),
    isPublic: row.is_public === 1,
    tokenType: row.token_type,
    validityS: Number(row.validity_s),
  }
}

export function subscriptionOf(row: SubscriptionRow): Subscription {
  const { id, tier, status } = row
  return {
    id,
    applicationId: row.application_id,
    apiName: row.api_name,
    apiVersion: row.api_version,
    ...{ tier, status },
    createdMs: Number(row.created_ms),
  }
}

export function registrationOf({ auth_method, logout_uris, created_ms }: ClientRegistrationRow): ClientRegistration {
  return { authMethod: auth_method, logoutUris: JSON.parse(logout_uris), createdMs: Number(created_ms) }
}

export function workflowOf(row: WorkflowRow): Workflow {
  const { id, kind, subject, tenant, requester, status, description } = row
  return {
    ...{ id, kind, subject, tenant, requester, status, description },
    applicationId: row.application_id,
    properties: JSON.parse(row.properties),
    createdMs: Number(row.created_ms),
    updatedMs: Number(row.updated_ms),
  }
}

export function tokenOf(row: TokenRow): IssuedToken {
  const { id, kind, tenant, state, family } = row
  return {
    ...{ id, kind, tenant, state, family },
    revocationKey: row.revocation_key,
    consumerKey: row.consumer_key,
    user: row.user_name,
    isApplication: row.is_application === 1,
    scopes: JSON.parse(row.scopes),
    issuedMs: Number(row.issued_ms),
    expiresMs: Number(row.expires_ms),
  }
}

export function applicationRecord(row: ApplicationRow): ApplicationRecord {
  const { id, name, owner, tenant, tier } = row
  return { id, name, owner, tenant, tier, attributes: JSON.parse(row.attributes) }
}

/** An empty list for a client without an application. */
export function keyRecords(row: ClientRow, issuer: string): readonly ConsumerKeyRecord[] {
  if (row.application_id === null) return []
  return [{ issuer, consumerKey: row.consumer_key, applicationId: row.application_id, keyType: row.key_type }]
}

export function subscriptionRecord(row: SubscriptionRow): SubscriptionRecord {
  const { id, tier, status } = row
  return { id, applicationId: row.application_id, api: `${row.api_name}:${row.api_version}`, tier, status }
}

export function revocationRecord(row: {
  readonly revocation_key: string
  readonly expires_ms: number
}): RevocationRecord {
  return { key: row.revocation_key, expiresMs: Number(row.expires_ms) }
}
