/** Context in which a TLS plan is built: the home, the files that are read, and the diagnostics that are found. */
import type { Diagnostics } from '../config/diagnostics.ts'
import type { TlsIdentity } from '../socket/tls.ts'
import { openStore, type OpenStore, type StoreSettings } from './key-store.ts'
import { selectIdentity, trustedCertificates } from './store-entries.ts'
import type { WatchedFiles } from './watched-files.ts'

export class TlsPlanContext {
  readonly home: string
  readonly files: WatchedFiles
  readonly diagnostics: Diagnostics

  constructor(home: string, files: WatchedFiles, diagnostics: Diagnostics) {
    this.home = home
    this.files = files
    this.diagnostics = diagnostics
  }

  /** Opens a key store. Returns undefined, with an error, if it yields no usable key and certificate. */
  async identity(settings: StoreSettings): Promise<TlsIdentity | undefined> {
    const store = await this.#open(settings)
    const identity = store === undefined ? undefined : selectIdentity(store, this.diagnostics)
    if (store === undefined || identity === undefined) return undefined
    const refusal = await opensslRefusal(identity)
    if (refusal === '') return identity
    const { fileName } = settings.names
    const hint = 'use a newer key and certificate'
    return this.diagnostics.error(store.label, fileName, `OpenSSL refuses the key or certificate: ${refusal}`, hint)
  }

  /** Opens a trust store. Returns undefined, with an error, if it yields no trusted certificate. */
  async trusted(settings: StoreSettings): Promise<readonly string[] | undefined> {
    const store = await this.#open(settings)
    return store === undefined ? undefined : trustedCertificates(store, this.diagnostics)
  }

  #open(settings: StoreSettings): Promise<OpenStore | undefined> {
    return openStore(settings, this.home, this.files, this.diagnostics)
  }
}

/** Returns why OpenSSL refuses the identity, such as `ee key too small`; '' if OpenSSL accepts it. */
async function opensslRefusal({ cert, key }: TlsIdentity): Promise<string> {
  const { createSecureContext } = await import('node:tls')
  try {
    createSecureContext({ cert, key })
    return ''
  } catch (error) {
    return (error as Error).message.replace(/^error:[0-9A-F]+:/, '')
  }
}
