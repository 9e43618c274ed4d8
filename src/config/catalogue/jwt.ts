/** `[apim.jwt]`: the token that tells a backend who is calling, and the issuers whose tokens callers may bring. */
import { allInert, repeatedSection, required, section } from '../key.ts'
import { choice, fieldName, flag, text, url } from '../kinds.ts'
import { givesWay, mustNotRewrite, needsFlag } from './agreements.ts'

const BACKEND_JWT = 'not built yet: tokens for backends come with token validation'
const VALIDATION = 'not built yet: token validation'

export const backendJwt = section(
  'apim.jwt',
  'The token the gateway makes for backends, so that they learn who is calling.',
  allInert(
    {
      enable: flag(false, 'Tell backends who is calling by such a token.'),
      encoding: choice('base64', ['base64', 'base64url'], 'How the parts of the token are encoded.'),
      generator_impl: text('', 'Class that makes the token in place of the built-in generator.'),
      header: fieldName('X-JWT-Assertion', 'Field of the request to the backend that carries the token.'),
      claim_dialect: text('', 'Dialect of claims, the URI in front of their names; empty: names by themselves.'),
      signing_algorithm: choice(
        'SHA256withRSA',
        ['SHA256withRSA', 'NONE'],
        'How the token is signed; `NONE` leaves it unsigned.',
      ),
      enable_user_claims: flag(false, 'Add what the user store says of the user.'),
      claims_extractor_impl: text('', 'Class that looks up claims of the user in place of the built-in retriever.'),
      enable_claim_retrieval: flag(false, 'Have the key manager look up claims of the user for the token.'),
    },
    BACKEND_JWT,
  ),
  {
    roles: ['api-key-manager', 'gateway-worker'],
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

export const jwtIssuer = repeatedSection(
  'apim.jwt.issuer',
  'A key manager beside the built-in one whose tokens are accepted.',
  allInert(
    {
      name: required(text('', 'Name of the issuer, as its tokens spell it in `iss`.')),
      'jwks.url': url('', ['https', 'http'], 'Where the keys are published that it signs with.'),
    },
    VALIDATION,
  ),
  {
    roles: ['gateway-worker'],
    rules: [
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
  allInert(
    {
      remote_claim: required(text('', 'Name of the claim in tokens of the issuer.')),
      local_claim: required(text('', 'Name under which the gateway knows it and passes it on.')),
    },
    VALIDATION,
  ),
  { roles: ['gateway-worker'] },
)
