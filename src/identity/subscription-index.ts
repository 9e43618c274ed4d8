/**
 * Which application a consumer key stands for, and what it is subscribed to. Held in each reactor, and told of every
 * change. Names that many rows share are kept once.
 */
import type { ApplicationFacts, KeyFacts, SubscriptionFacts, SubscriptionNews, SubscriptionStatus } from './facts.ts'
import { keyName } from './facts.ts'

type KeyType = KeyFacts['keyType']

interface Key {
  readonly applicationId: string
  readonly keyType: KeyType
}

interface Subscription {
  readonly applicationId: string
  readonly api: string
  readonly tier: string
  readonly status: SubscriptionStatus
}

/** A subscription that holds. */
interface Subscribed {
  readonly kind: 'subscribed'
  readonly application: ApplicationFacts
  readonly keyType: KeyType
  readonly tier: string
}

/** 900908: there is none. 900907: it is blocked. 900909: it is not active. */
interface Unsubscribed {
  readonly kind: 'unsubscribed'
  readonly code: 900907 | 900908 | 900909
}

/** Beyond it sharing begins anew. */
const TEXTS_MAX = 250_000

const NONE: Unsubscribed = { kind: 'unsubscribed', code: 900908 }
const BLOCKED: Unsubscribed = { kind: 'unsubscribed', code: 900907 }
const INACTIVE: Unsubscribed = { kind: 'unsubscribed', code: 900909 }

export class SubscriptionIndex {
  readonly #applications = new Map<string, ApplicationFacts>()
  /** As `keyName` has it. */
  readonly #keys = new Map<string, Key>()
  /** By their ids, for what becomes of them. */
  readonly #subscriptions = new Map<string, Subscription>()
  /** By API, then by application. */
  readonly #byApi = new Map<string, Map<string, Subscription>>()
  /** Names as they came first: every message brings texts of its own. */
  readonly #texts = new Map<string, string>()

  /** Numbers of rows. */
  get size(): { readonly applications: number; readonly keys: number; readonly subscriptions: number } {
    return {
      applications: this.#applications.size,
      keys: this.#keys.size,
      subscriptions: this.#subscriptions.size,
    }
  }

  /** What is gone goes first: one message may replace a row by another of the same place. */
  apply({ applications, keys, subscriptions, removed }: SubscriptionNews): void {
    for (const id of removed.subscriptions) this.#removeSubscription(id)
    for (const name of removed.keys) this.#keys.delete(name)
    for (const id of removed.applications) this.#applications.delete(id)
    for (const application of applications) this.#applications.set(application.id, application)
    for (const key of keys) {
      this.#keys.set(keyName(key), { applicationId: this.#text(key.applicationId), keyType: key.keyType })
    }
    for (const subscription of subscriptions) this.#putSubscription(subscription)
  }

  #putSubscription({ id, applicationId, api, tier, status }: SubscriptionFacts): void {
    this.#removeSubscription(id)
    const row = {
      applicationId: this.#text(applicationId),
      api: this.#text(api),
      tier: this.#text(tier),
      status,
    }
    this.#subscriptions.set(id, row)
    let ofApi = this.#byApi.get(row.api)
    if (ofApi === undefined) {
      ofApi = new Map()
      this.#byApi.set(row.api, ofApi)
    }
    ofApi.set(row.applicationId, row)
  }

  #removeSubscription(id: string): void {
    const row = this.#subscriptions.get(id)
    if (row === undefined) return
    this.#subscriptions.delete(id)
    const ofApi = this.#byApi.get(row.api)
    // Another row may have taken its place.
    if (ofApi?.get(row.applicationId) !== row) return
    ofApi.delete(row.applicationId)
    if (ofApi.size === 0) this.#byApi.delete(row.api)
  }

  /** Of a client, as a token names it. `api`: `name:version`. */
  ofKey(issuer: string, consumerKey: string, api: string): Subscribed | Unsubscribed {
    const key = this.#keys.get(keyName({ issuer, consumerKey }))
    return key === undefined ? NONE : this.ofApplication(key.applicationId, key.keyType, api)
  }

  /** Of an application that is known by itself, as an API key names it. */
  ofApplication(applicationId: string, keyType: KeyType, api: string): Subscribed | Unsubscribed {
    const application = this.#applications.get(applicationId)
    const subscription = this.#byApi.get(api)?.get(applicationId)
    if (application === undefined || subscription === undefined) return NONE
    const { status, tier } = subscription
    if (status === 'BLOCKED' || (status === 'PROD_ONLY_BLOCKED' && keyType === 'PRODUCTION')) return BLOCKED
    if (status === 'ON_HOLD' || status === 'REJECTED') return INACTIVE
    return { kind: 'subscribed', application, keyType, tier }
  }

  #text(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    // Whoever is gone must not be remembered here for good; what is kept twice from then on does no harm.
    if (this.#texts.size >= TEXTS_MAX) this.#texts.clear()
    this.#texts.set(text, text)
    return text
  }
}
