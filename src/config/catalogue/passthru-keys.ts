/**
 * The documented rows of the pass-through transport, in the parts in which its two sections differ. Bounds are wide
 * where a bound is a matter of taste and tight where the code depends on it.
 */
import { alsoSpelled, except, inert, type Key, live, type Rule, sameAs, type Values } from '../key.ts'
import { choice, count, duration, fieldNames, flag, host, secret, text, words } from '../kinds.ts'
import { keyAlias, keyPassword, storeFile, storePassword, storeType, TRUST_ONLY } from './key-stores.ts'

/** Longest piece that a connection may call its own: a chunk of the arena. */
export const BUFFER_MAX = 65_536
export const DAY_MS = 86_400_000
const WORKERS = 'not built yet: the worker pool comes with mediation'
const MEDIATION = 'not built yet: message validation comes with mediation'
const SOAP = 'there is no SOAP service whose description it would appear in'

/** What the reference platform keeps in one file for both transports. */
export const shared = {
  'http.socket.timeout': live(
    duration(180_000, 'ms', 1, DAY_MS, 'Inactivity between data packets that ends an exchange.'),
  ),
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
  'http.max.connection.per.host.port': live(
    count(
      32_767,
      'connections',
      1,
      1_000_000,
      'Connections to one backend; beyond it a request fails at once with 101504.',
    ),
  ),
  'http.user.agent.preserve': live(flag(true, "Pass the client's User-Agent on.")),
  'http.headers.preserve': live(fieldNames(['Content-Type'], 'Fields passed on that would otherwise be rebuilt.')),
  preserve_http_server_name: live(flag(false, "Pass the backend's Server field on to the client.")),
  disable_connection_keepalive: live(flag(false, 'Close backend connections after each request.')),
  max_open_connections: live(
    except(
      -1,
      'unlimited',
      count(-1, 'connections', 1, 10_000_000, 'Client connections in all; one more is reset at once and counted.'),
    ),
  ),
  force_xml_validation: inert(flag(false, 'Refuse XML messages that are not well-formed.'), MEDIATION),
  force_json_validation: inert(flag(false, 'Refuse JSON messages that do not parse.'), MEDIATION),
}

export const wsdlPrefix = {
  'listener.parameters.WSDLEPRPrefix': inert(text('', 'URL prefix of endpoint references.'), SOAP),
}

function profileInterval(meaning: string): Key<number> {
  return except(0, 'never', duration(600_000, 'ms', 100, DAY_MS, meaning))
}

type Named<P extends string, L extends string> = { readonly [K in `${P}.${L}`]: Key<string> }
type Typed<P extends string> = { readonly [K in `${P}.type`]: ReturnType<typeof storeType> }

function keyStoreKeys<const P extends 'listener.key_store' | 'sender.key_store'>(prefix: P, meaning: string) {
  return {
    [`${prefix}.file_name`]: live(sameAs('keystore.tls.file_name', storeFile(prefix, meaning))),
    [`${prefix}.type`]: live(sameAs('keystore.tls.type', storeType())),
    [`${prefix}.password`]: live(sameAs('keystore.tls.password', storePassword())),
    [`${prefix}.alias`]: live(sameAs('keystore.tls.alias', keyAlias())),
    [`${prefix}.key_password`]: live(sameAs('keystore.tls.key_password', keyPassword())),
  } as Named<P, 'file_name' | 'password' | 'alias' | 'key_password'> & Typed<P>
}

function trustStoreKeys<const P extends 'listener.trust_store' | 'sender.trust_store'>(prefix: P, meaning: string) {
  return {
    [`${prefix}.file_name`]: live(sameAs('truststore.file_name', storeFile(prefix, meaning))),
    [`${prefix}.type`]: live(sameAs('truststore.type', storeType())),
    [`${prefix}.password`]: live(sameAs('truststore.password', storePassword())),
    [`${prefix}.key_password`]: inert(
      sameAs('truststore.key_password', secret('Password of a key within.')),
      TRUST_ONLY,
    ),
  } as Named<P, 'file_name' | 'password' | 'key_password'> & Typed<P>
}

/** TLS towards clients. */
export const listenerTls = {
  'listener.parameters.SSLVerifyClient': live(
    choice(
      'none',
      ['none', 'optional', 'require'],
      'Whether clients are asked for a certificate, and whether they must show one.',
    ),
  ),
  ...keyStoreKeys(
    'listener.key_store',
    'Store of the certificate the listener shows, and its key; empty: one is made and kept in the data folder.',
  ),
  ...trustStoreKeys('listener.trust_store', 'Store of the authorities that sign the certificates of clients.'),
  'listener.protocols': alsoSpelled(
    ['listener.parameters.HttpsProtocols'],
    live(words([], 'TLS versions offered to clients, such as `TLSv1.2`; empty: TLS 1.2 and 1.3.')),
  ),
  'listener.preferred_ciphers': alsoSpelled(
    ['listener.parameters.PreferredCiphers'],
    live(words([], 'Cipher suites offered to clients, the preferred first; empty: strong ones with forward secrecy.')),
  ),
  'listener.ssl_profile.file_path': live(text('', 'File with TLS profiles per address or host name.')),
  'listener.ssl_profile_interval': alsoSpelled(
    ['listener.ssl_profile.interval'],
    live(
      profileInterval('How often that file and the stores are looked at again; the shorter interval holds for all.'),
    ),
  ),
}

/** TLS towards backends. */
export const senderTls = {
  ...keyStoreKeys('sender.key_store', 'Store of the certificate shown to backends that ask for one, and its key.'),
  ...trustStoreKeys(
    'sender.trust_store',
    'Store of the authorities that sign the certificates of backends; empty: the well-known ones.',
  ),
  'sender.hostname_verifier': alsoSpelled(
    ['sender.parameters.HostnameVerifier'],
    live(
      text('', "How a backend's certificate must name it: `Strict`, `Default`, `DefaultAndLocalhost` or `AllowAll`."),
    ),
  ),
  'sender.ssl_profile.file_path': live(text('', 'File with TLS profiles per backend.')),
  'sender.ssl_profile.interval': alsoSpelled(
    ['sender.ssl_profile_interval'],
    live(
      profileInterval('How often that file and the stores are looked at again; the shorter interval holds for all.'),
    ),
  ),
}

/** A list is one text with `|` between its words. */
function orListed(wrapped: Key<string>): Key<string> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or a list of texts`,
    schema: { anyOf: [wrapped.schema, { type: 'array', items: { type: 'string' } }] },
    read: given =>
      wrapped.read(Array.isArray(given) && given.every(word => typeof word === 'string') ? given.join('|') : given),
  }
}

/** What a sender does beside TLS. */
export const sender = {
  'sender.warnOnHTTP500': alsoSpelled(
    ['sender.parameters.warnOnHTTP500'],
    live(
      text(
        '',
        'Content types of responses with status 500 worth a warning, separated by `|` or commas, or `*`; empty: none.',
      ),
    ),
  ),
  'sender.http.proxyHost': alsoSpelled(
    ['sender.parameters.http.proxyHost'],
    live(host('', 'Outgoing proxy for backends that no proxy profile is for.')),
  ),
  'sender.http.proxyPort': alsoSpelled(
    ['sender.parameters.http.proxyPort'],
    live(except(0, 'none', count(0, '', 1, 65_535, 'Port of the outgoing proxy.'))),
  ),
  'sender.http.nonProxyHosts': alsoSpelled(
    ['sender.parameters.http.nonProxyHosts'],
    live(
      orListed(
        text(
          '',
          'Backends that bypass the outgoing proxy, separated by `|`; `.*.example.com` is a set of sub-domains.',
        ),
      ),
    ),
  ),
  'sender.proxyProfiles': alsoSpelled(
    ['sender.parameters.proxyProfiles'],
    live({
      ...secret('Proxy profiles as text: `targetHosts`, `proxyHost`, `proxyPort`, `proxyUserName`, `proxyPassword`.'),
      expects: 'text in quotes, with a profile in XML',
    }),
  ),
}

export const listenerEnable = { 'listener.enable': flag(true, 'Listen at all.') }

export const bindAddress = {
  'listener.parameters.bind_address': alsoSpelled(
    ['listener.parameters.bind-address', 'listener.bind-address'],
    host('', 'Address the listener is bound to; empty is every address, IPv6 and IPv4.'),
  ),
}

/** Hold of either section. */
export const PROXY_RULES: readonly Rule<Values<typeof sender>>[] = [
  {
    keys: ['sender.http.proxyHost', 'sender.http.proxyPort'],
    must: 'sender.http.proxyHost and sender.http.proxyPort must be set together',
    severity: 'fault',
    holds: it => (it['sender.http.proxyHost'] === '') === (it['sender.http.proxyPort'] === 0),
  },
  {
    keys: ['sender.http.nonProxyHosts', 'sender.http.proxyHost'],
    must: 'sender.http.nonProxyHosts has no effect without sender.http.proxyHost; profiles have bypass_hosts',
    severity: 'warning',
    holds: it => it['sender.http.nonProxyHosts'] === '' || it['sender.http.proxyHost'] !== '',
  },
]

type Tls = Values<typeof listenerTls & typeof senderTls>
type Store = 'listener.key_store' | 'listener.trust_store' | 'sender.key_store' | 'sender.trust_store'

function needsStore(store: Store): Rule<Tls> {
  return {
    keys: [`${store}.password`, `${store}.file_name`],
    must: `${store}.password has no effect without ${store}.file_name`,
    severity: 'warning',
    holds: it => it[`${store}.password`] === '' || it[`${store}.file_name`] !== '',
  }
}

/** Hold of the secured section. */
export const STORE_RULES: readonly Rule<Tls>[] = (
  ['listener.key_store', 'listener.trust_store', 'sender.key_store', 'sender.trust_store'] as const
).map(needsStore)
