/** From configuration and API projects to what authentication is told: who issues tokens, and who may use an API. */
import { MANDATORY, NO_SCHEME, SCHEMES } from '../config/api-access.ts'
import type { ApiDefinition } from '../config/api-definition.ts'
import { backendJwtPlan } from './backend-planning.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { AccessPlan, AccessScheme, BackendSigner, IdentityPlan, IssuerPlan } from '../identity/identity-plan.ts'

/** `signer`: of tokens for backends; null where nothing is signed. */
export function identityPlan(configuration: Configuration, signer: BackendSigner | null = null): IdentityPlan {
  const verdicts = configuration['apim.cache.gateway_token']
  return {
    issuers: issuersOf(configuration),
    authField: configuration['apim.oauth_config'].auth_header.toLowerCase(),
    allowedScopes: configuration['apim.oauth_config'].allowed_scopes,
    validator: validatorOf(configuration),
    passesAuthField: configuration['apim.oauth_config'].enable_outbound_auth_header,
    skewMs: configuration.oauth.timestamp_skew * 1000,
    verdictMs: verdicts.enable ? verdicts.expiry_time * 1000 : 0,
    backendJwt: backendJwtPlan(configuration, signer),
  }
}

/** What the built-in key manager, and that of the reference platform, sign with. */
const OWN_ALGORITHMS = ['RS256', 'RS384', 'RS512']

/** The built-in key manager first, on the terms of a row that names it where there is one. */
function issuersOf(configuration: Configuration): readonly IssuerPlan[] {
  const own: IssuerPlan = {
    issuer: configuration.oauth['oidc.id_token.issuer'],
    isOwn: true,
    algorithms: OWN_ALGORITHMS,
    audiences: [],
    claims: [],
    consumerKeyClaims: ['azp', 'client_id', 'consumerKey'],
    scopesClaim: 'scope',
    lowS: true,
  }
  const rows = configuration['apim.jwt.issuer'].map(issuer => ({
    issuer: issuer.name,
    isOwn: issuer.name === own.issuer,
    algorithms: issuer.algorithms,
    audiences: issuer.audiences,
    claims: issuer.claim_mapping.map(mapping => ({ remote: mapping.remote_claim, local: mapping.local_claim })),
    consumerKeyClaims: issuer.consumer_key_claims,
    scopesClaim: issuer.scopes_claim,
    lowS: issuer.low_s,
  }))
  return rows.some(({ isOwn }) => isOwn) ? rows : [own, ...rows]
}

function validatorOf(configuration: Configuration): string {
  const isOwn = configuration['apim.key_manager'].key_validation_handler_type === 'custom'
  return isOwn ? configuration['apim.key_manager'].key_validation_handler_impl : ''
}

export function accessPlan({ name, version, access, clientCertificates }: ApiDefinition): AccessPlan {
  return {
    subject: `${name}:${version}`,
    authField: access.authHeader.toLowerCase(),
    ...schemesOf(access.securitySchemes),
    certificates: clientCertificates,
    scopeRoles: access.scopeRoles,
    provider: access.provider,
  }
}

/** In the order in which they are asked. Who names none has tokens, as exports that say nothing of it. */
function schemesOf(written: readonly string[]): Pick<AccessPlan, 'schemes' | 'needsCertificate' | 'needsOther'> {
  const named = new Set(written.flatMap(text => (Object.hasOwn(SCHEMES, text) ? SCHEMES[text]! : [])))
  const schemes = ORDER.filter(scheme => named.has(scheme))
  const isOpen = written.includes(NO_SCHEME)
  return {
    schemes: schemes.length === 0 && !isOpen ? ['oauth2'] : schemes,
    needsCertificate: named.has('mutual_tls') && written.includes(MANDATORY.certificate),
    needsOther: named.size > 1 && written.includes(MANDATORY.other),
  }
}

const ORDER: readonly AccessScheme[] = ['mutual_tls', 'oauth2', 'basic', 'api_key']
