/**
 * The APIs of a home folder, `apis/<Name>/api.yaml`, in the layout of exported projects. One that is wrong is left out
 * with every fault it has, and never stops the others.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { apiPaths } from './api-paths.ts'
import { contextFault, type Objection, versionFault } from './api-syntax.ts'
import { readEndpoints } from './endpoint-config.ts'
import type { EndpointSettings } from './endpoint-settings.ts'
import type { Fault } from './fault.ts'
import { labelOf, readSource } from './source-file.ts'
import { YamlFile } from './yaml-file.ts'

/** Plain data, handed to the reactors. */
export interface ApiDefinition {
  readonly name: string
  /** `/echo`: no slash at the end; may hold a segment `{version}`. */
  readonly context: string
  readonly version: string
  readonly isDefaultVersion: boolean
  readonly endpoints: EndpointsDefinition
}

/** Where an API is answered, as its project says. */
export interface EndpointsDefinition {
  readonly kind: 'single' | 'failover' | 'load_balance'
  readonly algorithm: 'round_robin' | 'weighted' | 'least_pending'
  /** Of load balancing: one that fails hands over to the next. */
  readonly failsOver: boolean
  /** One for `single`. In the order in which they are tried. */
  readonly endpoints: readonly EndpointDefinition[]
}

export interface EndpointDefinition {
  /** http, https, ws or wss. */
  readonly url: string
  readonly settings: EndpointSettings
}

interface ApiDefinitions {
  readonly apis: readonly ApiDefinition[]
  readonly faults: readonly Fault[]
  /** What is accepted and not acted on. */
  readonly warnings: readonly Fault[]
}

export function loadApiDefinitions(home: string): ApiDefinitions {
  const folder = join(home, 'apis')
  const apis: ApiDefinition[] = []
  const faults: Fault[] = []
  const warnings: Fault[] = []
  const taken = new Map<string, Definition>()
  for (const name of namesIn(folder)) {
    const reading = readApi(join(folder, name))
    const { definition } = reading
    if (definition !== undefined && claimPaths(definition, taken)) apis.push(definition.api)
    faults.push(...reading.faults)
    warnings.push(...reading.warnings)
  }
  return { apis, faults, warnings }
}

/** Sorted, so that of two APIs that clash the same one is left out on every machine. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter(name => !name.startsWith('.'))
      .sort()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

interface Definition {
  readonly api: ApiDefinition
  readonly file: YamlFile
}

interface Reading {
  readonly definition: Definition | undefined
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

function readApi(project: string): Reading {
  const source = readSource(join(project, 'api.yaml'))
  if (source === undefined) return { definition: undefined, faults: missing(project), warnings: [] }
  if (source.fault !== undefined) return { definition: undefined, faults: [source.fault], warnings: [] }
  const file = new YamlFile(source.label, source.text)
  const api = file.faults.length > 0 ? undefined : readDefinition(file)
  const definition = api === undefined ? undefined : { api, file }
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
  return { name, context, version, isDefaultVersion, endpoints }
}

/** The text at a path, or '' with a fault noted. */
function checked(file: YamlFile, path: readonly string[], objection: (text: string) => Objection | undefined): string {
  const text = file.text(path)
  if (text === undefined) return ''
  const [expected, remedy, shown] = objection(text) ?? []
  if (expected !== undefined) file.object(path, shown ?? text, expected, remedy ?? '')
  return text
}

/** False, with a fault noted, when another API has one of the paths already. */
function claimPaths({ api, file }: Definition, taken: Map<string, Definition>): boolean {
  const paths = apiPaths(api.context, api.version, api.isDefaultVersion)
  const clashing = paths.find(path => taken.has(path))
  if (clashing === undefined) {
    for (const path of paths) taken.set(path, { api, file })
    return true
  }
  const other = taken.get(clashing)!
  const place = other.file.where(['data', 'context'])
  const expected = `${clashing} is already a path of ${other.api.name} ${other.api.version} (${place})`
  const remedy = 'give one of them another context or version, or make only one the default version'
  file.object(['data', 'context'], api.context, expected, remedy)
  return false
}
