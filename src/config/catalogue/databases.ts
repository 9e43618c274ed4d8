/** `[database.*]`: the databases of accounts, applications, subscriptions and tokens. */
import { either, isNotSet, isOneOf, isTrue } from '../conditions.ts'
import { actsIf, allActIf, withSpecialValue, inert, type Key, section } from '../key.ts'
import { choice, integer, duration, flag, host, secret, text } from '../kinds.ts'
import { DAY_MS } from './passthru-keys.ts'

/** Secret as a whole, because drivers take credentials in too many places to mask each (`thin:a/b@host`). */
function jdbcUrl(meaning: string): Key<string> {
  const plain = text('', meaning)
  const read = (given: unknown): string | undefined => {
    const value = plain.read(given)
    return value === undefined || value === '' || /^jdbc:[a-z0-9]+:./i.test(value) ? value : undefined
  }
  return { ...plain, kind: 'JDBC URL', expects: 'a URL such as "jdbc:mysql://host:3306/name"', secret: true, read }
}

const ROLES = { roles: ['api-devportal', 'api-key-manager', 'api-publisher', 'traffic-manager'] } as const
const SERVERS = ['mysql', 'postgre'] as const
const EMBEDDED = 'the embedded database is `registry.db` in the data folder, and has no accounts'
const EMBEDDED_POOL = 'the embedded database has one connection, which is never tested'

const type = choice(
  'h2',
  ['mysql', 'h2', 'mssql', 'postgre', 'oracle', 'db2'],
  'Type of the database; `h2` is the embedded one.',
)

function serverKeys(nameDefault: string) {
  const location = {
    hostname: host('', 'Host of the database server, in place of `url`.'),
    port: withSpecialValue(
      0,
      'the default port of the type',
      integer(0, '', 1, 65_535, 'Port of the database server, in place of `url`.'),
    ),
    name: text(nameDefault, 'Name of the database on that server, in place of `url`.'),
  }
  const keys = {
    url: jdbcUrl('JDBC URL of the database, with any properties; empty: the embedded one in the data folder.'),
    username: text('', 'Account at the database; there is no default account.'),
    password: secret('Password of `username`; there is no default password.'),
    ...allActIf(isNotSet('.url'), location, '`url` overrides it'),
  }
  return allActIf(isOneOf('.type', ...SERVERS), keys, EMBEDDED)
}

const shared = { type, ...serverKeys('shared_db') }

/** The pool of `shared_db` has the same settings. */
const ONE_SERVER = either(isOneOf('.type', ...SERVERS), isOneOf('database.shared_db.type', ...SERVERS))

const apim = {
  type,
  ...serverKeys('apim_db'),
  ...allActIf(
    ONE_SERVER,
    {
      validationQuery: actsIf(
        isTrue('.pool_options.testOnBorrow'),
        text('SELECT 1', 'Statement that tests a connection, in the dialect of the database.'),
      ),
      'pool_options.maxActive': integer(50, 'connections', 1, 10_000, 'Largest number of open connections.'),
      'pool_options.testOnBorrow': flag(true, 'Run `validationQuery` on a connection before it is used.'),
      'pool_options.validationInterval': actsIf(
        isTrue('.pool_options.testOnBorrow'),
        duration(30_000, 'ms', 0, DAY_MS, 'Time after a test in which a connection is not tested again.'),
      ),
    },
    EMBEDDED_POOL,
  ),
  'pool_options.maxWait': duration(60_000, 'ms', 0, DAY_MS, 'Longest wait for a connection.'),
  'pool_options.defaultAutoCommit': inert(
    flag(true, 'Commit each statement separately.'),
    'related statements always form one transaction, and all others commit separately',
  ),
}

const SECRET_CHARS_MIN = 32

/** A random text of any encoding, from which keys are derived. */
function encryptionKey(meaning: string): Key<string> {
  const plain = secret(meaning)
  const read = (given: unknown): string | undefined => {
    const value = plain.read(given)
    return value === '' || (value ?? '').length >= SECRET_CHARS_MIN ? value : undefined
  }
  return {
    ...plain,
    expects: `a text of at least ${SECRET_CHARS_MIN} random characters (\`openssl rand -hex 32\`)`,
    read,
  }
}

export const encryption = section(
  'encryption',
  'Encryption of what the database keeps.',
  {
    key: encryptionKey(
      'Key that encrypts the private signing keys in the database; the same on every node of a database server, ' +
        'which requires it. The embedded database may do without: the first start writes one to `encryption-key` in ' +
        'the data folder.',
    ),
  },
  { roles: ['api-key-manager'] },
)

export const apimDatabase = section(
  'database.apim_db',
  'The database of APIs, applications, subscriptions and tokens.',
  apim,
  ROLES,
)

export const sharedDatabase = section(
  'database.shared_db',
  'The database of users, roles and tenants, which all nodes share.',
  shared,
  ROLES,
)
