/** A home folder with files in it, and TLS material opened from it with everything it said at hand. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { ConfigurationFaults, describe, type Fault } from '../../src/config/fault.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { draftTls, TlsMaterial, type TlsPlans } from '../../src/tls/tls-material.ts'

/** Keys of `[transport.passthru_https]`. */
type Keys = Readonly<Record<string, string | number | readonly string[]>>

export class Place {
  readonly home: string
  readonly dataDir: string
  readonly said: string[] = []
  readonly changes: TlsPlans[] = []
  /** Whether plans are refused by whom they are handed to. */
  refuses = false
  readonly #context: TestContext
  #wake = Promise.withResolvers<void>()

  constructor(t: TestContext) {
    this.#context = t
    this.home = mkdtempSync(join(tmpdir(), 'tls-'))
    this.dataDir = join(this.home, 'data')
    this.write('deployment.toml', '')
    t.after(() => rmSync(this.home, { recursive: true }))
  }

  write(path: string, content: string | Buffer): string {
    const whole = join(this.home, path)
    mkdirSync(dirname(whole), { recursive: true })
    writeFileSync(whole, content)
    return whole
  }

  async open(keys: Keys, more: { wss?: string; listens?: boolean; hostname?: string } = {}): Promise<TlsMaterial> {
    const sets = Object.entries(keys).map(([key, value]) => `transport.passthru_https.${key}=${JSON.stringify(value)}`)
    const { configuration } = loadConfiguration(this.home, sets)
    const say = (level: string, text: string): void => {
      this.said.push(`${level}: ${text.replaceAll(`${this.home}/`, '')}`)
      this.#stir()
    }
    const sources = {
      https: configuration['transport.passthru_https'],
      wss: { location: more.wss ?? '', password: 'storepw' },
      hostname: more.hostname ?? 'localhost',
      listens: more.listens ?? true,
      isManagementAlone: false,
      attributed: (findings: readonly Fault[]) => findings,
    }
    const material = await TlsMaterial.open(await draftTls(sources, this.home), {
      home: this.home,
      dataDir: this.dataDir,
      log: {
        info: (fields, message) => say('info', `${message} ${JSON.stringify(fields)}`),
        warn: message => say('warn', message),
        error: message => say('error', message),
      },
      changed: plans => {
        if (this.refuses) throw new Error('refused')
        this.changes.push(plans)
        this.#stir()
      },
    })
    this.#context.after(() => material.stop())
    return material
  }

  /** The faults that keep it from being opened; none when it can be. */
  async faults(keys: Keys, more: { wss?: string; listens?: boolean } = {}): Promise<readonly string[]> {
    try {
      await this.open(keys, more)
      return []
    } catch (error) {
      if (!(error instanceof ConfigurationFaults)) throw error
      return error.faults.map(fault => describe(fault).replaceAll(`${this.home}/`, ''))
    }
  }

  /** Resolves once a change or a line makes it so. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await this.#wake.promise
  }

  #stir(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers<void>()
  }
}
