/**
 * Clients that are known by their certificate: the listener has verified that it is theirs, and the API lists whose are
 * let in. Also what ties a token to one (RFC 8705 3).
 */
import type { Caller } from '../exchange/caller.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { CALLER_KIND, type Grant, type ResourceNeeds } from '../identity/grants.ts'
import type { AccessPlan } from '../identity/identity-plan.ts'
import { type CertificateAuthenticator, denial, type Found } from './authenticator.ts'

/** What such a client is held to beside its certificate. */
interface CertificateTerms {
  readonly access: AccessPlan
  readonly keyType: Caller['keyType']
  readonly needs: ResourceNeeds
  /** All that resources of the API ask for: a certificate has no scopes that could be missing. */
  readonly scopes: ReadonlySet<string>
}

export class MutualTlsAuthenticator implements CertificateAuthenticator {
  readonly scheme = 'mutual_tls'
  readonly #grants: ReadonlyMap<string, Grant>
  /** Nothing else can take the place of a certificate that is listed. */
  readonly #decides: boolean

  constructor({ access, keyType, needs, scopes }: CertificateTerms) {
    const mask = needs.bits.maskOf(scopes)
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
          subscriptionTier: tier === '' ? 'Unlimited' : tier,
          claims: {},
          expiresMs: 0,
          revocationKey: '',
        }
        return [thumbprint, { kind: 'grant', caller, callerKind, scopes: mask, token: null }]
      }),
    )
    this.#decides = access.needsCertificate || access.schemes.every(scheme => scheme === 'mutual_tls')
  }

  authenticate({ peer }: Exchange): Found {
    const thumbprint = peer.peerThumbprint
    if (thumbprint === '') return undefined
    const grant = this.#grants.get(thumbprint)
    // A client may show one that is for something else, where it can identify itself in another way.
    return grant ?? (this.#decides ? denial(900901) : undefined)
  }
}

/** `confirmation`: `x5t#S256` of a token. Both are public: nothing is learned from how long it takes. */
export function isConfirmed({ peer }: Exchange, confirmation: string): boolean {
  return confirmation !== '' && peer.peerThumbprint === confirmation
}
