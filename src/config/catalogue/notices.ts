/** What the gateway tells others: traces, revoked tokens, mail. */
import { allInert, inert, required, section } from '../key.ts'
import { count, duration, flag, host, secret, text } from '../kinds.ts'
import { needsFlag } from './agreements.ts'
import { DAY_MS } from './passthru-keys.ts'

const OTHER_NODES =
  'not built yet: telling nodes of revocations that share no database server; those that do read them within 3 s'

export const openTracer = section(
  'apim.open_tracer',
  'Traces of requests.',
  allInert(
    {
      'remote_tracer.enable': flag(false, 'Send traces to a tracer.'),
      'remote_tracer.name': text('zipkin', 'Kind of the tracer.'),
      'remote_tracer.properties.hostname': host('localhost', 'Host of the tracer.'),
      'remote_tracer.properties.port': count(9411, '', 1, 65_535, 'Port of the tracer.'),
      'log_tracer.enable': flag(false, 'Write traces to the log.'),
    },
    'not built yet: tracing',
  ),
  {
    roles: ['gateway-worker'],
    rules: [
      needsFlag('remote_tracer.name', 'remote_tracer.enable'),
      needsFlag('remote_tracer.properties.hostname', 'remote_tracer.enable'),
      needsFlag('remote_tracer.properties.port', 'remote_tracer.enable'),
    ],
  },
)

export const tokenRevocation = section(
  'apim.token.revocation',
  'How gateways hear of revoked tokens.',
  {
    notifier_impl: text(
      '',
      'ES module, from the home folder on, whose `tokenRevoked({ key, expiresMs })` is told of each revoked token.',
    ),
    enable_realtime_notifier: inert(
      flag(true, 'Tell gateways at once; off, they hear as from the persistent notifier.'),
      `${OTHER_NODES}; within this one every reactor knows at once`,
    ),
    enable_persistent_notifier: flag(
      true,
      'Keep revoked tokens over a restart on a node without a database, in `revoked.json` of the data folder.',
    ),
    'realtime_notifier.ttl': inert(
      duration(5000, 'ms', 1, DAY_MS, 'How long a message about a revoked token waits for its receivers.'),
      OTHER_NODES,
    ),
    ...allInert(
      {
        'persistent_notifier.hostname': text('', 'Address of the store that keeps revoked tokens.'),
        'persistent_notifier.ttl': duration(5000, 'ms', 1, DAY_MS, 'How long the store keeps a revoked token.'),
        'persistent_notifier.username': text('', 'Account at the store that keeps revoked tokens.'),
        'persistent_notifier.password': secret('Password that goes with `persistent_notifier.username`.'),
      },
      'no other store is asked: revoked tokens are kept in the database, or in the data folder, until they expire',
    ),
  },
  {
    roles: ['api-key-manager', 'gateway-worker'],
    readBy: ['authority/authority.ts', 'primary/operator-modules.ts'],
    rules: [
      needsFlag('realtime_notifier.ttl', 'enable_realtime_notifier'),
      needsFlag('persistent_notifier.hostname', 'enable_persistent_notifier'),
      needsFlag('persistent_notifier.ttl', 'enable_persistent_notifier'),
      {
        keys: ['persistent_notifier.password', 'persistent_notifier.username'],
        must: 'persistent_notifier.password has no effect without persistent_notifier.username',
        severity: 'warning',
        holds: it => it['persistent_notifier.username'] !== '',
      },
    ],
  },
)

export const notification = section(
  'apim.notification',
  'Mail to subscribers of an API.',
  allInert(
    {
      from_address: required(text('', 'Address that mail is sent from.')),
      username: required(text('', 'Account at the mail server.')),
      password: required(secret('Password that goes with `username`.')),
      hostname: host('', 'Host of the mail server (SMTP).'),
      port: count(25, '', 1, 65_535, 'Port of the mail server.'),
      enable_start_tls: flag(false, 'Go over to TLS (STARTTLS).'),
      enable_authentication: flag(false, 'Log in at the mail server.'),
    },
    'not built yet: mail',
  ),
  {
    roles: ['api-publisher'],
    rules: [
      {
        keys: ['enable_authentication', 'enable_start_tls'],
        must: 'enable_authentication sends the password unprotected unless enable_start_tls is true',
        severity: 'warning',
        holds: it => !it.enable_authentication || it.enable_start_tls,
      },
    ],
  },
)
