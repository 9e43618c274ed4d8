/** Plans what backends get beside the request: the backend JWT about the caller, and credentials of the gateway. */
import { apiIdentity } from './reactor-plan.ts'
import type { ApiDefinition, EndpointCredentials } from '../apis/api-definition.ts'
import { apiPaths } from '../apis/api-paths.ts'
import type {
  BackendCredentialPlan,
  BackendCredentialPlans,
  BackendJwtPlan,
  BackendSigner,
  BackendTokenPlan,
} from '../auth/auth-plan.ts'
import { basicAuthorization } from '../auth/basic-credentials.ts'
import type { Configuration } from '../config/catalogue.ts'

/** A request for an access token, whichever backend it is for. Holds secrets. */
export type TokenRequest = Omit<BackendTokenPlan, 'key'>

const KEY_TYPES = ['production', 'sandbox'] as const

/** `signer`: null if reactors sign nothing. */
export function backendJwtPlan(configuration: Configuration, signer: BackendSigner | null): BackendJwtPlan {
  const jwt = configuration['apim.jwt']
  const tokens = configuration['apim.cache.gateway_token']
  const claims = configuration['apim.cache.jwt_claim']
  const lifetimeMs = tokens.expiry_time * 1000
  const hasUserClaims = jwt.enable_user_claims || jwt.enable_claim_retrieval
  const claimsCacheMs = claims.enable ? (claims.expiry_time === 0 ? lifetimeMs : claims.expiry_time * 1000) : 0
  const tokenCacheMs = tokens.enable ? lifetimeMs : 0
  return {
    isEnabled: jwt.enable,
    field: jwt.header,
    encoding: jwt.encoding,
    isSigned: jwt.signing_algorithm !== 'NONE',
    prefix: jwt.claim_dialect === '' ? '' : `${jwt.claim_dialect.replace(/\/+$/, '')}/`,
    lifetimeMs,
    // User claims must not live longer within a cached JWT than in the cache of claims.
    cacheMs: hasUserClaims ? Math.min(tokenCacheMs, claimsCacheMs) : tokenCacheMs,
    hasUserClaims,
    claimsCacheMs,
    isCustom: jwt.generator_impl !== '',
    signer,
  }
}

export function credentialPlans(definition: ApiDefinition): BackendCredentialPlans {
  const { production, sandbox } = definition.credentials
  return {
    production: production === null ? null : credentialPlan(production, tokenKey(definition, 'production')),
    sandbox: sandbox === null ? null : credentialPlan(sandbox, tokenKey(definition, 'sandbox')),
  }
}

function credentialPlan(credentials: EndpointCredentials, key: string): BackendCredentialPlan {
  if (credentials.kind === 'oauth2') return { kind: 'oauth2', key }
  return { kind: 'basic', authorization: basicAuthorization(credentials.username, credentials.password) }
}

/** The access tokens that the control thread has to get for the backends of these APIs. */
export function backendTokenPlans(apis: readonly ApiDefinition[]): readonly BackendTokenPlan[] {
  return apis.flatMap(api =>
    KEY_TYPES.flatMap(keyType => {
      const credentials = api.credentials[keyType]
      if (credentials?.kind !== 'oauth2') return []
      const { tokenUrl, clientId, clientSecret, scopes, parameters } = credentials
      return [{ key: tokenKey(api, keyType), tokenUrl, clientId, clientSecret, scopes, parameters }]
    }),
  )
}

function tokenKey(
  { hosts, context, version, isDefaultVersion, isUnversioned }: ApiDefinition,
  keyType: string,
): string {
  return `${keyType} ${apiIdentity({ hosts, paths: apiPaths(context, version, isDefaultVersion, isUnversioned) })}`
}
