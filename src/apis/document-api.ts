/** Reads the API of a bare OpenAPI document, which has no `api.yaml` (D72). */
import { dirname } from 'node:path'
import type { Diagnostic } from '../config/diagnostics.ts'
import { readAccess } from './api-access.ts'
import { readCors } from './api-cors.ts'
import { type ApiDefinition, NO_HARD_LIMITS } from './api-definition.ts'
import { contextViolation, versionViolation } from './api-paths.ts'
import { readEndpointSecurity } from './endpoint-security.ts'
import { basePathOf, documentEndpoints } from './document-endpoints.ts'
import { OpenApiDocument } from './open-api-document.ts'
import { checkExtensions, requiredOperations } from './operations.ts'
import type { Path } from './yaml-file.ts'
import {
  DOCUMENT_BYTES_MAX,
  ESCAPED_SLASHES,
  type ParsedProject,
  readChecked,
  readEscapedSlashes,
  readFile,
  readTransports,
  TRANSPORTS,
  unreadable,
} from './api-project.ts'

const TITLE_CHARS_MAX = 100
const BASE_PATH = 'x-wso2-basePath'

/** Undefined if there is no such file. */
export function readDocument(path: string): ParsedProject | undefined {
  const errors: Diagnostic[] = []
  const file = readFile(path, errors, DOCUMENT_BYTES_MAX)
  if (file === undefined) return errors.length === 0 ? undefined : unreadable(errors)
  const document = OpenApiDocument.read(file)
  document?.validate()
  const made = document === undefined ? undefined : documentApi(document, dirname(path))
  const isValid = made !== undefined && file.errors.length === 0
  const declared = isValid ? { api: made.api, deployments: [], where: file.where(made.contextAt) } : undefined
  const { errors: found, warnings, hasExternalValues } = file
  return { declared, errors: found, warnings, hasExternalValues, mediation: null }
}

/** `folder`: base of relative `$file{}` paths. `contextAt`: the key that the context comes from. */
function documentApi(
  document: OpenApiDocument,
  folder: string,
): { readonly api: ApiDefinition; readonly contextAt: Path } {
  const { file } = document
  const title = ['info', 'title']
  const name = nameOf(file.optional(title))
  if (name === '') file.error(title, file.optional(title), 'expected a title with letters or digits in it', 'add one')
  checkExtensions(document)
  const { context, contextAt, version } = readAddress(document, name)
  const api: ApiDefinition = {
    name,
    context,
    version,
    isDefaultVersion: false,
    lifecycle: 'PUBLISHED',
    transports: readTransports(file, TRANSPORTS, undefined),
    hosts: [],
    keyType: 'PRODUCTION',
    escapedSlashes: readEscapedSlashes(file, ESCAPED_SLASHES, undefined),
    isAi: false,
    access: readAccess(undefined, file),
    hardLimits: NO_HARD_LIMITS,
    clientCertificates: [],
    credentials: readEndpointSecurity(undefined, file, folder),
    cors: readCors(file, ['x-wso2-cors']),
    resources: requiredOperations(document),
    ...documentEndpoints(document),
    mounted: null,
    mediation: null,
  }
  return { api, contextAt }
}

/** One word for commands: `Swagger Petstore - OpenAPI 3.0` becomes `Swagger-Petstore-OpenAPI-3.0`. */
function nameOf(title: string): string {
  const words = title.slice(0, TITLE_CHARS_MAX).split(/[^A-Za-z0-9._~]+/)
  return words.filter(word => word !== '' && !/^\.+$/.test(word)).join('-')
}

/** Matches the last segment of a base path if it is a version: `v3`, `v1beta1`, `1.0`, `2023-10-01`. */
const VERSION_LIKE = /^(?:v\d[\w.~-]{0,62}|\d{1,8}(?:\.\d{1,8}){0,4}|\d{4}-\d{2}-\d{2}[\w.~-]{0,32})$/i

interface Address {
  readonly context: string
  /** The key that the context comes from. */
  readonly contextAt: Path
  readonly version: string
}

/**
 * `x-wso2-basePath`, or the base path of the document, or its name, and the version. A last segment that is a version
 * becomes `{version}` and the version of the API: clients of `/petstore/v1` keep that path. `info.version` only counts
 * the editions of the document.
 */
function readAddress(document: OpenApiDocument, name: string): Address {
  const { file } = document
  const own = file.optional([BASE_PATH]).replace(/\/+$/, '')
  const base = own || basePathOf(document).replace(/\/+$/, '')
  const contextAt = own !== '' ? [BASE_PATH] : [document.version === '2.0' ? 'basePath' : 'servers']
  const last = base.slice(base.lastIndexOf('/') + 1)
  const isVersioned = last === file.optional(['info', 'version']) || VERSION_LIKE.test(last)
  const version = base !== '' && isVersioned ? last : readChecked(file, ['info', 'version'], versionViolation)
  if (base === '') return { context: `/${name.toLowerCase()}`, contextAt: ['info', 'title'], version }
  const context = isVersioned ? `${base.slice(0, -last.length)}{version}` : base
  const [expected, hint] = contextViolation(context) ?? []
  if (expected !== undefined) file.error(contextAt, context, expected, `${hint}, or set ${BASE_PATH}`)
  return { context, contextAt, version }
}
