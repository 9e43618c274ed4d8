/** From configuration and API projects to what backends get: a token about the caller, credentials of the gateway's. */
import { identityOf } from '../api-identity.ts'
import type { ApiDefinition } from '../config/api-definition.ts'
import { apiPaths } from '../config/api-paths.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { EndpointCredentials } from '../config/endpoint-security.ts'
import type {
  BackendJwtPlan,
  BackendSigner,
  BackendTokenPlan,
  CredentialPlan,
  CredentialPlans,
} from '../identity/identity-plan.ts'

const KINDS = ['production', 'sandbox'] as const

/** `signer`: null where nothing is signed by a reactor. */
export function backendJwtPlan(configuration: Configuration, signer: BackendSigner | null): BackendJwtPlan {
  const jwt = configuration['apim.jwt']
  const tokens = configuration['apim.cache.gateway_token']
  const claims = configuration['apim.cache.jwt_claim']
  const lifeMs = tokens.expiry_time * 1000
  const hasUserClaims = jwt.enable_user_claims || jwt.enable_claim_retrieval
  const claimsMs = claims.enable ? (claims.expiry_time === 0 ? lifeMs : claims.expiry_time * 1000) : 0
  const keptMs = tokens.enable ? lifeMs : 0
  return {
    isMade: jwt.enable,
    field: jwt.header,
    encoding: jwt.encoding,
    isSigned: jwt.signing_algorithm !== 'NONE',
    prefix: jwt.claim_dialect === '' ? '' : `${jwt.claim_dialect.replace(/\/+$/, '')}/`,
    lifeMs,
    // What is known of a user holds no longer in the token than by itself.
    keptMs: hasUserClaims ? Math.min(keptMs, claimsMs) : keptMs,
    hasUserClaims,
    claimsMs,
    isCustom: jwt.generator_impl !== '',
    signer,
  }
}

export function credentialPlans(definition: ApiDefinition): CredentialPlans {
  const { production, sandbox } = definition.credentials
  return {
    production: production === null ? null : credentialPlan(production, keyOf(definition, 'production')),
    sandbox: sandbox === null ? null : credentialPlan(sandbox, keyOf(definition, 'sandbox')),
  }
}

/** RFC 7617 2.1: in UTF-8. */
function credentialPlan(credentials: EndpointCredentials, key: string): CredentialPlan {
  if (credentials.kind === 'oauth2') return { kind: 'oauth2', key }
  const { username, password } = credentials
  return { kind: 'basic', authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}

/** What the authority has to ask for on behalf of these APIs. */
export function backendTokenPlans(apis: readonly ApiDefinition[]): readonly BackendTokenPlan[] {
  return apis.flatMap(api =>
    KINDS.flatMap(kind => {
      const credentials = api.credentials[kind]
      if (credentials?.kind !== 'oauth2') return []
      const { tokenUrl, clientId, clientSecret, scopes, parameters } = credentials
      return [{ key: keyOf(api, kind), tokenUrl, clientId, clientSecret, scopes, parameters }]
    }),
  )
}

/** An API is known by its hosts and the first of its paths. */
function keyOf({ hosts, context, version, isDefaultVersion }: ApiDefinition, kind: string): string {
  return `${kind} ${identityOf({ hosts, paths: apiPaths(context, version, isDefaultVersion) })}`
}
