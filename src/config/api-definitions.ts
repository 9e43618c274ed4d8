/**
 * The APIs of a home folder: exported projects, `apis/<Name>/api.yaml`, and bare OpenAPI documents, `apis/<name>.yaml`.
 * One that is wrong is left out with every fault it has, and never stops the others.
 */
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiDefinition } from './api-definition.ts'
import { apiPaths } from './api-paths.ts'
import { PROJECT_FILES, type ProjectPaths, type Reading, readDocument, readProject } from './api-project.ts'
import { type Fault, show } from './fault.ts'
import { type DeclaredApi, EVERYWHERE, type GatewayPlace, type Placement, placed } from './gateway-environments.ts'
import { labelOf } from './source-file.ts'

/** An API of this gateway. */
interface Placed {
  readonly api: ApiDefinition
  readonly declared: DeclaredApi
}

/** What the home holds, for a start or a reload. */
export interface ApiDefinitions {
  readonly apis: readonly ApiDefinition[]
  /** The same by the name of their project's folder, or of their document. */
  readonly projects: ReadonlyMap<string, Placed>
  /** Those of them that stay as they were because their project is faulty now. */
  readonly kept: readonly ApiDefinition[]
  /** Those that are for other gateways, and how that shows. */
  readonly leftOut: readonly Fault[]
  readonly faults: readonly Fault[]
  /** What is accepted and not acted on. */
  readonly warnings: readonly Fault[]
}

interface Cached extends Reading {
  /** What the files looked like; '' where that is no proof of what is in them. */
  readonly signature: string
}

/** One project or document, and what becomes of it here. */
interface Judged {
  readonly name: string
  readonly reading: Reading
  /** Null where it cannot be read. */
  readonly placement: Placement | null
}

/** Why an API cannot be deployed, although its project is right. */
type Objector = (api: ApiDefinition) => Fault | undefined

/**
 * File times are as coarse as the ticks of the kernel: of a file that changed this short a time before it was read, a
 * later change may look the same.
 */
const TICK_MS = 50

/** The projects of one home. Of those whose files have not changed nothing is read again. */
export class ApiProjects {
  readonly #folder: string
  readonly #isThorough: boolean
  #cache: ReadonlyMap<string, Cached> = new Map()

  /** `isThorough`: documents are judged as a whole, also where nothing of them is acted on. */
  constructor(home: string, isThorough = false) {
    this.#folder = join(home, 'apis')
    this.#isThorough = isThorough
  }

  /** `inForce`: what projects that are faulty now go on with. */
  load(
    objectTo: Objector = () => undefined,
    inForce: ApiDefinitions['projects'] = new Map(),
    place: GatewayPlace = EVERYWHERE,
  ): ApiDefinitions {
    const cache = new Map<string, Cached>()
    const projects = new Map<string, Placed>()
    const kept: ApiDefinition[] = []
    const listing = entriesIn(this.#folder)
    const taken = new Map<string, Placed>()
    const names = listing.entries ?? [...inForce.keys()].map(name => ({ name, isDocument: false }))
    const judged = names.map((entry): Judged => {
      const reading = listing.entries === undefined ? NOTHING : this.#read(entry, cache)
      const placement = reading.declared === undefined ? null : placed(reading.declared, place)
      return { name: entry.name, reading, placement }
    })
    const faults: Fault[] = [...listing.faults]
    for (const { name, reading, placement } of holdersFirst(judged, inForce)) {
      faults.push(...reading.faults, ...(placement?.faults ?? []))
      const isElsewhere = placement !== null && placement.leftOut !== undefined
      const now = placement?.api === undefined ? undefined : { api: placement.api, declared: reading.declared! }
      const fault = now === undefined ? undefined : obstacle(now, taken, objectTo)
      if (fault !== undefined) faults.push(fault)
      const isRight = now !== undefined && fault === undefined
      const chosen = isRight ? now : isElsewhere ? undefined : goingOn(inForce.get(name), place)
      if (chosen === undefined || (!isRight && obstacle(chosen, taken, objectTo) !== undefined)) continue
      if (!isRight) kept.push(chosen.api)
      projects.set(name, chosen)
      for (const path of addressesOf(chosen)) taken.set(path, chosen)
    }
    this.#cache = cache
    const sorted = new Map(
      judged.flatMap(({ name }) => (projects.has(name) ? [[name, projects.get(name)!] as const] : [])),
    )
    return {
      apis: [...sorted.values()].map(({ api }) => api),
      projects: sorted,
      kept,
      leftOut: judged.flatMap(({ placement }) => placement?.leftOut ?? []),
      faults,
      warnings: [
        ...judged.flatMap(({ reading, placement }) => [...reading.warnings, ...(placement?.warnings ?? [])]),
        ...sharedNames([...sorted.values()]),
      ],
    }
  }

  #read({ name, isDocument }: Entry, cache: Map<string, Cached>): Reading {
    const path = join(this.#folder, name)
    const found = isDocument ? null : projectFiles(path)
    const signature = found === null ? signatureOf(path) : found.signature
    const before = this.#cache.get(name)
    const isKnown = before !== undefined && signature !== '' && before.signature === signature
    const anew = (): Reading | undefined => {
      return found === null ? readDocument(path) : readProject(found.paths, this.#isThorough)
    }
    if (isKnown) {
      cache.set(name, before)
      return before
    }
    const reading = anew() ?? { ...NOTHING, faults: missing(path) }
    cache.set(name, { ...reading, signature: reading.readsOutside ? '' : signature })
    return reading
  }
}

const NOTHING: Reading = { declared: undefined, faults: [], warnings: [], readsOutside: false }

/** What was in force of a project, where this gateway would have it now. */
function goingOn(before: Placed | undefined, place: GatewayPlace): Placed | undefined {
  if (before === undefined) return undefined
  const { declared } = before
  const { api } = placed(declared, place)
  return api === undefined ? undefined : { api, declared }
}

const NOT_THERE = '-'

/** Its files, and what they look like; '' where the times of one do not say what is in it. */
function projectFiles(project: string): { readonly paths: ProjectPaths; readonly signature: string } {
  const signatures: string[] = []
  const first = (names: readonly string[]): string | undefined => {
    for (const name of names) {
      const path = `${project}/${name}`
      const signature = signatureOf(path)
      if (signature === NOT_THERE) continue
      signatures.push(signature === '' ? '' : `${name} ${signature}`)
      return path
    }
    return undefined
  }
  const { api, document, deployments } = PROJECT_FILES
  const paths = { api: first(api), document: first(document), deployments: first(deployments) }
  return { paths, signature: signatures.length === 0 || signatures.includes('') ? '' : signatures.join(' ') }
}

/** '' for a file that is too young for its times to say what is in it. */
function signatureOf(path: string): string {
  try {
    const status = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (status === undefined) return NOT_THERE
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = status
    return Date.now() - Number(ctimeMs) < TICK_MS ? '' : [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch {
    // Whatever is wrong with it shows when it is read.
    return ''
  }
}

interface Entry {
  readonly name: string
  /** A file that may be an OpenAPI document; otherwise a project. */
  readonly isDocument: boolean
}

/** Sorted, so that of two APIs that clash the same one is left out on every machine. None: nobody can tell. */
function entriesIn(folder: string): { readonly entries?: readonly Entry[]; readonly faults: readonly Fault[] } {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.'))
      .map(entry => ({ name: entry.name, isDocument: isDocument(entry) }))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
    return { entries, faults: [] }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { entries: [], faults: [] }
    const expected = `cannot be read: ${code ?? message}`
    return { faults: [{ where: labelOf(folder), key: '', given: '', expected, remedy: 'make it readable' }] }
  }
}

/** What was unpacked may be a link to it. */
function isDocument(entry: Dirent): boolean {
  if (!/\.(?:ya?ml|json)$/i.test(entry.name) || entry.isDirectory()) return false
  if (!entry.isSymbolicLink()) return true
  try {
    return !statSync(join(entry.parentPath, entry.name)).isDirectory()
  } catch {
    // Says so itself when it is read.
    return true
  }
}

function missing(project: string): readonly Fault[] {
  const isFolder = statSync(project, { throwIfNoEntry: false })?.isDirectory() ?? false
  if (!isFolder && !project.endsWith('.zip')) return []
  const expected = isFolder ? 'there is no api.yaml in it' : 'is an archive'
  const remedy = isFolder ? 'add one, or move the folder out of apis/' : 'unpack it into a folder'
  return [{ where: labelOf(project), key: '', given: '', expected, remedy }]
}

/** Where it is reached: host, '' for every one, and path. */
function addressesOf({ api: { context, version, isDefaultVersion, hosts } }: Placed): readonly string[] {
  const paths = apiPaths(context, version, isDefaultVersion)
  return hosts.length === 0 ? paths : hosts.flatMap(host => paths.map(path => `${host}${path}`))
}

/** Applications subscribe to a name and a version: whoever may use one of two that share both may use the other. */
function sharedNames(placed: readonly Placed[]): readonly Fault[] {
  const first = new Map<string, Placed>()
  return placed.flatMap(one => {
    const subject = `${one.api.name}:${one.api.version}`
    const other = first.get(subject)
    if (other === undefined) {
      first.set(subject, one)
      return []
    }
    const expected = `${other.declared.where} is ${subject} as well, and subscriptions to one are good for both`
    const remedy = 'give one of them another name or version'
    return [{ where: one.declared.where, key: 'data.name', given: show(one.api.name), expected, remedy }]
  })
}

/** A project that keeps the paths it has in force loses none of them to one that comes or changes. */
function holdersFirst(judged: readonly Judged[], inForce: ApiDefinitions['projects']): readonly Judged[] {
  const holds = ({ name, placement }: Judged): boolean => {
    const held = inForce.get(name)
    if (held === undefined || placement === null || placement.api === undefined) return held !== undefined
    return addressesOf(held).join() === addressesOf({ ...held, api: placement.api }).join()
  }
  return [...judged.filter(holds), ...judged.filter(one => !holds(one))]
}

/** Why it cannot be deployed beside those that have their paths already. */
function obstacle(one: Placed, taken: ReadonlyMap<string, Placed>, objectTo: Objector): Fault | undefined {
  const clashing = addressesOf(one).find(address => taken.has(address))
  if (clashing === undefined) return objectTo(one.api)
  const { api, declared } = taken.get(clashing)!
  return {
    where: one.declared.where,
    key: 'data.context',
    given: show(one.api.context),
    expected: `${clashing} is already a path of ${api.name} ${api.version} (${declared.where})`,
    remedy: 'give one of them another context or version, or make only one the default version',
  }
}
