/**
 * The APIs of a home folder, `apis/<Name>/api.yaml`, in the layout of exported projects. One that is wrong is left out
 * with every fault it has, and never stops the others.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type ApiDefinition, NO_ENDPOINTS } from './api-definition.ts'
import { apiPaths } from './api-paths.ts'
import { contextFault, type Objection, versionFault } from './api-syntax.ts'
import { readEndpoints } from './endpoint-config.ts'
import { type Fault, show } from './fault.ts'
import { labelOf, readSource } from './source-file.ts'
import { YamlFile } from './yaml-file.ts'

/** A definition, and what tells it apart from others in faults. */
interface Placed {
  readonly api: ApiDefinition
  /** File and line of its context. */
  readonly where: string
}

/** What the home holds, for a start or a reload. */
export interface ApiDefinitions {
  readonly apis: readonly ApiDefinition[]
  /** The same by the name of their project folder. */
  readonly projects: ReadonlyMap<string, Placed>
  /** Those of them that stay as they were because their project is faulty now. */
  readonly kept: readonly ApiDefinition[]
  readonly faults: readonly Fault[]
  /** What is accepted and not acted on. */
  readonly warnings: readonly Fault[]
}

interface Reading {
  readonly definition: Placed | undefined
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

interface Cached extends Reading {
  /** What the file looked like; '' where that is no proof of what is in it. */
  readonly signature: string
}

/** Why an API cannot be deployed, although its project is right. */
type Objector = (api: ApiDefinition) => Fault | undefined

/**
 * File times are as coarse as the ticks of the kernel: of a file that changed this short a time before it was read, a
 * later change may look the same.
 */
const TICK_MS = 50

/** The projects of one home. Of those whose file has not changed nothing is read again. */
export class ApiProjects {
  readonly #folder: string
  #cache: ReadonlyMap<string, Cached> = new Map()

  constructor(home: string) {
    this.#folder = join(home, 'apis')
  }

  /** `inForce`: what projects that are faulty now go on with. */
  load(objectTo: Objector = () => undefined, inForce: ApiDefinitions['projects'] = new Map()): ApiDefinitions {
    const cache = new Map<string, Cached>()
    const projects = new Map<string, Placed>()
    const kept: ApiDefinition[] = []
    const listing = namesIn(this.#folder)
    const faults: Fault[] = [...listing.faults]
    const warnings: Fault[] = []
    const taken = new Map<string, Placed>()
    const readings = (listing.names ?? [...inForce.keys()]).map((name): readonly [string, Reading] => {
      return [name, listing.names === undefined ? NOTHING : this.#read(name, cache)]
    })
    for (const [name, reading] of holdersFirst(readings, inForce)) {
      faults.push(...reading.faults)
      warnings.push(...reading.warnings)
      const { definition } = reading
      const fault = definition === undefined ? undefined : obstacle(definition, taken, objectTo)
      if (fault !== undefined) faults.push(fault)
      const isRight = definition !== undefined && fault === undefined
      const chosen = isRight ? definition : inForce.get(name)
      if (chosen === undefined || (!isRight && obstacle(chosen, taken, objectTo) !== undefined)) continue
      if (!isRight) kept.push(chosen.api)
      projects.set(name, chosen)
      for (const path of pathsOf(chosen)) taken.set(path, chosen)
    }
    this.#cache = cache
    const sorted = new Map(
      readings.flatMap(([name]) => (projects.has(name) ? [[name, projects.get(name)!] as const] : [])),
    )
    return { apis: [...sorted.values()].map(({ api }) => api), projects: sorted, kept, faults, warnings }
  }

  #read(name: string, cache: Map<string, Cached>): Reading {
    const project = join(this.#folder, name)
    const signature = signatureOf(join(project, 'api.yaml'))
    const before = this.#cache.get(name)
    const reading =
      before !== undefined && signature !== '' && before.signature === signature
        ? before
        : { ...readApi(project), signature }
    cache.set(name, reading)
    return reading
  }
}

const NOTHING: Reading = { definition: undefined, faults: [], warnings: [] }

/** '' for no file, and for one that is too young for its times to say what is in it. */
function signatureOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = statSync(path, { bigint: true })
    return Date.now() - Number(ctimeMs) < TICK_MS ? '' : [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch {
    // Whatever is wrong with it shows when it is read.
    return ''
  }
}

/** Sorted, so that of two APIs that clash the same one is left out on every machine. No names: nobody can tell. */
function namesIn(folder: string): { readonly names?: readonly string[]; readonly faults: readonly Fault[] } {
  try {
    const names = readdirSync(folder)
      .filter(name => !name.startsWith('.'))
      .sort()
    return { names, faults: [] }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { names: [], faults: [] }
    const expected = `cannot be read: ${code ?? message}`
    return { faults: [{ where: labelOf(folder), key: '', given: '', expected, remedy: 'make it readable' }] }
  }
}

function readApi(project: string): Reading {
  const source = readSource(join(project, 'api.yaml'))
  if (source === undefined) return { definition: undefined, faults: missing(project), warnings: [] }
  if (source.fault !== undefined) return { definition: undefined, faults: [source.fault], warnings: [] }
  const file = new YamlFile(source.label, source.text)
  const api = file.faults.length > 0 ? undefined : readDefinition(file)
  const definition = api === undefined ? undefined : { api, where: file.where(['data', 'context']) }
  return { definition, faults: file.faults, warnings: file.warnings }
}

function missing(project: string): readonly Fault[] {
  const isFolder = statSync(project, { throwIfNoEntry: false })?.isDirectory() ?? false
  if (!isFolder && !project.endsWith('.zip')) return []
  const expected = isFolder ? 'there is no api.yaml in it' : 'is an archive'
  const remedy = isFolder ? 'add one, or move the folder out of apis/' : 'unpack it into a folder'
  return [{ where: labelOf(project), key: '', given: '', expected, remedy }]
}

function readDefinition(file: YamlFile): ApiDefinition | undefined {
  checked(file, ['type'], type => (type === 'api' ? undefined : ['expected api', 'other project types come later']))
  checked(file, ['version'], version =>
    /^v4(\.\d+)*$/.test(version)
      ? undefined
      : ['expected v4, v4.1 and so on', 'export the project again from a 4.x release'],
  )
  const name = checked(file, ['data', 'name'], it => (it === '' ? ['expected a name', 'give the API one'] : undefined))
  const context = checked(file, ['data', 'context'], contextFault)
  const version = checked(file, ['data', 'version'], versionFault)
  const isDefaultVersion = file.flag(['data', 'isDefaultVersion'], false)
  const endpoints = readEndpoints(file)
  if (file.faults.length > 0 || endpoints === undefined) return undefined
  if (isDefaultVersion && apiPaths(context, version, true).includes('')) {
    const remedy = 'put a segment beside {version}'
    file.object(['data', 'context'], context, 'the default version would be reached under every path', remedy)
    return undefined
  }
  return {
    name,
    context,
    version,
    isDefaultVersion,
    lifecycle: 'PUBLISHED',
    transports: ['http', 'https'],
    hosts: [],
    keyType: 'PRODUCTION',
    isAi: false,
    cors: null,
    resources: [],
    endpoints,
    sandbox: NO_ENDPOINTS,
  }
}

/** The text at a path, or '' with a fault noted. */
function checked(file: YamlFile, path: readonly string[], objection: (text: string) => Objection | undefined): string {
  const text = file.text(path)
  if (text === undefined) return ''
  const [expected, remedy, shown] = objection(text) ?? []
  if (expected !== undefined) file.object(path, shown ?? text, expected, remedy ?? '')
  return text
}

function pathsOf({ api: { context, version, isDefaultVersion } }: Placed): readonly string[] {
  return apiPaths(context, version, isDefaultVersion)
}

/** A project that keeps the paths it has in force loses none of them to one that comes or changes. */
function holdersFirst(
  readings: readonly (readonly [name: string, reading: Reading])[],
  inForce: ApiDefinitions['projects'],
): typeof readings {
  const holds = ([name, { definition }]: (typeof readings)[number]): boolean => {
    const held = inForce.get(name)
    return held !== undefined && (definition === undefined || pathsOf(held).join() === pathsOf(definition).join())
  }
  return [...readings.filter(holds), ...readings.filter(reading => !holds(reading))]
}

/** Why it cannot be deployed beside those that have their paths already. */
function obstacle(definition: Placed, taken: ReadonlyMap<string, Placed>, objectTo: Objector): Fault | undefined {
  const clashing = pathsOf(definition).find(path => taken.has(path))
  if (clashing === undefined) return objectTo(definition.api)
  const { api, where } = taken.get(clashing)!
  return {
    where: definition.where,
    key: 'data.context',
    given: show(definition.api.context),
    expected: `${clashing} is already a path of ${api.name} ${api.version} (${where})`,
    remedy: 'give one of them another context or version, or make only one the default version',
  }
}
