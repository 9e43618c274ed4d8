/** What the key manager keeps: tenants, users and their roles, applications, their keys and subscriptions, tokens. */
import type { SubscriptionStatus } from '../identity/facts.ts'

export interface User {
  readonly id: string
  /** Without a tenant. */
  readonly name: string
  readonly tenant: string
  readonly roles: readonly string[]
  /** Claims by their URI or name. */
  readonly claims: Readonly<Record<string, string>>
  readonly isLocked: boolean
}

export interface Application {
  readonly id: string
  readonly name: string
  readonly owner: string
  readonly tenant: string
  readonly description: string
  readonly tier: string
  readonly attributes: Readonly<Record<string, string>>
  readonly tokenType: 'JWT' | 'OPAQUE'
  readonly createdMs: number
}

/** An OAuth client. Its secret is kept as a hash, and told once. */
export interface Client {
  readonly consumerKey: string
  readonly name: string
  /** Null: registered, and not mapped to an application. */
  readonly applicationId: string | null
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  readonly owner: string
  readonly tenant: string
  readonly grants: readonly string[]
  /** Compared exactly (RFC 9700 2.1). */
  readonly redirectUris: readonly string[]
  /** Without a secret: PKCE is required (RFC 8252). */
  readonly isPublic: boolean
  readonly tokenType: 'JWT' | 'OPAQUE'
  /** Seconds; 0: as configured. */
  readonly validityS: number
}

export interface Subscription {
  readonly id: string
  readonly applicationId: string
  readonly apiName: string
  readonly apiVersion: string
  readonly tier: string
  readonly status: SubscriptionStatus
  readonly createdMs: number
}

/** A token that was given. Of the token itself there is a hash, and what configuration wants to be kept besides. */
export interface IssuedToken {
  readonly id: string
  readonly kind: 'access' | 'refresh' | 'code'
  /** jti, or of an opaque one its key in the list of revocations. */
  readonly revocationKey: string
  readonly consumerKey: string
  readonly user: string
  readonly tenant: string
  readonly isApplication: boolean
  readonly scopes: readonly string[]
  readonly issuedMs: number
  readonly expiresMs: number
  readonly state: 'ACTIVE' | 'USED' | 'REVOKED'
  /** All that came of one authorisation: the replay of one of them ends them all (RFC 9700 4.14.2). */
  readonly family: string
}
