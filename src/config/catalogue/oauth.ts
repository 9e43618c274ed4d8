/** The OAuth server of the key manager: tokens, their validity, OpenID Connect, and which grants there are. */
import { allInert, inert, type Key, section } from '../key.ts'
import { choice, duration, flag, text, words } from '../kinds.ts'
import { needsFlag } from './agreements.ts'

const KEY_MANAGER = 'not built yet: the OAuth server comes with the key manager'
const HANDLER = 'grants are built in: a class that would handle one cannot be loaded'
const NTLM = 'there is no grant for NTLM: its hash is no credential to build on'
const KERBEROS = 'there is no grant for Kerberos: no Kerberos library is on board'

const YEARS_S = 10 * 366 * 86_400

function validity(fallback: number, of: string): Key<number> {
  return duration(fallback, 's', 1, YEARS_S, `How long ${of} is valid.`)
}

const keys = {
  additional_params_from_error_url: flag(false, 'Pass further parameters on to the page for errors.'),
  allowed_scopes: words([], 'Scopes granted without validation, as patterns.'),
  timestamp_skew: duration(0, 's', 0, 86_400, 'Difference of clocks that validity periods allow for.'),
  'extensions.token_generator': text('', 'Class that makes access tokens; empty: the built-in one.'),
  'extensions.token_context_generator': text('', 'Class that makes the JWT for backends; empty: the built-in one.'),
  'extensions.token_context_claim_retriever': text(
    '',
    'Class that finds the claims of the JWT for backends; empty: the built-in one.',
  ),
  'extensions.token_context_dialect_uri': text('', 'Dialect of the claims in the JWT for backends.'),
  'token_validation.app_access_token_validity': validity(3600, 'an access token of an application'),
  'token_validation.user_access_token_validity': validity(3600, 'an access token of a user'),
  'token_validation.refresh_token_validity': validity(86_400, 'a refresh token'),
  'token_cleanup.enable': flag(true, 'Remove tokens that are no longer valid.'),
  'token_cleanup.retain_access_tokens_for_auditing': flag(true, 'Move them to a table for audits instead.'),
  'oidc.extensions.id_token_builder': text('', 'Class that makes id tokens; empty: the built-in one.'),
  'oidc.extensions.claim_callback_handler': text('', 'Class that adds claims to id tokens; empty: the built-in one.'),
  'oidc.extensions.user_info_claim_retriever': text(
    '',
    'Class that finds the claims of user-info answers; empty: the built-in one.',
  ),
  'oidc.user_info.response_type': choice('json', ['json', 'jwt'], 'Form of user-info answers.'),
  'oidc.token_validation.id_token_validity': validity(3600, 'an id token'),
  'oidc.id_token.issuer': text(
    `\${carbon.protocol}://\${carbon.host}:\${carbon.management.port}/oauth2/token`,
    'Issuer named in id tokens: the address of the token endpoint.',
  ),
  'oidc.id_token.redirect_error_page': flag(true, 'Send the browser to the page for errors when a request is refused.'),
  'oidc.claims.enable_oidc_dialect': flag(false, 'Name claims as OpenID Connect does.'),
  'oidc.claims.enable_unmapped_user_attributes': flag(false, 'Add attributes of users that no claim is mapped to.'),
}

const ROLES = ['api-key-manager'] as const

export const oauth = section('oauth', 'The OAuth server.', allInert(keys, KEY_MANAGER), {
  rules: [
    {
      keys: ['token_validation.refresh_token_validity', 'token_validation.user_access_token_validity'],
      must: 'a refresh token that ends before its access token renews nothing',
      severity: 'warning',
      holds: it => it['token_validation.refresh_token_validity'] >= it['token_validation.user_access_token_validity'],
    },
    needsFlag('token_cleanup.retain_access_tokens_for_auditing', 'token_cleanup.enable'),
  ],
  roles: ROLES,
})

function grant<const N extends string>(name: N, enabled: boolean, of: string, reason = KEY_MANAGER) {
  return {
    [`${name}.enable`]: inert(flag(enabled, `Grant tokens for ${of}.`), reason),
    [`${name}.grant_handler`]: inert(text('', 'Class that handles the grant; empty: the built-in one.'), HANDLER),
  } as { readonly [P in `${N}.enable`]: Key<boolean> } & { readonly [P in `${N}.grant_handler`]: Key<string> }
}

const validator = inert(text('', 'Class that validates requests for the grant; empty: the built-in one.'), HANDLER)

export const grantTypes = section(
  'oauth.grant_type',
  'Which grants the token endpoint takes. `[oauth.grant_type.<name>]` names one of your own.',
  {
    ...grant('authorization_code', true, 'an authorization code'),
    ...grant('password', true, 'the name and password of a user'),
    ...grant('refresh_token', true, 'a refresh token'),
    ...grant('client_credentials', true, 'the credentials of the application itself'),
    'client_credentials.allow_refresh_tokens': inert(flag(false, 'Give a refresh token with it.'), KEY_MANAGER),
    'client_credentials.allow_id_token': inert(flag(false, 'Give an id token with it.'), KEY_MANAGER),
    ...grant('saml_bearer', true, 'a SAML assertion'),
    ...grant('iwa_ntlm', true, 'a Windows login', NTLM),
    'iwa_ntlm.grant_validator': validator,
    ...grant('jwt_bearer', true, 'a JWT'),
    'jwt_bearer.grant_validator': validator,
    ...grant('kerberos', false, 'a Kerberos ticket', KERBEROS),
    'kerberos.grant_validator': validator,
    '<name>.enable': inert(flag(false, 'Grant tokens in this way.'), HANDLER),
    '<name>.grant_handler': inert(text('', 'Class that handles the grant.'), HANDLER),
    '<name>.grant_validator': validator,
  },
  {
    roles: ROLES,
    rules: [
      needsFlag('client_credentials.allow_refresh_tokens', 'client_credentials.enable'),
      needsFlag('client_credentials.allow_id_token', 'client_credentials.enable'),
    ],
  },
)
