/** The tables, as Kysely is told of them. Flags are 0 or 1, lists and maps JSON, times milliseconds since 1970. */
import type { SubscriptionStatus } from '../identity/facts.ts'
import type { Application, Client, IssuedToken } from './entities.ts'

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
  readonly sluice_families: { family: string; state: 'ACTIVE' | 'REVOKED'; expires_ms: number }
  readonly sluice_tokens: TokenRow
  readonly sluice_token_audit: Omit<TokenRow, 'hash' | 'data' | 'kept'>
  readonly sluice_revocations: { revocation_key: string; consumer_key: string; expires_ms: number }
  readonly sluice_change_counter: { id: number; value: number }
  readonly sluice_changes: { seq: number; node: string; made_ms: number; kind: ChangeKind; ref: string }
}

/**
 * What a row of the list of changes is about: `ref` is an id, a consumer key, what a revocation is known by, or a role
 * that is gone.
 */
export type ChangeKind = 'application' | 'key' | 'subscription' | 'revoked' | 'user'

export interface UserRow {
  id: string
  tenant: string
  name: string
  /** What names are compared by. */
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
  /** '' of a public one. */
  secret_hash: string
  created_ms: number
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
  /** The token itself, encrypted; '' where configuration wants none of it. */
  kept: string
}
