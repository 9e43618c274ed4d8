/** Operation of the gateway: shutdown, management and health listeners, access log, event log. */
import { isNot, isOneOf, isTrue } from '../conditions.ts'
import { actsIf, live, ofKeyManager, section, withSpecialValue } from '../key.ts'
import { choice, duration, flag, host, integer, list, logTemplate, port, statusShares, text, url } from '../kinds.ts'
import { FACILITIES } from '../log-template.ts'

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
    dashboard: ofKeyManager(
      actsIf(
        isTrue('.enable'),
        live(flag(true, 'Serve the dashboard at `/dashboard` of the management listener, to users who sign in.')),
      ),
    ),
    dashboard_roles: ofKeyManager(
      actsIf(
        isTrue('.dashboard'),
        live(list(['admin'], 'Users of the super tenant with one of these roles may use the dashboard.')),
      ),
    ),
    health_port: port(
      9763,
      'Port of the health listener, plain HTTP with `/healthz` and `/readyz`; `server.offset` is added.',
    ),
    bind_address: host('127.0.0.1', 'Address to which both listeners are bound.'),
  },
)

const IS_TEMPLATE = isOneOf('.format', 'template')
const IS_FILE = isOneOf('.target', 'file')
const IS_SYSLOG = isOneOf('.target', 'syslog')
/** Rotating a file more often than every few seconds has no use. */
const ROTATED_BYTES_MIN = 65_536
const ROTATED_EVERY_MAX_S = 31 * 86_400

export const accessLog = section(
  'access_log',
  'The access log, with one line per request.',
  {
    target: choice('off', ['off', 'file', 'stdout', 'syslog'], 'Destination of the lines.'),
    path: actsIf(IS_FILE, text('access.log', 'The file, relative to the data folder; reopened on SIGHUP.')),
    format: actsIf(
      isNot('.target', 'off'),
      choice(
        'json',
        ['json', 'combined', 'template'],
        'Format of the lines: JSON, the combined log format, or that of `template`.',
      ),
    ),
    template: actsIf(
      IS_TEMPLATE,
      logTemplate(
        '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time',
        'A line with variables of nginx, or directives of Apache.',
      ),
    ),
    template_escape: actsIf(
      IS_TEMPLATE,
      choice('default', ['default', 'json'], 'Escapes in values: \\xHH, or those of a JSON text.'),
    ),
    sampling: actsIf(
      isNot('.target', 'off'),
      statusShares([], 'Share of the lines that are written, by status or class; others are written all.'),
    ),
    lines_per_second: actsIf(
      isNot('.target', 'off'),
      withSpecialValue(0, 'no limit', integer(0, 'lines', 1, 10_000_000, 'Most lines per second of the process.')),
    ),
    rotate_bytes: actsIf(
      IS_FILE,
      withSpecialValue(
        0,
        'never',
        integer(0, 'bytes', ROTATED_BYTES_MIN, Number.MAX_SAFE_INTEGER, 'Size beyond which a new file begins.'),
      ),
    ),
    rotate_interval: actsIf(
      IS_FILE,
      withSpecialValue(
        0,
        'never',
        duration(0, 's', 60, ROTATED_EVERY_MAX_S, 'Time after which a new file begins, counted from midnight UTC.'),
      ),
    ),
    rotate_keep: actsIf(IS_FILE, integer(7, 'files', 1, 1000, 'Earlier files that are kept; older ones are deleted.')),
    'syslog.url': actsIf(
      IS_SYSLOG,
      url('udp://localhost:514', ['udp', 'tcp', 'tls'], 'Receiver of the lines as messages of RFC 5424.'),
    ),
    'syslog.facility': actsIf(IS_SYSLOG, choice('local7', FACILITIES, 'Facility of the messages.')),
    'syslog.ca_file': actsIf(
      IS_SYSLOG,
      text('', 'PEM file with the authorities of a TLS receiver, relative to the home; empty: those of the system.'),
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
