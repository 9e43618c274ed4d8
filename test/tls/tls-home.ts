/** A temporary home with TLS files, and TLS material opened from it; records log lines and changes of plans. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { ConfigurationErrors, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { draftTls, TlsMaterial, type TlsPlans } from '../../src/tls/tls-material.ts'

/** Keys of `[transport.passthru_https]`. */
type Keys = Readonly<Record<string, string | number | readonly string[]>>

export class TlsHome {
  readonly path: string
  readonly dataDir: string
  /** `level: text`, with paths relative to the home. */
  readonly logged: string[] = []
  readonly changes: TlsPlans[] = []
  /** Lets the receiver of changed plans throw. */
  refuses = false
  readonly #context: TestContext
  #wake = Promise.withResolvers<void>()

  constructor(t: TestContext) {
    this.#context = t
    this.path = mkdtempSync(join(tmpdir(), 'tls-'))
    this.dataDir = join(this.path, 'data')
    this.write('deployment.toml', '')
    t.after(() => rmSync(this.path, { recursive: true }))
  }

  write(path: string, content: string | Buffer): string {
    const absolute = join(this.path, path)
    mkdirSync(dirname(absolute), { recursive: true })
    writeFileSync(absolute, content)
    return absolute
  }

  async open(keys: Keys, more: { wss?: string; listens?: boolean; hostname?: string } = {}): Promise<TlsMaterial> {
    const sets = Object.entries(keys).map(([key, value]) => `transport.passthru_https.${key}=${JSON.stringify(value)}`)
    const { configuration } = loadConfiguration(this.path, sets)
    const log = (level: string, text: string): void => {
      this.logged.push(`${level}: ${text.replaceAll(`${this.path}/`, '')}`)
      this.#notify()
    }
    const inputs = {
      https: configuration['transport.passthru_https'],
      wss: { location: more.wss ?? '', password: 'storepw' },
      hostname: more.hostname ?? 'localhost',
      listens: more.listens ?? true,
      isManagementOnly: false,
      attribute: <T>(diagnostics: T) => diagnostics,
    }
    const material = await TlsMaterial.open(await draftTls(inputs, this.path), {
      home: this.path,
      dataDir: this.dataDir,
      log: {
        info: (fields, message) => log('info', `${message} ${JSON.stringify(fields)}`),
        warn: message => log('warn', message),
        error: message => log('error', message),
      },
      changed: plans => {
        if (this.refuses) throw new Error('refused')
        this.changes.push(plans)
        this.#notify()
      },
    })
    this.#context.after(() => material.stop())
    return material
  }

  /** The errors that prevent opening; empty if it opens. */
  async errors(keys: Keys, more: { wss?: string; listens?: boolean } = {}): Promise<readonly string[]> {
    try {
      await this.open(keys, more)
      return []
    } catch (error) {
      if (!(error instanceof ConfigurationErrors)) throw error
      return error.errors.map(diagnostic => formatDiagnostic(diagnostic).replaceAll(`${this.path}/`, ''))
    }
  }

  /** Resolves when a change or a log line makes the condition true. */
  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await this.#wake.promise
  }

  #notify(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers<void>()
  }
}
