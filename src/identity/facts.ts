/** What gateways are told of applications and their rights: plain data, from the key manager or from files. */
import type { CallingApplication } from '../exchange/caller.ts'

export type ApplicationFacts = CallingApplication

/** Which application a client of a key manager stands for. */
export interface KeyFacts {
  /** `iss` of the tokens that carry it. */
  readonly issuer: string
  readonly consumerKey: string
  readonly applicationId: string
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
}

/** `PROD_ONLY_BLOCKED`: blocked for production keys. */
export type SubscriptionStatus = 'ACTIVE' | 'BLOCKED' | 'PROD_ONLY_BLOCKED' | 'ON_HOLD' | 'REJECTED'

export interface SubscriptionFacts {
  /** UUID. */
  readonly id: string
  readonly applicationId: string
  /** `name:version` of the API. */
  readonly api: string
  /** Name of the throttling policy. */
  readonly tier: string
  readonly status: SubscriptionStatus
}

/** What has become of applications: keys of what is gone, and all of what is new or different. */
export interface SubscriptionNews {
  readonly applications: readonly ApplicationFacts[]
  readonly keys: readonly KeyFacts[]
  readonly subscriptions: readonly SubscriptionFacts[]
  readonly removed: {
    readonly applications: readonly string[]
    /** As `keyName` has it. */
    readonly keys: readonly string[]
    readonly subscriptions: readonly string[]
  }
}

export const NOTHING_REMOVED: SubscriptionNews['removed'] = { applications: [], keys: [], subscriptions: [] }

/** What a consumer key is known by: keys of one issuer say nothing about those of another. */
export function keyName({ issuer, consumerKey }: Pick<KeyFacts, 'issuer' | 'consumerKey'>): string {
  return `${issuer}\n${consumerKey}`
}

/** A token that is not good any more, for as long as it would have been. */
export interface RevokedFacts {
  /** jti where the token has one, else `#` and the base64url SHA-256 of header and payload (of all of it: opaque). */
  readonly key: string
  /** Milliseconds since 1970: from then on nobody needs to know. */
  readonly expiresMs: number
}

/** The public keys of an issuer, as a key set (RFC 7517) has them. */
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

/** What a revocation of an opaque token, or of a token without jti, is known by. */
export type RevocationKey = RevokedFacts['key']
