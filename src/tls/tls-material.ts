/**
 * Everything that TLS is made of, in the primary: plans at start, new ones whenever a file behind them has changed.
 * What is in force stays so until something better can be made of the files; no wrong file takes it away.
 */
import { randomBytes } from 'node:crypto'
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationFaults, describe } from '../config/fault.ts'
import { Findings } from '../config/findings.ts'
import { labelOf } from '../config/source-file.ts'
import type { TlsClientPlan, TlsIdentity, TlsServerPlan } from '../socket/tls.ts'
import { type ClientMatch, clientPlans, planOf } from './client-plan.ts'
import { type ServerMaterial, serverPlan } from './server-plan.ts'
import { clientSettingOf, intervalOf, KEY_STORE_KEY, serverSettingOf, wssTrustStore } from './settings.ts'
import { Surroundings } from './surroundings.ts'
import { DEFAULT_TERMS } from './terms.ts'
import { WatchedFiles } from './watched-files.ts'

/** RFC 5077 5.5: keys of session tickets must change; a ticket older than this is a full handshake. */
const TICKET_KEYS_MS = 12 * 3_600_000
const TICKET_KEY_BYTES = 48

/** Where everything is read from. */
export interface TlsSources {
  readonly https: Configuration['transport.passthru_https']
  /** `transport.wss.sender.trust_store.*`. */
  readonly wss: { readonly location: string; readonly password: string }
  /** `server.hostname`, for a self-signed certificate. */
  readonly hostname: string
  /** Whether there is a listener on TLS at all. Without one its stores are not read. */
  readonly listens: boolean
}

interface TlsMaterialOptions extends TlsSources {
  readonly home: string
  readonly dataDir: string
  readonly log: TlsLog
  /** Other plans are in force from now on. */
  readonly changed: (plans: TlsPlans) => void
}

interface TlsLog {
  info(fields: object, message: string): void
  warn(message: string): void
  error(message: string): void
}

export interface TlsPlans {
  /** Null without a listener on TLS. */
  readonly server: TlsServerPlan | null
  /** By `host:port`; the last is `default`, for every other backend. */
  readonly clients: readonly ClientMatch[]
  /** For backends on wss that no profile is for. */
  readonly wss: TlsClientPlan
}

/** What was made of the files, but for ticket keys. */
interface Material {
  readonly server: ServerMaterial | null
  readonly clients: readonly ClientMatch[]
  readonly wss: TlsClientPlan
}

interface Attempt {
  readonly material: Material | undefined
  readonly findings: Findings
  readonly files: WatchedFiles
}

export class TlsMaterial {
  readonly #options: TlsMaterialOptions
  readonly #timers: readonly NodeJS.Timeout[]
  #files: WatchedFiles
  #material: Material
  #plans: TlsPlans
  /** Lines that need not be said again. */
  #said: ReadonlySet<string> = new Set()
  /** The last of the looks at the files, one after the other. */
  #queue: Promise<void> = Promise.resolve()
  #isStopped = false

  /** Throws ConfigurationFaults with all that is wrong. */
  static async open(options: TlsMaterialOptions): Promise<TlsMaterial> {
    const { material, findings, files } = await attempt(options)
    if (material === undefined) throw new ConfigurationFaults(findings.faults)
    return new TlsMaterial(options, material, files, findings)
  }

  private constructor(options: TlsMaterialOptions, material: Material, files: WatchedFiles, findings: Findings) {
    this.#options = options
    this.#material = material
    this.#files = files
    this.#plans = plansOf(material, newTicketKeys())
    this.#tell(findings)
    const interval = intervalOf(options.https)
    const timers = [setInterval(() => this.#enqueue(() => this.#renewTicketKeys()), TICKET_KEYS_MS)]
    if (interval > 0) timers.push(setInterval(() => this.#enqueue(() => this.#lookAtFiles()), interval))
    for (const timer of timers) timer.unref()
    this.#timers = timers
  }

  get plans(): TlsPlans {
    return this.#plans
  }

  /** Reads everything again, changed or not. Resolves when that is done; what is wrong is in the log. */
  reload(): Promise<void> {
    return this.#enqueue(() => this.#rebuild())
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue
      .then(() => (this.#isStopped ? undefined : task()))
      // What is in force serves on, whatever happened here.
      .catch((error: Error) => this.#options.log.error(`TLS stores could not be read again: ${error.message}`))
    return this.#queue
  }

  async #lookAtFiles(): Promise<void> {
    if (this.#files.haveChanged) await this.#rebuild()
  }

  /** A self-signed certificate is renewed on this occasion too. */
  async #renewTicketKeys(): Promise<void> {
    await this.#rebuild()
    if (this.#options.listens) this.#put(this.#material, newTicketKeys())
  }

  async #rebuild(): Promise<void> {
    const { material, findings, files } = await attempt(this.#options)
    if (this.#isStopped) return
    // Also of files that were wrong: they are read again once they have changed, not each time.
    this.#files = files
    for (const fault of findings.faults) this.#options.log.error(`${describe(fault)}; what was in force stays so`)
    if (material === undefined) return
    this.#tell(findings)
    if (JSON.stringify(material) === JSON.stringify(this.#material)) return
    // A resumed session would keep a client certificate that is trusted no more.
    const isAsBefore = verificationOf(material.server) === verificationOf(this.#material.server)
    this.#put(material, isAsBefore ? this.#plans.server?.ticketKeys : newTicketKeys())
    this.#options.log.info({}, 'TLS keys, certificates or profiles have changed and are in force')
  }

  #put(material: Material, ticketKeys: Uint8Array = newTicketKeys()): void {
    this.#material = material
    this.#plans = plansOf(material, ticketKeys)
    if (!this.#isStopped) this.#options.changed(this.#plans)
  }

  /** Each line once, until it has been gone for a while. */
  #tell({ warnings, notes }: Findings): void {
    const { log } = this.#options
    const lines = new Set([...warnings.map(describe), ...notes.map(note => JSON.stringify(note))])
    for (const line of warnings.map(describe)) if (!this.#said.has(line)) log.warn(line)
    for (const note of notes) if (!this.#said.has(JSON.stringify(note))) log.info(note.fields, note.message)
    this.#said = lines
  }
}

/** What is wrong with the files, and what is worth a warning, as a start would find it. Writes nothing. */
export async function examineTls(sources: TlsSources, home: string): Promise<Findings> {
  const findings = new Findings()
  // Where none is set, a start makes a key store; whether the data folder takes it is known only then.
  await read(sources, async () => undefined, new Surroundings(home, new WatchedFiles(), findings))
  return findings
}

async function attempt(options: TlsMaterialOptions): Promise<Attempt> {
  const findings = new Findings()
  const files = new WatchedFiles()
  const surroundings = new Surroundings(options.home, files, findings)
  return { material: await read(options, () => selfSignedOne(options, findings), surroundings), findings, files }
}

/** `selfSigned`: the identity of a listener without a key store. Undefined with faults in the findings. */
async function read(
  options: TlsSources,
  selfSigned: () => Promise<TlsIdentity | undefined>,
  surroundings: Surroundings,
): Promise<Material | undefined> {
  const server = options.listens ? await serverPlan(serverSettingOf(options.https), selfSigned, surroundings) : null
  const clientSetting = clientSettingOf(options.https)
  const clients = await clientPlans(clientSetting, surroundings)
  const fallback = clients.at(-1)!.plan
  const trustStore = wssTrustStore(options.wss.location, options.wss.password)
  const wss =
    trustStore === null
      ? fallback
      : {
          ...(await planOf(null, trustStore, fallback.hostname, DEFAULT_TERMS, surroundings)),
          identity: fallback.identity,
        }
  const isWhole = surroundings.findings.faults.length === 0 && server !== undefined
  return isWhole ? { server, clients, wss } : undefined
}

/** Undefined with a fault when it cannot be kept. */
async function selfSignedOne(options: TlsMaterialOptions, findings: Findings): Promise<TlsIdentity | undefined> {
  const { selfSigned } = await import('./self-signed.ts')
  try {
    const { path, identity, validTo } = await selfSigned(options.dataDir, options.hostname)
    findings.note(`a self-signed certificate is in use, which no client trusts; set ${KEY_STORE_KEY}`, {
      STORE: labelOf(path),
      VALID_TO: validTo,
    })
    return identity
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const expected = `no self-signed certificate can be kept there (${code ?? message})`
    return findings.fault(
      labelOf(options.dataDir),
      KEY_STORE_KEY,
      expected,
      `set ${KEY_STORE_KEY}, or make it writable`,
    )
  }
}

function plansOf({ server, clients, wss }: Material, ticketKeys: Uint8Array): TlsPlans {
  return { server: server === null ? null : { ...server, ticketKeys }, clients, wss }
}

function newTicketKeys(): Uint8Array {
  return new Uint8Array(randomBytes(TICKET_KEY_BYTES))
}

/** Whom clients must be, for each name. */
function verificationOf(server: ServerMaterial | null): string {
  if (server === null) return ''
  const { verifyClient, ca, hosts } = server
  return JSON.stringify([verifyClient, ca, hosts.map(host => [host.names, host.verifyClient, host.ca])])
}
