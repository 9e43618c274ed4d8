/** Operation of the gateway: shutdown, management and health listeners, access log, event log. */
import { isNot, isOneOf, isTrue } from '../conditions.ts'
import { actsIf, live, ofKeyManager, section } from '../key.ts'
import { choice, duration, flag, host, port, text, list } from '../kinds.ts'

export const listener = section('transport.listener', 'Settings of all listeners.', {
  'shutdown.wait.sec': live(duration(30, 's', 0, 86_400, 'How long a stop waits for requests in flight.')),
})

export const management = section(
  'management',
  'The management listener (admin APIs and key manager) and the health listener.',
  {
    enable: ofKeyManager(flag(true, 'Open the management listener.')),
    port: ofKeyManager(
      actsIf(isTrue('.enable'), port(9443, 'Port of the management listener, on TLS; `server.offset` is added.')),
    ),
    host_names: ofKeyManager(
      actsIf(
        isTrue('.enable'),
        live(
          list(
            [],
            'Host names that the management listener serves, beside those of `server.hostname` and `server.base_path`.',
          ),
        ),
      ),
    ),
    health_port: port(
      9763,
      'Port of the health listener, plain HTTP with `/healthz` and `/readyz`; `server.offset` is added.',
    ),
    bind_address: host('127.0.0.1', 'Address to which both listeners are bound.'),
  },
)

export const accessLog = section(
  'access_log',
  'The access log, with one line per request.',
  {
    target: choice('off', ['off', 'file', 'stdout'], 'Destination of the lines.'),
    path: actsIf(
      isOneOf('.target', 'file'),
      text('access.log', 'The file, relative to the data folder; reopened on SIGHUP.'),
    ),
    format: actsIf(
      isNot('.target', 'off'),
      choice('json', ['json', 'combined'], 'Format of the lines: JSON, or the combined log format.'),
    ),
  },
  { roles: ['gateway-worker'] },
)

export const logging = section('logging', 'The event log of the gateway.', {
  level: live(
    choice(
      'info',
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'The least severe level that is written.',
    ),
  ),
})
