/**
 * What an operator is told about each code: what happened, and where to look. Data only; keys and metrics are named by
 * their full names, and a test holds them to those that exist.
 */

interface Advice {
  /** What happened; `{when}` is where the protocol stood. */
  readonly what: string
  readonly look: readonly string[]
  /** Keys of the configuration that decide about it. */
  readonly keys: readonly string[]
  /** Metrics that count it. */
  readonly metrics: readonly string[]
}

const HTTP = 'transport.passthru_http.'
const HTTPS = 'transport.passthru_https.'

/** Base code -> advice, whatever the state. */
export const TRANSPORT_ADVICE: Readonly<Record<number, Advice>> = {
  101000: {
    what: 'The client left, or took no bytes for http.socket.timeout, {when}.',
    look: [
      'the event log at that moment: CAUSE_OF_ERROR, CLIENT_ADDRESS and CONNECTION (http-incoming-N)',
      'one client: its own time-out, shorter than the back end takes; many: the network or a balancer in front',
    ],
    keys: [`${HTTP}http.socket.timeout`, `${HTTP}abort_on_half_close`],
    metrics: ['sluice_client_connections_reset_total', 'sluice_timeouts_total{kind="client_stalled"}'],
  },
  101001: {
    what: 'The client left, was too slow, or sent what is no valid request, {when}.',
    look: [
      'CAUSE_OF_ERROR in the event log: it names the rule that was broken, or the wait that was too long',
      'the client that CLIENT_ADDRESS names; a scanner, or a client library that is badly behaved',
    ],
    keys: [`${HTTP}header.read_timeout`, `${HTTP}body.read_timeout`, `${HTTP}header.max_bytes`],
    metrics: ['sluice_timeouts_total{kind="request_head"}', 'sluice_timeouts_total{kind="request_body"}'],
  },
  101500: {
    what: 'The connection to the back end broke (reset, broken pipe) {when}.',
    look: [
      'the back end at that moment: a restart, a crash, a limit on the size of bodies',
      'CAUSE_OF_ERROR in the event log: ECONNRESET and EPIPE are the back end, EHOSTUNREACH is the network',
    ],
    keys: [`${HTTP}sender.keepalive.timeout`],
    metrics: ['sluice_backend_retries_total', 'sluice_backend_connections_stale_total'],
  },
  101501: {
    what: 'The connection to the back end broke (reset) {when}.',
    look: [
      "the back end's own log at that moment: a crash, a restart, a worker that was killed",
      'whether something between gateway and back end resets connections: a firewall, a balancer',
    ],
    keys: [`${HTTP}sender.keepalive.timeout`],
    metrics: ['sluice_backend_connections_stale_total'],
  },
  101503: {
    what: 'No connection to the back end: refused by it or a proxy, unreachable, no such name, or TLS not accepted.',
    look: [
      'CAUSE_OF_ERROR in the event log: ECONNREFUSED is a port where nothing listens, ENOTFOUND a name that is wrong',
      'TARGET_HOST and TARGET_PORT there: is that where the back end is? Does it run? Can this machine reach it?',
      'a cause that begins with "certificate of" or "handshake": trust store, host name, versions',
      'one that begins with "proxy": the forward proxy in between; after 407 its name and password in the profile',
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
    what: 'The back end was silent for http.socket.timeout, {when}.',
    look: [
      "the back end's own log at that moment: is it slow, overloaded, or waiting for something itself?",
      'whether the wait is long enough for what is asked: reports and exports may need minutes',
    ],
    keys: [`${HTTP}http.socket.timeout`],
    metrics: ['sluice_timeouts_total{kind="backend"}'],
  },
  101505: {
    what: 'The back end closed its connection {when}.',
    look: [
      "the back end's own log at that moment: a restart, a crash, a worker that gave up",
      'whether the back end keeps idle connections for a shorter time than the gateway does',
    ],
    keys: [`${HTTP}sender.keepalive.timeout`, `${HTTP}disable_connection_keepalive`],
    metrics: ['sluice_backend_connections_stale_total', 'sluice_backend_retries_total'],
  },
  101506: {
    what: 'What the back end sent is not HTTP/1.1, or breaks its rules, {when}.',
    look: [
      'CAUSE_OF_ERROR in the event log: it names the rule and its section of the RFC',
      'whether the port speaks HTTP at all: TLS on a plain port, or another protocol, shows here as well',
    ],
    keys: [`${HTTP}response.header.max_bytes`, `${HTTP}header.max_count`, `${HTTP}chunk.max_extension_bytes`],
    metrics: [],
  },
  101507: {
    what: 'The client left while the connection to the back end was still being made.',
    look: [
      'whether connecting is slow: a back end whose queue of connections is full answers late',
      "the client's own time-out, which is shorter than that",
    ],
    keys: [`${HTTP}http.connection.timeout`],
    metrics: ['sluice_client_connections_reset_total'],
  },
  101508: {
    what: 'The back end did not accept the connection within http.connection.timeout.',
    look: [
      'a firewall that drops packets without a word, or an address that nobody has',
      'a back end whose queue of connections is full: too few workers, or all of them stuck',
    ],
    keys: [`${HTTP}http.connection.timeout`],
    metrics: ['sluice_timeouts_total{kind="connect"}'],
  },
  101509: {
    what: 'The gateway gave the request up {when}: its client had left, or its request could not be finished.',
    look: [
      'the line of the source side with the same CORRELATION_ID: it says what became of the client',
      'how long the back end had it by then: clients leave when answers are late',
    ],
    keys: [`${HTTP}abort_on_half_close`, `${HTTP}http.socket.timeout`],
    metrics: ['sluice_client_connections_reset_total'],
  },
  101510: {
    what: 'The gateway failed to process a response. The code is a literal: no state is added to it.',
    look: ['the event "bug" in the event log, with the stack of where it happened; please report it'],
    keys: [],
    metrics: [],
  },
  102511: {
    what: 'The body of the request is too large, or ended before it was whole. A literal: no state is added to it.',
    look: [
      'CAUSE_OF_ERROR in the event log: longer than body.max_bytes, or cut short by the client',
      'what the client sends: Content-Length larger than the body, or an upload that was broken off',
    ],
    keys: [`${HTTP}body.max_bytes`],
    metrics: [],
  },
}

/** 101504 with REQUEST_READY: no time-out, but a limit. */
export const POOL_FULL_ADVICE: Advice = {
  what: 'No further connection to this back end may be opened: all that are allowed are in use.',
  look: [
    'what holds them: sluice connections --side target; a slow back end keeps its connections busy',
    'the limit, which counts over all reactors, idle connections included',
  ],
  keys: [`${HTTP}http.max.connection.per.host.port`],
  metrics: ['sluice_backend_connections_open'],
}

/** Documented state number -> where the protocol stood, on each side. */
export const WHEN: Readonly<Record<'source' | 'target', Readonly<Record<number, string>>>> = {
  source: {
    0: 'while the connection waited for a request',
    1: 'while the head of a request was being read',
    2: 'while the body of a request was being read',
    3: 'while the back end was at work',
    4: 'while the head of the response was on its way',
    5: 'while the body of the response was on its way, or in a tunnel',
    7: 'while the end of the last response was on its way',
  },
  target: {
    0: 'before the connection was ready for a request',
    1: 'while the head of the request was being written',
    2: 'while the body of the request was being written',
    3: 'after the request was complete and before a response',
    4: 'between the head of the response and its body',
    5: 'in the middle of the response body, or in a tunnel',
  },
}

const CREDENTIALS = ['the token: whether it is for this gateway, has not expired, and was not revoked']
const LIMITS = ['the limits of the API, its subscription and its application, and how often the client calls']
const RESOURCES = ['the operations of the API: paths and methods in its definition', 'path and method of the request']

/** Code that is no transport code -> where to look. What it means stands in the catalogue. */
export const API_ADVICE: Readonly<Record<number, readonly string[]>> = {
  400: ['the description in the answer: it names the rule that was broken', 'the event "malformed request" in the log'],
  404: [
    'the contexts of the deployed APIs: sluice check counts them',
    'context and version in the path of the request',
  ],
  405: ['the Allow field of the answer'],
  408: ['the client: it opened a connection and sent its request too slowly, or not at all'],
  500: ['the event "bug" in the event log, with the stack of where it happened; please report it'],
  303000: [
    'sluice endpoints: the state of each, when it is tried again, and the code of its last failure',
    'every endpoint of the group: none was ready; the log has the failure that took each of them out',
    'the back ends themselves: they failed one after the other, or all at once',
  ],
  303001: [
    'sluice endpoints: whether it is suspended or switched off, and when it is tried again',
    'the failures in the event log before this one: they are why the endpoint is suspended',
    'the suspension of the endpoint: how long it lasts, and which error codes count for it',
  ],
  700700: ['the state of the API: whoever publishes it has blocked it'],
  900422: ['the query in the body of the request'],
  900424: ['the credentials of the gateway at the back end'],
  900800: LIMITS,
  900801: ['the longest rate that the API allows towards its back end'],
  900802: LIMITS,
  900803: LIMITS,
  900804: LIMITS,
  900805: ['the blocking conditions: user, address, application or API'],
  900806: ['the custom policies that apply to the request'],
  900807: LIMITS,
  900900: ['whether the key manager is reachable'],
  900901: [...CREDENTIALS, 'the kind of the key: an API may have endpoints for production keys or sandbox keys alone'],
  900902: ['the field of the request that carries credentials (apim.oauth_config.auth_header)'],
  900905: ['whether the token is for an application or for a user, and which the resource needs'],
  900906: RESOURCES,
  900907: ['the subscription: the publisher of the API has blocked it'],
  900908: [
    'whether the application is subscribed to the API',
    'of a WebSocket: what dispatchSeq.xml, outDispatchSeq.xml or those that [transport.ws] names make of its handshake',
  ],
  900909: ['the subscription: it is not approved yet, or was rejected'],
  900910: ['the scopes of the token, and those of the resource'],
  900911: CREDENTIALS,
}

/** Code that is no transport code -> metrics that count it alone; all of them are in sluice_responses_total. */
export const API_METRICS: Readonly<Record<number, readonly string[]>> = {
  303000: ['sluice_endpoint_refusals_total{code="303000"}'],
  303001: ['sluice_endpoint_refusals_total{code="303001"}'],
}
