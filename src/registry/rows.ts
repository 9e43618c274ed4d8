/** Between rows and what they stand for. */
import type { ApplicationFacts, KeyFacts, RevokedFacts, SubscriptionFacts } from '../identity/facts.ts'
import type { Application, Client, IssuedToken, Subscription } from './entities.ts'
import type { ApplicationRow, ClientRow, SubscriptionRow, TokenRow } from './tables.ts'

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

export function applicationFacts(row: ApplicationRow): ApplicationFacts {
  const { id, name, owner, tenant, tier } = row
  return { id, name, owner, tenant, tier, attributes: JSON.parse(row.attributes) }
}

/** None of a client that stands for no application. */
export function keyFacts(row: ClientRow, issuer: string): readonly KeyFacts[] {
  if (row.application_id === null) return []
  return [{ issuer, consumerKey: row.consumer_key, applicationId: row.application_id, keyType: row.key_type }]
}

export function subscriptionFacts(row: SubscriptionRow): SubscriptionFacts {
  const { id, tier, status } = row
  return { id, applicationId: row.application_id, api: `${row.api_name}:${row.api_version}`, tier, status }
}

export function revokedFacts(row: { readonly revocation_key: string; readonly expires_ms: number }): RevokedFacts {
  return { key: row.revocation_key, expiresMs: Number(row.expires_ms) }
}
