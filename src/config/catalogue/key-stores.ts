/**
 * Key stores and trust stores, whose keys are the defaults of the transports, as on the reference platform. There is no
 * built-in store: without one, the listener generates a certificate.
 */
import { withAliases, inert, type Key, live, sameAs, section } from '../key.ts'
import { choice, secret, text } from '../kinds.ts'

const INTERNAL = 'no key store encrypts anything: key of [encryption] encrypts what the database keeps'
const CUSTOM = 'no key and no API names a key store; profiles of TLS name their files themselves'
export const TRUST_ONLY = 'only the certificates of a trust store are used, not its keys'

const TYPES = ['JKS', 'PKCS12', 'PEM'] as const
type StoreType = '' | (typeof TYPES)[number]

/** Empty by default: the store's first bytes give its type; a store that contradicts a set type is refused. */
export function storeType(): Key<StoreType> {
  const listed = TYPES.map(type => `"${type}"`).join(', ')
  const wrapped = choice<StoreType>('', ['', ...TYPES], 'Type of the store; empty: as its first bytes tell.')
  return { ...wrapped, expects: `one of ${listed}`, range: listed }
}

export function storePassword(): Key<string> {
  return secret('Password of the store.')
}

export function keyPassword(): Key<string> {
  return secret('Password of the key in the store; empty: the password of the store.')
}

export function keyAlias(): Key<string> {
  return text('', 'Alias of the key, for a store with several; empty: the first by name.')
}

/** Templates of the reference platform write `location` for the documented `file_name`. */
export function storeFile(prefix: string, meaning: string): Key<string> {
  return withAliases([`${prefix}.location`], text('', meaning))
}

export const primaryStore = section(
  'keystore.primary',
  'The primary key store, the default of the others; store files are in the folder `security` of the home folder.',
  {
    file_name: live(text('', 'File with the certificate and key of this node; empty: none.')),
    type: live(storeType()),
    password: live(storePassword()),
    alias: live(keyAlias()),
    key_password: live(keyPassword()),
  },
)

export const tlsStore = section('keystore.tls', 'The key store for TLS with clients and backends.', {
  file_name: live(sameAs('keystore.primary.file_name', text('', 'File with the certificate and key for TLS.'))),
  type: live(sameAs('keystore.primary.type', storeType())),
  password: live(sameAs('keystore.primary.password', storePassword())),
  alias: live(sameAs('keystore.primary.alias', keyAlias())),
  key_password: live(sameAs('keystore.primary.key_password', keyPassword())),
})

export const internalStore = section('keystore.internal', 'The key store for internal encryption.', {
  file_name: inert(sameAs('keystore.primary.file_name', text('', 'File with the key.')), INTERNAL),
  type: inert(sameAs('keystore.primary.type', storeType()), INTERNAL),
  password: inert(sameAs('keystore.primary.password', storePassword()), INTERNAL),
  alias: inert(sameAs('keystore.primary.alias', keyAlias()), INTERNAL),
  key_password: inert(sameAs('keystore.primary.key_password', keyPassword()), INTERNAL),
})

export const trustStore = section('truststore', 'The trust store: certificate authorities (CAs) that are trusted.', {
  file_name: live(text('', 'File with the trusted CAs; empty: the public CAs for backends, none for clients.')),
  type: live(storeType()),
  password: live(storePassword()),
  alias: inert(text('', 'Alias of a key in the store.'), TRUST_ONLY),
  key_password: inert(secret('Password of a key in the store.'), TRUST_ONLY),
})

export const customStore = section(
  'custom_keystore',
  'Further key stores, each with its own name: `[custom_keystore.<name>]`.',
  {
    '<name>.file_name': inert(text('', 'File of the store.'), CUSTOM),
    '<name>.type': inert(storeType(), CUSTOM),
    '<name>.password': inert(storePassword(), CUSTOM),
    '<name>.alias': inert(keyAlias(), CUSTOM),
    '<name>.key_password': inert(
      secret('Password of the key, which must equal the password of the store; empty: that password.'),
      CUSTOM,
    ),
  },
)
