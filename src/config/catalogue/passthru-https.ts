/**
 * The pass-through transport on TLS: its listener, TLS with clients and backends, and forward proxies. What it does not
 * set of its connections is as in `[transport.passthru_http]`.
 */
import { type Key, sameAs, section } from '../key.ts'
import { CONNECTION_RULES, passthruHttp, WORKER_RULES } from './passthru-http.ts'
import {
  bindAddress,
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

/** Keys of the gateway itself, beside the documented ones. */
const CONNECTION_KEYS = [
  'http.connection.timeout',
  'header.max_bytes',
  'header.max_count',
  'target.max_bytes',
  'header.read_timeout',
  'body.read_timeout',
  'response.min_rate',
  'keepalive.timeout',
  'sender.keepalive.timeout',
  'tunnel.idle_timeout',
  'body.max_bytes',
  'pipeline.max_bytes',
  'chunk.max_extension_bytes',
  'trailer.max_bytes',
  'response.header.max_bytes',
  'abort_on_half_close',
] as const

type PlainKeys = typeof passthruHttp.keys

/** Keys of the plain transport whose values there are the defaults here. */
function followingPlain<const N extends keyof PlainKeys>(names: readonly N[]): Pick<PlainKeys, N> {
  const follow = (name: N): Key<unknown> => {
    const key: Key<unknown> = passthruHttp.keys[name]
    return key.inertReason === '' ? sameAs(`${passthruHttp.name}.${name}`, key) : key
  }
  return Object.fromEntries(names.map(name => [name, follow(name)])) as unknown as Pick<PlainKeys, N>
}

export const passthruHttps = section(
  'transport.passthru_https',
  'The non-blocking pass-through transport on TLS: the listeners on TLS, and the connections to backends on TLS. ' +
    'What is not set here is as in `[transport.passthru_http]`.',
  {
    ...followingPlain(Object.keys(shared) as (keyof typeof shared)[]),
    ...listenerPort(8253),
    ...wsdlPrefix,
    ...listenerTls,
    ...senderTls,
    ...sender,
    ...listenerEnable,
    ...bindAddress,
    ...proxyProtocol('transport.passthru_http'),
    ...followingPlain(CONNECTION_KEYS),
  },
  {
    rules: [...PROXY_RULES, ...CONNECTION_RULES, ...WORKER_RULES, PROXY_PROTOCOL_RULE],
    // A key manager listens with its key store, and asks others with its trust store.
    roles: ['api-key-manager', 'gateway-worker'],
  },
)
