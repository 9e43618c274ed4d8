/** Tracing, revocation notices and mail. */
import { actsIf, allInert, inert, required, section, WORKER } from '../key.ts'
import { integer, duration, flag, host, secret, text } from '../kinds.ts'
import { DAY_MS } from './passthru-keys.ts'

const OTHER_NODES =
  'not built yet: revocation notices to nodes on other database servers; nodes on one server read them within 3 s'

export const openTracer = section(
  'apim.open_tracer',
  'Tracing of requests.',
  allInert(
    {
      'remote_tracer.enable': flag(false, 'Send traces to a tracer.'),
      'remote_tracer.name': text('zipkin', 'Kind of the tracer.'),
      'remote_tracer.properties.hostname': host('localhost', 'Host of the tracer.'),
      'remote_tracer.properties.port': integer(9411, '', 1, 65_535, 'Port of the tracer.'),
      'log_tracer.enable': flag(false, 'Write traces to the log.'),
    },
    'not built yet: tracing',
  ),
  {
    roles: ['gateway-worker'],
  },
)

export const tokenRevocation = section(
  'apim.token.revocation',
  'Notices of revoked tokens.',
  {
    notifier_impl: text(
      '',
      'ES module, relative to the home folder; `tokenRevoked({ key, expiresMs })` is called for each revoked token.',
    ),
    enable_realtime_notifier: inert(
      flag(true, 'Notify gateways at once; otherwise only through the persistent notifier.'),
      `${OTHER_NODES}; all reactors of this node know at once`,
    ),
    enable_persistent_notifier: actsIf(
      WORKER,
      flag(true, 'Keep revoked tokens across restarts, in `revoked.json` of the data folder.'),
      'a key manager keeps them in its database',
    ),
    'realtime_notifier.ttl': inert(
      duration(5000, 'ms', 1, DAY_MS, 'Lifetime of a revocation message that waits for receivers.'),
      OTHER_NODES,
    ),
    ...allInert(
      {
        'persistent_notifier.hostname': text('', 'Address of the store of revoked tokens.'),
        'persistent_notifier.ttl': duration(5000, 'ms', 1, DAY_MS, 'Lifetime of a revoked token in the store.'),
        'persistent_notifier.username': text('', 'Account at the store of revoked tokens.'),
        'persistent_notifier.password': secret('Password of `persistent_notifier.username`.'),
      },
      'there is no other store: revoked tokens are kept in the database or the data folder until they expire',
    ),
  },
  {
    roles: ['api-key-manager', 'gateway-worker'],
  },
)

export const notification = section(
  'apim.notification',
  'Mail to the subscribers of an API.',
  allInert(
    {
      from_address: required(text('', 'Sender address of mail.')),
      username: required(text('', 'Account at the mail server.')),
      password: required(secret('Password of `username`.')),
      hostname: host('', 'Host of the mail server (SMTP).'),
      port: integer(25, '', 1, 65_535, 'Port of the mail server.'),
      enable_start_tls: flag(false, 'Switch to TLS (STARTTLS).'),
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
