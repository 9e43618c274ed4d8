/** What of the configuration the key manager goes by: plain data, replaced by a reload. */
import type { Configuration } from '../config/catalogue.ts'

export interface KeyManagerSettings {
  /** `iss` of every token. */
  readonly issuer: string
  readonly skewMs: number
  readonly applicationTokenS: number
  readonly userTokenS: number
  readonly refreshTokenS: number
  readonly idTokenS: number
  readonly cleansUp: boolean
  /** Of a key that signs; 0: for good. */
  readonly signingKeyMs: number
  /** Patterns of scopes that are granted without asking for roles. */
  readonly allowedScopes: readonly string[]
  readonly grants: GrantSwitches
  readonly userInfoType: 'json' | 'jwt'
  readonly usesErrorPage: boolean
  readonly tellsErrorPageMore: boolean
  readonly namesClaimsByOidc: boolean
  readonly addsUnmappedAttributes: boolean
  /** How long an introspection is remembered; 0: it is not. */
  readonly introspectionMs: number
  readonly limits: Limits
  readonly extensions: ExtensionPaths
}

interface GrantSwitches {
  readonly authorizationCode: boolean
  readonly password: boolean
  readonly refreshToken: boolean
  readonly clientCredentials: boolean
  readonly jwtBearer: boolean
  /** With client credentials. */
  readonly refreshesApplications: boolean
  readonly identifiesApplications: boolean
}

interface Limits {
  /** Requests per minute; -1: no limit. */
  readonly perClient: number
  readonly perAddress: number
  /** Wrong credentials before right ones are not looked at either; -1: any number. */
  readonly failures: number
  readonly lockoutMs: number
}

/** Modules inside the configuration folder; '' for what is built in. */
export interface ExtensionPaths {
  readonly tokenGenerator: string
  readonly idTokenBuilder: string
  readonly claimCallbackHandler: string
  readonly userInfoClaimRetriever: string
}

export function keyManagerSettings(configuration: Configuration): KeyManagerSettings {
  const introspections = configuration['apim.cache.km_token']
  return {
    issuer: configuration.oauth['oidc.id_token.issuer'],
    skewMs: configuration.oauth.timestamp_skew * 1000,
    applicationTokenS: configuration.oauth['token_validation.app_access_token_validity'],
    userTokenS: configuration.oauth['token_validation.user_access_token_validity'],
    refreshTokenS: configuration.oauth['token_validation.refresh_token_validity'],
    idTokenS: configuration.oauth['oidc.token_validation.id_token_validity'],
    signingKeyMs: Math.max(0, configuration.oauth['signing_key.lifetime']) * 1000,
    cleansUp: configuration.oauth['token_cleanup.enable'],
    allowedScopes: [...configuration['apim.oauth_config'].allowed_scopes, ...configuration.oauth.allowed_scopes],
    grants: grantSwitches(configuration),
    userInfoType: configuration.oauth['oidc.user_info.response_type'],
    usesErrorPage: configuration.oauth['oidc.id_token.redirect_error_page'],
    tellsErrorPageMore: configuration.oauth.additional_params_from_error_url,
    namesClaimsByOidc: configuration.oauth['oidc.claims.enable_oidc_dialect'],
    addsUnmappedAttributes: configuration.oauth['oidc.claims.enable_unmapped_user_attributes'],
    introspectionMs: introspections.enable ? introspections.expiry_time * 1000 : 0,
    limits: {
      perClient: configuration.oauth['rate_limit.per_client'],
      perAddress: configuration.oauth['rate_limit.per_address'],
      failures: configuration.oauth['lockout.failures'],
      lockoutMs: configuration.oauth['lockout.time'] * 1000,
    },
    extensions: {
      tokenGenerator: configuration.oauth['extensions.token_generator'],
      idTokenBuilder: configuration.oauth['oidc.extensions.id_token_builder'],
      claimCallbackHandler: configuration.oauth['oidc.extensions.claim_callback_handler'],
      userInfoClaimRetriever: configuration.oauth['oidc.extensions.user_info_claim_retriever'],
    },
  }
}

function grantSwitches(configuration: Configuration): GrantSwitches {
  const grants = configuration['oauth.grant_type']
  return {
    authorizationCode: grants['authorization_code.enable'],
    password: grants['password.enable'],
    refreshToken: grants['refresh_token.enable'],
    clientCredentials: grants['client_credentials.enable'],
    jwtBearer: grants['jwt_bearer.enable'],
    refreshesApplications: grants['client_credentials.allow_refresh_tokens'],
    identifiesApplications: grants['client_credentials.allow_id_token'],
  }
}
