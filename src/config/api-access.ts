/**
 * What a project or a document says of who may use its API, how much, and what is to be made of its messages.
 * `api show` tells the terms. Nothing holds a request to them yet, nor acts on the rest: whoever wrote it is warned.
 */
import type { AccessTerms } from './api-definition.ts'
import type { Path, YamlFile } from './yaml-file.ts'

const UNKNOWN_CLIENTS = 'clients are not identified yet'
/** Alone in the list of schemes: nothing is asked of anybody. No export holds it, so none opens an API by accident. */
export const NO_SCHEME = 'none'
const SECURITY = ['data', 'endpointConfig', 'endpoint_security']

/** Of a project: what exports always have, most often empty, null or false. */
const NOT_ACTED_ON: readonly (readonly [path: Path, remedy: string])[] = [
  [['data', 'maxTps'], 'limits are not built yet'],
  [['data', 'enableSchemaValidation'], 'payloads are not held to schemas yet'],
  [['data', 'threatProtectionPolicies'], 'threat protection is not built yet'],
  [['data', 'mediationPolicies'], 'policies come with mediation'],
  [['data', 'apiPolicies'], 'policies come with mediation'],
  [[...SECURITY, 'production', 'enabled'], 'the back end gets no credentials of the gateway yet'],
  [[...SECURITY, 'sandbox', 'enabled'], 'the back end gets no credentials of the gateway yet'],
]

interface Place {
  readonly file: YamlFile
  readonly path: Path
}

/** What the project says goes before what the document says. */
export function readAccess(project: YamlFile | undefined, document: YamlFile | undefined): AccessTerms {
  const placeOf = (ofProject: string, ofDocument: Path): Place | undefined => {
    const inProject = project === undefined ? [] : [{ file: project, path: ['data', ofProject] }]
    const inDocument = document === undefined ? [] : [{ file: document, path: ofDocument }]
    return [...inProject, ...inDocument].find(({ file, path }) => file.has(path))
  }
  const header = placeOf('authorizationHeader', ['x-wso2-auth-header'])
  const schemes = placeOf('securityScheme', ['x-wso2-application-security', 'security-types'])
  const [authHeader = ''] = header?.file.words(header.path) ?? []
  const securitySchemes = schemes?.file.words(schemes.path) ?? []
  if (authHeader !== '' && authHeader.toLowerCase() !== 'authorization') tell(header!, authHeader, UNKNOWN_CLIENTS)
  // What exports write by default needs no warning.
  const other = securitySchemes.find(scheme => !scheme.startsWith('oauth') && scheme !== NO_SCHEME)
  if (securitySchemes.length > 1 && securitySchemes.includes(NO_SCHEME)) {
    const remedy = 'name it alone for an API that is open to everybody, or drop it'
    schemes!.file.object(schemes!.path, NO_SCHEME, 'stands for no scheme at all, and others are named', remedy)
  }
  if (other !== undefined) tell(schemes!, other, UNKNOWN_CLIENTS)
  if (project !== undefined) tellWhatIsNotBuilt(project)
  return {
    provider: project?.words(['data', 'provider'])[0] ?? '',
    plans: project?.words(['data', 'policies']) ?? [],
    tier: project?.words(['data', 'apiThrottlingPolicy'])[0] ?? '',
    authHeader,
    securitySchemes,
  }
}

function tellWhatIsNotBuilt(file: YamlFile): void {
  for (const [path, remedy] of NOT_ACTED_ON) if (file.says(path)) tell({ file, path }, undefined, remedy)
  const operations = ['data', 'operations']
  const policies = Array.from({ length: file.lengthOf(operations) ?? 0 }, (_, item) => {
    return [...operations, item, 'operationPolicies']
  })
  // One of them is enough to know.
  const path = policies.find(each => file.says(each))
  if (path !== undefined) tell({ file, path }, undefined, 'policies come with mediation')
}

function tell({ file, path }: Place, given: string | undefined, remedy: string): void {
  file.warn(path, given, 'is accepted and not acted on', remedy)
}
