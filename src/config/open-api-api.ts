/** An API that is nothing but its OpenAPI document: `apis/petstore.yaml`. */
import type { ApiDefinition } from './api-definition.ts'
import { readAccess } from './api-access.ts'
import { readCors } from './api-cors.ts'
import { contextFault, versionFault } from './api-syntax.ts'
import { readEndpointSecurity } from './endpoint-security.ts'
import type { OpenApiDocument } from './open-api-document.ts'
import { basePathOf, documentEndpoints } from './open-api-endpoints.ts'
import { requiredOperations } from './open-api-operations.ts'
import type { Path } from './yaml-file.ts'

const NAME_CHARS_MAX = 100
const BASE_PATH = 'x-wso2-basePath'

/** The document notes what is wrong with it. `folder`: where it stands. */
export function apiOfDocument(
  document: OpenApiDocument,
  folder: string,
): { readonly api: ApiDefinition; readonly context: Path } {
  const { file } = document
  const title = ['info', 'title']
  const name = nameOf(file.optional(title))
  if (name === '') file.object(title, file.optional(title), 'expected a title with letters or digits in it', 'add one')
  const version = file.text(['info', 'version']) ?? ''
  file.objectAs(['info', 'version'], version, versionFault(version))
  const [context, at] = readContext(document, name, version)
  const api: ApiDefinition = {
    name,
    context,
    version,
    isDefaultVersion: false,
    lifecycle: 'PUBLISHED',
    transports: ['http', 'https'],
    hosts: [],
    keyType: 'PRODUCTION',
    isAi: false,
    access: readAccess(undefined, file),
    clientCertificates: [],
    credentials: readEndpointSecurity(undefined, file, folder),
    cors: readCors(file, ['x-wso2-cors']),
    resources: requiredOperations(document),
    ...documentEndpoints(document),
  }
  return { api, context: at }
}

/** One word, for commands: `Swagger Petstore - OpenAPI 3.0` is `Swagger-Petstore-OpenAPI-3.0`. */
function nameOf(title: string): string {
  const words = title.slice(0, NAME_CHARS_MAX).split(/[^A-Za-z0-9._~]+/)
  return words.filter(word => word !== '' && !/^\.+$/.test(word)).join('-')
}

/**
 * A last segment that is the version is the place of the version, so that it does not stand there twice: what was
 * `/petstore/v1` for clients of the document is so for those of the gateway.
 */
function readContext(document: OpenApiDocument, name: string, version: string): readonly [string, Path] {
  const { file } = document
  const own = file.optional([BASE_PATH]).replace(/\/+$/, '')
  const base = own || basePathOf(document).replace(/\/+$/, '')
  const [first, at] = own !== '' ? [own, [BASE_PATH]] : [base, document.version === '2.0' ? ['basePath'] : ['servers']]
  if (first === '') return [`/${name.toLowerCase()}`, ['info', 'title']]
  const context = first.endsWith(`/${version}`) ? `${first.slice(0, -version.length)}{version}` : first
  const [expected, remedy] = contextFault(context) ?? []
  if (expected !== undefined) file.object(at, context, expected, `${remedy}, or set ${BASE_PATH}`)
  return [context, at]
}
