/**
 * One exported API project: a folder with `api.yaml`, beside it what says where it is deployed, and the OpenAPI
 * document in `Definitions`. What `api.yaml` says goes before what the document says.
 */
import { dirname } from 'node:path'
import type { ApiDefinition, LifecycleState, Transport } from './api-definition.ts'
import { readAccess } from './api-access.ts'
import { readCors } from './api-cors.ts'
import { type Operations, readOperations } from './api-operations.ts'
import { apiPaths } from './api-paths.ts'
import { contextFault, type Objection, versionFault } from './api-syntax.ts'
import { readClientCertificates } from './client-certificates.ts'
import { readDeployments } from './deployment-environments.ts'
import { type BothEndpoints, readEndpoints } from './endpoint-config.ts'
import { readEndpointSecurity } from './endpoint-security.ts'
import { type Fault, fewOf } from './fault.ts'
import type { DeclaredApi } from './gateway-environments.ts'
import { LIFECYCLE_STATES } from './lifecycle.ts'
import { OpenApiDocument } from './open-api-document.ts'
import { extensionEndpoints } from './open-api-endpoints.ts'
import { documentOperations, hasSameOperations, requiredOperations } from './open-api-operations.ts'
import { apiOfDocument } from './open-api-api.ts'
import { readSource } from './source-file.ts'
import { type Path, YamlFile } from './yaml-file.ts'

/** What a project or a document says, with every fault it has. */
export interface Reading {
  readonly declared: DeclaredApi | undefined
  readonly faults: readonly Fault[]
  /** What is accepted and not acted on. */
  readonly warnings: readonly Fault[]
  /** It depends on more than the files of the project that are looked at: that they have not changed says nothing. */
  readonly readsOutside: boolean
}

/** Names of what a project may hold, and in which of several forms it is looked for first. */
export const PROJECT_FILES = {
  api: ['api.yaml', 'api.yml', 'api.json'],
  document: ['Definitions/swagger.yaml', 'Definitions/swagger.yml', 'Definitions/swagger.json'],
  deployments: ['deployment_environments.yaml', 'deployment_environments.json'],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** Paths of those that are there. */
export type ProjectPaths = Readonly<Record<keyof typeof PROJECT_FILES, string | undefined>>

/** Undefined where there is no such file. Faults of reading it are its own. */
function readFile(path: string | undefined, faults: Fault[]): YamlFile | undefined {
  const source = path === undefined ? undefined : readSource(path)
  if (source?.fault !== undefined) faults.push(source.fault)
  return source === undefined || source.fault !== undefined ? undefined : new YamlFile(source.label, source.text)
}

/**
 * Undefined where there is no `api.yaml`. `isThorough`: the document is judged as a whole also where nothing of it is
 * acted on.
 */
export function readProject(paths: ProjectPaths, isThorough: boolean): Reading | undefined {
  const faults: Fault[] = []
  const file = readFile(paths.api, faults)
  if (file === undefined) return faults.length === 0 ? undefined : unread(faults)
  const documentFile = readFile(paths.document, faults)
  const placesFile = readFile(paths.deployments, faults)
  const document = documentFile === undefined ? undefined : OpenApiDocument.read(documentFile)
  const folder = dirname(paths.api!)
  const known = readClientCertificates(folder)
  faults.push(...known.faults)
  const definition = file.faults.length > 0 ? undefined : readDefinition(file, document, folder, isThorough)
  const api = definition === undefined ? undefined : { ...definition, clientCertificates: known.certificates }
  // Whoever cannot say where an API belongs has it nowhere, and not everywhere.
  const labels = api === undefined ? [] : labelsIn(file)
  const places = placesFile === undefined ? [] : readDeployments(placesFile)
  const files = [file, documentFile, placesFile].filter(one => one !== undefined)
  faults.push(...files.flatMap(one => one.faults))
  const isRight = api !== undefined && faults.length === 0
  const declared = isRight
    ? { api, deployments: [...labels, ...places], where: file.where(['data', 'context']) }
    : undefined
  const readsOutside = known.isThere || files.some(one => one.readsOutside)
  return { declared, faults, warnings: files.flatMap(one => one.warnings), readsOutside }
}

function unread(faults: readonly Fault[]): Reading {
  return { declared: undefined, faults, warnings: [], readsOutside: false }
}

/** Undefined where there is no such file. */
export function readDocument(path: string): Reading | undefined {
  const faults: Fault[] = []
  const file = readFile(path, faults)
  if (file === undefined) return faults.length === 0 ? undefined : unread(faults)
  const document = OpenApiDocument.read(file)
  document?.validate()
  const made = document === undefined ? undefined : apiOfDocument(document, dirname(path))
  const isRight = made !== undefined && file.faults.length === 0
  const declared = isRight ? { api: made.api, deployments: [], where: file.where(made.context) } : undefined
  return { declared, faults: file.faults, warnings: file.warnings, readsOutside: file.readsOutside }
}

function readDefinition(
  file: YamlFile,
  document: OpenApiDocument | undefined,
  folder: string,
  isThorough: boolean,
): Omit<ApiDefinition, 'clientCertificates'> | undefined {
  checked(file, ['type'], type => (type === 'api' ? undefined : ['expected api', 'other project types come later']))
  checked(file, ['version'], version =>
    /^v4(\.\d+)*$/.test(version)
      ? undefined
      : ['expected v4, v4.1 and so on', 'export the project again from a 4.x release'],
  )
  const name = checked(file, ['data', 'name'], nameFault)
  const context = checked(file, ['data', 'context'], contextFault)
  const version = checked(file, ['data', 'version'], versionFault)
  const isDefaultVersion = file.flag(['data', 'isDefaultVersion'], false)
  const both = endpointsOf(file, document)
  const lifecycle = readLifecycle(file)
  const transports = readTransports(file)
  const cors = readCors(file, ['data', 'corsConfiguration'])
  const access = readAccess(file, document?.file)
  const credentials = readEndpointSecurity(file, document?.file, folder)
  const resources = resourcesOf(readOperations(file), document, isThorough)
  if (file.faults.length > 0 || both === undefined) return undefined
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
    lifecycle,
    transports,
    hosts: [],
    keyType: 'PRODUCTION',
    isAi: file.optional(['data', 'subtypeConfiguration', 'subtype']).toUpperCase() === 'AIAPI',
    access,
    credentials,
    cors: cors ?? (document === undefined ? null : readCors(document.file, ['x-wso2-cors'])),
    resources,
    ...both,
  }
}

/** Names stand in tables and in each line of the log. */
const NAME_CHARS_MAX = 255

function nameFault(name: string): Objection | undefined {
  if (name.length > NAME_CHARS_MAX) return [`expected at most ${NAME_CHARS_MAX} characters`, 'give it a shorter name']
  return name === '' ? ['expected a name', 'give the API one'] : undefined
}

/** The text at a path, or '' with a fault noted. */
function checked(file: YamlFile, path: Path, objection: (text: string) => Objection | undefined): string {
  const text = file.text(path)
  if (text === undefined) return ''
  file.objectAs(path, text, objection(text))
  return text
}

/** Those of the document where the project does not say any. */
function endpointsOf(file: YamlFile, document: OpenApiDocument | undefined): BothEndpoints | undefined {
  if (document !== undefined && !file.has(['data', 'endpointConfig'])) {
    const both = extensionEndpoints(document)
    if (both.endpoints.endpoints.length + both.sandbox.endpoints.length > 0) return both
  }
  return readEndpoints(file)
}

/** A document that only accompanies the operations of the project is never why an API is not deployed. */
function resourcesOf(
  operations: Operations | undefined,
  document: OpenApiDocument | undefined,
  isThorough: boolean,
): ApiDefinition['resources'] {
  if (document === undefined) return operations?.all ?? []
  const { file } = document
  const before = file.faults.length
  if (operations === undefined || isThorough) document.validate()
  if (operations === undefined) return requiredOperations(document)
  // As it is in all but a few projects; what there is to say of it otherwise is for those who ask.
  if (!isThorough && hasSameOperations(document, operations)) return operations.all
  const documented = documentOperations(document)
  file.warnings.push(...file.faults.splice(before))
  tellOfDifferences(file, operations.keys, documented.keys)
  return operations.all
}

const NAMES_SHOWN = 5

function tellOfDifferences(file: YamlFile, declared: ReadonlySet<string>, documented: ReadonlySet<string>): void {
  const told = (keys: ReadonlySet<string>) => fewOf([...keys], NAMES_SHOWN)
  const [only, missing] = [documented.difference(declared), declared.difference(documented)]
  const isOpen = [...declared].some(key => key.endsWith(' /*'))
  if (only.size > 0 && !isOpen) {
    file.warn(['paths'], undefined, `${told(only)}: not among the operations of the project`, 'they are not deployed')
  }
  if (missing.size > 0 && documented.size > 0) {
    file.warn(['paths'], undefined, `${told(missing)}: not in the document`, 'they are deployed all the same')
  }
}

function readLifecycle(file: YamlFile): LifecycleState {
  const path = ['data', 'lifeCycleStatus']
  const written = file.optional(path)
  const state = LIFECYCLE_STATES.find(known => known === written.toUpperCase())
  if (state === undefined && written !== '') {
    file.object(path, written, `expected ${LIFECYCLE_STATES.join(', ')}`, 'leave it out for PUBLISHED')
  }
  return state ?? 'PUBLISHED'
}

function readTransports(file: YamlFile): readonly Transport[] {
  const path = ['data', 'transport']
  const written = file.has(path) ? file.texts(path).flatMap(text => text.toLowerCase().split(/[\s,]+/)) : []
  const named = new Set(written.filter(text => text !== ''))
  const odd = [...named].find(text => text !== 'http' && text !== 'https')
  if (odd !== undefined) file.object(path, odd, 'expected http and https', 'leave it out for both')
  const transports = (['http', 'https'] as const).filter(transport => named.has(transport))
  return transports.length === 0 ? ['http', 'https'] : transports
}

/** `gatewayEnvironments` and `labels` of older exports: names without a host. */
function labelsIn(file: YamlFile): DeclaredApi['deployments'] {
  const lists = ['gatewayEnvironments', 'labels', 'gatewayLabels'].map(name => ['data', name])
  const names = lists.flatMap(path => (file.has(path) ? file.texts(path) : []))
  return names.filter(name => name.trim() !== '').map(name => ({ label: name.trim(), host: '', where: '' }))
}
