/**
 * A reload, from the files to the reactors: everything is read and judged first, and what is faulty is refused as a
 * whole, but for API projects, of which each stands for itself. Then all of it is in force at one moment in the primary
 * and in each reactor by one message; no connection is dropped for it.
 */
import { statSync } from 'node:fs'
import { readApplications } from '../config/application-files.ts'
import { logSettled, settledNow, unkept, withLifecycles } from './api-lifecycles.ts'
import { type ApiPlanner, changesBetween, labelOfApi, type PlannedApis, RowsUsedUp } from './api-planner.ts'
import { type SigningDraft, signerOf } from './backend-signing.ts'
import type { ApiDefinition } from '../config/api-definition.ts'
import type { ApiProjects } from '../config/api-definitions.ts'
import type { Fault } from '../config/fault.ts'
import { labelOf } from '../config/source-file.ts'
import { loadApis } from './api-loading.ts'
import { Refused } from './control-socket.ts'
import type { EndpointDesk } from './endpoint-desk.ts'
import type { InForce } from './in-force.ts'
import type { Log } from '../observe/log.ts'
import type { ApiChanges } from '../plan.ts'
import { draftOf, type Place, type Prepared, prepare } from './preparation.ts'
import { globalCors } from './planning.ts'
import type { ReactorPool } from './reactor-pool.ts'
import { compare, type KeyChange } from './reload-comparison.ts'
import {
  logReload,
  NO_APIS_CHANGED,
  NO_SEQUENCES_CHANGED,
  type ReloadAnswer,
  type ReloadScope,
  substancesOf,
} from './reload-report.ts'
import { asTheyAre, changedSequences } from './sequence-files.ts'
import { CannotKeep, type LifecycleBook, type LifecycleFile } from '../store/lifecycle-book.ts'
import type { LifecycleRecords } from '../store/lifecycles.ts'
import { tokenApis } from './token-apis.ts'
import type { TlsDraft, TlsMaterial } from '../tls/tls-material.ts'

interface ReloaderOptions {
  readonly place: Place
  readonly projects: ApiProjects
  readonly inForce: InForce
  readonly lifecycles: LifecycleBook
  readonly planner: ApiPlanner
  readonly pool: Pick<ReactorPool, 'deploy'>
  readonly desk: Pick<EndpointDesk, 'put' | 'check'>
  readonly log: Log
  /** What is in force is told to the authority, too. Answers why that has not taken it over; '' if it has. */
  readonly tellAuthority: () => Promise<string>
  /** Of a gateway that had no TLS until now. */
  readonly openTls: (draft: TlsDraft) => Promise<TlsMaterial>
  /** What the gateway was started with, and the log has warned of. */
  readonly prepared: Pick<Prepared, 'unknown' | 'warnings' | 'apis' | 'sequences'>
}

/** What might be in force next. */
interface Candidate extends Pick<Prepared, 'configuration' | 'keys' | 'apis' | 'proxies' | 'sequences' | 'faults'> {
  /** Undefined: TLS stays as it is. */
  readonly tls: TlsDraft | null | undefined
  /** Null: what is in force, the file was not read. */
  readonly lifecycles: LifecycleFile | null
  /** Null: what is in force. */
  readonly signing: SigningDraft | null
  readonly applications: Prepared['applications']
  readonly warnings: readonly Fault[]
  readonly changed: readonly KeyChange[]
  readonly restart: readonly KeyChange[]
}

export class Reloader {
  readonly #options: ReloaderOptions
  /** What the log has said of the configuration in force: reloads of API files, and refused ones, are silent of it. */
  #saidOfKeys: ReadonlySet<string>
  /** What the last reload, or the start, has said. */
  #saidLast: ReadonlySet<string>
  #isEnding = false

  constructor(options: ReloaderOptions) {
    this.#options = options
    const { unknown, warnings, apis, sequences } = options.prepared
    this.#saidOfKeys = substancesOf(unknown, warnings, sequences.warnings)
    this.#saidLast = substancesOf(apis.faults, apis.warnings)
  }

  /** One at a time. Throws Refused while the gateway ends. */
  async run(scope: ReloadScope): Promise<ReloadAnswer> {
    this.#refuseAtTheEnd()
    const candidate = scope === 'all' ? await this.#everything() : await this.#apisAlone()
    const answer = candidate.faults.length > 0 ? refusal(candidate, []) : await this.#putInForce(candidate)
    // TLS has its own say in the log.
    const told = substancesOf(candidate.tls?.findings.warnings ?? [])
    logReload(this.#options.log, answer, scope, this.#saidOfKeys.union(this.#saidLast).union(told))
    this.#saidLast = substancesOf(answer.faults, answer.warnings)
    if (scope === 'all' && answer.outcome === 'in force') {
      this.#saidOfKeys = this.#saidLast.difference(substancesOf(candidate.apis.faults, candidate.apis.warnings))
    }
    return answer
  }

  /** Nothing is put in force from now on. */
  end(): void {
    this.#isEnding = true
  }

  #refuseAtTheEnd(): void {
    if (this.#isEnding) throw new Refused('the node is ending: nothing is reloaded any more')
  }

  async #everything(): Promise<Candidate> {
    const { place, projects, inForce } = this.#options
    let changes: Pick<Candidate, 'changed' | 'restart'> = { changed: [], restart: [] }
    const prepared = await prepare(place, projects, {
      isStart: false,
      projects: inForce.projects,
      sequences: inForce.sequences,
      settle: resolution => {
        const { changed, restart, ...settled } = compare(inForce.configured, resolution)
        changes = { changed, restart }
        return settled
      },
    })
    const { unknown, apis, sequences, tls } = prepared
    const ofFiles = [...apis.warnings, ...sequences.warnings]
    const warnings = [...unknown, ...prepared.warnings, ...(tls?.findings.warnings ?? []), ...ofFiles]
    return { ...prepared, ...changes, warnings }
  }

  /** API files only; everything else stays as it was read. */
  async #apisAlone(): Promise<Candidate> {
    const { place, projects, inForce } = this.#options
    const { configuration, keys } = inForce.configured
    const apis = loadApis(projects, configuration, inForce.projects)
    const tls = inForce.tls === null ? await draftOf({ configuration, keys }, apis, place.home) : undefined
    const { applications, faults: wrong } = readApplications(place.home)
    const faults = [...withoutHome(place), ...(tls?.findings.faults ?? []), ...wrong]
    const { proxies } = inForce.planned
    const { warnings } = apis
    const unread = {
      lifecycles: null,
      sequences: asTheyAre(inForce.sequences),
      signing: null,
      changed: [],
      restart: [],
    }
    return { configuration, keys, apis, proxies, applications, tls, faults, warnings, ...unread }
  }

  async #putInForce(candidate: Candidate): Promise<ReloadAnswer> {
    const { place, planner, inForce, lifecycles, log } = this.#options
    const draft = candidate.tls ? await completedIn(candidate.tls, place) : candidate.tls
    if (draft && draft.findings.faults.length > 0) {
      return refusal(candidate, draft.findings.faults)
    }
    const signing = candidate.signing === null ? inForce.signing : signerOf(candidate.signing, place.dataDir)
    if (signing.fault !== null) return refusal(candidate, [signing.fault])
    const drafted = this.#plan(candidate)
    if (drafted === undefined) return refusal(candidate, [tooMany(place)])
    const opened = draft && inForce.tls === null ? await this.#options.openTls(draft) : null
    if (this.#isEnding) opened?.stop()
    this.#refuseAtTheEnd()
    const records = candidate.lifecycles === null ? lifecycles.records : lifecycles.reread(candidate.lifecycles)
    const settled = settledNow(records, drafted, candidate.configuration)
    const planned = withLifecycles(drafted, settled.records)
    logSettled(log, settled)
    const changes = changesBetween(inForce.planned.apis, planned.apis)
    const labels = new Set(inForce.planned.apis.map(labelOfApi))
    const staying = new Set(planned.apis.map(labelOfApi))
    this.#replaceTls(draft, opened)
    inForce.configured = candidate
    inForce.declared = candidate.applications
    inForce.projects = candidate.apis.projects
    const reworded = changedSequences(inForce.sequences, candidate.sequences)
    inForce.sequences = candidate.sequences
    inForce.signing = signing
    inForce.planned = planned
    const [failures, cause] = await Promise.all([this.deploy(changes), lifecycles.follow(settled.records)])
    // Nobody is told of what has gone any more.
    planner.release(planned)
    const deployed = changes.deployed.map(labelOfApi)
    return {
      outcome: 'in force',
      apis: {
        added: deployed.filter(label => !labels.has(label)),
        changed: deployed.filter(label => labels.has(label)),
        removed: [...labels].filter(label => !staying.has(label)),
        kept: candidate.apis.kept.map(definition => labelOfApi(planned.byDefinition.get(definition)!.plan)),
      },
      sequences: { changed: reworded, kept: candidate.sequences.kept },
      keys: candidate.changed,
      restart: candidate.restart,
      faults: [...candidate.apis.faults, ...candidate.sequences.faults],
      warnings: [...candidate.warnings, ...unkept(cause)],
      failures,
    }
  }

  /**
   * The state of one API: no project is read, and no other API deployed. Not beside a reload. Answers what went wrong
   * with reactors. Throws Refused where it cannot be kept, and nothing has changed.
   */
  async changeLifecycle(definition: ApiDefinition, records: LifecycleRecords): Promise<readonly string[]> {
    this.#refuseAtTheEnd()
    const { inForce, lifecycles } = this.#options
    try {
      await lifecycles.change(records)
    } catch (error) {
      throw error instanceof CannotKeep ? new Refused(`${error.message}: nothing has changed`) : error
    }
    const planned = withLifecycles(inForce.planned, records, [definition])
    if (planned === inForce.planned) return []
    inForce.planned = planned
    return this.#tellThreads({ removed: [], deployed: [planned.byDefinition.get(definition)!.plan] })
  }

  /** Undefined: there is no room. */
  #plan({ configuration, apis, proxies }: Candidate): PlannedApis | undefined {
    const { planner, inForce } = this.#options
    try {
      return planner.plan(
        [...apis.apis, ...tokenApis(configuration, apis.apis)],
        proxies,
        globalCors(configuration),
        inForce.planned,
      )
    } catch (error) {
      planner.release(inForce.planned)
      if (error instanceof RowsUsedUp) return undefined
      throw error
    }
  }

  #replaceTls(draft: TlsDraft | null | undefined, opened: TlsMaterial | null | undefined): void {
    const { inForce } = this.#options
    if (opened) inForce.tls = opened
    else if (draft) inForce.tls!.adopt(draft)
    else if (draft === null) {
      inForce.tls?.stop()
      inForce.tls = null
    }
  }

  /** What is in force, to everybody whom it concerns. Answers what went wrong. */
  async deploy(changes: ApiChanges): Promise<readonly string[]> {
    const { inForce, desk, log } = this.#options
    const { configured, planned } = inForce
    log.level = configured.configuration.logging.level
    desk.put(planned.apis)
    const [failures] = await Promise.all([this.#tellThreads(changes), desk.check(() => inForce.live.tlsClients)])
    return failures
  }

  async #tellThreads(changes: ApiChanges): Promise<readonly string[]> {
    const { inForce, pool, tellAuthority } = this.#options
    const deployed = pool.deploy(inForce.live, inForce.planned.apis, changes)
    const [{ refusals, late }, cause] = await Promise.all([deployed, tellAuthority()])
    const waiting = late.map(reactor => `reactor ${reactor} has not answered, and takes it over when it can`)
    return [...refusals, ...waiting, ...(cause === '' ? [] : [`the authority: ${cause}`])]
  }
}

/** Everything stays as it was. */
function refusal({ faults, apis, sequences, restart, warnings }: Candidate, more: readonly Fault[]): ReloadAnswer {
  return {
    outcome: 'refused',
    apis: NO_APIS_CHANGED,
    sequences: NO_SEQUENCES_CHANGED,
    keys: [],
    restart,
    faults: [...faults, ...more, ...apis.faults, ...sequences.faults],
    warnings,
    failures: [],
  }
}

async function completedIn(draft: TlsDraft, { dataDir }: Place): Promise<TlsDraft> {
  const { completed } = await import('../tls/tls-material.ts')
  return completed(draft, dataDir)
}

function withoutHome({ home }: Place): readonly Fault[] {
  if (statSync(home, { throwIfNoEntry: false })?.isDirectory()) return []
  return [{ where: labelOf(home), key: '', given: '', expected: 'there is no such folder any more', remedy: '' }]
}

function tooMany({ home }: Place): Fault {
  const expected = 'the tables of this gateway have no room for so many more endpoints'
  return { where: labelOf(home), key: '', given: '', expected, remedy: 'restart it: they are made anew then' }
}
