/** `[apim.jwt]`: the token that tells a backend who is calling, and the issuers whose tokens callers may bring. */
import { live, repeatedSection, required, section } from '../key.ts'
import { choice, fieldName, flag, text, url, words } from '../kinds.ts'
import { givesWay, mustNotRewrite, needsFlag } from './agreements.ts'

export const backendJwt = section(
  'apim.jwt',
  'The token the gateway makes for backends, so that they learn who is calling.',
  {
    enable: live(flag(false, 'Tell backends who is calling by such a token.')),
    encoding: live(choice('base64', ['base64', 'base64url'], 'How the parts of the token are encoded.')),
    generator_impl: live(
      text(
        '',
        'ES module from the home folder on: its `generateToken({ claims })` makes the token in place of the gateway.',
      ),
    ),
    header: live(fieldName('X-JWT-Assertion', 'Field of the request to the backend that carries the token.')),
    claim_dialect: live(
      text('http://wso2.org/claims', 'Dialect of claims, the URI in front of their names; empty: names by themselves.'),
    ),
    signing_algorithm: live(
      choice('SHA256withRSA', ['SHA256withRSA', 'NONE'], 'How the token is signed; `NONE` leaves it unsigned.'),
    ),
    enable_user_claims: live(flag(false, 'Add what the user store says of the user.')),
    claims_extractor_impl: live(
      text(
        '',
        'ES module from the home folder on: its `retrieveClaims({ user, tenant })` takes the place of the user store.',
      ),
    ),
    enable_claim_retrieval: live(flag(false, 'Have the key manager look up claims of the user for the token.')),
  },
  {
    roles: ['api-key-manager', 'gateway-worker'],
    readBy: [
      'authority/backend-modules.ts',
      'primary/backend-planning.ts',
      'primary/backend-signing.ts',
      'primary/operator-modules.ts',
    ],
    rules: [
      givesWay('encoding', 'generator_impl'),
      needsFlag('claims_extractor_impl', 'enable_user_claims'),
      mustNotRewrite('header'),
      {
        keys: ['signing_algorithm', 'enable'],
        must: 'signing_algorithm NONE lets anybody who reaches the backend make such a token: sign it',
        severity: 'warning',
        holds: it => it.signing_algorithm !== 'NONE',
      },
    ],
  },
)

/** What can be verified: RFC 7518 3.1 without what is symmetric and what is none, and RFC 8037 3.1. */
const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const ALGORITHMS = [...RSA, 'ES256', 'ES384', 'ES512', 'EdDSA']

export const jwtIssuer = repeatedSection(
  'apim.jwt.issuer',
  'A key manager beside the built-in one whose tokens are accepted.',
  {
    name: live(required(text('', 'Name of the issuer, as its tokens spell it in `iss`.'))),
    'jwks.url': live(url('', ['https', 'http'], 'Where the keys are published that it signs with.')),
    algorithms: live(
      words(ALGORITHMS, 'Algorithms of signatures that are accepted of it; those with a shared key never are.'),
    ),
    audiences: live(words([], 'Tokens are accepted whose `aud` names one of these; none: whatever `aud` says.')),
    consumer_key_claims: live(
      words(['azp', 'client_id', 'consumerKey'], 'Claims that name the client; the first that is there counts.'),
    ),
    scopes_claim: live(text('scope', 'Claim with the scopes of the token, one text with spaces or a list.')),
    low_s: live(
      flag(false, 'It signs ECDSA with the smaller of the two possible s alone, so that the other one is forged.'),
    ),
  },
  {
    roles: ['gateway-worker'],
    readBy: ['authority/remote-part.ts', 'primary/authority-planning.ts', 'primary/identity-planning.ts'],
    rules: [
      {
        keys: ['algorithms'],
        must: `algorithms must be one or more of ${ALGORITHMS.join(', ')}`,
        severity: 'fault',
        holds: it => it.algorithms.length > 0 && it.algorithms.every(name => ALGORITHMS.includes(name)),
      },
      {
        keys: ['name', 'jwks.url'],
        must: 'an issuer without jwks.url has no keys, so that none of its tokens can be accepted',
        severity: 'warning',
        holds: it => it['jwks.url'] !== '',
      },
      {
        keys: ['jwks.url'],
        must: 'jwks.url must be https, or lead to this machine: who can change the keys can make tokens',
        severity: 'warning',
        holds: it => !/^http:\/\/(?!(localhost|127(\.\d+){3}|\[::1\])(?![^:/]))/i.test(it['jwks.url']),
      },
    ],
  },
)

export const claimMapping = repeatedSection(
  'apim.jwt.issuer.claim_mapping',
  'A claim of the issuer above it that goes by another name here.',
  {
    remote_claim: live(required(text('', 'Name of the claim in tokens of the issuer.'))),
    local_claim: live(required(text('', 'Name under which the gateway knows it and passes it on.'))),
  },
  { roles: ['gateway-worker'], readBy: ['primary/identity-planning.ts'] },
)
