/**
 * Advice of `sluice why`: what each error code means and what the operator checks. Data only. Keys and metrics carry
 * their full names; a test verifies that they exist.
 */

interface Advice {
  /** A sentence that tells what happened. `{when}` stands for the phrase of the protocol state, from STATE_PHRASES. */
  readonly summary: string
  /** Steps for the operator, the most likely cause first. */
  readonly checks: readonly string[]
  /** Configuration keys that have an influence. */
  readonly keys: readonly string[]
  /** Metrics that count the event. */
  readonly metrics: readonly string[]
}

const HTTP = 'transport.passthru_http.'
const HTTPS = 'transport.passthru_https.'

/** Advice by base code of the transport, for every state. */
export const TRANSPORT_ADVICE: Readonly<Record<number, Advice>> = {
  101000: {
    summary: 'The client disconnected, or accepted no bytes for http.socket.timeout, {when}.',
    checks: [
      'event log at that time: CAUSE_OF_ERROR, CLIENT_ADDRESS and CONNECTION (http-incoming-N)',
      'if one client is affected: its timeout may be shorter than the response time of the backend',
      'if many clients are affected: the network or the load balancer in front of the gateway',
    ],
    keys: [`${HTTP}http.socket.timeout`, `${HTTP}abort_on_half_close`],
    metrics: ['sluice_client_connections_reset_total', 'sluice_timeouts_total{kind="client_stalled"}'],
  },
  101001: {
    summary: 'The client disconnected, was too slow, or sent an invalid request, {when}.',
    checks: [
      'CAUSE_OF_ERROR in the event log: the rule that the request violates, or the timeout that expired',
      'the client at CLIENT_ADDRESS: a scanner, or a client library that does not follow HTTP/1.1',
    ],
    keys: [`${HTTP}header.read_timeout`, `${HTTP}body.read_timeout`, `${HTTP}header.max_bytes`],
    metrics: ['sluice_timeouts_total{kind="request_head"}', 'sluice_timeouts_total{kind="request_body"}'],
  },
  101500: {
    summary: 'The connection to the backend broke (reset or broken pipe) {when}.',
    checks: [
      'the backend at that time: a restart, a crash, or a limit on the size of request bodies',
      'CAUSE_OF_ERROR in the event log: ECONNRESET and EPIPE point to the backend, EHOSTUNREACH to the network',
    ],
    keys: [`${HTTP}sender.keepalive.timeout`],
    metrics: ['sluice_backend_retries_total', 'sluice_backend_connections_stale_total'],
  },
  101501: {
    summary: 'The backend reset the connection {when}.',
    checks: [
      'log of the backend at that time: a crash, a restart, or a worker that was killed',
      'firewalls and load balancers between gateway and backend: they may reset connections',
    ],
    keys: [`${HTTP}sender.keepalive.timeout`],
    metrics: ['sluice_backend_connections_stale_total'],
  },
  101503: {
    summary: 'No connection to the backend: refused by it or by a proxy, unreachable, unknown name, or TLS failed.',
    checks: [
      'CAUSE_OF_ERROR in the event log: ECONNREFUSED means that no process listens there, ENOTFOUND an unknown name',
      'TARGET_HOST and TARGET_PORT in the event log: is the address right, and can this machine reach it?',
      'a cause that begins with "certificate of" or "handshake": trust store, host name, TLS versions',
      'a cause that begins with "proxy": the forward proxy; after a 407, user name and password in the proxy profile',
    ],
    keys: [
      `${HTTP}http.connection.timeout`,
      `${HTTP}dns.cache_seconds`,
      `${HTTPS}sender.trust_store.file_name`,
      `${HTTPS}sender.key_store.file_name`,
      `${HTTPS}sender.hostname_verifier`,
      'transport.http.proxy_profile.proxy_password',
      'transport.http.secured_proxy_profile.proxy_password',
    ],
    metrics: ['sluice_backend_connections_opened_total'],
  },
  101504: {
    summary: 'The backend sent nothing for http.socket.timeout, {when}.',
    checks: [
      'log of the backend at that time: is it slow, overloaded, or does it wait for another system?',
      'the timeout: requests such as reports and exports may need minutes',
    ],
    keys: [`${HTTP}http.socket.timeout`],
    metrics: ['sluice_timeouts_total{kind="backend"}'],
  },
  101505: {
    summary: 'The backend closed its connection {when}.',
    checks: [
      'log of the backend at that time: a restart, a crash, or a worker that stopped',
      'the keep-alive timeout of the backend: is it shorter than that of the gateway?',
    ],
    keys: [`${HTTP}sender.keepalive.timeout`, `${HTTP}disable_connection_keepalive`],
    metrics: ['sluice_backend_connections_stale_total', 'sluice_backend_retries_total'],
  },
  101506: {
    summary: 'The backend sent bytes that are not valid HTTP/1.1, {when}.',
    checks: [
      'CAUSE_OF_ERROR in the event log: the rule that the backend violates, with its section of the RFC',
      'the port of the backend: TLS on a plain port and other protocols cause this error too',
    ],
    keys: [`${HTTP}response.header.max_bytes`, `${HTTP}header.max_count`, `${HTTP}chunk.max_extension_bytes`],
    metrics: [],
  },
  101507: {
    summary: 'The client disconnected while the gateway was connecting to the backend.',
    checks: [
      'the time to connect: a backend whose accept queue is full responds late',
      'the timeout of the client: it is shorter than the time to connect',
    ],
    keys: [`${HTTP}http.connection.timeout`],
    metrics: ['sluice_client_connections_reset_total'],
  },
  101508: {
    summary: 'The backend did not accept the connection within http.connection.timeout.',
    checks: [
      'firewalls that drop packets without a response, and an address that no machine has',
      'a backend whose accept queue is full: it has too few workers, or all of them are blocked',
    ],
    keys: [`${HTTP}http.connection.timeout`],
    metrics: ['sluice_timeouts_total{kind="connect"}'],
  },
  101509: {
    summary: 'The gateway aborted the request {when}: the client had disconnected, or the request was incomplete.',
    checks: [
      'the event of the client side with the same CORRELATION_ID: it has the cause',
      'the response time of the backend: clients disconnect when responses are late',
    ],
    keys: [`${HTTP}abort_on_half_close`, `${HTTP}http.socket.timeout`],
    metrics: ['sluice_client_connections_reset_total'],
  },
  101510: {
    summary: 'The gateway failed to process a response. No state is added to this code.',
    checks: ['the event "bug" in the event log, with its stack trace; please report it'],
    keys: [],
    metrics: [],
  },
  101600: {
    summary: 'The connection limit of this backend, or of the open files of the process, is reached.',
    checks: [
      'CAUSE_OF_ERROR in the event log: it names ulimit -n where the open files are the limit; raise it then',
      'the connections in use: sluice connections --side target; a slow backend keeps its connections busy',
      'the limit: it counts the connections of all reactors, idle ones included',
    ],
    keys: [`${HTTP}http.max.connection.per.host.port`],
    metrics: ['sluice_backend_connections_open'],
  },
  101601: {
    summary: 'A reactor has no memory for a request that waits for its connection.',
    checks: [
      'the requests in flight, and the slow clients and backends that keep them: sluice connections',
      'the longest request head that is allowed: each waiting request keeps its head',
    ],
    keys: [`${HTTP}max_open_connections`, `${HTTP}header.max_bytes`],
    metrics: ['sluice_client_connections_open'],
  },
  102511: {
    summary: 'The request body is too large, or ended before it was complete. No state is added to this code.',
    checks: [
      'CAUSE_OF_ERROR in the event log: the body exceeds body.max_bytes, or the client cut it short',
      'the client: Content-Length larger than the body, or an upload that was interrupted',
    ],
    keys: [`${HTTP}body.max_bytes`],
    metrics: [],
  },
}

/** Documented state number -> phrase for `{when}`, by side. */
export const STATE_PHRASES: Readonly<Record<'source' | 'target', Readonly<Record<number, string>>>> = {
  source: {
    0: 'while the connection waited for a request',
    1: 'while the gateway read the request head',
    2: 'while the gateway read the request body',
    3: 'while the gateway waited for the backend',
    4: 'while the gateway sent the response head',
    5: 'while the gateway sent the response body, or in a tunnel',
    7: 'while the gateway sent the end of the last response',
  },
  target: {
    0: 'before the connection was ready for a request',
    1: 'while the gateway wrote the request head',
    2: 'while the gateway wrote the request body',
    3: 'after the request was sent and before a response came',
    4: 'between the response head and the response body',
    5: 'within the response body, or in a tunnel',
  },
}

const CREDENTIALS = ['the token: is it issued for this gateway, not expired and not revoked?']
const LIMITS = ['the limits of API, subscription and application, and the request rate of the client']
const RESOURCES = ['the operations in the API definition: their paths and methods', 'path and method of the request']

/** Checks by code, for codes outside the transport. The row of `FAULT` has the meaning. */
export const API_ADVICE: Readonly<Record<number, readonly string[]>> = {
  400: [
    'the description in the response: it names the rule that the request violates',
    'the event "malformed request" in the event log',
  ],
  404: ['the contexts of the deployed APIs: sluice check counts them', 'context and version in the request path'],
  405: ['the Allow field of the response'],
  408: ['the client: it opened a connection and sent its request too slowly, or not at all'],
  500: ['the event "bug" in the event log, with its stack trace; please report it'],
  102512: [
    'the endpoints of the API: one of them leads to the gateway itself, or to a load balancer in front of it',
    'APIs that call each other through the gateway: a request may come back to it ten times',
    'sequences that call an API of the gateway: none of them may wait for a worker that its callers hold',
    'worker_pool_size_core: a message whose sequence calls an API of the gateway needs one more place for that request',
  ],
  102520: [
    'the description in the response: what is malformed, and where',
    'Content-Type of the request, and its body',
  ],
  102521: [
    'the description in the response: the limit, such as depth, items or length',
    'the client: its body may be hostile; the limits of bodies are the same for all APIs',
  ],
  102522: ['Content-Encoding and the charset in Content-Type: the description in the response names the unknown one'],
  102530: [
    'the size of the request, and mediation.body.max_bytes',
    'the sequences of the API: which of them reads the body',
  ],
  102531: [
    'the size of the response, and mediation.body.max_bytes',
    'the sequences of the API: which of them reads the body',
  ],
  102532: [
    'the events "message not mediated" and "sequence failed" in the event log: the rule that the message breaks',
    'mediation.body.max_decoded_size and mediation.body.max_text_length, for what sequences make',
    'what the sequences set: HTTP_METHOD, REST_URL_POSTFIX, header fields, endpoints',
  ],
  102533: [
    'the event "message not mediated" in the event log: why the file of the body failed',
    'free space and rights of the folder for temporary files',
  ],
  102540: [
    'sluice pools: messages that run and wait, and how many were refused',
    'what the messages wait for: calls to slow backends hold a place as long as they take',
    'worker_pool_size_core, worker_pool_size_max and worker_pool_queue_length; sluice explain does their sum',
    'with FORCE_SC_ACCEPTED or OUT_ONLY: synapse.max_threads and synapse.threads_queue_length of [mediation]',
  ],
  102541: [
    'sluice pools: bytes of the messages that wait',
    'worker_pool_queue_bytes, and what the messages wait for',
    'sluice pools: requests to mounted APIs that are suspended, at most 1,024 per reactor and transport',
  ],
  102542: [
    'the sequences of the API: calls to slow backends, or work that takes long',
    'sluice pools: a message that waits for a worker spends its time too',
    'a cause "a check by a schema": oneOf or anyOf of a schema that refers to itself; a discriminator makes it quick',
    'mediation.synapse.global_timeout_interval',
  ],
  102543: [
    'the event "worker died" in the event log: its cause, such as ERR_WORKER_OUT_OF_MEMORY',
    'the event "worker threads of an earlier configuration are ended": reloads came faster than messages ended',
    'worker_pool_heap_bytes, and the size of the messages that were mediated at that time',
    'a cause "no sign of life": a script or a module of the operator that does not return',
  ],
  102544: ['the cause in the event log: a mediator, a module of the operator, or the gateway itself has thrown'],
  102545: [
    'the cause in the event log: which limit, a message may enter 100 sequences and run 250,000 mediators',
    'the sequences of the API: a sequence that runs itself, or <foreach> over very many items',
  ],
  102550: ['the size of the response to the call, and mediation.body.max_bytes'],
  102551: [
    'the event log: why the destination (To), or the variables of the endpoint, make no URL',
    'the sequence: what it sets, and what it takes from the client',
  ],
  102552: [
    'the services that sequences call: slow ones hold their calls',
    'time-outs in the endpoints of the sequences',
  ],
  102553: [
    'the sequence: how many parts <iterate> or <clone> makes of one message',
    'the message: its lists may be too long',
  ],
  102554: [
    'completeCondition of <aggregate>, or min-messages of <scatter-gather>, and its time-out',
    'the services behind the branches: which of them responds late, or not at all',
  ],
  102555: ['the policy and its decision: the policy server logs its input'],
  102556: [
    'the policy server: its address, and whether the policy and the rule exist there',
    'the result of the rule: it must be true or false',
  ],
  102560: ['the description in the response: it lists what breaks the OpenAPI document'],
  102561: [
    'the backend and Definitions/swagger.yaml of the API: the description in the response lists where they differ',
  ],
  102580: ['the cause in the event log: file and line of the script or module that has thrown'],
  102581: ['the script or module: a loop without an end, or work that takes long', 'the time limit of scripts'],
  102582: ['the script or module: what it keeps or builds', 'the size of the messages that it reads'],
  102583: ['mediation.synapse.script_mediator_pool_size', 'the scripts: how long each of them runs'],
  102584: ['the payload and the schema of <validate>: the cause in the event log names the place'],
  102590: ['the cause in the event log: what the handler has thrown, and where'],
  102591: ['the handler: what it waits for, or computes'],
  102592: ['mediation.handlers.pool_size', 'the handlers: how long each of them takes'],
  102593: ['the request and the handler, which refuses it by its own rules'],
  102570: ['the event "mounted API failed" in the event log: class and place of the error'],
  102571: ['the event "mounted API failed" in the event log: the rule that the response breaks'],
  102572: [
    'what the implementation waits for: its database, or work that blocks its thread',
    'sluice pools: a request that waits for a worker spends its time too',
    'mediation.synapse.global_timeout_interval',
  ],
  102573: ['the limit that the implementation gives when it reads the body'],
  102574: [
    'the event "mounted API failed" in the event log: why its module or its database could not be opened',
    'sluice check: module and settings of the project',
  ],
  303000: [
    'sluice endpoints: state, next try and last error code of each endpoint',
    'the event log: the failure that suspended each endpoint of the group',
    'the backends: all of them failed',
  ],
  303001: [
    'sluice endpoints: whether the endpoint is suspended or switched off, and its next try',
    'earlier failures in the event log: they suspended the endpoint',
    'the suspension settings of the endpoint: its duration, the error codes that count, and suspend.failures',
  ],
  700700: ['the lifecycle state of the API: its publisher has blocked it'],
  900422: ['the description in the response: it lists what breaks the schema', 'Definitions/schema.graphql of the API'],
  900820: ['the depth of the query, and graphQLMaxDepth of the subscription policy'],
  900821: [
    'the complexity of the query, and graphQLMaxComplexity of the subscription policy',
    'Definitions/graphql-complexity.yaml of the API',
  ],
  900424: ['the credentials of the gateway at the backend'],
  900514: ['the guardrail policies of the API, and the assessment in the response where the policy shows it'],
  900912: ['the claims of the token, and the policy jwtClaimBasedAccessValidator of the API'],
  900913: ['whether the issuer puts the claim into its tokens', 'the policy jwtClaimBasedAccessValidator of the API'],
  900800: LIMITS,
  900801: ['the maximum backend throughput of the API'],
  900802: LIMITS,
  900803: LIMITS,
  900804: LIMITS,
  900805: ['the deny conditions for user, address, application and API'],
  900806: ['the custom throttling policies that apply to the request'],
  900807: LIMITS,
  900900: ['the key manager: is it reachable?'],
  900901: [...CREDENTIALS, 'the type of the key: the API may have endpoints for production or sandbox keys only'],
  900902: ['the request field that carries credentials (apim.oauth_config.auth_header)'],
  900905: ['the type of the token, application or user, and the type that the resource requires'],
  900906: RESOURCES,
  900907: ['the subscription: the API publisher has blocked it'],
  900908: [
    'the subscriptions of the application: is it subscribed to the API?',
    'for a WebSocket: dispatchSeq.xml, outDispatchSeq.xml and the handshake sequences of [transport.ws]',
  ],
  900909: [
    'the subscription: it waits for approval (ON_HOLD), or was rejected: sluice subscription list',
    'the decision: sluice subscription approve APP API, the admin API, or the engine of [apim.workflow]',
  ],
  900910: ['the scopes of the token, and the scopes that the resource requires'],
  900911: CREDENTIALS,
}

/** Metrics by code, for codes outside the transport. sluice_responses_total counts all of them besides. */
export const API_METRICS: Readonly<Record<number, readonly string[]>> = {
  102512: ['sluice_worker_failures_total{pool="mediation",reason="loop"}'],
  102540: [
    'sluice_worker_failures_total{pool="mediation",reason="queue_full"}',
    'sluice_worker_failures_total{pool="mediation",reason="busy"}',
    'sluice_worker_failures_total{pool="background",reason="queue_full"}',
    'sluice_worker_waits_total{pool="mediation"}',
  ],
  102541: ['sluice_worker_failures_total{pool="mediation",reason="memory"}'],
  102542: ['sluice_worker_failures_total{pool="mediation",reason="late"}'],
  102543: ['sluice_worker_failures_total{pool="mediation",reason="died"}', 'sluice_worker_deaths_total'],
  102544: ['sluice_worker_failures_total{pool="mediation",reason="failed"}'],
  102572: ['sluice_worker_failures_total{pool="mediation",reason="late"}'],
  303000: ['sluice_endpoint_refusals_total{code="303000"}'],
  303001: ['sluice_endpoint_refusals_total{code="303001"}'],
}
