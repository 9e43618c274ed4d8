/** What plans are made in: where files are looked for, which were read, and what was found on the way. */
import type { Findings } from '../config/findings.ts'
import type { TlsIdentity } from '../socket/tls.ts'
import { identityOf, trustedOf } from './identity.ts'
import { openStore, type OpenStore, type StoreSetting } from './store-file.ts'
import type { WatchedFiles } from './watched-files.ts'

export class Surroundings {
  readonly home: string
  readonly files: WatchedFiles
  readonly findings: Findings

  constructor(home: string, files: WatchedFiles, findings: Findings) {
    this.home = home
    this.files = files
    this.findings = findings
  }

  /** Undefined with a fault. */
  async identity(setting: StoreSetting): Promise<TlsIdentity | undefined> {
    const store = await this.#open(setting)
    const identity = store === undefined ? undefined : identityOf(store, this.findings)
    if (store === undefined || identity === undefined) return undefined
    const why = (await import('./openssl.ts')).refusalOf(identity)
    if (why === '') return identity
    const { fileName } = setting.names
    return this.findings.fault(store.label, fileName, `OpenSSL refuses it: ${why}`, 'take a newer key and certificate')
  }

  /** Undefined with a fault. */
  async trusted(setting: StoreSetting): Promise<readonly string[] | undefined> {
    const store = await this.#open(setting)
    return store === undefined ? undefined : trustedOf(store, this.findings)
  }

  #open(setting: StoreSetting): Promise<OpenStore | undefined> {
    return openStore(setting, this.home, this.files, this.findings)
  }
}
