/**
 * The hosts that one accepted TLS connection may serve. SNI decides which certificate the client is asked for, and Host
 * decides which API gets the request. So that Host is no way around SNI, a connection serves only hosts that ask for
 * the same client certificate as the host of its handshake (RFC 9110 7.4, D48).
 */
import { hostName } from '../http1/host-name.ts'
import type { HostContext, ServerContexts } from './tls-contexts.ts'
import type { ListenerTls } from './tls-level.ts'

export class ServedHosts {
  readonly #listener: ListenerTls
  /** The contexts at the time of the handshake. */
  readonly #own: ServerContexts
  /** Host name in SNI; '' without SNI, and where the listener has one host only. */
  #name = ''
  /**
   * The authority checked last, the contexts that it was checked against, and the result: nearly always asked for next.
   */
  #authority = ''
  #checkedAgainst: ServerContexts | null = null
  #result = true

  constructor(listener: ListenerTls) {
    this.#listener = listener
    this.#own = listener.contexts
  }

  /** The only host of the listener, or null: then SNI selects the host. */
  get single(): HostContext | null {
    return this.#own.single
  }

  /** Selects the host of the handshake. `name`: from SNI, lower case. */
  choose(name: string): HostContext {
    this.#name = name
    return this.#own.contextFor(name)
  }

  /** `authority`: of the request; '' where the request has none, which is for the host of the handshake. */
  serves(authority: string): boolean {
    const now = this.#listener.contexts
    if ((!now.clientAuthDiffers && !this.#own.clientAuthDiffers) || authority === '') return true
    if (authority !== this.#authority || now !== this.#checkedAgainst) {
      this.#authority = authority
      this.#checkedAgainst = now
      this.#result = this.#check(hostName(authority), now)
    }
    return this.#result
  }

  #check(host: string, now: ServerContexts): boolean {
    const { clientAuthKey } = this.#own.contextFor(this.#name)
    const keyNow = now.contextFor(host).clientAuthKey
    if (keyNow === clientAuthKey) return true
    // After a reload an open connection keeps serving hosts that had, and still have, the same terms as its own host.
    return (
      this.#own.contextFor(host).clientAuthKey === clientAuthKey && now.contextFor(this.#name).clientAuthKey === keyNow
    )
  }
}
