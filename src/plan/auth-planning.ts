/** Plans authentication: the issuers whose tokens are accepted, and the access rules of each API. */
import { MANDATORY, NO_SCHEME, SCHEMES } from '../apis/api-access.ts'
import type { ApiDefinition, ResourceDefinition } from '../apis/api-definition.ts'
import type { AccessPlan, AccessScheme, AuthPlan, BackendSigner, IssuerPlan } from '../auth/auth-plan.ts'
import type { Configuration } from '../config/catalogue.ts'
import { compilePattern } from '../runtime/pattern.ts'
import { backendJwtPlan } from './backend-planning.ts'

/** `signer`: signs backend JWTs; null if reactors sign none. */
export function authPlan(configuration: Configuration, signer: BackendSigner | null = null): AuthPlan {
  const cache = configuration['apim.cache.gateway_token']
  return {
    issuers: issuerPlans(configuration),
    authField: configuration['apim.oauth_config'].auth_header.toLowerCase(),
    validator: validatorOf(configuration),
    forwardsAuthField: configuration['apim.oauth_config'].enable_outbound_auth_header,
    skewMs: configuration.oauth.timestamp_skew * 1000,
    tokenCacheMs: cache.enable ? cache.expiry_time * 1000 : 0,
    backendJwt: backendJwtPlan(configuration, signer),
  }
}

/** The same configuration with another issuer of this node's key manager. */
export function withIssuer(configuration: Configuration, issuer: string): Configuration {
  return { ...configuration, oauth: { ...configuration.oauth, 'oidc.id_token.issuer': issuer } }
}

/** Patterns of scopes that no caller needs (`apim.oauth_config.allowed_scopes`). */
export function allowedScopes(configuration: Configuration): readonly string[] {
  return configuration['apim.oauth_config'].allowed_scopes
}

/**
 * Removes the scopes of each resource that has an allowed scope: any one scope of a resource is enough. `allowed`:
 * patterns of allowed scopes. Reactors therefore match no patterns.
 */
export function withoutAllowedScopes(
  resources: readonly ResourceDefinition[],
  allowed: readonly string[],
): readonly ResourceDefinition[] {
  if (allowed.length === 0 || resources.every(({ scopes }) => scopes.length === 0)) return resources
  const patterns = allowed.map(compilePattern)
  const isAllowed = (scope: string) => patterns.some(pattern => pattern.matcher(scope).matches())
  return resources.map(resource => (resource.scopes.some(isAllowed) ? { ...resource, scopes: [] } : resource))
}

/** Algorithms that the built-in key manager and that of the reference platform sign with. */
const OWN_ALGORITHMS = ['RS256', 'RS384', 'RS512']

/** The built-in key manager comes first, unless a row of `[[apim.jwt.issuer]]` names it and sets its conditions. */
function issuerPlans(configuration: Configuration): readonly IssuerPlan[] {
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
  const isCustom = configuration['apim.key_manager'].key_validation_handler_type === 'custom'
  return isCustom ? configuration['apim.key_manager'].key_validation_handler_impl : ''
}

export function accessPlan({ name, version, access, clientCertificates }: ApiDefinition): AccessPlan {
  return {
    api: `${name}:${version}`,
    authField: access.authHeader.toLowerCase(),
    ...schemesOf(access.securitySchemes),
    certificates: clientCertificates,
    scopeRoles: access.scopeRoles,
    provider: access.provider,
  }
}

/** Schemes in the order in which they are tried; an API that names none has oauth2. */
function schemesOf(written: readonly string[]): Pick<AccessPlan, 'schemes' | 'requiresCertificate' | 'requiresOther'> {
  const named = new Set(written.flatMap(text => (Object.hasOwn(SCHEMES, text) ? SCHEMES[text]! : [])))
  const schemes = ORDER.filter(scheme => named.has(scheme))
  const isOpen = written.includes(NO_SCHEME)
  return {
    schemes: schemes.length === 0 && !isOpen ? ['oauth2'] : schemes,
    requiresCertificate: named.has('mutual_tls') && written.includes(MANDATORY.certificate),
    requiresOther: named.size > 1 && written.includes(MANDATORY.other),
  }
}

const ORDER: readonly AccessScheme[] = ['mutual_tls', 'oauth2', 'basic', 'api_key']
