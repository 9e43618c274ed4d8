/**
 * The pass-through transport on plain HTTP: the documented keys, then the gateway's own. Bounds are wide where a bound
 * is a matter of taste and tight where the code depends on it.
 */
import {
  choice,
  cidrs,
  count,
  duration,
  except,
  fieldName,
  fieldNames,
  flag,
  host,
  inert,
  orText,
  port,
  secret,
  section,
  text,
  upTo,
  words,
} from '../key.ts'

const UNBOUNDED = Number.MAX_SAFE_INTEGER
/** Longest piece that a connection may call its own: a chunk of the arena. */
const BUFFER_MAX = 65_536
const DAY_MS = 86_400_000
const WORKERS = 'not built yet: the worker pool comes with mediation'
const PLAIN = 'a plain listener has no TLS; the same key of the secured transport decides'
const TLS_BACKENDS = 'not built yet: TLS to backends'
const PROXIES = 'not built yet: outgoing proxies'
const MEDIATION = 'not built yet: message validation comes with mediation'
const SOAP = 'there is no SOAP service whose description it would appear in'

// RFC 9112 6, RFC 9110 7.2 and 7.6.1: fields that say where a message ends or goes. A correlation id in one of them
// would rewrite the message.
const FRAMING =
  /^(host|content-length|transfer-encoding|(proxy-)?connection|keep-alive|te|trailer|upgrade|expect|via)$|forwarded/i

/** The rows of the documented table; the secured transport has the same. */
export const documented = {
  'http.socket.timeout': duration(180_000, 'ms', 1, DAY_MS, 'Inactivity between data packets that ends an exchange.'),
  worker_pool_size_core: inert(count(400, 'messages', 1, 100_000, 'Messages mediated at once.'), WORKERS),
  worker_pool_size_max: inert(
    count(400, 'messages', 1, 100_000, 'Messages mediated at once when a bounded queue is full.'),
    WORKERS,
  ),
  worker_pool_queue_length: inert(
    except(-1, 'unbounded', count(-1, 'messages', 0, 10_000_000, 'Messages that wait for a worker.')),
    WORKERS,
  ),
  io_buffer_size: count(
    16_384,
    'bytes',
    4096,
    BUFFER_MAX,
    'Bytes a connection keeps between reads; what a slow peer leaves of one read (64 KiB) comes on top.',
  ),
  'http.max.connection.per.host.port': count(
    32_767,
    'connections',
    1,
    1_000_000,
    'Connections to one backend; beyond it a request fails at once with 101504.',
  ),
  'http.user.agent.preserve': flag(true, "Pass the client's User-Agent on."),
  'http.headers.preserve': fieldNames(['Content-Type'], 'Fields passed on that would otherwise be rebuilt.'),
  preserve_http_server_name: flag(false, "Pass the backend's Server field on to the client."),
  disable_connection_keepalive: flag(false, 'Close backend connections after each request.'),
  max_open_connections: except(
    -1,
    'unlimited',
    count(-1, 'connections', 1, 10_000_000, 'Client connections in all; one more is reset at once and counted.'),
  ),
  force_xml_validation: inert(flag(false, 'Refuse XML messages that are not well-formed.'), MEDIATION),
  force_json_validation: inert(flag(false, 'Refuse JSON messages that do not parse.'), MEDIATION),
  'listener.parameters.port': port(8290, 'Listening port; `server.offset` is added.'),
  'listener.parameters.WSDLEPRPrefix': inert(text('', 'URL prefix of endpoint references.'), SOAP),
  'listener.parameters.SSLVerifyClient': inert(text('', 'Whether clients must show a certificate.'), PLAIN),
  'listener.key_store.file_name': inert(text('', 'Key store of the listener.'), PLAIN),
  'listener.key_store.type': inert(choice('PKCS12', ['JKS', 'PKCS12'], 'Type of the key store.'), PLAIN),
  'listener.key_store.password': inert(secret('Password of the key store.'), PLAIN),
  'listener.key_store.key_password': inert(secret('Password of the key within.'), PLAIN),
  'listener.trust_store.file_name': inert(text('', 'Trust store of the listener.'), PLAIN),
  'listener.trust_store.type': inert(choice('PKCS12', ['JKS', 'PKCS12'], 'Type of the trust store.'), PLAIN),
  'listener.trust_store.password': inert(secret('Password of the trust store.'), PLAIN),
  'listener.trust_store.key_password': inert(secret('Password of the key within.'), PLAIN),
  'listener.protocols': inert(words([], 'TLS versions offered to clients.'), PLAIN),
  'listener.preferred_ciphers': inert(words([], 'Cipher suites offered to clients.'), PLAIN),
  'listener.ssl_profile.file_path': inert(text('', 'File with TLS profiles per address.'), PLAIN),
  'listener.ssl_profile_interval': inert(
    orText(duration(600_000, 'ms', 0, DAY_MS, 'How often that file is read again.')),
    PLAIN,
  ),
  'sender.key_store.file_name': inert(text('', 'Key store shown to backends.'), TLS_BACKENDS),
  'sender.key_store.type': inert(choice('PKCS12', ['JKS', 'PKCS12'], 'Type of the key store.'), TLS_BACKENDS),
  'sender.key_store.password': inert(secret('Password of the key store.'), TLS_BACKENDS),
  'sender.key_store.key_password': inert(secret('Password of the key within.'), TLS_BACKENDS),
  'sender.trust_store.file_name': inert(text('', 'Certificates that backends may show.'), TLS_BACKENDS),
  'sender.trust_store.type': inert(choice('PKCS12', ['JKS', 'PKCS12'], 'Type of the trust store.'), TLS_BACKENDS),
  'sender.trust_store.password': inert(secret('Password of the trust store.'), TLS_BACKENDS),
  'sender.trust_store.key_password': inert(secret('Password of the key within.'), TLS_BACKENDS),
  'sender.hostname_verifier': inert(text('', "How a backend's certificate must name it."), TLS_BACKENDS),
  'sender.ssl_profile.file_path': inert(text('', 'File with TLS profiles per backend.'), TLS_BACKENDS),
  'sender.ssl_profile.interval': inert(
    orText(duration(600_000, 'ms', 0, DAY_MS, 'How often that file is read again.')),
    TLS_BACKENDS,
  ),
  'sender.warnOnHTTP500': inert(
    text('', 'Backends whose status 500 is worth a warning.'),
    'the access log shows every status of every backend',
  ),
  'sender.http.proxyHost': inert(host('', 'Outgoing proxy.'), PROXIES),
  'sender.http.proxyPort': inert(
    orText(except(0, 'none', count(0, '', 1, 65_535, 'Port of the outgoing proxy.'))),
    PROXIES,
  ),
  'sender.http.nonProxyHosts': inert(text('', 'Hosts that bypass the outgoing proxy.'), PROXIES),
}

const own = {
  reactors: except(0, 'one per processor', count(0, 'threads', 1, 256, 'Threads that carry traffic.')),
  socket_level: choice(
    'auto',
    ['auto', 'handles', 'streams'],
    'How sockets are driven: the fast internals of Node, its public API, or what a self-test at start recognises.',
  ),
  'listener.parameters.bind_address': host(
    '',
    'Address the listener is bound to; empty is every address, IPv6 and IPv4.',
  ),
  'http.connection.timeout': duration(
    10_000,
    'ms',
    1,
    DAY_MS,
    'Longest time a connection to a backend may take to open.',
  ),
  'header.max_bytes': upTo(
    'io_buffer_size',
    count(16_384, 'bytes', 512, BUFFER_MAX, 'Longest head of a request, start line included; 431 beyond.'),
  ),
  'header.max_count': count(128, 'fields', 1, 10_000, 'Most fields in the head of a request; 431 beyond.'),
  'target.max_bytes': upTo(
    'header.max_bytes',
    count(8192, 'bytes', 1, BUFFER_MAX, 'Longest request target; 414 beyond.'),
  ),
  'header.read_timeout': duration(
    30_000,
    'ms',
    1,
    DAY_MS,
    'Time from the first byte of a request to the end of its head; 408 beyond.',
  ),
  'body.read_timeout': except(
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
  'keepalive.timeout': duration(75_000, 'ms', 1, DAY_MS, 'Idle time after which a client connection is closed.'),
  'sender.keepalive.timeout': duration(
    55_000,
    'ms',
    1,
    DAY_MS,
    'Idle time after which a backend connection is closed.',
  ),
  'body.max_bytes': except(-1, 'unlimited', count(-1, 'bytes', 0, UNBOUNDED, 'Longest request body; 102511 beyond.')),
  'pipeline.max_bytes': upTo(
    'io_buffer_size',
    count(
      16_384,
      'bytes',
      1,
      BUFFER_MAX,
      'Bytes of further requests held while one is being answered; then reading pauses.',
    ),
  ),
  'chunk.max_extension_bytes': count(1024, 'bytes', 0, 16_777_216, 'Bytes of chunk extensions in one message.'),
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
  trusted_proxies: cidrs([], 'Clients whose forwarding fields are believed and extended; of others they are replaced.'),
  'forwarded.headers': choice(
    'x-forwarded',
    ['x-forwarded', 'forwarded', 'both', 'none'],
    'Which fields tell the backend about the client: X-Forwarded-*, Forwarded (RFC 7239), both or neither.',
  ),
  abort_on_half_close: flag(false, 'Abort an exchange whose client closed its sending side, instead of answering it.'),
  'correlation.header': fieldName('activityid', 'Field that carries the correlation id, made up where it is absent.'),
  'dns.cache_seconds': duration(30, 's', 0, 86_400, 'How long the addresses of a backend are kept.'),
}

export const passthruHttp = section(
  'transport.passthru_http',
  'The non-blocking pass-through transport on plain HTTP.',
  { ...documented, ...own },
  [
    {
      keys: ['header.max_bytes', 'io_buffer_size'],
      must: 'header.max_bytes must not exceed io_buffer_size: a head is buffered whole',
      severity: 'fault',
      holds: it => it['header.max_bytes'] <= it.io_buffer_size,
    },
    {
      keys: ['response.header.max_bytes', 'io_buffer_size'],
      must: 'response.header.max_bytes must not exceed io_buffer_size: a head is buffered whole',
      severity: 'fault',
      holds: it => it['response.header.max_bytes'] <= it.io_buffer_size,
    },
    {
      keys: ['pipeline.max_bytes', 'io_buffer_size'],
      must: 'pipeline.max_bytes must not exceed io_buffer_size, which bounds what a connection buffers',
      severity: 'fault',
      holds: it => it['pipeline.max_bytes'] <= it.io_buffer_size,
    },
    {
      keys: ['trailer.max_bytes', 'io_buffer_size'],
      must: 'trailer.max_bytes must not exceed io_buffer_size, which bounds what a connection buffers',
      severity: 'fault',
      holds: it => it['trailer.max_bytes'] <= it.io_buffer_size,
    },
    {
      keys: ['target.max_bytes', 'header.max_bytes'],
      must: 'target.max_bytes must not exceed header.max_bytes: the request target is part of the head',
      severity: 'fault',
      holds: it => it['target.max_bytes'] <= it['header.max_bytes'],
    },
    {
      keys: ['worker_pool_size_core', 'worker_pool_size_max'],
      must: 'worker_pool_size_core must not exceed worker_pool_size_max',
      severity: 'fault',
      holds: it => it.worker_pool_size_core <= it.worker_pool_size_max,
    },
    {
      keys: ['worker_pool_size_max', 'worker_pool_size_core', 'worker_pool_queue_length'],
      must: 'worker_pool_size_max has no effect behind an unbounded queue: bound the queue or raise the core size',
      severity: 'warning',
      holds: it => it.worker_pool_queue_length !== -1 || it.worker_pool_size_max === it.worker_pool_size_core,
    },
    {
      keys: ['correlation.header'],
      must: 'correlation.header must not be a field that frames, routes or forwards a message',
      severity: 'fault',
      holds: it => !FRAMING.test(it['correlation.header']),
    },
  ],
)
