/** Authentication and authorisation in a reactor: joins tokens, passwords, backend credentials and open tunnels. */
import { LRUCache } from 'lru-cache'
import type { MetricsColumn } from '../observe/metrics.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { Evictions, growingTo } from '../runtime/lru-options.ts'
import type { AuthPlan } from './auth-plan.ts'
import type { AuthState } from './auth-state.ts'
import { BackendCredentials } from './backend-credentials.ts'
import type { CustomValidator } from './custom-validator.ts'
import { OpenTunnels } from './open-tunnels.ts'
import { PasswordValidator } from './password-validator.ts'
import { TokenValidator } from './token-validator.ts'

/** Anonymous callers that are cached, by address; beyond them the one that is unused for longest is dropped. */
const ANONYMOUS_MAX = 8192
const NO_SCOPES: ReadonlySet<string> = new Set()
/** Shared options object: without one the cache allocates an object for each lookup. */
const NO_OPTIONS: LRUCache.GetOptions<string, Caller, unknown> = {}

type AnonymousCallers = LRUCache<string, Caller>

/** A Map would look for its oldest key behind all keys that it has dropped: 1.2 us, where this takes 0.2. */
function anonymousCallers({ dispose }: Evictions): AnonymousCallers {
  return new LRUCache<string, Caller>({ ...growingTo(ANONYMOUS_MAX), dispose })
}

interface ReactorAuthContext {
  readonly authState: AuthState
  /** Null: subscriptions and scopes alone decide. */
  readonly validator: CustomValidator | null
  readonly report: Report
  readonly metrics: Pick<MetricsColumn, 'add'>
  /** Milliseconds of a monotonic clock at the last tick. */
  readonly nowMs: () => number
}

export class ReactorAuth {
  readonly state: AuthState
  readonly tokens: TokenValidator
  readonly passwords: PasswordValidator
  readonly backend: BackendCredentials
  readonly tunnels: OpenTunnels
  readonly report: Report
  readonly metrics: Pick<MetricsColumn, 'add'>
  #plan: AuthPlan
  #validator: CustomValidator | null
  readonly #evictions = new Evictions()
  readonly #anonymous = {
    PRODUCTION: anonymousCallers(this.#evictions),
    SANDBOX: anonymousCallers(this.#evictions),
  }
  /** Milliseconds since 1970 at the last tick: no request reads a clock, and a token is valid a tick longer. */
  #wallMs = Date.now()

  constructor(
    { auth: plan, reactors }: { readonly auth: AuthPlan; readonly reactors: number },
    { authState: state, validator, report, metrics, nowMs }: ReactorAuthContext,
  ) {
    const wallMs = (): number => this.#wallMs
    this.#plan = plan
    this.#validator = validator
    this.state = state
    this.report = report
    this.metrics = metrics
    const clocks = { tickMs: nowMs, wallMs, exactMs: Date.now }
    this.tokens = new TokenValidator({ state, metrics, reactors, ...clocks }, plan)
    this.passwords = new PasswordValidator({ state, metrics, nowMs })
    this.backend = new BackendCredentials(plan.backendJwt, { call: call => state.call(call), metrics, report })
    this.tunnels = new OpenTunnels(this)
  }

  get plan(): AuthPlan {
    return this.#plan
  }

  get validator(): CustomValidator | null {
    return this.#validator
  }

  /** At a reload. AuthState gets the plan from its owner. */
  updatePlan(plan: AuthPlan, validator: CustomValidator | null): void {
    this.#plan = plan
    this.#validator = validator
    this.tokens.updatePlan(plan)
    this.backend.updatePlan(plan.backendJwt)
  }

  tick(): void {
    this.#wallMs = Date.now()
    this.tunnels.tick(this.#wallMs)
  }

  /** Usage of the cache of callers without credentials. Its hits are not counted: that would cost every request. */
  anonymousUsage(): CacheUsage {
    const { PRODUCTION, SANDBOX } = this.#anonymous
    return { entries: PRODUCTION.size + SANDBOX.size, evictions: this.#evictions.count }
  }

  /** Gives its memory back to the arena. */
  stop(): void {
    this.tokens.clear()
  }

  /** Caller of requests that need no credentials; one object per address and key type. */
  anonymous(address: string, keyType: Caller['keyType']): Caller {
    const known = this.#anonymous[keyType]
    const caller = known.get(address, NO_OPTIONS)
    return caller ?? this.#newAnonymous(known, address, keyType)
  }

  #newAnonymous(known: AnonymousCallers, address: string, keyType: Caller['keyType']): Caller {
    const application = { id: address, name: address, owner: '', tenant: '', tier: 'Unlimited', attributes: {} }
    const caller: Caller = {
      method: 'none',
      user: 'anonymous',
      tenant: '',
      isApplication: false,
      keyType,
      application,
      consumerKey: '',
      heldScopes: NO_SCOPES,
      subscriptionTier: 'Unauthenticated',
      claims: {},
      expiresMs: 0,
      revocationKey: '',
      limits: null,
    }
    known.set(address, caller)
    return caller
  }
}
