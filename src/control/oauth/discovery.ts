/** Server metadata: OpenID Connect Discovery 1.0 and RFC 8414. */
import { CLAIM_NAMES } from './claims.ts'
import type { KeyManager } from './key-manager.ts'
import { CLAIM_SCOPES } from './scopes.ts'
import { enabledGrants } from './token-endpoint.ts'

/** Scopes of APIs are not listed. */
const SCOPES = ['openid', ...CLAIM_SCOPES]
const SECRET_METHODS = ['client_secret_basic', 'client_secret_post']

export function serverMetadata(manager: KeyManager) {
  const { origin, settings } = manager
  return {
    issuer: settings.issuer,
    authorization_endpoint: `${origin}/oauth2/authorize`,
    token_endpoint: `${origin}/oauth2/token`,
    revocation_endpoint: `${origin}/oauth2/revoke`,
    introspection_endpoint: `${origin}/oauth2/introspect`,
    userinfo_endpoint: `${origin}/oauth2/userinfo`,
    jwks_uri: `${origin}/oauth2/jwks`,
    end_session_endpoint: `${origin}/oidc/logout`,
    registration_endpoint: `${origin}/oauth2/register`,
    response_types_supported: settings.grants.authorizationCode ? ['code'] : [],
    response_modes_supported: ['query'],
    grant_types_supported: enabledGrants(settings),
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: [...SECRET_METHODS, 'none'],
    revocation_endpoint_auth_methods_supported: [...SECRET_METHODS, 'none'],
    introspection_endpoint_auth_methods_supported: SECRET_METHODS,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    userinfo_signing_alg_values_supported: ['RS256'],
    scopes_supported: SCOPES,
    claims_supported: ['sub', 'iss', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'at_hash', ...CLAIM_NAMES],
    authorization_response_iss_parameter_supported: true,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
  }
}
