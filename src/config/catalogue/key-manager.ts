/** The connection between gateway and key manager, and the OAuth settings of both. */
import { isOneOf, isTrue } from '../conditions.ts'
import {
  actsIf,
  allActIf,
  withAliases,
  inert,
  type Key,
  live,
  ofGateway,
  ofKeyManager,
  sameAs,
  section,
  defaultCappedBy,
  WORKER,
} from '../key.ts'
import { choice, integer, fieldName, flag, secret, text, url, list } from '../kinds.ts'
import { isPattern } from '../../runtime/pattern.ts'
import { mustNotExceed, requiredForCustom } from './shared-rules.ts'

export const keyManager = section(
  'apim.key_manager',
  'The key manager that validates tokens for the gateway.',
  {
    ...allActIf(
      WORKER,
      {
        service_url: live(
          url(
            'https://localhost:9443/services/',
            ['https', 'http'],
            'Services of the key manager that a `gateway-worker` uses; its OAuth endpoints are beside them, under ' +
              '`oauth2/`. `[truststore]`, or the store of a profile for its host and port ' +
              '(`transport.passthru_https.sender.ssl_profile.file_path`), must trust its certificate. ' +
              'A worker learns ' +
              'of a revocation at the next introspection of the token, or when the token expires.',
          ),
        ),
        username: live(sameAs('super_admin.username', text('', 'Account of the gateway at the key manager.'))),
        password: live(sameAs('super_admin.password', secret('Password of `username`.'))),
      },
      'other nodes have a key manager of their own',
    ),
    'pool.init_idle_capacity': inert(
      defaultCappedBy(
        'pool.max_idle',
        integer(50, 'connections', 0, 100_000, 'Connections to the key manager that are opened at the start.'),
      ),
      'connections are opened when they are needed, and then kept',
    ),
    'pool.max_idle': live(
      integer(
        100,
        'connections',
        0,
        100_000,
        'Largest number of idle connections to one address, such as the key manager.',
      ),
    ),
    key_validation_handler_type: ofGateway(
      live(
        choice(
          'default',
          ['default', 'custom'],
          'What decides about subscription, token type and scopes of a valid token; `custom`: a module.',
        ),
      ),
    ),
    key_validation_handler_impl: ofGateway(
      actsIf(
        isOneOf('.key_validation_handler_type', 'custom'),
        live(
          text(
            '',
            'ES module, relative to the home folder: `validate({ token, api, resource, verb, builtIn })` gives ' +
              '`{ allowed, code }`. `builtIn` is what the built-in checks say, in the same form.',
          ),
        ),
      ),
    ),
  },
  {
    rules: [
      mustNotExceed('pool.init_idle_capacity', 'pool.max_idle'),
      requiredForCustom('key_validation_handler_type', 'key_validation_handler_impl'),
    ],
  },
)

export const httpClient = section(
  'apim.http_client',
  'Requests of the gateway to key managers, issuers and token endpoints of backends; most tokens need none.',
  {
    max_total: live(
      integer(100, 'connections', 1, 100_000, 'Largest number of concurrent requests, each on a connection.'),
    ),
    default_max_per_route: live(
      integer(50, 'connections', 1, 100_000, 'Largest number of open connections to one address.'),
    ),
  },
  {
    // A key manager asks issuers of assertions for their keys.
    roles: ['api-key-manager', 'gateway-worker'],
    rules: [
      {
        keys: ['default_max_per_route', 'max_total'],
        must: 'default_max_per_route has no effect beyond max_total',
        severity: 'warning',
        holds: it => it.default_max_per_route <= it.max_total,
      },
    ],
  },
)

/** Patterns of scopes. The documented default has two in one item, so commas separate patterns in items too. */
function patterns(defaultValue: readonly string[], meaning: string): Key<readonly string[]> {
  const plain = list(defaultValue, meaning)
  const read = (given: unknown): readonly string[] | undefined => {
    const all = plain.read(typeof given === 'string' ? [given] : given)?.flatMap(splitPatterns)
    return all?.every(isShortPattern) === true ? all : undefined
  }
  return { ...plain, expects: 'a list of regular expressions, or one text with commas', read }
}

const PATTERN_CHARS_MAX = 256

function isShortPattern(text: string): boolean {
  return text.length <= PATTERN_CHARS_MAX && isPattern(text)
}

/** Splits at commas outside braces: `a{1,2}` is one pattern. */
function splitPatterns(text: string): readonly string[] {
  const parts = text.split(/,(?![^{]*\})/).map(part => part.trim())
  return parts.filter(part => part !== '')
}

export const oauthConfig = section(
  'apim.oauth_config',
  'Transport and storage of tokens.',
  {
    enable_outbound_auth_header: ofGateway(
      live(flag(false, "Forward the client's authorization field to the backend unchanged.")),
    ),
    auth_header: ofGateway(live(fieldName('Authorization', 'Request field in which clients send their token.'))),
    revoke_endpoint: ofKeyManager(
      actsIf(
        isTrue('management.enable'),
        live(
          url(
            'https://localhost:9443/oauth2/revoke',
            ['https', 'http'],
            'Revocation endpoint that the REST API of the developer portal shows.',
          ),
        ),
      ),
    ),
    enable_token_encryption: inert(
      flag(false, 'Encrypt the tokens that the database keeps.'),
      'the database keeps the SHA-256 of each token, and no token that could be encrypted',
    ),
    enable_token_hashing: inert(
      flag(false, 'Keep hashes of tokens in the database instead of tokens.'),
      'the database keeps the SHA-256 of each token in any case, and never the token',
    ),
    allowed_scopes: live(
      withAliases(
        ['white_listed_scopes'],
        patterns(
          ['^device_.*', 'openid'],
          'Patterns of scopes that every client gets on request, and that the gateway never requires.',
        ),
      ),
    ),
  },
  {
    roles: ['api-devportal', 'api-key-manager', 'gateway-worker'],
  },
)
