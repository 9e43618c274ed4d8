/**
 * Reads one exported API project: a folder with `api.yaml`, and optionally an OpenAPI document, deployments and client
 * certificates. What `api.yaml` says wins over its document.
 */
import { dirname } from 'node:path'
import { type Diagnostic, Diagnostics, abbreviatedList } from '../config/diagnostics.ts'
import { readSource } from '../config/source-file.ts'
import { readAccess, readHardLimits } from './api-access.ts'
import { readCors } from './api-cors.ts'
import type { ApiDefinition, EscapedSlashes, LifecycleState, Transport } from './api-definition.ts'
import { contextViolation, unversionedViolation, versionViolation } from './api-paths.ts'
import { CLIENT_CERTIFICATES, NO_CLIENT_CERTIFICATES, readClientCertificates } from './client-certificates.ts'
import { readValidation } from './schema-validation.ts'
import { readEndpointSecurity } from './endpoint-security.ts'
import { extensionEndpoints } from './document-endpoints.ts'
import { readEndpoints } from './endpoints.ts'
import { type DeclaredApi, readDeployments, readLabels } from './gateway-environments.ts'
import { MemberCheck } from './known-members.ts'
import { isGraphql, readGraphql } from './graphql-project.ts'
import { LIFECYCLE_STATES } from './lifecycle-states.ts'
import { OpenApiDocument } from './open-api-document.ts'
import {
  checkExtensions,
  documentOperations,
  hasSameOperations,
  type Operations,
  readOperations,
  requiredOperations,
} from './operations.ts'
import { readMounted } from './mounted-module.ts'
import { checkFolder, type FolderNames, mayHave, type ProjectFolder } from './project-folder.ts'
import { handshakeDiagnostic, type MediationSource, parseMediation, readMediation } from './project-mediation.ts'
import { API_FILE } from './project-members.ts'
import { type Path, type Violation, YamlFile } from './yaml-file.ts'

/** The API of a project or a document, with every diagnostic. */
export interface ParsedProject {
  /** Undefined if there are errors. */
  readonly declared: DeclaredApi | undefined
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  /** True if more than the main files decides: unchanged files are then no reason to skip reading. */
  readonly hasExternalValues: boolean
  /** Sequences and policies that `withMediation` is still to parse; null for none. */
  readonly mediation: MediationSource | null
}

/** File names of a project; of several forms the first that exists is read. */
export const PROJECT_FILES = {
  api: ['api.yaml', 'api.yml', 'api.json'],
  document: ['Definitions/swagger.yaml', 'Definitions/swagger.yml', 'Definitions/swagger.json'],
  deployments: ['deployment_environments.yaml', 'deployment_environments.json'],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** Paths of the existing files. */
export interface ProjectPaths extends Readonly<Record<keyof typeof PROJECT_FILES, string | undefined>> {
  readonly names: FolderNames
}

/** Members that a document declares for a project without them. With all of them the document decides nothing. */
const DECIDED_BY_DOCUMENTS = [
  ...[
    'operations',
    'endpointConfig',
    'securityScheme',
    'authorizationHeader',
    'scopes',
    'corsConfiguration',
    'transport',
  ],
]

/** The largest public documents have 13 MB. */
export const DOCUMENT_BYTES_MAX = 16 * 1024 * 1024

/** Undefined if there is no such file, or none that can be read: that is an error. */
export function readFile(path: string | undefined, errors: Diagnostic[], bytesMax?: number): YamlFile | undefined {
  const source = path === undefined ? undefined : readSource(path, bytesMax)
  if (source?.error !== undefined) errors.push(source.error)
  return source === undefined || source.error !== undefined ? undefined : new YamlFile(source.label, source.text)
}

/** Releases 3.x of the reference platform export another model of an API, with its endpoints as a text. */
export const OLDER_EXPORT = {
  expected: 'an export of a release 3.x is not read',
  hint: 'export the API from a release 4.x, or write an api.yaml: sluice help apis',
}

export function unreadable(errors: readonly Diagnostic[]): ParsedProject {
  return { declared: undefined, errors, warnings: [], hasExternalValues: false, mediation: null }
}

/**
 * Undefined without `api.yaml`. `isThorough`: the document is validated even if the project's own operations leave it
 * without effect.
 */
export function readProject(paths: ProjectPaths, isThorough: boolean): ParsedProject | undefined {
  const errors: Diagnostic[] = []
  const file = readFile(paths.api, errors)
  if (file === undefined) return errors.length === 0 ? undefined : unreadable(errors)
  if (file.has(['id', 'apiName']) && !file.has(['data'])) {
    return unreadable([file.diagnostic(['id'], undefined, OLDER_EXPORT.expected, OLDER_EXPORT.hint)])
  }
  const documentErrors: Diagnostic[] = []
  const documentFile = readFile(paths.document, documentErrors, DOCUMENT_BYTES_MAX)
  const deploymentsFile = readFile(paths.deployments, errors)
  const document = documentFile === undefined ? undefined : OpenApiDocument.read(documentFile)
  if (document === undefined) documentErrors.push(...(documentFile?.errors.splice(0) ?? []))
  const isComplete = DECIDED_BY_DOCUMENTS.every(name => file.has(['data', name]))
  if (!isComplete) errors.push(...documentErrors)
  const folder = dirname(paths.api!)
  const clients = mayHave(paths.names, CLIENT_CERTIFICATES) ? readClientCertificates(folder) : NO_CLIENT_CERTIFICATES
  const names = checkFolder(folder, paths.names, file.has(['data', 'operations']))
  errors.push(...clients.errors, ...names.errors)
  const found = new Diagnostics()
  const read =
    file.errors.length > 0
      ? undefined
      : readDefinition(file, document, { folder, names: paths.names }, isThorough, found)
  errors.push(...found.errors)
  const api = read === undefined ? undefined : { ...read.definition, clientCertificates: clients.certificates }
  const labels = api === undefined ? [] : readLabels(file)
  const deployments = deploymentsFile === undefined ? [] : readDeployments(deploymentsFile)
  const files = [file, documentFile, deploymentsFile].filter(one => one !== undefined)
  errors.push(...files.flatMap(one => one.errors))
  // An error in the deployments alone refuses the API too: without them it would be deployed to every gateway.
  const declared =
    api === undefined || errors.length > 0
      ? undefined
      : { api, deployments: [...labels, ...deployments], where: file.where(['data', 'context']) }
  // A module may lie outside of the project: its digest says whether it has changed.
  const hasModule = api?.mounted !== null && api?.mounted !== undefined && api.mounted.digest !== ''
  const hasExternalValues = hasModule || clients.hasList || files.some(one => one.hasExternalValues)
  const warnings = [
    ...files.flatMap(one => one.warnings),
    ...(isComplete ? documentErrors : []),
    ...clients.warnings,
    ...names.warnings,
    ...found.warnings,
  ]
  return { declared, errors, warnings, hasExternalValues, mediation: read?.mediation ?? null }
}

/**
 * The project with its sequences and policies parsed. An error in one of them refuses the project, as any other does.
 */
export async function withMediation(parsed: ParsedProject): Promise<ParsedProject> {
  const { declared, mediation: source } = parsed
  if (source === null) return parsed
  const { mediation, errors, warnings } = await parseMediation(source)
  const isParsed = declared !== undefined && errors.length === 0
  const refusal = isParsed ? await handshakeDiagnostic(declared.api, mediation) : undefined
  const isValid = isParsed && refusal === undefined
  return {
    ...parsed,
    declared: isValid ? { ...declared, api: { ...declared.api, mediation } } : undefined,
    errors: [...parsed.errors, ...errors, ...(refusal === undefined ? [] : [refusal])],
    warnings: [...parsed.warnings, ...warnings],
    mediation: null,
  }
}

interface ReadDefinition {
  readonly definition: Omit<ApiDefinition, 'clientCertificates'>
  readonly mediation: MediationSource | null
}

function readDefinition(
  file: YamlFile,
  document: OpenApiDocument | undefined,
  { folder, names }: ProjectFolder,
  isThorough: boolean,
  found: Diagnostics,
): ReadDefinition | undefined {
  new MemberCheck(file).members(API_FILE)
  readChecked(file, ['type'], typeViolation)
  readChecked(file, ['version'], exportVersionViolation)
  const name = readChecked(file, ['data', 'name'], nameViolation)
  const context = readChecked(file, ['data', 'context'], contextViolation)
  const version = readChecked(file, ['data', 'version'], versionViolation)
  const isDefaultVersion = file.flag(['data', 'isDefaultVersion'], false)
  const isUnversioned = file.flag(['data', 'isUnversioned'], false)
  file.report(['data', 'context'], context, unversionedViolation(context, isUnversioned))
  const endpoints = endpointsOf(file, document)
  const mounted = readMounted(file, folder)
  const lifecycle = readLifecycle(file)
  const transports = readTransports(file, ['data', 'transport'], document?.file)
  const escapedSlashes = readEscapedSlashes(file, ['data', 'escapedSlashes'], document?.file)
  const cors = readCors(file, ['data', 'corsConfiguration'])
  const access = readAccess(file, document?.file)
  const hardLimits = readHardLimits(file)
  const credentials = readEndpointSecurity(file, document?.file, folder)
  const graphql = isGraphql(file) ? readGraphql(file, folder, found) : null
  const operations = graphql === null ? readOperations(file) : undefined
  const resources = graphql?.resources ?? resourcesOf(operations, document, isThorough)
  const own = readValidation(file, document, resources) ?? graphql?.steps ?? null
  const paths = [context, ...resources.map(({ template }) => template)]
  const mediation = readMediation(file, { folder, names }, `${name}:v${version}`, operations, paths, own, found)
  if (file.errors.length > 0 || endpoints === undefined) return undefined
  const definition: ReadDefinition['definition'] = {
    name,
    context,
    version,
    isDefaultVersion,
    ...(isUnversioned ? { isUnversioned } : {}),
    lifecycle,
    transports,
    hosts: [],
    keyType: 'PRODUCTION',
    escapedSlashes,
    isAi: file.optional(['data', 'subtypeConfiguration', 'subtype']).toUpperCase() === 'AIAPI',
    ...(file.optional(['data', 'type']).toUpperCase() === 'SSE' ? { isEventStream: true as const } : {}),
    access,
    hardLimits,
    credentials,
    cors: cors ?? (document === undefined ? null : readCors(document.file, ['x-wso2-cors'])),
    resources,
    ...endpoints,
    mounted,
    mediation: null,
  }
  return { definition, mediation }
}

/** A required text, with an error if it is missing or violates its rule; '' if it is missing. */
export function readChecked(file: YamlFile, path: Path, violationOf: (text: string) => Violation | undefined): string {
  const text = file.text(path)
  if (text === undefined) return ''
  file.report(path, text, violationOf(text))
  return text
}

function typeViolation(type: string): Violation | undefined {
  return type === 'api' ? undefined : ['expected api', 'other project types are not supported yet']
}

function exportVersionViolation(version: string): Violation | undefined {
  if (/^v4(\.\d+)*$/.test(version)) return undefined
  return ['expected v4, v4.1 and so on', 'export the project again from a 4.x release']
}

/** Names appear in tables and in every log line. */
const NAME_CHARS_MAX = 255

function nameViolation(name: string): Violation | undefined {
  if (name.length > NAME_CHARS_MAX) return [`expected at most ${NAME_CHARS_MAX} characters`, 'give it a shorter name']
  return name === '' ? ['expected a name', 'give the API one'] : undefined
}

/** The endpoints of the project, or those of the document if the project declares none. */
function endpointsOf(file: YamlFile, document: OpenApiDocument | undefined): ReturnType<typeof readEndpoints> {
  if (document !== undefined && !file.has(['data', 'endpointConfig'])) {
    const both = extensionEndpoints(document)
    if (both.endpoints.endpoints.length + both.sandbox.endpoints.length > 0) return both
  }
  return readEndpoints(file)
}

/** A document beside the project's own operations never keeps an API from being deployed: its errors are warnings. */
function resourcesOf(
  operations: Operations | undefined,
  document: OpenApiDocument | undefined,
  isThorough: boolean,
): ApiDefinition['resources'] {
  if (document === undefined) return operations?.all ?? []
  const { file } = document
  const before = file.errors.length
  checkExtensions(document)
  if (operations === undefined || isThorough) document.validate()
  if (operations === undefined) return requiredOperations(document)
  // Most exports: both declare the same, and only `check` looks further.
  if (isThorough || !hasSameOperations(document, operations)) {
    warnOfDifferences(file, operations.keys, documentOperations(document, false).keys)
  }
  file.warnings.push(...file.errors.splice(before))
  return operations.all
}

const KEYS_SHOWN = 5

function warnOfDifferences(file: YamlFile, declared: ReadonlySet<string>, documented: ReadonlySet<string>): void {
  const shown = (keys: ReadonlySet<string>) => abbreviatedList([...keys], KEYS_SHOWN)
  const [extra, missing] = [documented.difference(declared), declared.difference(documented)]
  const isOpen = [...declared].some(key => key.endsWith(' /*'))
  if (extra.size > 0 && !isOpen) {
    file.warn(['paths'], undefined, `${shown(extra)}: not among the operations of the project`, 'they are not deployed')
  }
  if (missing.size > 0 && documented.size > 0) {
    file.warn(['paths'], undefined, `${shown(missing)}: not in the document`, 'they are deployed all the same')
  }
}

function readLifecycle(file: YamlFile): LifecycleState {
  const path = ['data', 'lifeCycleStatus']
  const written = file.optional(path)
  const state = LIFECYCLE_STATES.find(known => known === written.toUpperCase())
  if (state === undefined && written !== '') {
    file.error(path, written, `expected ${LIFECYCLE_STATES.join(', ')}`, 'leave it out for PUBLISHED')
  }
  return state ?? 'PUBLISHED'
}

export const TRANSPORTS = ['x-wso2-transports']

/** The transports at a path, or else those of the document. */
export function readTransports(file: YamlFile, path: Path, document: YamlFile | undefined): readonly Transport[] {
  if (!file.has(path) && document?.has(TRANSPORTS)) return readTransports(document, TRANSPORTS, undefined)
  const written = file.has(path) ? file.texts(path).flatMap(text => text.toLowerCase().split(/[\s,]+/)) : []
  const named = new Set(written.filter(text => text !== ''))
  const odd = [...named].find(text => text !== 'http' && text !== 'https')
  if (odd !== undefined) file.error(path, odd, 'expected http and https', 'leave it out for both')
  const transports = (['http', 'https'] as const).filter(transport => named.has(transport))
  return transports.length === 0 ? ['http', 'https'] : transports
}

export const ESCAPED_SLASHES = ['x-sluice-escaped-slashes']
const TREATMENTS = ['refuse', 'pass', 'decode'] as const satisfies readonly EscapedSlashes[]

/** The treatment at a path, or else that of the document. */
export function readEscapedSlashes(file: YamlFile, path: Path, document: YamlFile | undefined): EscapedSlashes {
  if (!file.has(path) && document !== undefined) return readEscapedSlashes(document, ESCAPED_SLASHES, undefined)
  const written = file.optional(path)
  const treatment = TREATMENTS.find(known => known === written.toLowerCase())
  if (treatment === undefined && written !== '') {
    file.error(path, written, `expected ${TREATMENTS.join(', ')}`, 'leave it out for refuse')
  }
  return treatment ?? 'refuse'
}
