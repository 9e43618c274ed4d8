/**
 * Everything that TLS is made of, in the primary: plans at start, new ones whenever a file behind them has changed.
 * What is in force stays so until something better can be made of the files; no wrong file takes it away.
 */
import { randomBytes } from 'node:crypto'
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationFaults, describe, type Fault, substanceOf } from '../config/fault.ts'
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

const CHANGED = 'TLS keys, certificates or profiles have changed and are in force'

/** Where everything is read from. */
export interface TlsSources {
  readonly https: Configuration['transport.passthru_https']
  /** `transport.wss.sender.trust_store.*`. */
  readonly wss: { readonly location: string; readonly password: string }
  /** `server.hostname`, for a self-signed certificate. */
  readonly hostname: string
  /** Whether there is a listener on TLS at all. Without one its stores are not read. */
  readonly listens: boolean
  /** It is that for management alone, which asks no client for a certificate and has one host. */
  readonly isManagementAlone: boolean
  /** Says of findings which line has led to them, and keeps what is secret to itself. */
  readonly attributed: (findings: readonly Fault[]) => readonly Fault[]
}

interface TlsMaterialOptions {
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

/** What was made of the sources, before anything of it is in force. Nothing was written for it. */
export interface TlsDraft {
  readonly sources: TlsSources
  readonly material: Material | undefined
  /** With faults there is no material. */
  readonly findings: Findings
  readonly files: WatchedFiles
}

/** Stands for the certificate of a listener that has no key store, until one is made. */
const SELF_SIGNED: TlsIdentity = { cert: '', key: '' }

export class TlsMaterial {
  readonly #options: TlsMaterialOptions
  readonly #ticketTimer: NodeJS.Timeout
  #lookTimer: NodeJS.Timeout | undefined
  #sources: TlsSources
  #files: WatchedFiles
  #material: Material
  #plans: TlsPlans
  /** What need not be said again. */
  #said: ReadonlySet<string> = new Set()
  /** The last of the looks at the files, one after the other. */
  #queue: Promise<void> = Promise.resolve()
  #isStopped = false

  /** Throws ConfigurationFaults with all that is wrong. */
  static async open(draft: TlsDraft, options: TlsMaterialOptions): Promise<TlsMaterial> {
    const whole = await completed(draft, options.dataDir)
    if (whole.material === undefined) throw new ConfigurationFaults(whole.findings.faults)
    return new TlsMaterial(options, whole.material, whole)
  }

  private constructor(options: TlsMaterialOptions, material: Material, { sources, files, findings }: TlsDraft) {
    this.#options = options
    this.#sources = sources
    this.#material = material
    this.#files = files
    this.#plans = plansOf(material, newTicketKeys())
    this.#tell(findings)
    this.#ticketTimer = setInterval(() => this.#enqueue(() => this.#renewTicketKeys()), TICKET_KEYS_MS)
    this.#ticketTimer.unref()
    this.#lookAgainAndAgain()
  }

  #lookAgainAndAgain(): void {
    clearInterval(this.#lookTimer)
    const interval = intervalOf(this.#sources.https)
    if (interval === 0 || this.#isStopped) return
    this.#lookTimer = setInterval(() => this.#enqueue(() => this.#lookAtFiles()), interval)
    this.#lookTimer.unref()
  }

  get plans(): TlsPlans {
    return this.#plans
  }

  /** Takes over what was made of these or other sources, completed and without faults; `changed` is not called. */
  adopt({ sources, material, findings, files }: TlsDraft): void {
    if (material === undefined) throw new Error('a faulty draft is never in force')
    this.#sources = sources
    this.#files = files
    this.#tell(findings)
    this.#lookAgainAndAgain()
    if (this.#change(material)) this.#options.log.info({}, CHANGED)
  }

  /** Reads everything again, changed or not. Resolves when that is done; what is wrong is in the log. */
  reload(): Promise<void> {
    return this.#enqueue(() => this.#rebuild())
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#ticketTimer)
    clearInterval(this.#lookTimer)
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
    if (!this.#sources.listens) return
    this.#put(this.#material, newTicketKeys())
    this.#announce()
  }

  async #rebuild(): Promise<void> {
    const sources = this.#sources
    const { material, findings, files } = await completed(
      await draftTls(sources, this.#options.home),
      this.#options.dataDir,
    )
    // Other sources have come meanwhile: what was read of these is out of date.
    if (this.#isStopped || sources !== this.#sources) return
    // Also of files that were wrong: they are read again once they have changed, not each time.
    this.#files = files
    for (const fault of findings.faults) this.#options.log.error(`${describe(fault)}; what was in force stays so`)
    if (material === undefined) return
    this.#tell(findings)
    if (!this.#change(material)) return
    this.#announce()
    this.#options.log.info({}, CHANGED)
  }

  /** Answers whether anything is different. */
  #change(material: Material): boolean {
    if (JSON.stringify(material) === JSON.stringify(this.#material)) return false
    this.#put(material, this.#ticketKeysFor(material))
    return true
  }

  /** A resumed session would keep a client certificate that is trusted no more. */
  #ticketKeysFor({ server }: Material): Uint8Array {
    const isAsBefore = verificationOf(server) === verificationOf(this.#material.server)
    return (isAsBefore ? this.#plans.server?.ticketKeys : undefined) ?? newTicketKeys()
  }

  #put(material: Material, ticketKeys: Uint8Array): void {
    this.#material = material
    this.#plans = plansOf(material, ticketKeys)
  }

  #announce(): void {
    if (!this.#isStopped) this.#options.changed(this.#plans)
  }

  /** Each once, until it has been gone for a while. */
  #tell({ warnings, notes }: Findings): void {
    const { log } = this.#options
    const said = new Set([...warnings.map(substanceOf), ...notes.map(note => JSON.stringify(note))])
    for (const warning of warnings) if (!this.#said.has(substanceOf(warning))) log.warn(describe(warning))
    for (const note of notes) if (!this.#said.has(JSON.stringify(note))) log.info(note.fields, note.message)
    this.#said = said
  }
}

/** Reads everything, and writes nothing. */
export async function draftTls(sources: TlsSources, home: string): Promise<TlsDraft> {
  const found = new Findings()
  const files = new WatchedFiles()
  const material = await read(sources, new Surroundings(home, files, found))
  const findings = new Findings()
  findings.faults.push(...sources.attributed(found.faults))
  findings.warnings.push(...sources.attributed(found.warnings))
  findings.notes.push(...found.notes)
  return { sources, material, findings, files }
}

/** With the certificate that a listener has without a key store, where it needs one. */
export async function completed(draft: TlsDraft, dataDir: string): Promise<TlsDraft> {
  const { sources, material, findings } = draft
  const server = material?.server
  if (material === undefined || server?.identity !== SELF_SIGNED) return draft
  const identity = await selfSignedOne(sources.hostname, dataDir, findings)
  return { ...draft, material: identity === undefined ? undefined : { ...material, server: { ...server, identity } } }
}

/** Undefined with faults in the findings. */
async function read(options: TlsSources, surroundings: Surroundings): Promise<Material | undefined> {
  const fallback = async (): Promise<TlsIdentity> => SELF_SIGNED
  const whole = serverSettingOf(options.https)
  const setting = options.isManagementAlone ? { ...whole, trustStore: null, verifyClient: '', profilePath: '' } : whole
  const server = options.listens ? await serverPlan(setting, fallback, surroundings) : null
  const clientSetting = clientSettingOf(options.https)
  const clients = await clientPlans(clientSetting, surroundings)
  const other = clients.at(-1)!.plan
  const trustStore = wssTrustStore(options.wss.location, options.wss.password)
  const wss =
    trustStore === null
      ? other
      : {
          ...(await planOf(null, trustStore, other.hostname, DEFAULT_TERMS, surroundings)),
          identity: other.identity,
        }
  const isWhole = surroundings.findings.faults.length === 0 && server !== undefined
  return isWhole ? { server, clients, wss } : undefined
}

/** Undefined with a fault when it cannot be kept. */
async function selfSignedOne(hostname: string, dataDir: string, findings: Findings): Promise<TlsIdentity | undefined> {
  const { selfSigned } = await import('./self-signed.ts')
  try {
    const { path, identity, validTo } = await selfSigned(dataDir, hostname)
    findings.note(`a self-signed certificate is in use, which no client trusts; set ${KEY_STORE_KEY}`, {
      STORE: labelOf(path),
      VALID_TO: validTo,
    })
    return identity
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const expected = `no self-signed certificate can be kept there (${code ?? message})`
    return findings.fault(labelOf(dataDir), KEY_STORE_KEY, expected, `set ${KEY_STORE_KEY}, or make it writable`)
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
