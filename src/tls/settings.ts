/** From the keys of the secured transport to what its plans are made of. */
import type { Configuration } from '../config/catalogue.ts'
import type { ClientSetting } from './client-plan.ts'
import type { ServerSetting } from './server-plan.ts'
import { type StoreSetting, storeNames } from './store-file.ts'

type Secured = Configuration['transport.passthru_https']

const SECTION = 'transport.passthru_https.'
const WSS_LOCATION = 'transport.wss.sender.trust_store.location'
const WSS_PASSWORD = 'transport.wss.sender.trust_store.password'
const STORE_KEYS = ['file_name', 'type', 'password', 'key_password'] as const

type KeyStorePrefix = 'listener.key_store' | 'sender.key_store'
type StorePrefix = KeyStorePrefix | 'listener.trust_store' | 'sender.trust_store'

export const KEY_STORE_KEY = `${SECTION}listener.key_store.file_name`

export function serverSettingOf(https: Secured): ServerSetting {
  return {
    keyStore: keyStoreOf(https, 'listener.key_store'),
    trustStore: storeOf(https, 'listener.trust_store'),
    verifyClient: https['listener.parameters.SSLVerifyClient'],
    terms: {
      protocols: https['listener.protocols'],
      ciphers: https['listener.preferred_ciphers'],
      where: '',
      names: { protocols: `${SECTION}listener.protocols`, ciphers: `${SECTION}listener.preferred_ciphers` },
    },
    profilePath: https['listener.ssl_profile.file_path'],
    bindAddress: https['listener.parameters.bind_address'],
    names: {
      where: '',
      verifyClient: `${SECTION}listener.parameters.SSLVerifyClient`,
      trustStore: `${SECTION}listener.trust_store.file_name`,
      profilePath: `${SECTION}listener.ssl_profile.file_path`,
    },
  }
}

export function clientSettingOf(https: Secured): ClientSetting {
  return {
    keyStore: keyStoreOf(https, 'sender.key_store'),
    trustStore: storeOf(https, 'sender.trust_store'),
    hostnameVerifier: https['sender.hostname_verifier'],
    profilePath: https['sender.ssl_profile.file_path'],
    names: {
      where: '',
      hostnameVerifier: `${SECTION}sender.hostname_verifier`,
      profilePath: `${SECTION}sender.ssl_profile.file_path`,
    },
  }
}

/** The trust store of WebSocket backends has no key for its type. Null for none. */
export function wssTrustStore(location: string, password: string): StoreSetting | null {
  if (location === '') return null
  const names = { fileName: WSS_LOCATION, type: WSS_LOCATION, password: WSS_PASSWORD, keyPassword: WSS_PASSWORD }
  return { fileName: location, type: '', password, keyPassword: '', names }
}

/** Milliseconds until files are looked at again: the shorter of the two intervals, 0 for never. */
export function intervalOf(https: Secured): number {
  const intervals = [https['listener.ssl_profile_interval'], https['sender.ssl_profile.interval']]
  const set = intervals.filter(interval => interval > 0)
  return set.length === 0 ? 0 : Math.min(...set)
}

function keyStoreOf(https: Secured, prefix: KeyStorePrefix): StoreSetting | null {
  const store = storeOf(https, prefix)
  const wanted = https[`${prefix}.alias`]
  return store === null || wanted === '' ? store : { ...store, alias: { wanted, name: `${SECTION}${prefix}.alias` } }
}

function storeOf(https: Secured, prefix: StorePrefix): StoreSetting | null {
  const fileName = https[`${prefix}.file_name`]
  if (fileName === '') return null
  return {
    fileName,
    type: https[`${prefix}.type`],
    password: https[`${prefix}.password`],
    keyPassword: https[`${prefix}.key_password`],
    names: storeNames(`${SECTION}${prefix}.`, STORE_KEYS),
  }
}
