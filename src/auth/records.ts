/**
 * Records that the control thread sends to reactors: applications, consumer keys, subscriptions, revoked tokens, and
 * public keys of issuers. Plain data, from the key manager, from issuers, or from files of the home.
 */
import type { CallingApplication } from '../proxy/exchange/caller.ts'

export type ApplicationRecord = CallingApplication

/** Maps the consumer key (OAuth client id) of an issuer to the application that it belongs to. */
export interface ConsumerKeyRecord {
  /** `iss` of the tokens that carry the key. */
  readonly issuer: string
  readonly consumerKey: string
  readonly applicationId: string
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
}

/** `PROD_ONLY_BLOCKED`: blocked for production keys. */
export type SubscriptionStatus = 'ACTIVE' | 'BLOCKED' | 'PROD_ONLY_BLOCKED' | 'ON_HOLD' | 'REJECTED'

export interface SubscriptionRecord {
  /** UUID. */
  readonly id: string
  readonly applicationId: string
  /** `name:version` of the API. */
  readonly api: string
  /** Name of the throttling policy. */
  readonly tier: string
  readonly status: SubscriptionStatus
}

/** Changed applications: whole records that are new or different, and the ids of those that were removed. */
export interface SubscriptionUpdate {
  readonly applications: readonly ApplicationRecord[]
  readonly keys: readonly ConsumerKeyRecord[]
  readonly subscriptions: readonly SubscriptionRecord[]
  readonly removed: {
    readonly applications: readonly string[]
    /** As `consumerKeyId` returns them. */
    readonly keys: readonly string[]
    readonly subscriptions: readonly string[]
  }
}

export const NOTHING_REMOVED: SubscriptionUpdate['removed'] = { applications: [], keys: [], subscriptions: [] }

/** Identifies a consumer key: two issuers may use the same one for different applications. */
export function consumerKeyId({ issuer, consumerKey }: Pick<ConsumerKeyRecord, 'issuer' | 'consumerKey'>): string {
  return `${issuer}\n${consumerKey}`
}

/** Applications that files of the home declare. */
export interface DeclaredApplications {
  readonly applications: readonly ApplicationRecord[]
  readonly keys: readonly ConsumerKeyRecord[]
  readonly subscriptions: readonly SubscriptionRecord[]
}

export const NOTHING_DECLARED: DeclaredApplications = { applications: [], keys: [], subscriptions: [] }

/** A revoked token; the record is kept until the token would have expired. */
export interface RevocationRecord {
  /** jti, else `#` and the base64url SHA-256 of header and payload, or of the whole opaque token. */
  readonly key: string
  /** Milliseconds since 1970: from then on the record is of no use. */
  readonly expiresMs: number
}

/** The public keys of an issuer, as a key set (RFC 7517) publishes them. */
export interface IssuerKeys {
  /** `iss` of its tokens. */
  readonly issuer: string
  readonly keys: readonly PublicJwk[]
}

export interface PublicJwk {
  readonly kty: string
  readonly kid: string
  readonly alg: string
  readonly [member: string]: unknown
}
