/** Entities of the registry: users, applications, OAuth clients, subscriptions, approval requests, issued tokens. */
import type { SubscriptionStatus } from '../../auth/records.ts'

/** A section of a list. */
export interface Page {
  readonly offset: number
  readonly limit: number
}

export interface User {
  readonly id: string
  /** Without its tenant. */
  readonly name: string
  readonly tenant: string
  readonly roles: readonly string[]
  /** By claim URI or name. */
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

/** An OAuth client. Its secret is stored as a hash and shown once, when it is created or renewed. */
export interface Client {
  readonly consumerKey: string
  readonly name: string
  /** Null for a client without an application. */
  readonly applicationId: string | null
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  readonly owner: string
  readonly tenant: string
  readonly grants: readonly string[]
  /** Compared exactly (RFC 9700 2.1). */
  readonly redirectUris: readonly string[]
  /** A public client has no secret and must use PKCE (RFC 8252). */
  readonly isPublic: boolean
  readonly tokenType: 'JWT' | 'OPAQUE'
  /** Life of access tokens in seconds; 0 for the configured life. */
  readonly validityS: number
}

/** Members that a client has registered by RFC 7591 beyond those of `Client`. */
export interface ClientRegistration {
  readonly authMethod: 'client_secret_basic' | 'client_secret_post' | 'none'
  /** `post_logout_redirect_uris`, compared exactly. */
  readonly logoutUris: readonly string[]
  readonly createdMs: number
}

/** A request that waits for approval, or was decided. One per subject; a new request replaces a rejected one. */
export interface Workflow {
  readonly id: string
  /** Names of the reference platform. */
  readonly kind:
    | 'AM_APPLICATION_CREATION'
    | 'AM_APPLICATION_REGISTRATION_PRODUCTION'
    | 'AM_APPLICATION_REGISTRATION_SANDBOX'
    | 'AM_SUBSCRIPTION_CREATION'
    | 'AM_SUBSCRIPTION_UPDATE'
  readonly applicationId: string
  /** Id of the subscription; otherwise that of the application. */
  readonly subject: string
  readonly tenant: string
  readonly requester: string
  readonly status: 'CREATED' | 'APPROVED' | 'REJECTED'
  /** Texts for those who decide. */
  readonly properties: Readonly<Record<string, string>>
  /** Reason of the decision. */
  readonly description: string
  readonly createdMs: number
  readonly updatedMs: number
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

/** An issued access token, refresh token or authorization code. The registry stores its hash. */
export interface IssuedToken {
  readonly id: string
  readonly kind: 'access' | 'refresh' | 'code'
  /** `jti` of a JWT, or the revocation key of an opaque token. */
  readonly revocationKey: string
  readonly consumerKey: string
  readonly user: string
  readonly tenant: string
  readonly isApplication: boolean
  readonly scopes: readonly string[]
  readonly issuedMs: number
  readonly expiresMs: number
  readonly state: 'ACTIVE' | 'USED' | 'REVOKED'
  /** Identifies all tokens of one authorisation: a replay of one revokes them all (RFC 9700 4.14.2). */
  readonly family: string
}
