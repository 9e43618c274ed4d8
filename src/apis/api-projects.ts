/**
 * The APIs of a home: exported projects, `apis/<Name>/api.yaml`, and bare OpenAPI documents, `apis/<name>.yaml`. A
 * project with errors is not deployed, reports all of them, and never stops the others.
 */
import { join } from 'node:path'
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'
import { TimeSlices } from '../runtime/time-slices.ts'
import type { ApiDefinition } from './api-definition.ts'
import { apiPaths, pathKey } from './api-paths.ts'

import { type ParsedProject, withMediation } from './api-project.ts'
import {
  ALL_ENVIRONMENTS,
  type DeclaredApi,
  type GatewayEnvironment,
  type Placement,
  placeApi,
} from './gateway-environments.ts'
import {
  type Entry,
  findFiles,
  type FoundFiles,
  type Listing,
  listEntries,
  type ReadingJob,
  type ReadingThread,
  readJob,
  UNREAD,
} from './project-reading.ts'

/** An API that this gateway deploys. */
interface DeployedProject {
  readonly api: ApiDefinition
  readonly declared: DeclaredApi
}

/** The APIs of a home at a start or a reload. */
export interface LoadedApis {
  readonly apis: readonly ApiDefinition[]
  /** The projects of `apis`, by their folder or the file of their document. */
  readonly projects: ReadonlyMap<string, DeployedProject>
  /** The APIs of `apis` that stay as they were deployed before, because their project has errors now. */
  readonly kept: readonly ApiDefinition[]
  /** `name:version` of every API of the home, also of those that belong to other gateways. */
  readonly names: ReadonlySet<string>
  /** Why some APIs belong to other gateways. */
  readonly skipped: readonly Diagnostic[]
  readonly errors: readonly Diagnostic[]
  /** Findings that keep no API from being deployed, such as values without effect. */
  readonly warnings: readonly Diagnostic[]
}

interface CachedProject extends ParsedProject {
  /** Signature of the files; '' if it does not prove their content. */
  readonly signature: string
}

interface Candidate {
  /** Folder of the project, or file of the document. */
  readonly name: string
  readonly parsed: ParsedProject
  /** Null if the project has errors. */
  readonly placement: Placement | null
}

/** Says why an API cannot be deployed although its project has no error. */
type Check = (api: ApiDefinition) => Diagnostic | undefined

/** Content of the folder of projects when it was read. */
interface ReadProjects {
  readonly listing: Listing
  readonly projects: ReadonlyMap<string, CachedProject>
}

/** A project that is to be read. */
interface ChangedProject extends FoundFiles {
  readonly name: string
}

/** Reads the projects of one home; a project whose files have not changed is not read again. */
export class ApiProjects {
  readonly #folder: string
  readonly #isThorough: boolean
  #cache: ReadonlyMap<string, CachedProject> = new Map()

  /** `isThorough`: validates documents even if nothing in them has an effect. */
  constructor(home: string, isThorough = false) {
    this.#folder = join(home, 'apis')
    this.#isThorough = isThorough
  }

  /**
   * Reads what has changed, in time slices, and in `thread` if that takes long. The result is for the next `load`.
   * `thread`: undefined if nothing waits for this thread.
   */
  async read(thread?: ReadingThread): Promise<ReadProjects> {
    const listing = listEntries(this.#folder)
    const projects = new Map<string, CachedProject>()
    const changed: ChangedProject[] = []
    const slices = new TimeSlices()
    for (const entry of listing.entries ?? []) {
      if (slices.isOver) await slices.next()
      this.#look(entry, projects, changed)
    }
    if (thread !== undefined && isLong(changed, thread)) {
      const results = await thread.read(changed.map(one => this.#jobOf(one)))
      for (const [at, one] of changed.entries()) keep(projects, one, results[at]!)
      return { listing, projects }
    }
    for (const one of changed) {
      if (slices.isOver) await slices.next()
      keep(projects, one, await withMediation(readJob(this.#jobOf(one))))
    }
    return { listing, projects }
  }

  /** Reads what has changed in one step, for a small folder without sequences and policies. */
  readNow(): ReadProjects {
    const listing = listEntries(this.#folder)
    const projects = new Map<string, CachedProject>()
    const changed: ChangedProject[] = []
    for (const entry of listing.entries ?? []) this.#look(entry, projects, changed)
    for (const one of changed) {
      const parsed = readJob(this.#jobOf(one))
      if (parsed.mediation !== null) throw new Error(`${one.name} has sequences or policies: read() parses them`)
      keep(projects, one, parsed)
    }
    return { listing, projects }
  }

  #look({ name, isDocument }: Entry, projects: Map<string, CachedProject>, changed: ChangedProject[]): void {
    const found = findFiles(join(this.#folder, name), isDocument)
    const cached = this.#cache.get(name)
    const isSame = cached !== undefined && found.signature !== '' && cached.signature === found.signature
    if (isSame) projects.set(name, cached)
    else changed.push({ ...found, name })
  }

  #jobOf({ name, files }: ChangedProject): ReadingJob {
    return { path: join(this.#folder, name), files, isThorough: this.#isThorough }
  }

  /** `active`: the deployed projects; one of them with errors now keeps its deployed API. */
  load(
    check: Check = () => undefined,
    active: LoadedApis['projects'] = new Map(),
    environment: GatewayEnvironment = ALL_ENVIRONMENTS,
    read: ReadProjects = this.readNow(),
  ): LoadedApis {
    const deployed = new Map<string, DeployedProject>()
    const kept: ApiDefinition[] = []
    const { listing } = read
    const owners = new Map<string, DeployedProject>()
    const entries = listing.entries ?? [...active.keys()].map(name => ({ name, isDocument: false }))
    const candidates = entries.map((entry): Candidate => {
      const parsed = read.projects.get(entry.name) ?? UNREAD
      const placement = parsed.declared === undefined ? null : placeApi(parsed.declared, environment)
      return { name: entry.name, parsed, placement }
    })
    const errors: Diagnostic[] = listing.isGone && active.size === 0 ? [] : [...listing.errors]
    for (const { name, parsed, placement } of pathHoldersFirst(candidates, active)) {
      errors.push(...parsed.errors, ...(placement?.errors ?? []))
      const isElsewhere = placement?.skipped !== undefined
      const current = placement?.api === undefined ? undefined : { api: placement.api, declared: parsed.declared! }
      const error = current === undefined ? undefined : conflict(current, owners, check)
      if (error !== undefined) errors.push(error)
      const isValid = current !== undefined && error === undefined
      const chosen = isValid ? current : isElsewhere ? undefined : previous(active.get(name), environment)
      if (chosen === undefined || (!isValid && conflict(chosen, owners, check) !== undefined)) continue
      if (!isValid) kept.push(chosen.api)
      deployed.set(name, chosen)
      for (const path of hostPaths(chosen)) owners.set(path, chosen)
    }
    this.#cache = read.projects
    const projects = new Map(
      candidates.flatMap(({ name }) => (deployed.has(name) ? [[name, deployed.get(name)!]] : [])),
    )
    const all = [...projects.values()]
    const known = [...candidates.flatMap(({ parsed }) => parsed.declared?.api ?? []), ...kept]
    return {
      apis: all.map(({ api }) => api),
      projects,
      kept,
      names: new Set(known.map(({ name, version }) => `${name}:${version}`)),
      skipped: candidates.flatMap(({ placement }) => placement?.skipped ?? []),
      errors,
      warnings: [
        ...candidates.flatMap(({ parsed, placement }) => [...parsed.warnings, ...(placement?.warnings ?? [])]),
        ...sharedNames(all),
      ],
    }
  }
}

function keep(projects: Map<string, CachedProject>, { name, signature }: ChangedProject, parsed: ParsedProject): void {
  projects.set(name, { ...parsed, signature: parsed.hasExternalValues ? '' : signature })
}

function isLong(changed: readonly ChangedProject[], { bytesMin, documentBytesMin }: ReadingThread): boolean {
  const sum = (key: 'bytes' | 'documentBytes') => changed.reduce((bytes, one) => bytes + one[key], 0)
  return sum('bytes') >= bytesMin || sum('documentBytes') >= documentBytesMin
}

// ---- paths and names ------------------------------------------------------------------------------------------------

/** Host (empty for every host) and path of each address of an API; variables are alike. */
function hostPaths({ api }: DeployedProject): readonly string[] {
  const { context, version, isDefaultVersion, isUnversioned, hosts } = api
  const paths = apiPaths(context, version, isDefaultVersion, isUnversioned).map(pathKey)
  return hosts.length === 0 ? paths : hosts.flatMap(host => paths.map(path => `${host}${path}`))
}

/** The deployed project in the current environment; undefined if the API now belongs to other gateways. */
function previous(project: DeployedProject | undefined, environment: GatewayEnvironment): DeployedProject | undefined {
  if (project === undefined) return undefined
  const { declared } = project
  const { api } = placeApi(declared, environment)
  return api === undefined ? undefined : { api, declared }
}

/** Deployed projects that keep their paths come first, so that no new or changed project takes these paths. */
function pathHoldersFirst(candidates: readonly Candidate[], active: LoadedApis['projects']): readonly Candidate[] {
  const keepsPaths = ({ name, placement }: Candidate): boolean => {
    const project = active.get(name)
    if (project === undefined || placement?.api === undefined) return project !== undefined
    return hostPaths(project).join() === hostPaths({ ...project, api: placement.api }).join()
  }
  return [...candidates.filter(keepsPaths), ...candidates.filter(one => !keepsPaths(one))]
}

/** Why a project cannot be deployed beside the owners of paths. */
function conflict(
  project: DeployedProject,
  owners: ReadonlyMap<string, DeployedProject>,
  check: Check,
): Diagnostic | undefined {
  const shared = hostPaths(project).find(path => owners.has(path))
  if (shared === undefined) return check(project.api)
  const { api, declared } = owners.get(shared)!
  return {
    where: project.declared.where,
    key: 'data.context',
    given: formatValue(project.api.context),
    expected: `${shared} is already a path of ${api.name} ${api.version} (${declared.where})`,
    hint: 'give one of them another context or version, or make only one the default version',
  }
}

/** Warns of APIs with one name and version: subscriptions name these two, so each is valid for both APIs. */
function sharedNames(projects: readonly DeployedProject[]): readonly Diagnostic[] {
  const first = new Map<string, DeployedProject>()
  return projects.flatMap(project => {
    const name = `${project.api.name}:${project.api.version}`
    const other = first.get(name)
    if (other === undefined) {
      first.set(name, project)
      return []
    }
    const expected = `${other.declared.where} is ${name} as well, and subscriptions to one are valid for both`
    const hint = 'give one of them another name or version'
    return [{ where: project.declared.where, key: 'data.name', given: formatValue(project.api.name), expected, hint }]
  })
}
