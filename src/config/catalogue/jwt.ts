/** `[apim.jwt]`: the backend JWT, and the issuers whose tokens are accepted. */
import { isNotSet, isTrue } from '../conditions.ts'
import { actsIf, allActIf, live, repeatedSection, required, section } from '../key.ts'
import { choice, fieldName, flag, isReadableByOthers, text, url, list } from '../kinds.ts'
import { mustNotBeFramingField } from './shared-rules.ts'

export const backendJwt = section(
  'apim.jwt',
  'The backend JWT: a token from the gateway that tells the backend who is calling.',
  {
    enable: live(flag(false, 'Add the backend JWT to requests.')),
    header: live(
      fieldName(
        'X-JWT-Assertion',
        'Field of the backend request that carries the token. The gateway always removes it from requests of clients.',
      ),
    ),
    ...allActIf(isTrue('.enable'), {
      encoding: actsIf(
        isNotSet('.generator_impl'),
        live(choice('base64', ['base64', 'base64url'], 'Encoding of the parts of the token.')),
      ),
      generator_impl: live(
        text('', 'ES module, relative to the home folder, whose `generateToken({ claims })` makes the token.'),
      ),
      claim_dialect: live(
        text('http://wso2.org/claims', 'Claim dialect, the URI before the names of claims; empty: plain names.'),
      ),
      signing_algorithm: actsIf(
        isNotSet('.generator_impl'),
        live(
          choice(
            'SHA256withRSA',
            ['SHA256withRSA', 'NONE'],
            'Signature algorithm of the token; `NONE` leaves it unsigned.',
          ),
        ),
      ),
      enable_user_claims: live(flag(false, 'Add the claims of the user from the user store.')),
      claims_extractor_impl: actsIf(
        isTrue('.enable_user_claims'),
        live(
          text(
            '',
            'ES module, relative to the home folder, whose `retrieveClaims({ user, tenant })` replaces the user store.',
          ),
        ),
      ),
      enable_claim_retrieval: live(flag(false, 'Let the key manager look up the claims of the user.')),
    }),
  },
  {
    roles: ['api-key-manager', 'gateway-worker'],
    rules: [
      mustNotBeFramingField('header'),
      {
        keys: ['signing_algorithm', 'enable'],
        must: 'signing_algorithm NONE lets anyone with access to the backend forge the token: sign it',
        severity: 'warning',
        holds: it => it.signing_algorithm !== 'NONE',
      },
    ],
  },
)

/** Accepted algorithms: RFC 7518 3.1 without symmetric ones and `none`, and RFC 8037 3.1. */
const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const ALGORITHMS = [...RSA, 'ES256', 'ES384', 'ES512', 'EdDSA']

export const jwtIssuer = repeatedSection(
  'apim.jwt.issuer',
  'An issuer of accepted tokens, beside the built-in key manager.',
  {
    name: live(required(text('', 'Name of the issuer, as in the claim `iss` of its tokens.'))),
    'jwks.url': live(url('', ['https', 'http'], 'Address of its JSON Web Key Set.')),
    algorithms: live(list(ALGORITHMS, 'Accepted signature algorithms; symmetric ones are never accepted.')),
    audiences: live(list([], 'Accepted audiences, one of which `aud` must name; empty: `aud` is not checked.')),
    consumer_key_claims: live(
      list(['azp', 'client_id', 'consumerKey'], 'Claims with the client id; the first that a token has is used.'),
    ),
    scopes_claim: live(text('scope', 'Claim with the scopes of the token, a list or one text with spaces.')),
    low_s: live(
      flag(
        false,
        'The issuer signs ECDSA only with the smaller of the two possible values of s; refuse the other one.',
      ),
    ),
  },
  {
    // A key manager accepts their tokens as assertions (RFC 7523).
    roles: ['api-key-manager', 'gateway-worker'],
    rules: [
      {
        keys: ['algorithms'],
        must: `algorithms must be one or more of ${ALGORITHMS.join(', ')}`,
        severity: 'error',
        holds: it => it.algorithms.length > 0 && it.algorithms.every(name => ALGORITHMS.includes(name)),
      },
      {
        keys: ['name', 'jwks.url'],
        must: 'an issuer without jwks.url has no keys, so none of its tokens is accepted',
        severity: 'warning',
        holds: it => it['jwks.url'] !== '',
      },
      {
        keys: ['jwks.url'],
        must: 'jwks.url should be https or lead to this machine: whoever can change the keys can forge tokens',
        severity: 'warning',
        holds: it => !isReadableByOthers(it['jwks.url']),
      },
    ],
  },
)

export const claimMapping = repeatedSection(
  'apim.jwt.issuer.claim_mapping',
  'A claim of the issuer above it that has another name here.',
  {
    remote_claim: live(required(text('', 'Name of the claim in tokens of the issuer.'))),
    local_claim: live(required(text('', 'Name of the claim in the gateway and in the backend JWT.'))),
  },
  { roles: ['api-key-manager', 'gateway-worker'] },
)
