/** Settings of the key manager: plain data from the configuration, replaced by a reload. */
import type { Configuration } from '../../config/catalogue.ts'
import { isJavaClass } from '../../config/module-file.ts'

export interface KeyManagerSettings {
  /** `iss` of every token. */
  readonly issuer: string
  readonly skewMs: number
  readonly applicationTokenS: number
  readonly userTokenS: number
  readonly refreshTokenS: number
  readonly idTokenS: number
  readonly removesExpiredTokens: boolean
  /** Life of a signing key; 0 for no rotation. */
  readonly signingKeyMs: number
  /** Patterns of scopes that need no role. */
  readonly allowedScopes: readonly string[]
  readonly grants: EnabledGrants
  readonly userInfoType: 'json' | 'jwt'
  readonly usesErrorPage: boolean
  readonly errorPageHasParameters: boolean
  readonly usesOidcClaimNames: boolean
  readonly includesUnmappedAttributes: boolean
  /** Life of a cached introspection; 0 for no cache. */
  readonly introspectionCacheMs: number
  readonly limits: RateLimits
  readonly extensions: ExtensionPaths
  readonly grantModules: readonly GrantModulePaths[]
}

/** Modules of an enabled grant type; '' for none. */
export interface GrantModulePaths {
  /** Value of `grant_type`. */
  readonly grantType: string
  readonly handler: string
  readonly validator: string
}

interface EnabledGrants {
  readonly authorizationCode: boolean
  readonly password: boolean
  readonly refreshToken: boolean
  readonly clientCredentials: boolean
  readonly jwtBearer: boolean
  /** For tokens by client credentials. */
  readonly applicationRefreshTokens: boolean
  readonly applicationIdTokens: boolean
}

interface RateLimits {
  /** Requests per minute; -1: no limit. */
  readonly perClient: number
  readonly perAddress: number
  /** Wrong credentials before the lockout; -1 for no lockout. */
  readonly failures: number
  readonly lockoutMs: number
}

/** Paths of modules in the configuration folder; '' for the built-in behaviour. */
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
    removesExpiredTokens: configuration.oauth['token_cleanup.enable'],
    allowedScopes: [...configuration['apim.oauth_config'].allowed_scopes, ...configuration.oauth.allowed_scopes],
    grants: enabledGrantsOf(configuration),
    userInfoType: configuration.oauth['oidc.user_info.response_type'],
    usesErrorPage: configuration.oauth['oidc.id_token.redirect_error_page'],
    errorPageHasParameters: configuration.oauth.additional_params_from_error_url,
    usesOidcClaimNames: configuration.oauth['oidc.claims.enable_oidc_dialect'],
    includesUnmappedAttributes: configuration.oauth['oidc.claims.enable_unmapped_user_attributes'],
    introspectionCacheMs: introspections.enable ? introspections.expiry_time * 1000 : 0,
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
    grantModules: grantModulePaths(configuration),
  }
}

/** Key of a grant type -> value of `grant_type`, where they differ. */
const GRANT_TYPES: Readonly<Record<string, string>> = {
  jwt_bearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
  saml_bearer: 'urn:ietf:params:oauth:grant-type:saml2-bearer',
  iwa_ntlm: 'iwa:ntlm',
}

function grantModulePaths(configuration: Configuration): readonly GrantModulePaths[] {
  const values: Readonly<Record<string, unknown>> = configuration['oauth.grant_type']
  const names = Object.keys(values).flatMap(key => /^(.+)\.grant_handler$/.exec(key)?.[1] ?? [])
  const textAt = (key: string): string => String(values[key] ?? '')
  return names
    .filter(name => values[`${name}.enable`] === true)
    .map(name => ({
      grantType: GRANT_TYPES[name] ?? name,
      handler: textAt(`${name}.grant_handler`),
      validator: textAt(`${name}.grant_validator`),
    }))
    .filter(({ handler, validator }) => handler !== '' || validator !== '')
    .filter(({ handler, validator }) => !isJavaClass(handler) && !isJavaClass(validator))
}

function enabledGrantsOf(configuration: Configuration): EnabledGrants {
  const grants = configuration['oauth.grant_type']
  // The checks of the class are not known, so the grant is refused.
  const isValidated = !isJavaClass(grants['jwt_bearer.grant_validator'])
  return {
    authorizationCode: grants['authorization_code.enable'] && !isJavaClass(grants['authorization_code.grant_handler']),
    password: grants['password.enable'] && !isJavaClass(grants['password.grant_handler']),
    refreshToken: grants['refresh_token.enable'] && !isJavaClass(grants['refresh_token.grant_handler']),
    clientCredentials: grants['client_credentials.enable'] && !isJavaClass(grants['client_credentials.grant_handler']),
    jwtBearer: grants['jwt_bearer.enable'] && isValidated && !isJavaClass(grants['jwt_bearer.grant_handler']),
    applicationRefreshTokens: grants['client_credentials.allow_refresh_tokens'],
    applicationIdTokens: grants['client_credentials.allow_id_token'],
  }
}
