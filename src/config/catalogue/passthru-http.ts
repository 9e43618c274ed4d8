/** The pass-through transport on plain HTTP: the documented keys, then the gateway's own. */
import { allInert, except, live, section, upTo } from '../key.ts'
import { choice, cidrs, count, duration, fieldName, flag, port } from '../kinds.ts'
import { mustNotExceed, mustNotRewrite, needsBoundedQueue } from './agreements.ts'
import {
  BUFFER_MAX,
  bindAddress,
  DAY_MS,
  listenerEnable,
  listenerTls,
  PROXY_RULES,
  sender,
  senderTls,
  shared,
  wsdlPrefix,
} from './passthru-keys.ts'

const UNBOUNDED = Number.MAX_SAFE_INTEGER
const PLAIN_LISTENER = 'a plain listener has no TLS; the same key of the secured transport decides'
const PLAIN_SENDER = 'a plain sender has no TLS; the same key of the secured transport decides'

const documented = {
  ...shared,
  'listener.parameters.port': port(8290, 'Listening port; `server.offset` is added.'),
  ...wsdlPrefix,
  ...allInert(listenerTls, PLAIN_LISTENER),
  ...allInert(senderTls, PLAIN_SENDER),
  ...sender,
}

const own = {
  reactors: except(0, 'one per processor', count(0, 'threads', 1, 256, 'Threads that carry traffic.')),
  socket_level: choice(
    'auto',
    ['auto', 'handles', 'streams'],
    'How sockets are driven: the fast internals of Node, its public API, or what a self-test at start recognises.',
  ),
  ...listenerEnable,
  ...bindAddress,
  'http.connection.timeout': live(
    duration(10_000, 'ms', 1, DAY_MS, 'Longest time a connection to a backend may take to open.'),
  ),
  'header.max_bytes': upTo(
    'io_buffer_size',
    count(16_384, 'bytes', 512, BUFFER_MAX, 'Longest head of a request, start line included; 431 beyond.'),
  ),
  'header.max_count': count(128, 'fields', 1, 10_000, 'Most fields in the head of a request; 431 beyond.'),
  'target.max_bytes': live(
    upTo('header.max_bytes', count(8192, 'bytes', 1, BUFFER_MAX, 'Longest request target; 414 beyond.')),
  ),
  'header.read_timeout': live(
    duration(30_000, 'ms', 1, DAY_MS, 'Time from the first byte of a request to the end of its head; 408 beyond.'),
  ),
  'body.read_timeout': live(
    except(
      0,
      'off',
      duration(
        180_000,
        'ms',
        1,
        DAY_MS,
        'Each further 64 KiB of a request body, or its end, must arrive within this time.',
      ),
    ),
  ),
  'keepalive.timeout': live(duration(75_000, 'ms', 1, DAY_MS, 'Idle time after which a client connection is closed.')),
  'sender.keepalive.timeout': live(
    duration(55_000, 'ms', 1, DAY_MS, 'Idle time after which a backend connection is closed.'),
  ),
  'tunnel.idle_timeout': live(
    duration(
      900_000,
      'ms',
      1,
      DAY_MS,
      'Idle time after which a tunnel is closed: WebSocket, and whatever else a backend agreed to upgrade to.',
    ),
  ),
  'body.max_bytes': live(
    except(-1, 'unlimited', count(-1, 'bytes', 0, UNBOUNDED, 'Longest request body; 102511 beyond.')),
  ),
  'pipeline.max_bytes': live(
    upTo(
      'io_buffer_size',
      count(
        16_384,
        'bytes',
        1,
        BUFFER_MAX,
        'Bytes of further requests held while one is being answered; then reading pauses.',
      ),
    ),
  ),
  'chunk.max_extension_bytes': live(count(1024, 'bytes', 0, 16_777_216, 'Bytes of chunk extensions in one message.')),
  'trailer.max_bytes': upTo('io_buffer_size', count(8192, 'bytes', 0, BUFFER_MAX, 'Bytes of trailers in one message.')),
  'response.header.max_bytes': upTo(
    'io_buffer_size',
    count(16_384, 'bytes', 512, BUFFER_MAX, "Longest head of a backend's response."),
  ),
  max_connections_per_client: except(
    -1,
    'unlimited',
    count(-1, 'connections', 1, 10_000_000, 'Connections of one client address.'),
  ),
  trusted_proxies: live(
    cidrs([], 'Clients whose forwarding fields are believed and extended; of others they are replaced.'),
  ),
  'forwarded.headers': live(
    choice(
      'x-forwarded',
      ['x-forwarded', 'forwarded', 'both', 'none'],
      'Which fields tell the backend about the client: X-Forwarded-*, Forwarded (RFC 7239), both or neither.',
    ),
  ),
  abort_on_half_close: live(
    flag(false, 'Abort an exchange whose client closed its sending side, instead of answering it.'),
  ),
  'correlation.header': fieldName('activityid', 'Field that carries the correlation id, made up where it is absent.'),
  'dns.cache_seconds': live(duration(30, 's', 0, 86_400, 'How long the addresses of a backend are kept.')),
}

const WHOLE_HEAD = ': a head is buffered whole'
const BUFFERED = ', which bounds what a connection buffers'

export const passthruHttp = section(
  'transport.passthru_http',
  'The non-blocking pass-through transport on plain HTTP.',
  { ...documented, ...own },
  {
    roles: ['gateway-worker'],
    readBy: [
      'primary/forward-proxies.ts',
      'primary/gateway.ts',
      'primary/listener-plans.ts',
      'primary/planning.ts',
      'reactor/reactor.ts',
      'reactor/settings.ts',
    ],
    // Where the reference platform reads what holds for both transports.
    otherNames: ['passthru_http'],
    rules: [
      ...PROXY_RULES,
      mustNotExceed('header.max_bytes', 'io_buffer_size', WHOLE_HEAD),
      mustNotExceed('response.header.max_bytes', 'io_buffer_size', WHOLE_HEAD),
      mustNotExceed('pipeline.max_bytes', 'io_buffer_size', BUFFERED),
      mustNotExceed('trailer.max_bytes', 'io_buffer_size', BUFFERED),
      mustNotExceed('target.max_bytes', 'header.max_bytes', ': the request target is part of the head'),
      mustNotExceed('worker_pool_size_core', 'worker_pool_size_max'),
      needsBoundedQueue('worker_pool_size_max', 'worker_pool_size_core', 'worker_pool_queue_length'),
      mustNotRewrite('correlation.header'),
    ],
  },
)
