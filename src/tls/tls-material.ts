/**
 * Owns the active TLS plans in the primary: builds them at the start and again when a file behind them has changed, and
 * renews the keys of session tickets. The active plans stay until valid new ones replace them; a file with errors never
 * removes them.
 */
import { randomBytes } from 'node:crypto'
import {
  ConfigurationErrors,
  type Diagnostic,
  diagnosticIdentity,
  Diagnostics,
  formatDiagnostic,
} from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'
import type { TlsClientPlan, TlsIdentity, TlsServerPlan } from '../socket/tls.ts'
import { type BackendTlsPlan, planClient, planClients } from './client-plan.ts'
import { planServer, type ServerMaterial } from './server-plan.ts'
import {
  checkIntervalMs,
  type HttpsSection,
  LISTENER_KEY_STORE,
  readClientSettings,
  readServerSettings,
  readWssTrustStore,
} from './settings.ts'
import { TlsPlanContext } from './tls-plan-context.ts'
import { WatchedFiles } from './watched-files.ts'

/** Session ticket keys must be rotated (RFC 5077 5.5); an older ticket leads to a full handshake. */
const TICKET_KEYS_MS = 12 * 3_600_000
const TICKET_KEY_BYTES = 48

const CHANGED = 'TLS keys, certificates or profiles have changed and are active'

/** Sources of the plans. */
export interface TlsInputs {
  readonly https: HttpsSection
  /** Keys of `transport.wss.sender.trust_store`. */
  readonly wss: { readonly location: string; readonly password: string }
  /** `server.hostname`, for a self-signed certificate. */
  readonly hostname: string
  /** False without a TLS listener: its stores are not read. */
  readonly listens: boolean
  /** True if only the management listener uses TLS, which asks for no client certificate and has one host. */
  readonly isManagementOnly: boolean
  /** Adds the operator's key and line to diagnostics, and masks secrets. */
  readonly attribute: (diagnostics: readonly Diagnostic[]) => readonly Diagnostic[]
}

interface TlsMaterialOptions {
  readonly home: string
  readonly dataDir: string
  readonly log: {
    info(fields: object, message: string): void
    warn(message: string): void
    error(message: string): void
  }
  /** Called when new plans are active. */
  readonly changed: (plans: TlsPlans) => void
}

export interface TlsPlans {
  /** Null without a TLS listener. */
  readonly server: TlsServerPlan | null
  /** By `host:port`; the last one is `default`, for all other backends. */
  readonly clients: readonly BackendTlsPlan[]
  /** For wss backends without a profile. */
  readonly wss: TlsClientPlan
}

/** The plans without ticket keys. */
interface Material extends Omit<TlsPlans, 'server'> {
  readonly server: ServerMaterial | null
}

/** Plans that are not active yet. Nothing was written for them. */
export interface TlsDraft {
  readonly inputs: TlsInputs
  /** Undefined with errors in the diagnostics. */
  readonly material: Material | undefined
  readonly diagnostics: Diagnostics
  readonly files: WatchedFiles
}

/** Placeholder for the certificate of a listener without a key store. */
const SELF_SIGNED: TlsIdentity = { cert: '', key: '' }

export class TlsMaterial {
  readonly #options: TlsMaterialOptions
  readonly #ticketTimer: NodeJS.Timeout
  #checkTimer: NodeJS.Timeout | undefined
  #inputs: TlsInputs
  #files: WatchedFiles
  #material: Material
  #plans: TlsPlans
  /** Warnings and notes that the log has already. */
  #logged: ReadonlySet<string> = new Set()
  /** The last queued rebuild; rebuilds run one after the other. */
  #queue: Promise<void> = Promise.resolve()
  #isStopped = false

  /** Throws ConfigurationErrors. */
  static async open(draft: TlsDraft, options: TlsMaterialOptions): Promise<TlsMaterial> {
    const complete = await withListenerCertificate(draft, options.dataDir)
    if (complete.material === undefined) throw new ConfigurationErrors(complete.diagnostics.errors)
    return new TlsMaterial(options, complete.material, complete)
  }

  private constructor(options: TlsMaterialOptions, material: Material, { inputs, files, diagnostics }: TlsDraft) {
    this.#options = options
    this.#inputs = inputs
    this.#material = material
    this.#files = files
    this.#plans = withTicketKeys(material, newTicketKeys())
    this.#log(diagnostics)
    this.#ticketTimer = setInterval(() => this.#enqueue(() => this.#renewTicketKeys()), TICKET_KEYS_MS)
    this.#ticketTimer.unref()
    this.#scheduleChecks()
  }

  #scheduleChecks(): void {
    clearInterval(this.#checkTimer)
    const interval = checkIntervalMs(this.#inputs.https)
    if (interval === 0 || this.#isStopped) return
    this.#checkTimer = setInterval(() => this.#enqueue(() => this.#checkFiles()), interval)
    this.#checkTimer.unref()
  }

  get plans(): TlsPlans {
    return this.#plans
  }

  /** Makes a complete draft without errors active. `changed` is not called. */
  adopt({ inputs, material, diagnostics, files }: TlsDraft): void {
    if (material === undefined) throw new Error('a draft with errors cannot become active')
    this.#inputs = inputs
    this.#files = files
    this.#log(diagnostics)
    this.#scheduleChecks()
    if (this.#replaceIfChanged(material)) this.#options.log.info({}, CHANGED)
  }

  /** Reads all files again, even unchanged ones. Resolves when that is done; errors are logged. */
  reload(): Promise<void> {
    return this.#enqueue(() => this.#rebuild())
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#ticketTimer)
    clearInterval(this.#checkTimer)
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue
      .then(() => (this.#isStopped ? undefined : task()))
      // The active plans stay, whatever has failed.
      .catch((error: Error) => this.#options.log.error(`TLS plans could not be renewed: ${error.message}`))
    return this.#queue
  }

  async #checkFiles(): Promise<void> {
    if (this.#files.haveChanged) await this.#rebuild()
  }

  /** Rebuilds first, which renews a self-signed certificate. */
  async #renewTicketKeys(): Promise<void> {
    await this.#rebuild()
    if (!this.#inputs.listens) return
    this.#replace(this.#material, newTicketKeys())
    this.#notify()
  }

  async #rebuild(): Promise<void> {
    const inputs = this.#inputs
    const draft = await draftTls(inputs, this.#options.home)
    const { material, diagnostics, files } = await withListenerCertificate(draft, this.#options.dataDir)
    // `adopt` has replaced the inputs meanwhile: this draft is out of date.
    if (this.#isStopped || inputs !== this.#inputs) return
    // Files with errors too: they are read again when they have changed, not at every check.
    this.#files = files
    for (const diagnostic of diagnostics.errors)
      this.#options.log.error(`${formatDiagnostic(diagnostic)}; the active TLS plans stay`)
    if (material === undefined) return
    this.#log(diagnostics)
    if (!this.#replaceIfChanged(material)) return
    this.#notify()
    this.#options.log.info({}, CHANGED)
  }

  /** Returns false if nothing differs. */
  #replaceIfChanged(material: Material): boolean {
    if (JSON.stringify(material) === JSON.stringify(this.#material)) return false
    this.#replace(material, this.#ticketKeysFor(material))
    return true
  }

  /** New ticket keys where other clients are trusted: a resumed session would skip the new verification. */
  #ticketKeysFor({ server }: Material): Uint8Array {
    const isUnchanged = verificationOf(server) === verificationOf(this.#material.server)
    return (isUnchanged ? this.#plans.server?.ticketKeys : undefined) ?? newTicketKeys()
  }

  #replace(material: Material, ticketKeys: Uint8Array): void {
    this.#material = material
    this.#plans = withTicketKeys(material, ticketKeys)
  }

  #notify(): void {
    if (!this.#isStopped) this.#options.changed(this.#plans)
  }

  /** Logs each warning and note once, and again only after it was absent. */
  #log({ warnings, infos }: Diagnostics): void {
    const { log } = this.#options
    const present = new Set([...warnings.map(diagnosticIdentity), ...infos.map(note => JSON.stringify(note))])
    for (const warning of warnings)
      if (!this.#logged.has(diagnosticIdentity(warning))) log.warn(formatDiagnostic(warning))
    for (const note of infos) if (!this.#logged.has(JSON.stringify(note))) log.info(note.fields, note.message)
    this.#logged = present
  }
}

/** Reads all files and builds plans from them. Writes nothing. */
export async function draftTls(inputs: TlsInputs, home: string): Promise<TlsDraft> {
  const found = new Diagnostics()
  const files = new WatchedFiles()
  const material = await buildMaterial(inputs, new TlsPlanContext(home, files, found))
  const diagnostics = new Diagnostics()
  diagnostics.errors.push(...inputs.attribute(found.errors))
  diagnostics.warnings.push(...inputs.attribute(found.warnings))
  diagnostics.infos.push(...found.infos)
  return { inputs, material, diagnostics, files }
}

/** Completes a draft whose listener has no key store with a self-signed certificate from the data folder. */
export async function withListenerCertificate(draft: TlsDraft, dataDir: string): Promise<TlsDraft> {
  const { inputs, material, diagnostics } = draft
  const server = material?.server
  if (material === undefined || server?.identity !== SELF_SIGNED) return draft
  const identity = await selfSignedIdentity(inputs.hostname, dataDir, diagnostics)
  return { ...draft, material: identity === undefined ? undefined : { ...material, server: { ...server, identity } } }
}

/** Returns undefined with errors in the diagnostics. */
async function buildMaterial(inputs: TlsInputs, context: TlsPlanContext): Promise<Material | undefined> {
  const all = readServerSettings(inputs.https)
  const settings = inputs.isManagementOnly ? { ...all, trustStore: null, verifyClient: '', profilePath: '' } : all
  const server = inputs.listens ? await planServer(settings, SELF_SIGNED, context) : null
  const clients = await planClients(readClientSettings(inputs.https), context)
  const wss = await planWss(inputs.wss, clients.at(-1)!.plan, context)
  const isValid = context.diagnostics.errors.length === 0 && server !== undefined
  return isValid ? { server, clients, wss } : undefined
}

/** `other`: the default plan for backends, which holds where wss has no trust store of its own. */
async function planWss(
  { location, password }: TlsInputs['wss'],
  other: TlsClientPlan,
  context: TlsPlanContext,
): Promise<TlsClientPlan> {
  const trustStore = readWssTrustStore(location, password)
  if (trustStore === null) return other
  return { ...(await planClient(null, trustStore, other.hostname, context)), identity: other.identity }
}

/** Returns undefined, with an error, if the certificate cannot be saved. */
async function selfSignedIdentity(
  hostname: string,
  dataDir: string,
  diagnostics: Diagnostics,
): Promise<TlsIdentity | undefined> {
  const { selfSignedCertificate } = await import('./self-signed.ts')
  try {
    const { path, identity, validTo } = await selfSignedCertificate(dataDir, hostname)
    diagnostics.info(`a self-signed certificate is in use, which no client trusts; set ${LISTENER_KEY_STORE}`, {
      STORE: labelOf(path),
      VALID_TO: validTo,
    })
    return identity
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const expected = `a self-signed certificate cannot be saved there (${code ?? message})`
    const hint = `set ${LISTENER_KEY_STORE}, or make the folder writable`
    return diagnostics.error(labelOf(dataDir), LISTENER_KEY_STORE, expected, hint)
  }
}

function withTicketKeys({ server, clients, wss }: Material, ticketKeys: Uint8Array): TlsPlans {
  return { server: server === null ? null : { ...server, ticketKeys }, clients, wss }
}

function newTicketKeys(): Uint8Array {
  return new Uint8Array(randomBytes(TICKET_KEY_BYTES))
}

/** Compares the verification of clients, for each host, as text. */
function verificationOf(server: ServerMaterial | null): string {
  if (server === null) return ''
  const { verifyClient, ca, hosts } = server
  return JSON.stringify([verifyClient, ca, hosts.map(host => [host.names, host.verifyClient, host.ca])])
}
