/** The pass-through transport on plain HTTP: documented keys, then keys that only this gateway has. */
import { isNot } from '../conditions.ts'
import { actsIf, allInert, withSpecialValue, live, section, defaultCappedBy } from '../key.ts'
import { choice, networks, integer, duration, fieldName, flag, targetPath } from '../kinds.ts'
import { mustNotExceed, mustNotBeFramingField, needsBoundedQueue } from './shared-rules.ts'
import {
  BUFFER_MAX,
  bindAddress,
  DAY_MS,
  listenerEnable,
  listenerPort,
  listenerTls,
  PROXY_PROTOCOL_RULE,
  PROXY_RULES,
  proxyProtocol,
  sender,
  senderTls,
  shared,
  wsdlPrefix,
} from './passthru-keys.ts'

const UNBOUNDED = Number.MAX_SAFE_INTEGER
const PLAIN_LISTENER = 'a plain listener has no TLS; use the same key of [transport.passthru_https]'
const PLAIN_SENDER = 'a plain sender has no TLS; use the same key of [transport.passthru_https]'

const documented = {
  ...shared,
  ...listenerPort(8290),
  ...wsdlPrefix,
  ...allInert(listenerTls, PLAIN_LISTENER),
  ...allInert(senderTls, PLAIN_SENDER),
  ...sender,
}

const SUSPENDING = isNot('.suspend.failures', 0)

const own = {
  reactors: withSpecialValue(
    0,
    'one per processor',
    integer(0, 'threads', 1, 256, 'Reactor threads, which carry the traffic.'),
  ),
  socket_level: choice(
    'auto',
    ['auto', 'handles', 'streams'],
    'Socket API: `handles` is internal to Node and fast, `streams` is public; `auto`: by a self-test at the start.',
  ),
  ...listenerEnable,
  ...bindAddress,
  ...proxyProtocol(''),
  'http.connection.timeout': live(duration(10_000, 'ms', 1, DAY_MS, 'Connect timeout of backends.')),
  'header.max_bytes': defaultCappedBy(
    'io_buffer_size',
    integer(16_384, 'bytes', 512, BUFFER_MAX, 'Largest request head, with the start line; 431 beyond.'),
  ),
  'header.max_count': integer(128, 'fields', 1, 10_000, 'Largest number of fields in a request head; 431 beyond.'),
  'target.max_bytes': live(
    defaultCappedBy('header.max_bytes', integer(8192, 'bytes', 1, BUFFER_MAX, 'Largest request target; 414 beyond.')),
  ),
  'header.read_timeout': live(
    duration(
      30_000,
      'ms',
      1,
      DAY_MS,
      'Longest time from the first byte of a request to the end of its head (408 beyond), and from a new connection, \
with its TLS handshake, to the first byte (closed beyond).',
    ),
  ),
  'body.read_timeout': live(
    withSpecialValue(
      0,
      'off',
      duration(180_000, 'ms', 1, DAY_MS, 'Longest time for each further 64 KiB of a request body, or for its end.'),
    ),
  ),
  'response.min_rate': live(
    withSpecialValue(
      0,
      'off',
      integer(
        240,
        'bytes/s',
        1,
        1_000_000_000,
        'Least average rate at which a client takes a response while bytes wait for it; it may lag behind by \
`http.socket.timeout`, and is reset beyond.',
      ),
    ),
  ),
  'keepalive.timeout': live(
    duration(75_000, 'ms', 1, DAY_MS, 'Idle time after a response after which a client connection is closed.'),
  ),
  'sender.keepalive.timeout': live(
    duration(55_000, 'ms', 1, DAY_MS, 'Idle time after which a backend connection is closed.'),
  ),
  'tunnel.idle_timeout': live(
    duration(
      900_000,
      'ms',
      1,
      DAY_MS,
      'Idle time after which a tunnel (WebSocket or another upgraded protocol) is closed.',
    ),
  ),
  'body.max_bytes': live(
    withSpecialValue(-1, 'unlimited', integer(-1, 'bytes', 0, UNBOUNDED, 'Largest request body; 102511 beyond.')),
  ),
  'pipeline.max_bytes': live(
    defaultCappedBy(
      'io_buffer_size',
      integer(
        16_384,
        'bytes',
        1,
        BUFFER_MAX,
        'Pipelined request bytes that are buffered during a response; reading pauses beyond.',
      ),
    ),
  ),
  'chunk.max_extension_bytes': live(
    integer(1024, 'bytes', 0, 16_777_216, 'Largest total size of chunk extensions in one message.'),
  ),
  'trailer.max_bytes': defaultCappedBy(
    'io_buffer_size',
    integer(8192, 'bytes', 0, BUFFER_MAX, 'Largest trailer section of one message.'),
  ),
  'response.header.max_bytes': defaultCappedBy(
    'io_buffer_size',
    integer(16_384, 'bytes', 512, BUFFER_MAX, 'Largest response head of a backend.'),
  ),
  'suspend.failures': live(
    withSpecialValue(
      0,
      'never',
      integer(
        5,
        'failures',
        1,
        255,
        'Failures in a row that suspend an endpoint although none does by itself: connections that were closed or \
reset, late and unreadable responses. Failures to connect, and the codes that its `config` lists, suspend at once.',
      ),
    ),
  ),
  'suspend.clients': actsIf(
    SUSPENDING,
    live(
      integer(
        2,
        'clients',
        1,
        8,
        'Client addresses that the failures must come from at least; 1 where one load balancer is the only client.',
      ),
    ),
  ),
  'suspend.window': actsIf(
    SUSPENDING,
    live(
      duration(
        10_000,
        'ms',
        1,
        DAY_MS,
        'Longest time from the first to the last of the failures of `suspend.failures`.',
      ),
    ),
  ),
  max_connections_per_client: withSpecialValue(
    -1,
    'unlimited',
    integer(-1, 'connections', 1, 10_000_000, 'Largest number of connections of one client address (IPv6: /64).'),
  ),
  trusted_proxies: live(
    networks([], 'Clients whose forwarding fields are trusted and extended; those of other clients are replaced.'),
  ),
  readiness_path: live(
    targetPath('Path of the traffic listeners that answers 200, and 503 from the start of a drain; "" for none.'),
  ),
  'forwarded.headers': live(
    choice(
      'x-forwarded',
      ['x-forwarded', 'forwarded', 'both', 'none'],
      'Fields with the client address for the backend: X-Forwarded-*, Forwarded (RFC 7239), both or none.',
    ),
  ),
  abort_on_half_close: live(
    flag(false, 'Abort a request whose client has closed its sending side, instead of responding.'),
  ),
  'correlation.header': fieldName(
    'activityid',
    'Field with the correlation id, which the gateway generates where it is absent.',
  ),
  worker_pool_queue_bytes: live(
    integer(
      67_108_864,
      'bytes',
      65_536,
      UNBOUNDED,
      'Largest total size of the messages that wait for workers, of all transports and of the background pool; a \
further one is refused with 102541.',
    ),
  ),
  worker_pool_queue_warning: live(
    withSpecialValue(0, 'off', duration(1000, 'ms', 1, DAY_MS, 'Wait for a worker beyond which a message is logged.')),
  ),
  worker_pool_heap_bytes: live(
    integer(
      536_870_912,
      'bytes',
      16_777_216,
      UNBOUNDED,
      'Heap of one worker thread, without the bytes of bodies; a thread beyond it is replaced, and its messages fail \
with 102543. Where these bytes are more than the heap may be, no further body is decoded or read from a file: 102533.',
    ),
  ),
  'dns.cache_seconds': live(duration(30, 's', 0, 86_400, 'How long resolved addresses of a backend are cached.')),
}

const WHOLE_HEAD = ': a head is buffered as a whole'
const BUFFERED = ', the buffer of a connection'

/** Rules of connections; both sections have them. */
export const CONNECTION_RULES = [
  mustNotExceed('header.max_bytes', 'io_buffer_size', WHOLE_HEAD),
  mustNotExceed('response.header.max_bytes', 'io_buffer_size', WHOLE_HEAD),
  mustNotExceed('pipeline.max_bytes', 'io_buffer_size', BUFFERED),
  mustNotExceed('trailer.max_bytes', 'io_buffer_size', BUFFERED),
  mustNotExceed('target.max_bytes', 'header.max_bytes', ': the request target is part of the head'),
] as const

/** Rules of worker pools; both sections have them. */
export const WORKER_RULES = [
  mustNotExceed('worker_pool_size_core', 'worker_pool_size_max'),
  needsBoundedQueue('worker_pool_size_max', 'worker_pool_size_core', 'worker_pool_queue_length'),
] as const

export const passthruHttp = section(
  'transport.passthru_http',
  'The non-blocking pass-through transport on plain HTTP; its settings of connections are the defaults of ' +
    '`[transport.passthru_https]`.',
  { ...documented, ...own },
  {
    roles: ['gateway-worker'],
    // The reference platform reads the keys of both transports in this section.
    alternativeNames: ['passthru_http'],
    rules: [
      ...PROXY_RULES,
      ...CONNECTION_RULES,
      PROXY_PROTOCOL_RULE,
      ...WORKER_RULES,
      mustNotBeFramingField('correlation.header'),
    ],
  },
)
