/**
 * Applications, consumer keys and subscriptions of a reactor, kept whole and updated with every change. Strings that
 * many records share are stored once.
 */
import {
  type ApplicationRecord,
  type ConsumerKeyRecord,
  consumerKeyId,
  type SubscriptionRecord,
  type SubscriptionStatus,
  type SubscriptionUpdate,
} from './records.ts'

type KeyType = ConsumerKeyRecord['keyType']

interface ConsumerKey {
  readonly applicationId: string
  readonly keyType: KeyType
}

interface Subscription {
  readonly applicationId: string
  readonly api: string
  readonly tier: string
  readonly status: SubscriptionStatus
}

/** A valid subscription. */
interface Subscribed {
  readonly kind: 'subscribed'
  readonly application: ApplicationRecord
  readonly keyType: KeyType
  readonly tier: string
}

/** 900908: there is none. 900907: it is blocked. 900909: it is not active. */
interface Unsubscribed {
  readonly kind: 'unsubscribed'
  /** Undefined where the client is unknown. */
  readonly keyType: KeyType | undefined
  readonly code: 900907 | 900908 | 900909
}

export type FoundSubscription = Subscribed | Unsubscribed

/** Limit of shared strings; at the limit the table is cleared. */
const STRINGS_MAX = 250_000

function unsubscribed(code: Unsubscribed['code'], keyType: KeyType | undefined): Unsubscribed {
  return { kind: 'unsubscribed', code, keyType }
}

export class SubscriptionIndex {
  readonly #applications = new Map<string, ApplicationRecord>()
  /** By `consumerKeyId`. */
  readonly #keys = new Map<string, ConsumerKey>()
  /** By id, for updates. */
  readonly #subscriptions = new Map<string, Subscription>()
  /** By API, then by application. */
  readonly #byApi = new Map<string, Map<string, Subscription>>()
  /** The first copy of each string: every message brings copies of its own. */
  readonly #strings = new Map<string, string>()

  /** Numbers of records. */
  get size(): { readonly applications: number; readonly keys: number; readonly subscriptions: number } {
    return {
      applications: this.#applications.size,
      keys: this.#keys.size,
      subscriptions: this.#subscriptions.size,
    }
  }

  /** Removes before it adds: one update may replace the subscription of an application to an API. */
  apply({ applications, keys, subscriptions, removed }: SubscriptionUpdate): void {
    for (const id of removed.subscriptions) this.#removeSubscription(id)
    for (const name of removed.keys) this.#keys.delete(name)
    for (const id of removed.applications) this.#applications.delete(id)
    for (const application of applications) this.#applications.set(application.id, application)
    for (const key of keys) {
      this.#keys.set(consumerKeyId(key), { applicationId: this.#shared(key.applicationId), keyType: key.keyType })
    }
    for (const subscription of subscriptions) this.#addSubscription(subscription)
  }

  #addSubscription({ id, applicationId, api, tier, status }: SubscriptionRecord): void {
    this.#removeSubscription(id)
    const added = {
      applicationId: this.#shared(applicationId),
      api: this.#shared(api),
      tier: this.#shared(tier),
      status,
    }
    this.#subscriptions.set(id, added)
    let ofApi = this.#byApi.get(added.api)
    if (ofApi === undefined) {
      ofApi = new Map()
      this.#byApi.set(added.api, ofApi)
    }
    ofApi.set(added.applicationId, added)
  }

  #removeSubscription(id: string): void {
    const removed = this.#subscriptions.get(id)
    if (removed === undefined) return
    this.#subscriptions.delete(id)
    const ofApi = this.#byApi.get(removed.api)
    // Another subscription of the same application may have replaced it.
    if (ofApi?.get(removed.applicationId) !== removed) return
    ofApi.delete(removed.applicationId)
    if (ofApi.size === 0) this.#byApi.delete(removed.api)
  }

  /** Subscription of the client that a token names. `api`: `name:version`. */
  forConsumerKey(issuer: string, consumerKey: string, api: string): FoundSubscription {
    const key = this.#keys.get(consumerKeyId({ issuer, consumerKey }))
    return key === undefined
      ? unsubscribed(900908, undefined)
      : this.forApplication(key.applicationId, key.keyType, api)
  }

  /** Subscription of an application, as an API key names it. */
  forApplication(applicationId: string, keyType: KeyType, api: string): FoundSubscription {
    const application = this.#applications.get(applicationId)
    const subscription = this.#byApi.get(api)?.get(applicationId)
    if (application === undefined || subscription === undefined) return unsubscribed(900908, keyType)
    const { status, tier } = subscription
    const isBlocked = status === 'BLOCKED' || (status === 'PROD_ONLY_BLOCKED' && keyType === 'PRODUCTION')
    if (isBlocked) return unsubscribed(900907, keyType)
    if (status === 'ON_HOLD' || status === 'REJECTED') return unsubscribed(900909, keyType)
    return { kind: 'subscribed', application, keyType, tier }
  }

  /** The first equal string, so that the copy of a message can be freed. */
  #shared(text: string): string {
    const known = this.#strings.get(text)
    if (known !== undefined) return known
    // Strings of removed records must not pile up; duplicates after this cost only memory.
    if (this.#strings.size >= STRINGS_MAX) this.#strings.clear()
    this.#strings.set(text, text)
    return text
  }
}
