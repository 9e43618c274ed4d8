/** Entities for registry tests, and a listener that records what the registry reports. */
import { randomUUID } from 'node:crypto'
import type { RevocationRecord, SubscriptionUpdate } from '../../../src/auth/records.ts'
import type { Application, Client, IssuedToken } from '../../../src/control/registry/entities.ts'
import type { Registry } from '../../../src/control/registry/registry.ts'
import type { PolicySet } from '../../../src/throttle/policy.ts'

export const TENANT = 'carbon.super'
export const PAGE = { offset: 0, limit: 100 }

export const REFUSED = (reason: string, field: string) => ({ name: 'RegistryRefusal', reason, field })

export function applicationCalled(name: string): Omit<Application, 'id' | 'createdMs'> {
  const attributes = { team: 'kitchen' }
  return { name, owner: 'admin', tenant: TENANT, description: '', tier: 'Unlimited', attributes, tokenType: 'JWT' }
}

export function clientOf(applicationId: string | null): Omit<Client, 'consumerKey'> {
  return {
    name: 'a client',
    applicationId,
    keyType: 'PRODUCTION',
    owner: 'admin',
    tenant: TENANT,
    grants: ['client_credentials', 'refresh_token'],
    redirectUris: ['https://app.example/back'],
    isPublic: false,
    tokenType: 'JWT',
    validityS: 0,
  }
}

export function tokenOf(consumerKey: string, change: Partial<IssuedToken> = {}): IssuedToken {
  const id = randomUUID()
  return {
    id,
    kind: 'access',
    revocationKey: `jti-${id}`,
    consumerKey,
    user: 'admin',
    tenant: TENANT,
    isApplication: false,
    scopes: ['menu:read'],
    issuedMs: Date.now(),
    expiresMs: Date.now() + 3_600_000,
    state: 'ACTIVE',
    family: id,
    ...change,
  }
}

/** Records the reports of a registry from now on. */
export class RecordingListener {
  readonly updates: SubscriptionUpdate[] = []
  readonly revoked: RevocationRecord[] = []
  readonly policySets: PolicySet[] = []
  missedCount = 0
  userChanges = 0
  #changed = Promise.withResolvers<void>()

  constructor(registry: Registry) {
    registry.listener = {
      subscriptionsChanged: updates => {
        this.updates.push(updates)
        this.#next()
      },
      tokensRevoked: tokens => {
        this.revoked.push(...tokens)
        this.#next()
      },
      usersChanged: () => {
        this.userChanges++
        this.#next()
      },
      policiesChanged: set => {
        this.policySets.push(set)
        this.#next()
      },
      changesMissed: () => {
        this.missedCount++
        this.#next()
      },
    }
  }

  /** Resolves when the condition holds after a further report. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await this.#changed.promise
  }

  #next(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers<void>()
  }
}
