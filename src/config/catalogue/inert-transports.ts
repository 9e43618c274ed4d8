/** Transports of the reference platform without a counterpart here, of which few keys act. */
import { allInert, inert, live, withAliases, withSpecialValue, type Key, section } from '../key.ts'
import { choice, integer, duration, flag, port, scalar, text } from '../kinds.ts'
import { DAY_MS } from './passthru-keys.ts'

const NO_LISTENER = 'the listeners of [transport.passthru_http] and passthru_https serve all clients'
const OF_ENDPOINTS = 'blocking calls use the connections of the gateway to its endpoints, which are kept and limited'
const HAS_LENGTH = 'a request of a sequence has a Content-Length, because its body is complete'
const SERVLET = 'there is no servlet container'
const UNBOUNDED = Number.MAX_SAFE_INTEGER

/** Documented in a list after `listener.hostname`, which leaves open whether they belong to `listener.` too. */
const besideHostname = {
  origin_server: text('', 'Value of the Server field.'),
  request_timeout: scalar('Timeout of a request.'),
  request_tcp_no_delay: scalar('Send small packets at once.'),
  request_core_thread_pool_size: scalar('Threads that serve requests.'),
  request_max_thread_pool_size: scalar('Largest number of threads that serve requests.'),
  thread_keepalive_time: scalar('Idle time after which a thread ends.'),
  thread_keepalive_time_unit: text('', 'Unit of `thread_keepalive_time`.'),
}

function orInGroup<K extends Readonly<Record<string, Key<unknown>>>>(group: string, keys: K): K {
  return Object.fromEntries(
    Object.entries(keys).map(([name, key]) => [name, withAliases([`${group}.${name}`], key)]),
  ) as K
}

const listenerKeys = {
  'listener.enable': flag(true, 'Open the listener.'),
  'listener.parameters.port': port(8200, 'Listening port.'),
  'listener.hostname': text('', 'Host name of the listener.'),
  ...orInGroup('listener', besideHostname),
}

/** Documented as two texts, one of which operators write as a flag. */
function orTrue(wrapped: Key<'chunked' | 'true'>): typeof wrapped {
  return {
    ...wrapped,
    schema: { anyOf: [wrapped.schema, { const: true }] },
    read: given => wrapped.read(given === true ? 'true' : given),
  }
}

/** Keys of the blocking sender, which serves `<call blocking="true">` and `<callout>`. */
const senderKeys = {
  'sender.enable': inert(flag(true, 'Enable the sender.'), OF_ENDPOINTS),
  'sender.parameters.cacheHttpClient': inert(flag(false, 'Keep the HTTP client between requests.'), OF_ENDPOINTS),
  'sender.parameters.Transfer-Encoding': inert(
    orTrue(choice('chunked', ['chunked', 'true'], 'How requests are framed.')),
    HAS_LENGTH,
  ),
  'sender.parameters.defaultMaxConnectionsPerHost': inert(
    withSpecialValue(0, 'not given', integer(0, 'connections', 1, UNBOUNDED, 'Connections to one backend.')),
    OF_ENDPOINTS,
  ),
  'sender.parameters.OmitSOAP12Action': live(
    flag(false, 'Leave the action out of the content type of SOAP 1.2 requests.'),
  ),
  'sender.parameters.SO_TIMEOUT': live(
    duration(
      60_000,
      'ms',
      0,
      DAY_MS,
      'Longest time without progress of a blocking call of a sequence; 0: the time-outs of the endpoint alone.',
    ),
  ),
}

const blockingKeys = { ...allInert(listenerKeys, NO_LISTENER), ...senderKeys }

export const blockingHttp = section(
  'transport.blocking_http',
  'Blocking calls of sequences (`<call blocking="true">`, `<callout>`).',
  blockingKeys,
  { roles: ['gateway-worker'] },
)

export const blockingHttps = section(
  'transport.blocking_https',
  'Blocking calls of sequences to backends on TLS.',
  blockingKeys,
  { roles: ['gateway-worker'] },
)

const number = (defaultValue: number, unit: string, meaning: string) =>
  withSpecialValue(0, 'not given', integer(defaultValue, unit, 1, UNBOUNDED, meaning))

export const servlet = section(
  'transport.http.properties',
  'The servlet transport of the reference platform.',
  allInert(
    {
      port: withSpecialValue(0, 'not given', integer(0, '', 1, 65_535, 'Listening port.')),
      redirectPort: withSpecialValue(
        0,
        'not given',
        integer(0, '', 1, 65_535, 'Port to which plain requests are redirected.'),
      ),
      bindOnInit: flag(false, 'Bind the port before the start is complete.'),
      maxHttpHeaderSize: number(8192, 'bytes', 'Largest size of a request head.'),
      acceptorThreadCount: number(0, 'threads', 'Threads that accept connections.'),
      maxThreads: number(250, 'threads', 'Threads that serve requests.'),
      minSpareThreads: number(50, 'threads', 'Idle threads that are kept.'),
      disableUploadTimeout: flag(false, 'Use the same timeout for uploads.'),
    },
    SERVLET,
  ),
  {
    rules: [
      {
        keys: ['minSpareThreads', 'maxThreads'],
        must: 'minSpareThreads must not exceed maxThreads',
        severity: 'warning',
        holds: it => it.minSpareThreads <= it.maxThreads || it.maxThreads === 0,
      },
    ],
  },
)
