/** `[database.*]`: where accounts, applications and subscriptions are kept. */
import { except, inert, type Key, type Rule, section, type Values } from '../key.ts'
import { choice, count, duration, flag, host, secret, text } from '../kinds.ts'
import { givesWay, needsFlag } from './agreements.ts'
import { DAY_MS } from './passthru-keys.ts'

/** What a JDBC URL of each kind begins with. */
const DRIVERS = {
  mysql: ['jdbc:mysql:', 'jdbc:mariadb:'],
  h2: ['jdbc:h2:'],
  mssql: ['jdbc:sqlserver:'],
  postgre: ['jdbc:postgresql:'],
  oracle: ['jdbc:oracle:'],
  db2: ['jdbc:db2:'],
} as const

const LISTED = Object.entries(DRIVERS)
  .map(([type, starts]) => `${starts.join(' or ')} for ${type}`)
  .join(', ')

/** A secret: drivers take credentials in more places of it than could be masked one by one (`thin:a/b@host`). */
function jdbcUrl(meaning: string): Key<string> {
  const plain = text('', meaning)
  const read = (given: unknown): string | undefined => {
    const value = plain.read(given)
    return value === undefined || value === '' || /^jdbc:[a-z0-9]+:./i.test(value) ? value : undefined
  }
  return { ...plain, kind: 'JDBC URL', expects: 'a URL such as "jdbc:mysql://host:3306/name"', secret: true, read }
}

const shared = {
  type: choice('h2', ['mysql', 'h2', 'mssql', 'postgre', 'oracle', 'db2'], 'Kind of the database; `h2` is embedded.'),
  url: jdbcUrl('Where the database is, as a JDBC URL with any properties; empty: the embedded one in the data folder.'),
  username: text('', 'Account at the database; there is no built-in one.'),
  password: secret('Password that goes with `username`; there is no built-in one.'),
}

const apim = {
  ...shared,
  hostname: host('', 'Host of the database server, in place of `url`.'),
  name: text('apim_db', 'Name of the database on that server, in place of `url`.'),
  port: except(
    0,
    'the usual one of the type',
    count(0, '', 1, 65_535, 'Port of the database server, in place of `url`.'),
  ),
  validationQuery: text('SELECT 1', 'Statement that shows whether a connection still works; depends on the database.'),
  'pool_options.maxActive': count(50, 'connections', 1, 10_000, 'Connections open at once.'),
  'pool_options.maxWait': duration(60_000, 'ms', 0, DAY_MS, 'How long a request waits for a connection.'),
  'pool_options.testOnBorrow': flag(true, 'Run `validationQuery` on a connection before it is used.'),
  'pool_options.validationInterval': duration(
    30_000,
    'ms',
    0,
    DAY_MS,
    'How long a connection counts as working after it was tested.',
  ),
  'pool_options.defaultAutoCommit': inert(
    flag(true, 'Commit each statement by itself.'),
    'what belongs together is one transaction, and everything else a statement by itself',
  ),
}

type Shared = Values<typeof shared>
type Apim = Values<typeof apim>

const URL_OF_TYPE: Rule<Shared> = {
  keys: ['url', 'type'],
  must: `url must be one of the type: ${LISTED}`,
  severity: 'fault',
  holds: it => it.url === '' || DRIVERS[it.type].some(start => it.url.toLowerCase().startsWith(start)),
}

const SERVER_OR_URL: Rule<Apim> = {
  keys: ['type', 'url', 'hostname'],
  must: 'url or hostname is required unless type is h2, the embedded database',
  severity: 'fault',
  holds: it => it.type === 'h2' || it.url !== '' || it.hostname !== '',
}

// A warning: files of the reference platform name host and port here, too.
const SHARED_URL: Rule<Shared> = {
  keys: ['type', 'url'],
  must: 'url is required unless type is h2, the embedded database',
  severity: 'warning',
  holds: it => it.type === 'h2' || it.url !== '',
}

const EMBEDDED: Rule<Apim> = {
  keys: ['hostname', 'type'],
  must: 'hostname has no effect where type is h2, the embedded database',
  severity: 'warning',
  holds: it => it.hostname === '' || it.type !== 'h2',
}

export const apimDatabase = section(
  'database.apim_db',
  'The database of APIs, applications, subscriptions and tokens.',
  apim,
  {
    readBy: ['registry/database-plan.ts'],
    roles: ['api-devportal', 'api-key-manager', 'api-publisher', 'traffic-manager'],
    rules: [
      URL_OF_TYPE,
      SERVER_OR_URL,
      EMBEDDED,
      givesWay('hostname', 'url'),
      givesWay('port', 'url'),
      needsFlag('pool_options.validationInterval', 'pool_options.testOnBorrow'),
    ],
  },
)

export const sharedDatabase = section(
  'database.shared_db',
  'The database of users, roles and tenants, which all nodes share.',
  shared,
  { readBy: ['registry/database-plan.ts'], rules: [URL_OF_TYPE, SHARED_URL] },
)
