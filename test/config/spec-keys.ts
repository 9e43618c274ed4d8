/** The keys of the documented tables "Node and server" and "Pass-through transport", with their documented defaults. */

/** [path, default as this gateway reads it or 'required', type]. */
type SpecKey = readonly [path: string, fallback: unknown, type: string]

const PLAIN_KEYS: readonly SpecKey[] = [
  ['server.hostname', 'localhost', 'host'],
  ['server.node_ip', '', 'host'],
  ['server.offset', 0, 'integer'],
  ['server.mode', 'single', 'choice'],
  ['server.base_path', 'https://localhost:9443', 'string'],
  ['server.discard_empty_caches', false, 'boolean'],
  ['server.server_role', 'default', 'choice'],
  ['server.enableMTOM', false, 'boolean'],
  ['server.enableSwA', false, 'boolean'],
  ['server.disable_shutdown_from_ui', false, 'boolean'],
  ['server.disable_restart_from_ui', false, 'boolean'],
  ['super_admin.username', 'admin', 'string'],
  ['super_admin.password', '', 'secret'],
  ['super_admin.create_admin_account', true, 'boolean'],
  ['database_configuration.enable_h2_console', false, 'boolean'],
  ['transport.passthru_http.http.socket.timeout', 180000, 'duration'],
  ['transport.passthru_http.worker_pool_size_core', 400, 'integer'],
  ['transport.passthru_http.worker_pool_size_max', 400, 'integer'],
  ['transport.passthru_http.worker_pool_queue_length', -1, 'integer'],
  ['transport.passthru_http.io_buffer_size', 16384, 'integer'],
  ['transport.passthru_http.http.max.connection.per.host.port', 32767, 'integer'],
  ['transport.passthru_http.http.user.agent.preserve', true, 'boolean'],
  ['transport.passthru_http.http.headers.preserve', ['Content-Type'], 'field names'],
  ['transport.passthru_http.disable_connection_keepalive', false, 'boolean'],
  ['transport.passthru_http.listener.parameters.port', 8290, 'port'],
  ['transport.passthru_http.listener.parameters.WSDLEPRPrefix', '', 'string'],
  ['transport.passthru_http.listener.key_store.file_name', '', 'string'],
  ['transport.passthru_http.listener.key_store.type', 'PKCS12', 'choice'],
  ['transport.passthru_http.listener.key_store.password', '', 'secret'],
  ['transport.passthru_http.listener.key_store.key_password', '', 'secret'],
  ['transport.passthru_http.listener.trust_store.file_name', '', 'string'],
  ['transport.passthru_http.listener.trust_store.type', 'PKCS12', 'choice'],
  ['transport.passthru_http.listener.trust_store.password', '', 'secret'],
  ['transport.passthru_http.listener.trust_store.key_password', '', 'secret'],
  ['transport.passthru_http.sender.key_store.file_name', '', 'string'],
  ['transport.passthru_http.sender.key_store.type', 'PKCS12', 'choice'],
  ['transport.passthru_http.sender.key_store.password', '', 'secret'],
  ['transport.passthru_http.sender.key_store.key_password', '', 'secret'],
  ['transport.passthru_http.sender.trust_store.file_name', '', 'string'],
  ['transport.passthru_http.sender.trust_store.type', 'PKCS12', 'choice'],
  ['transport.passthru_http.sender.trust_store.password', '', 'secret'],
  ['transport.passthru_http.sender.trust_store.key_password', '', 'secret'],
  ['transport.passthru_http.sender.warnOnHTTP500', '', 'string'],
  ['transport.passthru_http.sender.http.proxyHost', '', 'host'],
  ['transport.passthru_http.sender.http.proxyPort', 0, 'integer'],
  ['transport.passthru_http.sender.http.nonProxyHosts', '', 'string'],
  ['transport.passthru_http.sender.hostname_verifier', '', 'string'],
  // Keys that the documentation shows in examples only.
  ['transport.passthru_http.preserve_http_server_name', false, 'boolean'],
  ['transport.passthru_http.force_xml_validation', false, 'boolean'],
  ['transport.passthru_http.force_json_validation', false, 'boolean'],
  ['transport.passthru_http.max_open_connections', -1, 'integer'],
  ['transport.passthru_http.listener.protocols', [], 'list'],
  ['transport.passthru_http.listener.parameters.SSLVerifyClient', '', 'string'],
  ['transport.passthru_http.listener.ssl_profile.file_path', '', 'string'],
  ['transport.passthru_http.listener.ssl_profile_interval', 600000, 'duration'],
  ['transport.passthru_http.listener.preferred_ciphers', [], 'list'],
  ['transport.passthru_http.sender.ssl_profile.file_path', '', 'string'],
  ['transport.passthru_http.sender.ssl_profile.interval', 600000, 'duration'],
]

const PLAIN = 'transport.passthru_http.'
const SECURED = 'transport.passthru_https.'

/** The table is the same for the secured transport, the default port apart. */
const SECURED_KEYS = PLAIN_KEYS.filter(([path]) => path.startsWith(PLAIN)).map(([path, fallback, type]): SpecKey => {
  const key = path.slice(PLAIN.length)
  return [SECURED + key, key === 'listener.parameters.port' ? 8253 : fallback, type]
})

/** The columns of both tables of proxy profiles. */
const PROFILE_KEYS: readonly SpecKey[] = [
  'transport.http.proxy_profile',
  'transport.http.secured_proxy_profile',
].flatMap((table): readonly SpecKey[] => [
  [`${table}.target_hosts`, 'required', 'list'],
  [`${table}.proxy_host`, 'required', 'host'],
  [`${table}.proxy_port`, 'required', 'integer'],
  [`${table}.proxy_username`, '', 'string'],
  [`${table}.proxy_password`, '', 'secret'],
  [`${table}.bypass_hosts`, [], 'list'],
])

export const SPEC_KEYS: readonly SpecKey[] = [...PLAIN_KEYS, ...SECURED_KEYS, ...PROFILE_KEYS]

/** The gateway's own keys. */
export const OWN_KEYS: readonly SpecKey[] = [
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
  ['transport.listener.shutdown.wait.sec', 30, 'duration'],
  ['management.health_port', 9763, 'port'],
  ['management.bind_address', '127.0.0.1', 'host'],
  ['access_log.target', 'off', 'choice'],
  ['access_log.path', 'access.log', 'string'],
  ['access_log.format', 'json', 'choice'],
  ['logging.level', 'info', 'choice'],
]
