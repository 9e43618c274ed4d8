/** `[oauth]`: the OAuth server of the key manager, with token lifetimes, OpenID Connect and grant types. */
import { isNot, isSet, isTrue } from '../conditions.ts'
import { actsIf, allActIf, withSpecialValue, inert, type Key, KEY_MANAGER, live, section } from '../key.ts'
import { choice, integer, duration, flag, text, list } from '../kinds.ts'

const BACKEND_JWT = 'the keys of the backend JWT are those of [apim.jwt]'
const SAML = 'no library here verifies signatures of SAML assertions; a module can'
const HANDLE = 'handleGrant({ grantType, client, parameters })'
const VALIDATE = 'validateGrant({ grantType, client, parameters })'
const CUSTOM = 'a grant type of yours is what its module makes it'
const NTLM = 'NTLM hashes are too weak a credential to build it in; a module may'
const KERBEROS = 'there is no Kerberos library here; a module can use one'

const YEARS_S = 10 * 366 * 86_400

function validity(defaultValue: number, of: string): Key<number> {
  return live(duration(defaultValue, 's', 1, YEARS_S, `Lifetime of ${of}.`))
}

/** Path of an ES module; `control/oauth/extensions.ts` documents its exports. */
function module(of: string, exported: string): Key<string> {
  return live(text('', `ES module inside the configuration folder that ${of}: it exports \`${exported}\`.`))
}

function attempts(defaultValue: number, means: string, meaning: string): Key<number> {
  return live(withSpecialValue(-1, means, integer(defaultValue, '', 1, 1_000_000, meaning)))
}

const keysOfKeyManager = {
  additional_params_from_error_url: live(flag(false, 'Pass `client_id` and `state` to the error page.')),
  allowed_scopes: live(
    list([], 'Patterns of scopes that are granted without a role; scopes that an API binds to roles still need one.'),
  ),
  'extensions.token_generator': module('makes the claims of access tokens', 'tokenClaims(claims, facts)'),
  'extensions.token_context_generator': inert(text('', 'Class that makes the backend JWT.'), BACKEND_JWT),
  'extensions.token_context_claim_retriever': inert(
    text('', 'Class that retrieves the claims of the backend JWT.'),
    BACKEND_JWT,
  ),
  'extensions.token_context_dialect_uri': inert(text('', 'Claim dialect of the backend JWT.'), BACKEND_JWT),
  'token_validation.app_access_token_validity': validity(3600, 'an access token of an application'),
  'token_validation.user_access_token_validity': validity(3600, 'an access token of a user'),
  'token_validation.refresh_token_validity': actsIf(
    isTrue('oauth.grant_type.refresh_token.enable'),
    validity(86_400, 'a refresh token'),
  ),
  'token_cleanup.enable': live(flag(true, 'Remove expired tokens from the database.')),
  'token_cleanup.retain_access_tokens_for_auditing': actsIf(
    isTrue('.token_cleanup.enable'),
    flag(true, 'Move expired access tokens to an audit table instead of deleting them.'),
  ),
  'oidc.extensions.id_token_builder': module('makes the claims of id tokens', 'idTokenClaims(claims, facts)'),
  'oidc.extensions.claim_callback_handler': module('adds claims to id tokens', 'moreClaims(facts)'),
  'oidc.extensions.user_info_claim_retriever': module('retrieves the claims of a user', 'userClaims(facts)'),
  'oidc.user_info.response_type': live(choice('json', ['json', 'jwt'], 'Format of userinfo responses.')),
  'oidc.token_validation.id_token_validity': validity(3600, 'an id token'),
  'oidc.id_token.redirect_error_page': live(
    flag(true, 'Redirect the browser to the error page where the client cannot be told; false: respond directly.'),
  ),
  'oidc.claims.enable_oidc_dialect': live(
    flag(false, 'Use the claim names of OpenID Connect instead of those of the user store.'),
  ),
  'oidc.claims.enable_unmapped_user_attributes': live(
    flag(false, 'With the scope `profile`, add user attributes without a name in OpenID Connect.'),
  ),
  'signing_key.lifetime': live(
    withSpecialValue(
      -1,
      'for ever',
      duration(
        -1,
        's',
        3600,
        YEARS_S,
        'Lifetime of a signing key of all nodes, after which a new key signs tokens. ' +
          'A key is published before it signs, ' +
          'and until the last token that it signed is over.',
      ),
    ),
  ),
  'rate_limit.per_client': attempts(600, 'unlimited', 'Requests of a client per minute; 429 beyond.'),
  'rate_limit.per_address': attempts(
    600,
    'unlimited',
    'Requests of a client address (IPv6: /64) per minute; 429 beyond.',
  ),
  'lockout.failures': attempts(
    10,
    'never locked',
    'Failed logins of a client or user from one address (IPv6: /64) after which that address is locked out.',
  ),
  'lockout.time': actsIf(
    isNot('.lockout.failures', -1),
    live(duration(300, 's', 1, 86_400, 'Duration of a lockout, from the last failure.')),
  ),
}

/** Keys that a gateway without a key manager reads too. */
const keysOfValidation = {
  timestamp_skew: live(duration(0, 's', 0, 86_400, 'Clock skew that validity checks tolerate.')),
  'oidc.id_token.issuer': text(
    `\${carbon.protocol}://\${carbon.host}:\${carbon.management.port}/oauth2/token`,
    'Issuer in tokens: the address of the token endpoint, the same on all nodes of a database. ' +
      'Where it is not set, a ' +
      'database server keeps that of its first node for all. On a `gateway-worker`, the issuer of its key manager.',
  ),
}

const ROLES = ['api-key-manager'] as const

const keys = { ...keysOfValidation, ...allActIf(KEY_MANAGER, keysOfKeyManager) }

export const oauth = section('oauth', 'The OAuth server.', keys, {
  rules: [
    {
      keys: ['token_validation.refresh_token_validity', 'token_validation.user_access_token_validity'],
      must: 'a refresh token that expires before its access token cannot renew it',
      severity: 'warning',
      holds: it => it['token_validation.refresh_token_validity'] >= it['token_validation.user_access_token_validity'],
    },
  ],
  roles: [...ROLES, 'gateway-worker'],
})

/** `reason`: why the grant needs a module; '' for a built-in grant. */
function grant<const N extends string>(name: N, enabled: boolean, of: string, reason = '') {
  const enable = live(flag(enabled, `Accept ${of}.`))
  const keys = {
    [`${name}.enable`]: reason === '' ? enable : actsIf(isSet(`.${name}.grant_handler`), enable, reason),
    [`${name}.grant_handler`]: actsIf(
      isTrue(`.${name}.enable`),
      module(reason === '' ? 'takes the place of the built-in grant' : 'handles the grant', HANDLE),
    ),
  }
  return keys as { readonly [P in `${N}.enable`]: Key<boolean> } & { readonly [P in `${N}.grant_handler`]: Key<string> }
}

function validator<const N extends string>(name: N) {
  const key = actsIf(isTrue(`.${name}.enable`), module('checks requests of the grant first', VALIDATE))
  return { [`${name}.grant_validator`]: key } as { readonly [P in `${N}.grant_validator`]: Key<string> }
}

export const grantTypes = section(
  'oauth.grant_type',
  'Grant types that the token endpoint accepts. `[oauth.grant_type.<name>]` is a grant type of your own.',
  {
    ...grant('authorization_code', true, 'an authorization code'),
    ...grant('password', true, 'the name and password of a user'),
    ...grant('refresh_token', true, 'a refresh token'),
    ...grant('client_credentials', true, 'the credentials of the application itself'),
    ...allActIf(isTrue('.client_credentials.enable'), {
      'client_credentials.allow_refresh_tokens': actsIf(
        isTrue('.refresh_token.enable'),
        live(flag(false, 'Issue a refresh token with the access token.')),
      ),
      'client_credentials.allow_id_token': live(flag(false, 'Issue an id token with the access token.')),
    }),
    ...grant('saml_bearer', true, 'a SAML assertion', SAML),
    ...grant('iwa_ntlm', true, 'a Windows login', NTLM),
    ...validator('iwa_ntlm'),
    ...grant('jwt_bearer', true, 'a JWT'),
    ...validator('jwt_bearer'),
    ...grant('kerberos', false, 'a Kerberos ticket', KERBEROS),
    ...validator('kerberos'),
    ...grant('<name>', false, 'the grant type', CUSTOM),
    ...validator('<name>'),
  },
  {
    roles: ROLES,
  },
)
