/** The OAuth server of the key manager: tokens, their validity, OpenID Connect, and which grants there are. */
import { except, inert, type Key, live, section } from '../key.ts'
import { choice, count, duration, flag, text, words } from '../kinds.ts'
import { needsFlag } from './agreements.ts'

const BACKEND_JWT = 'tokens for backends have keys of their own, in [apim.jwt]'
const SAML = 'there is no grant for SAML: nothing on board can check the signature of an assertion'
const HANDLER = 'grants are built in: a class that would handle one cannot be loaded'
const NTLM = 'there is no grant for NTLM: its hash is no credential to build on'
const KERBEROS = 'there is no grant for Kerberos: no Kerberos library is on board'

const YEARS_S = 10 * 366 * 86_400

function validity(fallback: number, of: string): Key<number> {
  return live(duration(fallback, 's', 1, YEARS_S, `How long ${of} is valid.`))
}

/** An ES module: `keymanager/extensions.ts` says what it exports. */
function module(of: string, exported: string): Key<string> {
  return live(text('', `ES module inside the configuration folder that ${of}: it exports \`${exported}\`.`))
}

function attempts(fallback: number, means: string, meaning: string): Key<number> {
  return live(except(-1, means, count(fallback, '', 1, 1_000_000, meaning)))
}

const keys = {
  additional_params_from_error_url: live(flag(false, 'Pass `client_id` and `state` on to the page for errors.')),
  allowed_scopes: live(words([], 'Scopes granted without asking for roles, as patterns; APIs that bind one win.')),
  timestamp_skew: live(duration(0, 's', 0, 86_400, 'Difference of clocks that validity periods allow for.')),
  'extensions.token_generator': module('makes the claims of access tokens', 'tokenClaims(claims, facts)'),
  'extensions.token_context_generator': inert(text('', 'Class that makes the JWT for backends.'), BACKEND_JWT),
  'extensions.token_context_claim_retriever': inert(
    text('', 'Class that finds the claims of the JWT for backends.'),
    BACKEND_JWT,
  ),
  'extensions.token_context_dialect_uri': inert(
    text('', 'Dialect of the claims in the JWT for backends.'),
    BACKEND_JWT,
  ),
  'token_validation.app_access_token_validity': validity(3600, 'an access token of an application'),
  'token_validation.user_access_token_validity': validity(3600, 'an access token of a user'),
  'token_validation.refresh_token_validity': validity(86_400, 'a refresh token'),
  'token_cleanup.enable': live(flag(true, 'Remove tokens that are no longer valid.')),
  'token_cleanup.retain_access_tokens_for_auditing': flag(true, 'Move them to a table for audits instead.'),
  'oidc.extensions.id_token_builder': module('makes the claims of id tokens', 'idTokenClaims(claims, facts)'),
  'oidc.extensions.claim_callback_handler': module('adds claims to id tokens', 'moreClaims(facts)'),
  'oidc.extensions.user_info_claim_retriever': module('finds the claims of a user', 'userClaims(facts)'),
  'oidc.user_info.response_type': live(choice('json', ['json', 'jwt'], 'Form of user-info answers.')),
  'oidc.token_validation.id_token_validity': validity(3600, 'an id token'),
  'oidc.id_token.issuer': live(
    text(
      `\${carbon.protocol}://\${carbon.host}:\${carbon.management.port}/oauth2/token`,
      'Issuer named in tokens: the address of the token endpoint. A `gateway-worker` names that of its key manager.',
    ),
  ),
  'oidc.id_token.redirect_error_page': live(
    flag(true, 'Send the browser to the page for errors where the client cannot be told; false: answer it directly.'),
  ),
  'oidc.claims.enable_oidc_dialect': live(
    flag(false, 'Name claims as OpenID Connect does, and not as the user store does.'),
  ),
  'oidc.claims.enable_unmapped_user_attributes': live(
    flag(false, 'With the scope `profile`, add attributes of users that OpenID Connect has no name for.'),
  ),
  'signing_key.lifetime': live(
    except(
      -1,
      'for good',
      duration(-1, 's', 3600, YEARS_S, 'After which time a new key signs tokens; the ones before stay published.'),
    ),
  ),
  'rate_limit.per_client': attempts(600, 'unlimited', 'Requests of a client per minute; beyond it 429.'),
  'rate_limit.per_address': attempts(600, 'unlimited', 'Requests of a client address per minute; beyond it 429.'),
  'lockout.failures': attempts(
    10,
    'never locked',
    'Wrong credentials of a client or user from one address after which right ones are not looked at either.',
  ),
  'lockout.time': live(duration(300, 's', 1, 86_400, 'How long that lasts, counted from the last failure.')),
}

const ROLES = ['api-key-manager'] as const

export const oauth = section('oauth', 'The OAuth server.', keys, {
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
  readBy: [
    'keymanager/settings.ts',
    'primary/declared-planning.ts',
    'primary/identity-planning.ts',
    'primary/operator-modules.ts',
    'registry/judgement.ts',
    'registry/open.ts',
  ],
})

function grant<const N extends string>(name: N, enabled: boolean, of: string, reason = '') {
  const enable = flag(enabled, `Grant tokens for ${of}.`)
  return {
    [`${name}.enable`]: reason === '' ? live(enable) : inert(enable, reason),
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
    'client_credentials.allow_refresh_tokens': live(flag(false, 'Give a refresh token with it.')),
    'client_credentials.allow_id_token': live(flag(false, 'Give an id token with it.')),
    ...grant('saml_bearer', true, 'a SAML assertion', SAML),
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
    readBy: ['keymanager/settings.ts'],
    rules: [
      needsFlag('client_credentials.allow_refresh_tokens', 'client_credentials.enable'),
      needsFlag('client_credentials.allow_id_token', 'client_credentials.enable'),
    ],
  },
)
