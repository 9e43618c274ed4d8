/** Revocation notices and mail. */
import { actsIf, allInert, live, required, section, WORKER } from '../key.ts'
import { integer, duration, flag, host, mailAddress, secret, text } from '../kinds.ts'
import { DAY_MS } from './passthru-keys.ts'

export const tokenRevocation = section(
  'apim.token.revocation',
  'Notices of revoked tokens.',
  {
    notifier_impl: text(
      '',
      'ES module, relative to the home folder; `tokenRevoked({ key, expiresMs })` is called for each revoked token.',
    ),
    enable_realtime_notifier: flag(
      true,
      'Tell other nodes of a revocation at once, through the broker of `[apim.throttling]`; otherwise they ask with ' +
        'each connection to it.',
    ),
    enable_persistent_notifier: actsIf(
      WORKER,
      flag(true, 'Keep revoked tokens across restarts, in `revoked.json` of the data folder.'),
      'a key manager keeps them in its database, and sends them to each worker that connects to the broker',
    ),
    'realtime_notifier.ttl': duration(5000, 'ms', 1, DAY_MS, 'Lifetime of a revocation message at the broker.'),
    ...allInert(
      {
        'persistent_notifier.hostname': text('', 'Address of the store of revoked tokens.'),
        'persistent_notifier.ttl': duration(5000, 'ms', 1, DAY_MS, 'Lifetime of a revoked token in the store.'),
        'persistent_notifier.username': text('', 'Account at the store of revoked tokens.'),
        'persistent_notifier.password': secret('Password of `persistent_notifier.username`.'),
      },
      'there is no other store: databases and data folders keep revoked tokens until they expire, and workers ask ' +
        'key managers through the broker',
    ),
  },
  {
    roles: ['api-key-manager', 'gateway-worker'],
  },
)

export const notification = section(
  'apim.notification',
  'Mail of the platform: approvals asked for and decided, passwords that were reset, new versions of APIs.',
  {
    from_address: live(required(mailAddress('Sender of mail: `a@example.com` or `Name <a@example.com>`.'))),
    username: live(required(text('', 'Account at the mail server, used with `enable_authentication`.'))),
    password: live(required(secret('Password of `username`.'))),
    hostname: live(host('', 'Host of the mail server (SMTP). Without it no mail is sent.')),
    port: live(integer(25, '', 1, 65_535, 'Port of the mail server; 465 speaks TLS from the first byte.')),
    enable_start_tls: live(flag(false, 'Send mail over TLS alone, by STARTTLS.')),
    enable_authentication: live(flag(false, 'Log in at the mail server.')),
  },
  {
    roles: ['api-devportal', 'api-key-manager', 'api-publisher'],
    rules: [
      {
        keys: ['from_address', 'hostname'],
        must: 'hostname must be set, or no mail is sent',
        severity: 'warning',
        holds: it => it.from_address === '' || it.hostname !== '',
      },
      {
        keys: ['enable_authentication', 'enable_start_tls'],
        must: 'enable_authentication sends the password unprotected unless enable_start_tls is true',
        severity: 'warning',
        holds: it => !it.enable_authentication || it.enable_start_tls || it.port === 465,
      },
    ],
  },
)
