/** Things to put into a registry, and what it has told. */
import { randomUUID } from 'node:crypto'
import type { RevokedFacts, SubscriptionNews } from '../../src/identity/facts.ts'
import type { Application, Client, IssuedToken } from '../../src/registry/entities.ts'
import type { Registry } from '../../src/registry/registry.ts'

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

/** What a registry tells, from now on. */
export class Told {
  readonly news: SubscriptionNews[] = []
  readonly revoked: RevokedFacts[] = []
  misses = 0
  users = 0
  #changed = Promise.withResolvers<void>()

  constructor(registry: Registry) {
    registry.listener = {
      subscriptions: news => {
        this.news.push(news)
        this.#next()
      },
      revoked: tokens => {
        this.revoked.push(...tokens)
        this.#next()
      },
      users: () => {
        this.users++
        this.#next()
      },
      missed: () => {
        this.misses++
        this.#next()
      },
    }
  }

  /** Resolves as soon as something more was told for which it holds. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await this.#changed.promise
  }

  #next(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers<void>()
  }
}
