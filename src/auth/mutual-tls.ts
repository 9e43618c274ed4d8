/**
 * Authenticates clients by certificate: the handshake has verified it, and the API lists the certificates that it
 * accepts. Also checks tokens that are bound to a certificate (RFC 8705 3).
 */
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { AccessPlan } from './auth-plan.ts'
import { type AuthenticationResult, type CertificateAuthenticator, denial } from './authenticator.ts'
import { CALLER_KIND, type Grant, type ResourceRequirements } from './grants.ts'

interface MutualTlsOptions {
  readonly access: AccessPlan
  readonly keyType: Caller['keyType']
  readonly requirements: ResourceRequirements
  /** All scopes that resources of the API require: an accepted certificate has every one of them. */
  readonly scopes: ReadonlySet<string>
}

export class MutualTlsAuthenticator implements CertificateAuthenticator {
  readonly scheme = 'mutual_tls'
  /** By thumbprint. */
  readonly #grants: ReadonlyMap<string, Grant>
  /** No other scheme can replace a listed certificate. */
  readonly #isRequired: boolean

  constructor({ access, keyType, requirements, scopes }: MutualTlsOptions) {
    const mask = requirements.scopeBits.maskOf(scopes)
    const callerKind = CALLER_KIND.APPLICATION | CALLER_KIND.USER
    this.#grants = new Map(
      access.certificates.map(({ thumbprint, alias, tier }): readonly [string, Grant] => {
        const caller: Caller = {
          method: 'mutual_tls',
          user: alias,
          tenant: '',
          isApplication: true,
          keyType,
          application: null,
          consumerKey: '',
          heldScopes: scopes,
          subscriptionTier: tier === '' ? 'Unlimited' : tier,
          claims: {},
          expiresMs: 0,
          revocationKey: '',
          limits: null,
        }
        return [thumbprint, { kind: 'grant', caller, callerKind, scopes: mask, subscriptionDenial: 0, token: null }]
      }),
    )
    this.#isRequired = access.requiresCertificate || access.schemes.every(scheme => scheme === 'mutual_tls')
  }

  authenticate({ peer }: Exchange): AuthenticationResult {
    const thumbprint = peer.peerThumbprint
    if (thumbprint === '') return undefined
    const grant = this.#grants.get(thumbprint)
    // Where another scheme is accepted, a client may show a certificate that is meant for something else.
    return grant ?? (this.#isRequired ? denial(900901) : undefined)
  }
}

/** `thumbprint`: SHA-256 in base64url. Needs no constant time, because both thumbprints are public. */
export function matchesClientCertificate({ peer }: Exchange, thumbprint: string): boolean {
  return thumbprint !== '' && peer.peerThumbprint === thumbprint
}
