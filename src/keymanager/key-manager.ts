/**
 * The key manager: what its endpoints share. One per authority; a reload replaces its settings, everything else lasts
 * as long as the thread does.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { IssuerKeys } from '../identity/facts.ts'
import type { Registry } from '../registry/registry.ts'
import { Lockout, RequestRate } from './attempts.ts'
import { Extensions } from './extensions.ts'
import { ScopeGrants } from './scopes.ts'
import { BrowserSessions } from './browser-sessions.ts'
import { type KeyManagerSettings, keyManagerSettings } from './settings.ts'
import { SigningKeys } from './signing-keys.ts'
import { type ApiKeyTerms, issueApplicationToken, makeApiKey, type TokenAnswer } from './token-maker.ts'
import { ShownAssertions } from './shown-assertions.ts'
import { TokenMemory } from './token-memory.ts'

/** As `EventLog.report`. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields: Readonly<Record<string, string | number>>,
) => void

/** What a trusted issuer says of a user (RFC 7523 3): signature and issuer have been verified, nothing else. */
export interface VerifiedAssertion {
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
}

/** What the key manager is given by the thread that runs it. */
export interface KeyManagerSurroundings {
  readonly registry: Registry
  /** The configuration folder: modules of operators stand in it. */
  readonly folder: string
  readonly dataDir: string
  /** `https://host:port`: where its endpoints are reached. */
  readonly origin: string
  /**
   * Of each API that binds a scope to roles those of which a user has to have one, none: everybody has it; null:
   * nothing has that scope.
   */
  readonly rolesFor: (scope: string) => readonly (readonly string[])[] | null
  /** Of a JWT from an issuer that is trusted for assertions; null: none of them has signed it. */
  readonly verifyAssertion: (assertion: string) => Promise<VerifiedAssertion | null>
  /** The public keys are others now. */
  readonly keysChanged: (keys: IssuerKeys) => void
  readonly log: Log
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const ROUND_MS = 15 * 60_000

export class KeyManager {
  readonly surroundings: KeyManagerSurroundings
  readonly signingKeys: SigningKeys
  readonly lockout: Lockout
  readonly rate: RequestRate
  readonly sessions: BrowserSessions
  readonly memory: TokenMemory
  readonly assertions = new ShownAssertions()
  #settings: KeyManagerSettings
  #scopes: ScopeGrants
  #extensions: Extensions
  readonly #timer: NodeJS.Timeout

  private constructor(
    surroundings: KeyManagerSurroundings,
    configuration: Configuration,
    signingKeys: SigningKeys,
    extensions: Extensions,
  ) {
    const { now } = surroundings
    this.surroundings = surroundings
    this.signingKeys = signingKeys
    this.lockout = new Lockout(now)
    this.rate = new RequestRate(now)
    this.sessions = new BrowserSessions(now)
    this.memory = new TokenMemory(now)
    this.#settings = keyManagerSettings(configuration)
    this.#scopes = this.#scopeGrants()
    this.#extensions = extensions
    this.#timer = setInterval(() => void this.lookAfter(), ROUND_MS)
    this.#timer.unref()
  }

  /** Throws ModuleBroken, SigningKeysDamaged, and what the file system says of the data folder. */
  static async open(surroundings: KeyManagerSurroundings, configuration: Configuration): Promise<KeyManager> {
    const signingKeys = await SigningKeys.open(surroundings.dataDir, surroundings.now)
    const extensions = await Extensions.load(surroundings.folder, keyManagerSettings(configuration).extensions)
    return new KeyManager(surroundings, configuration, signingKeys, extensions)
  }

  get registry(): Registry {
    return this.surroundings.registry
  }

  get settings(): KeyManagerSettings {
    return this.#settings
  }

  get scopes(): ScopeGrants {
    return this.#scopes
  }

  get extensions(): Extensions {
    return this.#extensions
  }

  /** The public keys, as gateways are told of them. */
  get keys(): IssuerKeys {
    return { issuer: this.#settings.issuer, keys: this.signingKeys.published }
  }

  /** For a reload: what it answers puts the configuration in force, and never fails. Rejects with ModuleBroken. */
  async prepare(configuration: Configuration): Promise<() => void> {
    const settings = keyManagerSettings(configuration)
    const extensions = await Extensions.load(this.surroundings.folder, settings.extensions)
    return () => {
      const { issuer } = this.#settings
      this.#settings = settings
      this.#extensions = extensions
      this.#scopes = this.#scopeGrants()
      this.memory.clear()
      if (settings.issuer !== issuer) this.surroundings.keysChanged(this.keys)
    }
  }

  /** A new key signs from now on; those before it stay published for as long as their tokens are about. */
  async rotateKeys(): Promise<void> {
    await this.signingKeys.rotate()
    this.surroundings.keysChanged(this.keys)
    this.surroundings.log('info', 'tokens are signed with a new key', { KEYS_PUBLISHED: this.keys.keys.length })
  }

  /** A key that an application uses without asking for tokens. It is not kept: revoking one takes its `jti`. */
  makeApiKey(terms: ApiKeyTerms): ReturnType<typeof makeApiKey> {
    return makeApiKey(this, terms)
  }

  /** A token of an application's own, as its credentials would bring it. Throws OAuthRefusal, and of the registry. */
  tokenFor(consumerKey: string, scopes: readonly string[] = []): Promise<TokenAnswer> {
    return issueApplicationToken(this, consumerKey, scopes)
  }

  /** What there is to do from time to time; failures are logged, and the next round tries again. */
  async lookAfter(): Promise<void> {
    const { signingKeyMs } = this.#settings
    const { log, now } = this.surroundings
    try {
      if (signingKeyMs > 0 && now() - this.signingKeys.newestMs >= signingKeyMs) await this.rotateKeys()
    } catch (error) {
      log('error', 'no new key was made', { CAUSE_OF_ERROR: (error as Error).message })
    }
    await this.#cleanUp()
  }

  async #cleanUp(): Promise<void> {
    if (!this.#settings.cleansUp) return
    const { log, now } = this.surroundings
    try {
      const removed = await this.registry.tokens.cleanUp(now())
      if (removed > 0) log('info', 'tokens that are over were removed', { TOKENS: removed })
    } catch (error) {
      log('error', 'tokens that are over were not removed', { CAUSE_OF_ERROR: (error as Error).message })
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #scopeGrants(): ScopeGrants {
    return new ScopeGrants(this.#settings.allowedScopes, this.surroundings.rolesFor, this.surroundings.log)
  }
}
