/**
 * Documented keys of the pass-through transport, grouped by the sections that act on them. Bounds are tight only where
 * the code depends on them.
 */
import { either, isNot, isSet, isTrue } from '../conditions.ts'
import {
  actsIf,
  allActIf,
  withAliases,
  withSpecialValue,
  inert,
  type Key,
  live,
  type Rule,
  sameAs,
  type Values,
} from '../key.ts'
import { choice, integer, duration, fieldNames, flag, host, list, networks, port, secret, text } from '../kinds.ts'
import { keyAlias, keyPassword, storeFile, storePassword, storeType, TRUST_ONLY } from './key-stores.ts'

/** Largest buffer of a connection: a chunk of the arena. */
export const BUFFER_MAX = 65_536
export const DAY_MS = 86_400_000
const SOAP = 'there is no SOAP service, so no service description'

/** Keys of connections, which both transports have. */
export const shared = {
  'http.socket.timeout': live(
    duration(180_000, 'ms', 1, DAY_MS, 'Longest inactivity during a request or response; beyond it the exchange ends.'),
  ),
  worker_pool_size_core: live(
    integer(400, 'messages', 1, 100_000, "Messages of this transport's clients that worker threads mediate at once."),
  ),
  worker_pool_size_max: live(
    integer(400, 'messages', 1, 100_000, 'Messages mediated at once when a bounded queue is full; 102540 beyond.'),
  ),
  worker_pool_queue_length: live(
    withSpecialValue(
      -1,
      'unbounded',
      integer(
        -1,
        'messages',
        0,
        10_000_000,
        'Messages that wait to be mediated; `worker_pool_queue_bytes` bounds all.',
      ),
    ),
  ),
  io_buffer_size: integer(
    16_384,
    'bytes',
    4096,
    BUFFER_MAX,
    'Buffer of a connection between reads; the rest of one read (64 KiB) for a slow peer is additional.',
  ),
  'http.max.connection.per.host.port': live(
    integer(
      32_767,
      'connections',
      1,
      1_000_000,
      'Largest number of connections to one backend; beyond it a request fails at once with 101600.',
    ),
  ),
  'http.user.agent.preserve': live(flag(true, "Forward the client's User-Agent.")),
  'http.headers.preserve': live(
    fieldNames(['Content-Type'], 'Fields that are forwarded unchanged instead of being rebuilt.'),
  ),
  preserve_http_server_name: live(flag(false, "Forward the backend's Server field to the client.")),
  disable_connection_keepalive: live(flag(false, 'Close backend connections after each request.')),
  max_open_connections: live(
    withSpecialValue(
      -1,
      'unlimited',
      integer(
        -1,
        'connections',
        1,
        10_000_000,
        'Largest number of client connections of this transport; a further one is reset at once and counted.',
      ),
    ),
  ),
  force_xml_validation: flag(
    false,
    'Refuse requests whose body has an XML type and is not well-formed, with 102520; workers check such bodies.',
  ),
  force_json_validation: flag(
    false,
    'Refuse requests whose body has a JSON type and does not parse, with 102520; workers check such bodies.',
  ),
}

export const wsdlPrefix = {
  'listener.parameters.WSDLEPRPrefix': inert(text('', 'URL prefix of endpoint references.'), SOAP),
}

function profileInterval(meaning: string): Key<number> {
  return withSpecialValue(0, 'never', duration(600_000, 'ms', 100, DAY_MS, meaning))
}

type Named<P extends string, L extends string> = { readonly [K in `${P}.${L}`]: Key<string> }
type Typed<P extends string> = { readonly [K in `${P}.type`]: ReturnType<typeof storeType> }

function keyStoreKeys<const P extends 'listener.key_store' | 'sender.key_store'>(prefix: P, meaning: string) {
  return {
    [`${prefix}.file_name`]: live(sameAs('keystore.tls.file_name', storeFile(prefix, meaning))),
    ...allActIf(isSet(`.${prefix}.file_name`), {
      [`${prefix}.type`]: live(sameAs('keystore.tls.type', storeType())),
      [`${prefix}.password`]: live(sameAs('keystore.tls.password', storePassword())),
      [`${prefix}.alias`]: live(sameAs('keystore.tls.alias', keyAlias())),
      [`${prefix}.key_password`]: live(sameAs('keystore.tls.key_password', keyPassword())),
    }),
  } as Named<P, 'file_name' | 'password' | 'alias' | 'key_password'> & Typed<P>
}

function trustStoreKeys<const P extends 'listener.trust_store' | 'sender.trust_store'>(prefix: P, meaning: string) {
  return {
    [`${prefix}.file_name`]: live(sameAs('truststore.file_name', storeFile(prefix, meaning))),
    ...allActIf(isSet(`.${prefix}.file_name`), {
      [`${prefix}.type`]: live(sameAs('truststore.type', storeType())),
      [`${prefix}.password`]: live(sameAs('truststore.password', storePassword())),
    }),
    [`${prefix}.key_password`]: inert(
      sameAs('truststore.key_password', secret('Password of a key within.')),
      TRUST_ONLY,
    ),
  } as Named<P, 'file_name' | 'password' | 'key_password'> & Typed<P>
}

/** The listeners on TLS, whose settings stand in the same section. */
const TLS_LISTENER = either(isTrue('.listener.enable'), isTrue('transport.wss.listener.enable'))
/** The management listener has the certificate and the TLS versions of the other listeners. */
const ANY_TLS_LISTENER = either(TLS_LISTENER, isTrue('management.enable'))
/** A profile may ask for client certificates where the listener does not. */
const CLIENT_CERTIFICATES = either(
  isNot('.listener.parameters.SSLVerifyClient', 'none'),
  isSet('.listener.ssl_profile.file_path'),
)

/** TLS with clients. */
export const listenerTls = {
  'listener.parameters.SSLVerifyClient': actsIf(
    TLS_LISTENER,
    live(
      choice(
        'none',
        ['none', 'optional', 'require'],
        'Whether the listener requests a client certificate, and whether it requires one.',
      ),
    ),
  ),
  ...allActIf(
    ANY_TLS_LISTENER,
    keyStoreKeys(
      'listener.key_store',
      'Store with the certificate of the listener and its key; empty: a generated one in the data folder.',
    ),
  ),
  ...allActIf(
    TLS_LISTENER,
    allActIf(CLIENT_CERTIFICATES, trustStoreKeys('listener.trust_store', 'Store with the CAs of client certificates.')),
  ),
  'listener.protocols': withAliases(
    ['listener.parameters.HttpsProtocols'],
    actsIf(ANY_TLS_LISTENER, live(list([], 'TLS versions for clients, such as `TLSv1.2`; empty: TLS 1.2 and 1.3.'))),
  ),
  'listener.preferred_ciphers': withAliases(
    ['listener.parameters.PreferredCiphers'],
    actsIf(
      ANY_TLS_LISTENER,
      live(list([], 'Cipher suites for clients, the preferred first; empty: strong ones with forward secrecy.')),
    ),
  ),
  'listener.ssl_profile.file_path': actsIf(
    TLS_LISTENER,
    live(text('', 'File with TLS profiles per address or host name.')),
  ),
  'listener.ssl_profile_interval': withAliases(
    ['listener.ssl_profile.interval'],
    live(
      profileInterval(
        'Interval of checks for changed profiles and stores; the shorter one of listener and sender applies to both.',
      ),
    ),
  ),
}

/** TLS with backends. */
export const senderTls = {
  ...keyStoreKeys('sender.key_store', 'Store with the client certificate for backends that request one, and its key.'),
  ...trustStoreKeys('sender.trust_store', 'Store with the CAs of backend certificates; empty: the public CAs.'),
  'sender.hostname_verifier': withAliases(
    ['sender.parameters.HostnameVerifier'],
    live(
      text(
        '',
        'Host name verification of backend certificates: `Strict`, `Default`, `DefaultAndLocalhost` or `AllowAll`.',
      ),
    ),
  ),
  'sender.ssl_profile.file_path': live(text('', 'File with TLS profiles per backend.')),
  'sender.ssl_profile.interval': withAliases(
    ['sender.ssl_profile_interval'],
    live(
      profileInterval(
        'Interval of checks for changed profiles and stores; the shorter one of listener and sender applies to both.',
      ),
    ),
  ),
}

/** Also accepts a list, as one text with `|` between its items. */
function orListed(wrapped: Key<string>): Key<string> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or a list of texts`,
    schema: { anyOf: [wrapped.schema, { type: 'array', items: { type: 'string' } }] },
    read: given =>
      wrapped.read(Array.isArray(given) && given.every(word => typeof word === 'string') ? given.join('|') : given),
  }
}

/** Sender keys that are not about TLS. */
export const sender = {
  'sender.warnOnHTTP500': withAliases(
    ['sender.parameters.warnOnHTTP500'],
    live(
      text(
        '',
        'Content types of 500 responses that are logged as warnings, separated by `|` or commas, or `*`; empty: none.',
      ),
    ),
  ),
  'sender.http.proxyHost': withAliases(
    ['sender.parameters.http.proxyHost'],
    live(host('', 'Forward proxy for backends without a proxy profile.')),
  ),
  'sender.http.proxyPort': withAliases(
    ['sender.parameters.http.proxyPort'],
    live(withSpecialValue(0, 'none', integer(0, '', 1, 65_535, 'Port of the forward proxy.'))),
  ),
  'sender.http.nonProxyHosts': withAliases(
    ['sender.parameters.http.nonProxyHosts'],
    actsIf(
      isSet('.sender.http.proxyHost'),
      live(
        orListed(
          text(
            '',
            'Backends that bypass the forward proxy, separated by `|`; `.*.example.com` matches all its subdomains.',
          ),
        ),
      ),
      'proxy profiles have bypass_hosts',
    ),
  ),
  'sender.proxyProfiles': withAliases(
    ['sender.parameters.proxyProfiles'],
    live({
      ...secret('Proxy profiles as XML: `targetHosts`, `proxyHost`, `proxyPort`, `proxyUserName`, `proxyPassword`.'),
      expects: 'text in quotes, with a profile in XML',
    }),
  ),
}

export const listenerEnable = { 'listener.enable': flag(true, 'Open the listener.') }

export function listenerPort(defaultValue: number) {
  return {
    'listener.parameters.port': actsIf(
      isTrue('.listener.enable'),
      port(defaultValue, 'Listening port; `server.offset` is added.'),
    ),
  }
}

export const bindAddress = {
  'listener.parameters.bind_address': withAliases(
    ['listener.parameters.bind-address', 'listener.bind-address'],
    actsIf(
      isTrue('.listener.enable'),
      host('', 'Address to which the listener is bound; empty: all addresses, IPv6 and IPv4.'),
    ),
  ),
}

const PROXY_NETWORKS = 'listener.proxy_protocol.networks'
const HEADER_ENABLE = 'listener.proxy_protocol.enable'

const proxyNetworks = actsIf(
  isTrue(`.${HEADER_ENABLE}`),
  networks([], 'Networks of these proxies; connections from other addresses are reset and counted.'),
)

/** The PROXY protocol of a listener. `follows`: the section whose networks are the default; '' for none. */
export function proxyProtocol(follows: string) {
  return {
    [HEADER_ENABLE]: actsIf(
      isTrue('.listener.enable'),
      flag(
        false,
        'Every connection begins with a PROXY header, version 1 or 2, of a proxy that is trusted; the address in it ' +
          'is that of the client.',
      ),
    ),
    [PROXY_NETWORKS]: follows === '' ? proxyNetworks : sameAs(`${follows}.${PROXY_NETWORKS}`, proxyNetworks),
  } as const
}

export const PROXY_PROTOCOL_RULE: Rule<Values<ReturnType<typeof proxyProtocol>>> = {
  keys: [PROXY_NETWORKS, HEADER_ENABLE],
  must: `${PROXY_NETWORKS} is required where ${HEADER_ENABLE} is true`,
  severity: 'error',
  holds: it => !it[HEADER_ENABLE] || it[PROXY_NETWORKS].length > 0,
}

/** Rules of both sections. */
export const PROXY_RULES: readonly Rule<Values<typeof sender>>[] = [
  {
    keys: ['sender.http.proxyHost', 'sender.http.proxyPort'],
    must: 'sender.http.proxyHost and sender.http.proxyPort must be set together',
    severity: 'error',
    holds: it => (it['sender.http.proxyHost'] === '') === (it['sender.http.proxyPort'] === 0),
  },
]
