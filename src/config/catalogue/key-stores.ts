/**
 * Key and trust stores that the transports fall back on, key by key, as on the reference platform; and stores with a
 * name of their own. Nothing is built in: where no store is set, the listener makes a certificate of its own.
 */
import { alsoSpelled, inert, type Key, live, sameAs, section } from '../key.ts'
import { choice, secret, text } from '../kinds.ts'

const INTERNAL = 'not built yet: what would be encrypted with it comes with the key manager'
const CUSTOM = 'not built yet: what would ask for a key store by name comes with the key manager'
export const TRUST_ONLY = 'a trust store is read for its certificates: no key of it is used'

const TYPES = ['JKS', 'PKCS12', 'PEM'] as const
type StoreType = '' | (typeof TYPES)[number]

/** Empty by default: a store says itself what it is, and only one that contradicts its type is refused. */
export function storeType(): Key<StoreType> {
  const listed = TYPES.map(type => `"${type}"`).join(', ')
  const wrapped = choice<StoreType>('', ['', ...TYPES], 'Type of the store; empty: what its first bytes say.')
  return { ...wrapped, expects: `one of ${listed}`, range: listed }
}

export function storePassword(): Key<string> {
  return secret('Password of the store.')
}

export function keyPassword(): Key<string> {
  return secret('Password of the key within; empty: that of the store.')
}

export function keyAlias(): Key<string> {
  return text('', 'Name of the key within, where the store has several; empty: the first by name.')
}

/** Templates of the reference platform write `location` for the documented `file_name`. */
export function storeFile(prefix: string, meaning: string): Key<string> {
  return alsoSpelled([`${prefix}.location`], text('', meaning))
}

export const primaryStore = section(
  'keystore.primary',
  'The key store that others follow; files of stores stand in the folder `security` of the home folder.',
  {
    file_name: live(text('', 'Store of the certificate and key of this node; empty: there is none.')),
    type: live(storeType()),
    password: live(storePassword()),
    alias: live(keyAlias()),
    key_password: live(keyPassword()),
  },
  { readBy: ['primary/backend-signing.ts'] },
)

export const tlsStore = section('keystore.tls', 'The key store for TLS, towards clients and towards backends.', {
  file_name: live(sameAs('keystore.primary.file_name', text('', 'Store of the certificate for TLS, and its key.'))),
  type: live(sameAs('keystore.primary.type', storeType())),
  password: live(sameAs('keystore.primary.password', storePassword())),
  alias: live(sameAs('keystore.primary.alias', keyAlias())),
  key_password: live(sameAs('keystore.primary.key_password', keyPassword())),
})

export const internalStore = section('keystore.internal', 'The key store for what the node encrypts for itself.', {
  file_name: inert(sameAs('keystore.primary.file_name', text('', 'Store of the key.')), INTERNAL),
  type: inert(sameAs('keystore.primary.type', storeType()), INTERNAL),
  password: inert(sameAs('keystore.primary.password', storePassword()), INTERNAL),
  alias: inert(sameAs('keystore.primary.alias', keyAlias()), INTERNAL),
  key_password: inert(sameAs('keystore.primary.key_password', keyPassword()), INTERNAL),
})

export const trustStore = section('truststore', 'The store of the authorities that are trusted.', {
  file_name: live(text('', 'Store of the authorities; empty: the well-known ones for backends, none for clients.')),
  type: live(storeType()),
  password: live(storePassword()),
  alias: inert(text('', 'Name of a key within.'), TRUST_ONLY),
  key_password: inert(secret('Password of a key within.'), TRUST_ONLY),
})

export const customStore = section(
  'custom_keystore',
  'Further key stores, each with a name of its own: `[custom_keystore.<name>]`.',
  {
    '<name>.file_name': inert(text('', 'The store.'), CUSTOM),
    '<name>.type': inert(storeType(), CUSTOM),
    '<name>.password': inert(storePassword(), CUSTOM),
    '<name>.alias': inert(keyAlias(), CUSTOM),
    '<name>.key_password': inert(
      secret('Password of the key within, to be kept the same as that of the store; empty: that one.'),
      CUSTOM,
    ),
  },
)
