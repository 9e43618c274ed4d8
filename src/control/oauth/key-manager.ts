/**
 * The state that all OAuth endpoints share: registry, keys, sessions, limits, caches. One instance per control thread;
 * a reload replaces settings, scope policy and the operator's modules, everything else lives as long as the thread.
 */
import type { Configuration } from '../../config/catalogue.ts'
import type { IssuerKeys } from '../../auth/records.ts'
import { METRIC } from '../../observe/metrics.ts'
import type { EventLog } from '../../observe/events.ts'
import type { Registry } from '../registry/registry.ts'
import { Lockout, RateLimiter } from './rate-limit.ts'
import { Extensions } from './extensions.ts'
import { GrantModules } from './grant-modules.ts'
import { ScopePolicy } from './scopes.ts'
import { BrowserSessions } from './browser-sessions.ts'
import { type KeyManagerSettings, keyManagerSettings } from './settings.ts'
import { PUBLISHED_AHEAD_MS, SigningKeys } from './signing-keys.ts'
import { type ApiKeyParameters, issueApiKey, issueApplicationToken, type TokenResponse } from './token-issuance.ts'
import { ReplayCache } from './replay-cache.ts'
import { IntrospectionCache } from './introspection-cache.ts'

/** An assertion (RFC 7523 3) whose signature and issuer are verified; its other claims are not validated yet. */
export interface VerifiedAssertion {
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
}

export interface KeyManagerOptions {
  readonly registry: Registry
  /** Configuration folder, which contains the operator's modules. */
  readonly folder: string
  readonly dataDir: string
  /** `https://host:port` of the endpoints. */
  readonly origin: string
  /**
   * Role sets of a scope, one set per API that binds it: a user needs one role of each set. An empty list: every user
   * may have the scope. Null: no API defines it.
   */
  readonly rolesOfScope: (scope: string) => readonly (readonly string[])[] | null
  /** Verifies a JWT of an issuer that is trusted for assertions. Null: no such issuer signed it. */
  readonly verifyAssertion: (assertion: string) => Promise<VerifiedAssertion | null>
  /** Called whenever the published keys change. */
  readonly publishKeys: (keys: IssuerKeys) => void
  readonly report: EventLog['report']
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
}

const MAINTENANCE_MS = 15 * 60_000
/** A node that restarts often rotates its keys, too. */
const FIRST_MAINTENANCE_MS = 5000

export class KeyManager {
  readonly registry: Registry
  readonly report: KeyManagerOptions['report']
  readonly metrics: KeyManagerOptions['metrics']
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
  readonly verifyAssertion: KeyManagerOptions['verifyAssertion']
  readonly signingKeys: SigningKeys
  readonly lockout: Lockout
  readonly rateLimiter: RateLimiter
  readonly sessions: BrowserSessions
  readonly introspectionCache: IntrospectionCache
  readonly replayCache = new ReplayCache()
  readonly #options: KeyManagerOptions
  #settings: KeyManagerSettings
  #scopePolicy: ScopePolicy
  #extensions: Extensions
  #grantModules: GrantModules
  readonly #timer: NodeJS.Timeout
  readonly #firstTimer: NodeJS.Timeout
  /** JSON of the keys that gateways have. */
  #published = ''

  private constructor(
    options: KeyManagerOptions,
    configuration: Configuration,
    signingKeys: SigningKeys,
    extensions: Extensions,
    grantModules: GrantModules,
  ) {
    const { registry, report, metrics, nowMs, verifyAssertion } = options
    this.#options = options
    this.registry = registry
    this.report = report
    this.metrics = metrics
    this.nowMs = nowMs
    this.verifyAssertion = verifyAssertion
    this.signingKeys = signingKeys
    this.lockout = new Lockout(nowMs)
    this.rateLimiter = new RateLimiter(nowMs)
    this.sessions = new BrowserSessions(nowMs)
    this.introspectionCache = new IntrospectionCache(nowMs)
    this.#settings = keyManagerSettings(configuration)
    this.#scopePolicy = this.#newScopePolicy()
    this.#extensions = extensions
    this.#grantModules = grantModules
    this.#timer = setInterval(() => void this.runMaintenance(), MAINTENANCE_MS).unref()
    this.#firstTimer = setTimeout(() => void this.runMaintenance(), FIRST_MAINTENANCE_MS).unref()
  }

  /** Rejects with ModuleError, registry errors, SigningKeysDamaged, and file system errors of the data folder. */
  static async open(options: KeyManagerOptions, configuration: Configuration): Promise<KeyManager> {
    const { signingKeys, taken } = await SigningKeys.open(options.registry.signingKeys, options.dataDir, options.nowMs)
    if (taken !== null) options.report('info', 'signing keys taken in', { KEYS: taken.keys, BACKUP: taken.backup })
    const settings = keyManagerSettings(configuration)
    const extensions = await Extensions.load(options.folder, settings.extensions)
    const grantModules = await GrantModules.load(options.folder, settings.grantModules)
    return new KeyManager(options, configuration, signingKeys, extensions, grantModules)
  }

  /** `https://host:port` of the endpoints. */
  get origin(): string {
    return this.#options.origin
  }

  get settings(): KeyManagerSettings {
    return this.#settings
  }

  get scopePolicy(): ScopePolicy {
    return this.#scopePolicy
  }

  get extensions(): Extensions {
    return this.#extensions
  }

  get grantModules(): GrantModules {
    return this.#grantModules
  }

  /** The published keys, as gateways receive them. */
  get issuerKeys(): IssuerKeys {
    return { issuer: this.#settings.issuer, keys: this.signingKeys.published }
  }

  /** Prepares a reload. The returned function activates the configuration and never fails. Rejects with ModuleError. */
  async prepare(configuration: Configuration): Promise<() => void> {
    const settings = keyManagerSettings(configuration)
    const extensions = await Extensions.load(this.#options.folder, settings.extensions)
    const grantModules = await GrantModules.load(this.#options.folder, settings.grantModules)
    return () => {
      this.#grantModules = grantModules
      this.#settings = settings
      this.#extensions = extensions
      this.#scopePolicy = this.#newScopePolicy()
      this.introspectionCache.clear()
    }
  }

  /**
   * Publishes a new key, which signs once every gateway has it. Older keys stay published until the last token they
   * signed has expired. `lifetimeMs`: only where the newest key is that old.
   */
  async rotateKeys(lifetimeMs = 0): Promise<void> {
    const outcome = await this.signingKeys.rotate(lifetimeMs)
    this.#publishKeys()
    const fields = { KEYS_PUBLISHED: this.issuerKeys.keys.length }
    if (outcome === 'added') this.report('info', 'signing key rotated', { ...fields, SIGNS_IN_MS: PUBLISHED_AHEAD_MS })
    if (outcome === 'full') {
      const CAUSE_OF_ERROR = 'every key is needed by tokens that are valid: raise oauth.signing_key.lifetime'
      this.report('warn', 'signing key not rotated', { ...fields, CAUSE_OF_ERROR })
    }
  }

  /** Reads the signing keys again, as other nodes have changed them. Rejects with registry errors. */
  async refreshKeys(): Promise<void> {
    await this.signingKeys.refresh()
    this.#publishKeys()
  }

  /** An API key for an application. The registry does not keep it: a revocation needs its `jti`. */
  async issueApiKey(parameters: ApiKeyParameters): ReturnType<typeof issueApiKey> {
    const issued = await issueApiKey(this, parameters)
    this.metrics.add(METRIC.apiKeysIssued, 1)
    return issued
  }

  /** A token for an application itself, as by client credentials. Rejects with OAuthError and registry errors. */
  issueApplicationToken(consumerKey: string, scopes: readonly string[] = []): Promise<TokenResponse> {
    return issueApplicationToken(this, consumerKey, scopes)
  }

  /** Rotates an old signing key and removes expired tokens. Failures are logged; the next round tries again. */
  async runMaintenance(): Promise<void> {
    const { signingKeyMs } = this.#settings
    try {
      await this.signingKeys.refresh()
      if (signingKeyMs > 0) await this.rotateKeys(signingKeyMs)
      await this.signingKeys.removeExpired()
      this.#publishKeys()
    } catch (error) {
      this.report('error', 'signing key rotation failed', { CAUSE_OF_ERROR: (error as Error).message })
    }
    await this.#removeExpiredTokens()
  }

  async #removeExpiredTokens(): Promise<void> {
    if (!this.#settings.removesExpiredTokens) return
    try {
      const removed = await this.registry.tokens.removeExpired(this.nowMs())
      if (removed > 0) this.report('info', 'expired tokens removed', { TOKENS: removed })
    } catch (error) {
      this.report('error', 'removal of expired tokens failed', { CAUSE_OF_ERROR: (error as Error).message })
    }
  }

  #publishKeys(): void {
    const keys = this.issuerKeys
    const text = JSON.stringify(keys)
    if (text === this.#published) return
    this.#published = text
    this.#options.publishKeys(keys)
  }

  close(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#firstTimer)
  }

  #newScopePolicy(): ScopePolicy {
    return new ScopePolicy(this.#settings.allowedScopes, this.#options)
  }
}
