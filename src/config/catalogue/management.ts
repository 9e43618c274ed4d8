/** What an operator sees of a running gateway: the management listener, the access log, the event log, its end. */
import { live, section } from '../key.ts'
import { choice, duration, flag, host, port, text, words } from '../kinds.ts'

export const listener = section(
  'transport.listener',
  'What holds for every listener.',
  {
    'shutdown.wait.sec': live(duration(30, 's', 0, 86_400, 'How long a stop waits for exchanges in flight.')),
  },
  { readBy: ['primary/gateway.ts'] },
)

export const management = section(
  'management',
  'Management API and key manager on one listener, liveness and readiness on another.',
  {
    enable: flag(true, 'Listen for the management API and for clients of the key manager.'),
    port: port(9443, 'Port of that listener, which is on TLS; `server.offset` is added.'),
    host_names: live(
      words([], 'Names that requests may ask it by, beside those of `server.hostname` and `server.base_path`.'),
    ),
    health_port: port(9763, 'Plain HTTP port of `/healthz` and `/readyz`; `server.offset` is added.'),
    bind_address: host('127.0.0.1', 'Address that both listeners are bound to.'),
  },
  { readBy: ['primary/management-planning.ts', 'primary/ports.ts'] },
)

export const accessLog = section(
  'access_log',
  'One line per exchange.',
  {
    target: choice('off', ['off', 'file', 'stdout'], 'Where the lines go.'),
    path: text('access.log', 'The file, relative to the data folder; reopened on SIGHUP.'),
    format: choice('json', ['json', 'combined'], 'JSON lines, or the combined format that log tools know.'),
  },
  { readBy: ['primary/gateway.ts', 'primary/planning.ts', 'reactor/reactor-thread.ts'] },
)

export const logging = section(
  'logging',
  'Events of the gateway itself.',
  {
    level: live(
      choice(
        'info',
        ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
        'The least severe level that is written.',
      ),
    ),
  },
  { readBy: ['authority/authority-thread.ts', 'primary/reload.ts'] },
)
