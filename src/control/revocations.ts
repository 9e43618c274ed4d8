/**
 * Revocations of tokens: what the key manager, the operator or another node has revoked goes to the reactors, to other
 * nodes and to the module of the operator. A node without a database keeps them in a file.
 */
import { ControlCallFailed } from '../auth/control-protocol.ts'
import { revocationKeyOf } from '../auth/jwt-claims.ts'
import { parseJwt } from '../auth/jwt-parser.ts'
import type { RevocationRecord } from '../auth/records.ts'
import { RevokedTokens, SKEW_MAX_MS } from '../auth/revoked-tokens.ts'
import type { ControlPlan } from '../plan/control-messages.ts'
import type { LocalKeyManager, LocalKeyManagerContext } from './local-key-manager.ts'
import type { Messaging } from './messaging.ts'
import type { ReactorChannels } from './reactor-channels.ts'
import { RevocationFile } from './revocation-file.ts'
import type { RevocationNotifier } from './revocation-notifier.ts'

interface RevocationsContext extends Pick<LocalKeyManagerContext, 'report'> {
  readonly reactors: ReactorChannels
  /** Null: no `notifier_impl` is configured. */
  readonly notifier: RevocationNotifier | null
  /** Null on a node that uses the key manager of another one. */
  readonly keyManager: () => LocalKeyManager | null
  /** Null: neither broker nor traffic manager is configured. */
  readonly messaging: () => Messaging | null
  /** Called before any reactor learns of the revocation. */
  readonly revoked: () => void
}

/** The last moment of a Date. */
const TIME_MAX_MS = 8.64e15

export class Revocations {
  readonly #context: RevocationsContext
  /** Null on a node with a database, which keeps revocations, and without `enable_persistent_notifier`. */
  #file: RevocationFile | null = null
  /** On a node without a database. */
  readonly #kept = new RevokedTokens(SKEW_MAX_MS)

  constructor(context: RevocationsContext) {
    this.#context = context
  }

  /** Reads the revocations of a node without a database, and tells the reactors. */
  async readFile({ configuration, dataDir }: ControlPlan): Promise<void> {
    if (!configuration['apim.token.revocation'].enable_persistent_notifier) return
    this.#file = new RevocationFile(dataDir)
    this.#kept.add(this.#file.read(), Date.now())
    this.#context.reactors.broadcast({ kind: 'revoked', tokens: this.#kept.entries(Date.now()) })
  }

  /** This node has revoked tokens: tells reactors, other nodes and the module of the operator. */
  announce(tokens: readonly RevocationRecord[]): void {
    const { reactors, notifier, messaging, revoked } = this.#context
    revoked()
    reactors.broadcast({ kind: 'revoked', tokens })
    notifier?.notify(tokens)
    messaging()?.publishRevoked(tokens)
  }

  /** Another node has revoked tokens. */
  takeIn(tokens: readonly RevocationRecord[]): void {
    const failed = ({ message }: Error): void => {
      this.#context.report('error', 'revocations of other nodes not kept', { CAUSE_OF_ERROR: message })
    }
    this.announce(tokens)
    const keyManager = this.#context.keyManager()
    if (keyManager !== null) {
      for (const token of tokens) keyManager.revoke(token, '').catch(failed)
      return
    }
    this.#kept.add(tokens, Date.now())
    this.#write().catch(failed)
  }

  /** Revokes a JWT for the operator. Only the issuer of an opaque token knows when it expires. */
  async revoke(token: unknown): Promise<object> {
    const jwt = typeof token === 'string' ? parseJwt(token) : 'no text'
    if (typeof jwt === 'string')
      throw new ControlCallFailed('the token is not a JWT: revoke it at the key manager that has issued it')
    const { exp } = jwt.claims
    if (exp === undefined)
      throw new ControlCallFailed('the token never expires: remove its consumer key or its subscription instead')
    // RFC 7519 2: any number, fractions of seconds too. Files and databases take whole numbers.
    const expiresMs = Math.min(Math.ceil(exp * 1000), TIME_MAX_MS)
    const revoked = { key: revocationKeyOf(jwt), expiresMs }
    const consumerKey = [jwt.claims.azp, jwt.claims.client_id].find(name => typeof name === 'string')
    const keyManager = this.#context.keyManager()
    if (keyManager !== null) await keyManager.revoke(revoked, String(consumerKey ?? ''))
    else {
      this.#kept.add([revoked], Date.now())
      this.announce([revoked])
      // The revocation holds even where the file cannot be written; the operator learns that a restart would lose it.
      await this.#write()
    }
    return { revoked: revoked.key, until: new Date(revoked.expiresMs).toISOString() }
  }

  async #write(): Promise<void> {
    await this.#file?.write(() => this.#kept.entries(Date.now()))
  }
}
