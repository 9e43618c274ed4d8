/**
 * The hosts that one accepted TLS connection may serve, and the check of its client. SNI decides which certificate the
 * client is asked for, and Host decides which API gets the request. So that Host is no way around SNI, a connection
 * serves only hosts that ask for the same client certificate as the host of its handshake (RFC 9110 7.4, D48).
 */
import type { PeerCertificate } from 'node:tls'
import { hostName } from '../http1/host-name.ts'
import type { TlsFailure } from './byte-socket.ts'
import type { HostContext, ServerContexts } from './tls-contexts.ts'
import { clientCertificateError, thumbprintOf } from './tls-errors.ts'
import type { ListenerTls } from './tls-level.ts'

export class ServedHosts {
  readonly #listener: ListenerTls
  /** The contexts at the time of the handshake. */
  readonly #own: ServerContexts
  #host: HostContext | null
  #thumbprint = ''
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
    this.#host = listener.contexts.single
  }

  /** Host of the handshake: the only host of the listener; where it has several, null until SNI selects one. */
  get host(): HostContext | null {
    return this.#host
  }

  /** Thumbprint of the client's verified certificate, or ''. */
  get clientThumbprint(): string {
    return this.#thumbprint
  }

  /** Selects the host of the handshake. `name`: from SNI, lower case. */
  choose(name: string): HostContext {
    this.#name = name
    this.#host = this.#own.contextFor(name)
    return this.#host
  }

  /** Why the client of a finished handshake is refused, or null. Parameters as for `clientCertificateError`. */
  checkClient(certificate: PeerCertificate | null, chainError: string): TlsFailure | null {
    const { verifyClient } = this.#host!
    const failure = clientCertificateError(verifyClient, certificate, chainError)
    // A resumed session can bring a certificate that this host did not ask for: nobody has verified it.
    if (failure === null && verifyClient !== 'none') this.#thumbprint = thumbprintOf(certificate)
    return failure
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
