/**
 * One accepted connection among the hosts of its listener. Which of them asks the client for a certificate is said by
 * the name in the handshake (SNI), and what a request gets by Host: so that the one is no way around the other, a
 * connection serves those hosts alone that ask for what its client was asked for (RFC 9110 7.4).
 */
import { hostName } from '../structure/host-name.ts'
import type { HostContext, ServerContexts } from './tls-contexts.ts'

/** A listener whose terms can be replaced. */
export interface TermsInForce {
  readonly contexts: ServerContexts
}

export class ServedHosts {
  readonly #listener: TermsInForce
  /** Those of the handshake. */
  readonly #own: ServerContexts
  /** In SNI; '' without it, and where it made no difference. */
  #name = ''
  /** What was judged last, and by which terms: nearly always what is to be judged next. */
  #authority = ''
  #judgedBy: ServerContexts | null = null
  #verdict = true

  constructor(listener: TermsInForce) {
    this.#listener = listener
    this.#own = listener.contexts
  }

  /** The only host of the handshake, or null: then it depends on the name that the client asks for. */
  get only(): HostContext | null {
    return this.#own.only
  }

  /** The host of the handshake. `name`: in SNI, lower case. */
  choose(name: string): HostContext {
    this.#name = name
    return this.#own.of(name)
  }

  /** `authority`: '' where a request names none, which is for the host of the handshake. */
  serves(authority: string): boolean {
    const now = this.#listener.contexts
    if ((!now.differ && !this.#own.differ) || authority === '') return true
    if (authority !== this.#authority || now !== this.#judgedBy) {
      this.#authority = authority
      this.#judgedBy = now
      this.#verdict = this.#judge(hostName(authority), now)
    }
    return this.#verdict
  }

  #judge(host: string, now: ServerContexts): boolean {
    const { asks } = this.#own.of(this.#name)
    const asksNow = now.of(host).asks
    if (asksNow === asks) return true
    // Replaced terms: open connections keep theirs, for what has had and has the same ones as their own host.
    return this.#own.of(host).asks === asks && now.of(this.#name).asks === asksNow
  }
}
