/** The keys beside those of the specification. */

/** Path, default, kind. */
type OwnKey = readonly [path: string, fallback: unknown, kind: string]

/** No counterpart on the reference platform. */
const GATEWAY: readonly OwnKey[] = [
  ['transport.passthru_http.reactors', 0, 'integer'],
  ['transport.passthru_http.socket_level', 'auto', 'choice'],
  ['transport.passthru_http.listener.parameters.bind_address', '', 'host'],
  ['transport.passthru_http.http.connection.timeout', 10000, 'duration'],
  ['transport.passthru_http.header.max_bytes', 16384, 'integer'],
  ['transport.passthru_http.header.max_count', 128, 'integer'],
  ['transport.passthru_http.target.max_bytes', 8192, 'integer'],
  ['transport.passthru_http.header.read_timeout', 30000, 'duration'],
  ['transport.passthru_http.body.read_timeout', 180000, 'duration'],
  ['transport.passthru_http.keepalive.timeout', 75000, 'duration'],
  ['transport.passthru_http.sender.keepalive.timeout', 55000, 'duration'],
  ['transport.passthru_http.body.max_bytes', -1, 'integer'],
  ['transport.passthru_http.pipeline.max_bytes', 16384, 'integer'],
  ['transport.passthru_http.chunk.max_extension_bytes', 1024, 'integer'],
  ['transport.passthru_http.trailer.max_bytes', 8192, 'integer'],
  ['transport.passthru_http.response.header.max_bytes', 16384, 'integer'],
  ['transport.passthru_http.max_connections_per_client', -1, 'integer'],
  ['transport.passthru_http.trusted_proxies', [], 'networks'],
  ['transport.passthru_http.forwarded.headers', 'x-forwarded', 'choice'],
  ['transport.passthru_http.abort_on_half_close', false, 'boolean'],
  ['transport.passthru_http.correlation.header', 'activityid', 'field name'],
  ['transport.passthru_http.dns.cache_seconds', 30, 'duration'],
  ['transport.passthru_http.listener.enable', true, 'boolean'],
  ['transport.passthru_http.tunnel.idle_timeout', 900000, 'duration'],
  ['transport.passthru_https.listener.enable', true, 'boolean'],
  ['transport.passthru_https.listener.parameters.bind_address', '', 'host'],
  ['transport.ws.listener.enable', true, 'boolean'],
  ['transport.ws.listener.parameters.port', 9099, 'port'],
  ['transport.ws.listener.parameters.bind_address', '', 'host'],
  ['transport.wss.listener.enable', true, 'boolean'],
  ['transport.wss.listener.parameters.port', 8099, 'port'],
  ['transport.wss.listener.parameters.bind_address', '', 'host'],
  ['transport.listener.shutdown.wait.sec', 30, 'duration'],
  ['management.health_port', 9763, 'port'],
  ['management.bind_address', '127.0.0.1', 'host'],
  ['access_log.target', 'off', 'choice'],
  ['access_log.path', 'access.log', 'string'],
  ['access_log.format', 'json', 'choice'],
  ['logging.level', 'info', 'choice'],
]

const STORES: readonly OwnKey[] = ['keystore.primary', 'keystore.tls', 'keystore.internal', 'truststore'].flatMap(
  (section): readonly OwnKey[] => [
    [`${section}.file_name`, '', 'string'],
    [`${section}.type`, '', 'choice'],
    [`${section}.password`, '', 'secret'],
    [`${section}.alias`, '', 'string'],
    [`${section}.key_password`, '', 'secret'],
  ],
)

/** In files of the reference platform. */
const REFERENCE: readonly OwnKey[] = [
  ...STORES,
  ['transport.passthru_http.listener.key_store.alias', '', 'string'],
  ['transport.passthru_http.sender.key_store.alias', '', 'string'],
  ['transport.passthru_https.listener.key_store.alias', '', 'string'],
  ['transport.passthru_https.sender.key_store.alias', '', 'string'],
  // Documented for the secured side only.
  ['transport.blocking_http.sender.enable', true, 'boolean'],
  ['transport.blocking_http.sender.parameters.cacheHttpClient', false, 'boolean'],
  ['transport.blocking_http.sender.parameters.Transfer-Encoding', 'chunked', 'choice'],
  ['transport.blocking_http.sender.parameters.defaultMaxConnectionsPerHost', 0, 'integer'],
  ['transport.blocking_http.sender.parameters.OmitSOAP12Action', false, 'boolean'],
  ['transport.blocking_http.sender.parameters.SO_TIMEOUT', 60000, 'duration'],
  ['synapse_handlers.enabled', true, 'boolean'],
  ['user_store.properties.<name>', '', 'scalar'],
  // The connection of every group that has none of its own.
  ['apim.throttling.username', '', 'string'],
  ['apim.throttling.password', '', 'secret'],
  ['apim.throttling.receiver_username', '', 'string'],
  ['apim.throttling.receiver_password', '', 'secret'],
  ['apim.throttling.policy_deploy.username', '', 'string'],
  ['apim.throttling.policy_deploy.password', '', 'secret'],
  ['apim.throttling.jms.username', '', 'string'],
  ['apim.throttling.jms.password', '', 'secret'],
  ['apim.throttling.publisher.max_idle', 1000, 'integer'],
  ['apim.throttling.publisher.init_idle_size', 200, 'integer'],
  ['apim.throttling.publisher.pool_size', 200, 'integer'],
  ['apim.throttling.publisher.max_pool_size', 1000, 'integer'],
  ['apim.throttling.publisher.keep_alive_time', 200, 'duration'],
  ['apim.throttling.service_url', 'https://localhost:9443/services/', 'URL'],
  ['apim.throttling.jms.start_delay', 0, 'duration'],
  ['apim.throttling.jms.destination', 'throttleData', 'string'],
  ['apim.throttling.jms.conn_jndi_name', 'TopicConnectionFactory', 'string'],
  ['apim.throttling.jms.destination_type', 'topic', 'choice'],
  ['apim.throttling.jms.java_naming_factory_initial', '', 'string'],
  ['apim.throttling.decision_connection_type', 'andes', 'choice'],
  ['oauth.grant_type.<name>.grant_validator', '', 'string'],
  ['user_store.type', '', 'string'],
  ['user_store.base_dn', '', 'string'],
  ['user_store.connection_url', '', 'string'],
  ['user_store.connection_name', '', 'string'],
  ['user_store.connection_password', '', 'secret'],
]

export const OWN_KEYS: readonly OwnKey[] = [...GATEWAY, ...REFERENCE]
