/** Reads the TLS settings of listener and sender from the configuration. */
import type { Configuration } from '../config/catalogue.ts'
import type { ClientSettings } from './client-plan.ts'
import { type StoreSettings, storeNames } from './key-store.ts'
import type { ServerSettings } from './server-plan.ts'

export type HttpsSection = Configuration['transport.passthru_https']

const SECTION = 'transport.passthru_https.'
const WSS_LOCATION = 'transport.wss.sender.trust_store.location'
const WSS_PASSWORD = 'transport.wss.sender.trust_store.password'
const STORE_KEYS = ['file_name', 'type', 'password', 'key_password'] as const

type KeyStorePrefix = 'listener.key_store' | 'sender.key_store'
type StorePrefix = KeyStorePrefix | 'listener.trust_store' | 'sender.trust_store'

export const LISTENER_KEY_STORE = `${SECTION}listener.key_store.file_name`

export function readServerSettings(https: HttpsSection): ServerSettings {
  return {
    keyStore: readKeyStore(https, 'listener.key_store'),
    trustStore: readStore(https, 'listener.trust_store'),
    verifyClient: https['listener.parameters.SSLVerifyClient'],
    protocols: {
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

export function readClientSettings(https: HttpsSection): ClientSettings {
  return {
    keyStore: readKeyStore(https, 'sender.key_store'),
    trustStore: readStore(https, 'sender.trust_store'),
    hostnameVerifier: https['sender.hostname_verifier'],
    profilePath: https['sender.ssl_profile.file_path'],
    names: {
      where: '',
      hostnameVerifier: `${SECTION}sender.hostname_verifier`,
      profilePath: `${SECTION}sender.ssl_profile.file_path`,
    },
  }
}

/** The trust store for wss backends, whose type has no key; null if none is set. */
export function readWssTrustStore(location: string, password: string): StoreSettings | null {
  if (location === '') return null
  const names = { fileName: WSS_LOCATION, type: WSS_LOCATION, password: WSS_PASSWORD, keyPassword: WSS_PASSWORD }
  return { fileName: location, type: '', password, keyPassword: '', names }
}

/** Milliseconds between two checks of the files: the shorter of both intervals; 0: no checks. */
export function checkIntervalMs(https: HttpsSection): number {
  const intervals = [https['listener.ssl_profile_interval'], https['sender.ssl_profile.interval']]
  const enabled = intervals.filter(interval => interval > 0)
  return enabled.length === 0 ? 0 : Math.min(...enabled)
}

function readKeyStore(https: HttpsSection, prefix: KeyStorePrefix): StoreSettings | null {
  const store = readStore(https, prefix)
  const wanted = https[`${prefix}.alias`]
  return store === null || wanted === '' ? store : { ...store, alias: { wanted, name: `${SECTION}${prefix}.alias` } }
}

function readStore(https: HttpsSection, prefix: StorePrefix): StoreSettings | null {
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
