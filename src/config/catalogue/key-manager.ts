/** The gateway and the key manager: how one reaches the other, and what both have to know about OAuth. */
import { alsoSpelled, inert, type Key, live, sameAs, section, upTo } from '../key.ts'
import { choice, count, fieldName, flag, secret, text, url, words } from '../kinds.ts'
import { SimplePattern } from '../../structure/simple-pattern.ts'
import { customNeeds, mustNotExceed } from './agreements.ts'

export const keyManager = section(
  'apim.key_manager',
  'The key manager that a gateway asks about tokens.',
  {
    service_url: live(
      url(
        'https://localhost:9443/services/',
        ['https', 'http'],
        'Address of the services of the key manager that a `gateway-worker` asks; its OAuth endpoints stand beside ' +
          'them, under `oauth2/`. Its certificate must lead to `[truststore]`, or to the store of a profile for its ' +
          'host and port (`transport.passthru_https.sender.ssl_profile.file_path`). Of a token that is revoked over ' +
          'there a worker learns when it asks again, or when the token is over.',
      ),
    ),
    username: live(sameAs('super_admin.username', text('', 'Account the gateway asks the key manager with.'))),
    password: live(sameAs('super_admin.password', secret('Password that goes with `username`.'))),
    'pool.init_idle_capacity': inert(
      upTo(
        'pool.max_idle',
        count(50, 'connections', 0, 100_000, 'Connections to the key manager kept open from the start.'),
      ),
      'connections are opened when they are needed, and kept then',
    ),
    'pool.max_idle': live(
      count(
        100,
        'connections',
        0,
        100_000,
        'Idle connections to one address, such as the key manager, kept open at most.',
      ),
    ),
    key_validation_handler_type: live(
      choice('default', ['default', 'custom'], 'Whether a module of your own has its say beside the built-in checks.'),
    ),
    key_validation_handler_impl: live(
      text(
        '',
        'ES module, from the home folder on: `validate({ token, api, resource, verb })` answers `{ allowed, code }`.',
      ),
    ),
  },
  {
    readBy: [
      'authority/remote-part.ts',
      'primary/authority-planning.ts',
      'primary/identity-planning.ts',
      'primary/token-apis.ts',
    ],
    rules: [
      mustNotExceed('pool.init_idle_capacity', 'pool.max_idle'),
      ...customNeeds('key_validation_handler_type', 'key_validation_handler_impl'),
    ],
  },
)

export const httpClient = section(
  'apim.http_client',
  'Calls of the gateway to key managers, issuers and token endpoints of backends; most tokens need none.',
  {
    max_total: live(count(100, 'connections', 1, 100_000, 'Requests under way at once, each on a connection.')),
    default_max_per_route: live(count(50, 'connections', 1, 100_000, 'Connections to one address open at once.')),
  },
  {
    roles: ['gateway-worker'],
    readBy: ['authority/remote-part.ts'],
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

/** Patterns of scopes. The documented default has two in one text of a list, so commas part them there, too. */
function patterns(fallback: readonly string[], meaning: string): Key<readonly string[]> {
  const plain = words(fallback, meaning)
  const read = (given: unknown): readonly string[] | undefined => {
    const all = plain.read(typeof given === 'string' ? [given] : given)?.flatMap(apart)
    return all?.every(text => SimplePattern.read(text) !== undefined) === true ? all : undefined
  }
  return { ...plain, expects: 'a list of patterns without groups and `|`, or one text with commas', read }
}

/** At commas outside of braces: `a{1,2}` is one pattern. */
function apart(text: string): readonly string[] {
  const parts = text.split(/,(?![^{]*\})/).map(part => part.trim())
  return parts.filter(part => part !== '')
}

export const oauthConfig = section(
  'apim.oauth_config',
  'How tokens travel, and how they are kept.',
  {
    enable_outbound_auth_header: live(flag(false, "Pass the client's authorization field on to the backend as it is.")),
    auth_header: live(fieldName('Authorization', 'Field in which clients send their token.')),
    revoke_endpoint: inert(
      url(
        'https://localhost:9443/oauth2/revoke',
        ['https', 'http'],
        'Where tokens are revoked, as the developer portal says it.',
      ),
      'there is no developer portal that would show it',
    ),
    enable_token_encryption: flag(
      false,
      'Keep tokens in the database, encrypted; without it their hashes are all that is kept.',
    ),
    enable_token_hashing: flag(
      false,
      'Keep nothing but hashes of tokens in the database, whatever `enable_token_encryption` says.',
    ),
    allowed_scopes: live(
      alsoSpelled(
        ['white_listed_scopes'],
        patterns(
          ['^device_.*', 'openid'],
          'Scopes, as patterns, that are granted to whoever asks for them, and that the gateway asks of nobody.',
        ),
      ),
    ),
  },
  {
    roles: ['api-devportal', 'api-key-manager', 'gateway-worker'],
    readBy: ['keymanager/settings.ts', 'primary/identity-planning.ts', 'registry/open.ts'],
  },
)
