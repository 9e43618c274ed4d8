/**
 * Reloads the home while the node runs. Everything is read and validated first. Errors refuse the reload as a whole;
 * only a faulty API project or sequence keeps its active version instead. A valid home is applied in one turn here, and
 * by one message to each thread. No connection is dropped.
 */
import { statSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import {
  logReconciliation,
  reconcileLifecycles,
  unsavedDiagnostics,
  withLifecycles,
} from '../plan/lifecycle-planning.ts'
import { type ApiPlanner, diffApis, apiLabel, type PlannedApis, OutOfSlots } from '../plan/api-planning.ts'
import { nodeComponents } from '../plan/node-components.ts'
import { type SigningKeySource, createSigner } from '../plan/backend-signing.ts'
import type { ApiDefinition } from '../apis/api-definition.ts'
import type { ApiProjects } from '../apis/api-projects.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'
import { loadApis } from '../apis/api-loading.ts'
import { AT_RELOAD } from './project-reader.ts'
import { CommandRefused } from './control-socket.ts'
import type { EndpointService } from './endpoint-service.ts'
import type { ActiveState } from './active-state.ts'
import type { Log } from '../observe/log.ts'
import type { ApiChanges } from '../plan/reactor-plan.ts'
import { tlsDraftFor, type Installation, loadApplications, type LoadedHome, loadHome } from './home-loading.ts'
import { allowedScopes } from '../plan/auth-planning.ts'
import { globalCors } from '../plan/reactor-planning.ts'
import type { ReactorPool } from './reactor-pool.ts'
import { diffConfigurations, type KeyChange } from './configuration-diff.ts'
import {
  logReload,
  NO_APIS_CHANGED,
  NO_SEQUENCES_CHANGED,
  type ReloadReport,
  type ReloadScope,
  identitiesOf,
} from './reload-report.ts'
import { loadNeeds, type NeedsOf } from '../plan/mediation-planning.ts'
import { withoutDiagnostics, changedSequences } from '../mediation/sequence-files.ts'
import { LifecycleWriteError, type LifecycleStore, type LifecycleFile } from '../apis/lifecycle-file.ts'
import type { LifecycleRecords } from '../apis/lifecycle-records.ts'
import { tokenApis } from '../plan/token-apis.ts'
import type { TlsDraft, TlsMaterial } from '../tls/tls-material.ts'
interface ReloaderOptions {
  readonly installation: Installation
  readonly projects: ApiProjects
  readonly active: ActiveState
  readonly lifecycles: LifecycleStore
  readonly planner: ApiPlanner
  readonly reactors: Pick<ReactorPool, 'deploy' | 'returnHandlers'>
  /** Null on a node without reactors. */
  readonly endpoints: Pick<EndpointService, 'replace' | 'runHealthChecks'> | null
  readonly log: Log
  /** Sends the active state to the control thread. Resolves with why it is not applied there; '' where it is. */
  readonly reloadControl: () => Promise<string>
  /** Opens key stores on a node that has had no TLS before. */
  readonly openTls: (draft: TlsDraft) => Promise<TlsMaterial>
  /** The home that the node has started with, whose warnings are in the log. */
  readonly loaded: Pick<LoadedHome, 'unknown' | 'warnings' | 'apis' | 'sequences'>
}

/** A home that is read and validated, and may become active. */
interface Candidate extends Pick<LoadedHome, 'configuration' | 'keys' | 'apis' | 'proxies' | 'sequences' | 'errors'> {
  /** Undefined: TLS stays as it is. Null: nothing uses TLS any more. */
  readonly tls: TlsDraft | null | undefined
  /** Null: the file was not read. */
  readonly lifecycles: LifecycleFile | null
  /** Null: the signing key was not read. */
  readonly signing: SigningKeySource | null
  readonly applications: LoadedHome['applications']
  readonly policies: LoadedHome['policies']
  readonly warnings: readonly Diagnostic[]
  readonly changed: readonly KeyChange[]
  readonly restart: readonly KeyChange[]
}

export class Reloader {
  readonly #options: ReloaderOptions
  /** Diagnostics of the active configuration that are in the log: reloads of API files do not repeat them. */
  #loggedOfConfiguration: ReadonlySet<string>
  /** Diagnostics of the last reload, or of the start. */
  #loggedLast: ReadonlySet<string>
  #isEnding = false

  constructor(options: ReloaderOptions) {
    this.#options = options
    const { unknown, warnings, apis, sequences } = options.loaded
    this.#loggedOfConfiguration = identitiesOf(unknown, warnings, sequences.warnings)
    this.#loggedLast = identitiesOf(apis.errors, apis.warnings)
  }

  /** Must not run beside another reload or change (`ReloadQueue`). Rejects with CommandRefused while the node ends. */
  async run(scope: ReloadScope): Promise<ReloadReport> {
    this.#refuseWhileEnding()
    const candidate = scope === 'all' ? await this.#loadHome() : await this.#loadApis()
    const report = candidate.errors.length > 0 ? refused(candidate, []) : await this.#apply(candidate)
    // The TLS material logs its warnings itself.
    const loggedOfTls = identitiesOf(candidate.tls?.diagnostics.warnings ?? [])
    logReload(this.#options.log, report, scope, this.#loggedOfConfiguration.union(this.#loggedLast).union(loggedOfTls))
    this.#loggedLast = identitiesOf(report.errors, report.warnings)
    if (scope === 'all' && report.outcome === 'applied') {
      const returned = this.#options.reactors.returnHandlers()
      if (returned.length > 0) this.#options.log.info({ HANDLERS: returned.join() }, 'handlers run on reactors again')
      const ofApis = identitiesOf(candidate.apis.errors, candidate.apis.warnings)
      this.#loggedOfConfiguration = this.#loggedLast.difference(ofApis)
    }
    return report
  }

  /** From now on nothing is applied. */
  end(): void {
    this.#isEnding = true
  }

  #refuseWhileEnding(): void {
    if (this.#isEnding) throw new CommandRefused('the node is ending: it reloads nothing')
  }

  async #loadHome(): Promise<Candidate> {
    const { installation, projects, active } = this.#options
    let changes: Pick<Candidate, 'changed' | 'restart'> = { changed: [], restart: [] }
    const loaded = await loadHome(installation, projects, {
      isStart: false,
      projects: active.projects,
      sequences: active.sequences,
      merge: resolution => {
        const { changed, restart, ...merged } = diffConfigurations(
          active.configured,
          active.withSharedIssuer(resolution),
        )
        changes = { changed, restart }
        return merged
      },
    })
    const { unknown, apis, sequences, tls } = loaded
    const ofFiles = [...apis.warnings, ...sequences.warnings]
    const warnings = [...unknown, ...loaded.warnings, ...(tls?.diagnostics.warnings ?? []), ...ofFiles]
    return { ...loaded, ...changes, warnings }
  }

  /** Reads the files of APIs, applications and policies only. */
  async #loadApis(): Promise<Candidate> {
    const { installation, projects, active } = this.#options
    const { home } = installation
    const { configuration, keys } = active.configured
    const { runsGateway } = nodeComponents(configuration)
    const { files } = active.sequences
    const apis = await loadApis(projects, configuration, runsGateway, active.projects, AT_RELOAD, files)
    const tls =
      active.tls === null ? await tlsDraftFor({ configuration, keys }, apis, home, active.sequences) : undefined
    const declared = await loadApplications(home, configuration, apis)
    const errors = [...missingHome(home), ...(tls?.diagnostics.errors ?? []), ...declared.errors]
    const { proxies } = active.planned
    const { applications, policies } = declared
    const warnings = [...declared.warnings, ...apis.warnings]
    const unread = {
      lifecycles: null,
      sequences: withoutDiagnostics(active.sequences),
      signing: null,
      changed: [],
      restart: [],
    }
    return { configuration, keys, apis, proxies, applications, policies, tls, errors, warnings, ...unread }
  }

  async #apply(candidate: Candidate): Promise<ReloadReport> {
    const { installation, planner, active, lifecycles, log } = this.#options
    const { home, dataDir } = installation
    // Each step takes its own turn: thousands of APIs would block the health port and the control socket.
    await setImmediate()
    const draft = candidate.tls ? await completeDraft(candidate.tls, dataDir) : candidate.tls
    if (draft && draft.diagnostics.errors.length > 0) return refused(candidate, draft.diagnostics.errors)
    const signing = candidate.signing === null ? active.signing : createSigner(candidate.signing, dataDir)
    if (signing.error !== null) return refused(candidate, [signing.error])
    const needsOf = await loadNeeds(candidate.apis.apis, candidate.sequences)
    const asDeclared = this.#plan(candidate, needsOf)
    await setImmediate()
    if (asDeclared === undefined) return refused(candidate, [outOfSlots(home)])
    const opened = draft && active.tls === null ? await this.#options.openTls(draft) : null
    const records = candidate.lifecycles === null ? lifecycles.records : lifecycles.reread(candidate.lifecycles)
    const reconciled = reconcileLifecycles(records, asDeclared, candidate.configuration)
    const planned = withLifecycles(asDeclared, reconciled.records)
    logReconciliation(log, reconciled)
    await setImmediate()
    const changes = diffApis(active.planned.apis, planned.apis)
    await setImmediate()
    if (this.#isEnding) opened?.stop()
    this.#refuseWhileEnding()
    const labels = new Set(active.planned.apis.map(apiLabel))
    const staying = new Set(planned.apis.map(apiLabel))
    this.#replaceTls(draft, opened)
    active.configured = candidate
    active.declared = candidate.applications
    active.policies = candidate.policies
    active.projects = candidate.apis.projects
    const sequencesChanged = changedSequences(active.sequences, candidate.sequences)
    active.sequences = candidate.sequences
    active.signing = signing
    active.planned = planned
    const [failures, cause] = await Promise.all([this.deploy(changes), lifecycles.adopt(reconciled.records)])
    // No thread uses the slots of removed endpoints any more.
    planner.release(planned)
    const deployed = changes.deployed.map(apiLabel)
    return {
      outcome: 'applied',
      apis: {
        added: deployed.filter(label => !labels.has(label)),
        changed: deployed.filter(label => labels.has(label)),
        removed: [...labels].filter(label => !staying.has(label)),
        kept: candidate.apis.kept.map(definition => apiLabel(planned.byDefinition.get(definition)!.plan)),
      },
      sequences: { changed: sequencesChanged, kept: candidate.sequences.fallbacks },
      keys: candidate.changed,
      restart: candidate.restart,
      errors: [...candidate.apis.errors, ...candidate.sequences.errors],
      warnings: [...candidate.warnings, ...unsavedDiagnostics(cause)],
      failures,
    }
  }

  /**
   * Changes the lifecycle state of one API: reads no project and deploys no other API. Must not run beside a reload.
   * Resolves with the failures of threads. Rejects with CommandRefused where the state cannot be saved.
   */
  async changeLifecycle(definition: ApiDefinition, records: LifecycleRecords): Promise<readonly string[]> {
    this.#refuseWhileEnding()
    const { active, lifecycles } = this.#options
    try {
      await lifecycles.commit(records)
    } catch (error) {
      throw error instanceof LifecycleWriteError ? new CommandRefused(`${error.message}: nothing has changed`) : error
    }
    const planned = withLifecycles(active.planned, records, [definition])
    if (planned === active.planned) return []
    active.planned = planned
    return this.#deployToThreads({ removed: [], deployed: [planned.byDefinition.get(definition)!.plan] })
  }

  /** Undefined: the shared tables have no room for the endpoints. */
  #plan({ configuration, apis, proxies, sequences }: Candidate, needsOf: NeedsOf): PlannedApis | undefined {
    const { planner, active } = this.#options
    try {
      return planner.plan({
        definitions: [...apis.apis, ...tokenApis(configuration, apis.apis)],
        ...{ proxies, sequences, needsOf },
        cors: globalCors(configuration),
        allowedScopes: allowedScopes(configuration),
        aiSequence: configuration['apim.ai'].custom_error_response_sequence,
        before: active.planned,
      })
    } catch (error) {
      planner.release(active.planned)
      if (error instanceof OutOfSlots) return undefined
      throw error
    }
  }

  #replaceTls(draft: TlsDraft | null | undefined, opened: TlsMaterial | null | undefined): void {
    const { active } = this.#options
    if (opened) active.tls = opened
    else if (draft) active.tls!.adopt(draft)
    else if (draft === null) {
      active.tls?.stop()
      active.tls = null
    }
  }

  /** Sends the active state to the threads and to the health checks. Resolves with the failures of threads. */
  async deploy(changes: ApiChanges): Promise<readonly string[]> {
    const { active, endpoints, log } = this.#options
    const { configured, planned } = active
    log.level = configured.configuration.logging.level
    endpoints?.replace(planned.apis, planned.ofSequences.plans)
    const checking = endpoints?.runHealthChecks(() => active.live.tlsClients)
    const [failures] = await Promise.all([this.#deployToThreads(changes), checking])
    return failures
  }

  async #deployToThreads(changes: ApiChanges): Promise<readonly string[]> {
    const { active, reactors, reloadControl } = this.#options
    const deployed = reactors.deploy(active.live, active.planned.apis, changes)
    const [{ refusals, late }, cause] = await Promise.all([deployed, reloadControl()])
    const waiting = late.map(reactor => `reactor ${reactor} has not responded; it applies the change when it can`)
    return [...refusals, ...waiting, ...(cause === '' ? [] : [`control thread: ${cause}`])]
  }
}

function refused({ errors, apis, sequences, restart, warnings }: Candidate, more: readonly Diagnostic[]): ReloadReport {
  return {
    outcome: 'refused',
    apis: NO_APIS_CHANGED,
    sequences: NO_SEQUENCES_CHANGED,
    keys: [],
    restart,
    errors: [...errors, ...more, ...apis.errors, ...sequences.errors],
    warnings,
    failures: [],
  }
}

async function completeDraft(draft: TlsDraft, dataDir: string): Promise<TlsDraft> {
  const { withListenerCertificate } = await import('../tls/tls-material.ts')
  return withListenerCertificate(draft, dataDir)
}

function missingHome(home: string): readonly Diagnostic[] {
  if (statSync(home, { throwIfNoEntry: false })?.isDirectory()) return []
  return [{ where: labelOf(home), key: '', given: '', expected: 'there is no such folder any more', hint: '' }]
}

function outOfSlots(home: string): Diagnostic {
  const expected = 'the shared tables of this node have no room for so many more endpoints'
  return { where: labelOf(home), key: '', given: '', expected, hint: 'restart the node, which makes larger tables' }
}
