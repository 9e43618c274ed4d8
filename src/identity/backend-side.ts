/** What a reactor holds for backends: tokens that say who calls, and tokens that let the gateway in. */
import type { Report } from '../exchange/surroundings.ts'
import { BackendJwts } from './backend-jwt.ts'
import { BackendToken } from './backend-tokens.ts'
import type { BackendJwtPlan } from './identity-plan.ts'

interface BackendSources {
  readonly ask: ConstructorParameters<typeof BackendToken>[1]['ask']
  readonly metrics: { add(cell: number, by: number): void }
  readonly report: Report
}

export class BackendSide {
  readonly jwts: BackendJwts
  readonly report: Report
  readonly #sources: ConstructorParameters<typeof BackendToken>[1]
  /** Those that no handler has any more go with a reload. */
  readonly #tokens = new Map<string, WeakRef<BackendToken>>()

  constructor(plan: BackendJwtPlan, { ask, metrics, report }: BackendSources) {
    this.#sources = { ask, now: Date.now }
    this.report = report
    this.jwts = new BackendJwts(plan, { ...this.#sources, metrics })
  }

  /** One for all handlers of its API, old and new. `key`: as plans have it. */
  tokenFor(key: string): BackendToken {
    const known = this.#tokens.get(key)?.deref()
    if (known !== undefined) return known
    const token = new BackendToken(key, this.#sources)
    this.#tokens.set(key, new WeakRef(token))
    return token
  }

  /** A reload: nothing that was made before it is used for what comes. */
  renew(plan: BackendJwtPlan): void {
    this.jwts.renew(plan)
    for (const [key, kept] of this.#tokens) {
      const token = kept.deref()
      if (token === undefined) this.#tokens.delete(key)
      else token.forget()
    }
  }
}
