/**
 * What a project or a document says of who may use its API, how much, and what is to be made of its messages. What of
 * it nothing acts on yet is warned of.
 */
import type { AccessTerms } from './api-definition.ts'
import type { Objection } from './api-syntax.ts'
import type { Path, YamlFile } from './yaml-file.ts'

/** Alone in the list of schemes: nothing is asked of anybody. No export holds it, so none opens an API by accident. */
export const NO_SCHEME = 'none'
/** Ways in, as exports spell them. */
export const SCHEMES: Readonly<Record<string, 'oauth2' | 'basic' | 'api_key' | 'mutual_tls'>> = {
  oauth2: 'oauth2',
  basic_auth: 'basic',
  api_key: 'api_key',
  mutualssl: 'mutual_tls',
}
/** Of a certificate, and of what is asked for besides one. */
export const MANDATORY = { certificate: 'mutualssl_mandatory', other: 'oauth_basic_auth_api_key_mandatory' } as const
const SCOPE_CHARS_MAX = 255
/** More are nobody's; each takes a bit per token and API. */
const SCOPES_MAX = 1024

/** Of a project: what exports always have, most often empty, null or false. */
const NOT_ACTED_ON: readonly (readonly [path: Path, remedy: string])[] = [
  [['data', 'maxTps'], 'limits are not built yet'],
  [['data', 'enableSchemaValidation'], 'payloads are not held to schemas yet'],
  [['data', 'threatProtectionPolicies'], 'threat protection is not built yet'],
  [['data', 'mediationPolicies'], 'policies come with mediation'],
  [['data', 'apiPolicies'], 'policies come with mediation'],
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
  const securitySchemes = schemes?.file.words(schemes.path).map(text => text.toLowerCase()) ?? []
  header?.file.objectAs(header.path, authHeader, fieldNameFault(authHeader))
  if (schemes !== undefined) judgeSchemes(schemes, securitySchemes)
  if (securitySchemes.length > 1 && securitySchemes.includes(NO_SCHEME)) {
    const remedy = 'name it alone for an API that is open to everybody, or drop it'
    schemes!.file.object(schemes!.path, NO_SCHEME, 'stands for no scheme at all, and others are named', remedy)
  }
  if (project !== undefined) tellWhatIsNotBuilt(project)
  return {
    provider: project?.words(['data', 'provider'])[0] ?? '',
    plans: project?.words(['data', 'policies']) ?? [],
    tier: project?.words(['data', 'apiThrottlingPolicy'])[0] ?? '',
    authHeader,
    securitySchemes,
    scopeRoles: scopeRoles(project, document),
  }
}

/** One that nobody knows lets nobody in, so the others can stand; with none that is known, nobody could come in. */
function judgeSchemes({ file, path }: Place, written: readonly string[]): void {
  const known = [...Object.keys(SCHEMES), ...Object.values<string>(MANDATORY), NO_SCHEME]
  const strange = written.find(text => !known.includes(text))
  if (strange === undefined) return
  const expected = `expected ${Object.keys(SCHEMES).join(', ')}`
  if (written.some(text => Object.hasOwn(SCHEMES, text))) file.warn(path, strange, 'lets nobody in', expected)
  else file.object(path, strange, expected, 'leave it out for oauth2')
}

/** RFC 9110 5.1. A field that has a meaning for this hop cannot carry credentials as well. */
function fieldNameFault(name: string): Objection | undefined {
  if (name === '' || (/^[A-Za-z][A-Za-z0-9-]{0,63}$/.test(name) && !TAKEN.includes(name.toLowerCase())))
    return undefined
  return ['expected the name of a field that is for credentials alone', 'leave it out for that of all APIs']
}

const TAKEN = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'date',
]

/** `data.scopes` of a project; of a document what its OAuth2 flows say. */
function scopeRoles(project: YamlFile | undefined, document: YamlFile | undefined): AccessTerms['scopeRoles'] {
  const found: [scope: string, roles: readonly string[]][] = []
  const count = project?.lengthOf(['data', 'scopes']) ?? 0
  for (let item = 0; item < Math.min(count, SCOPES_MAX); item++) {
    const at = ['data', 'scopes', item, 'scope']
    const name = project!.optional([...at, 'name'])
    if (name !== '') found.push([name, project!.words([...at, 'bindings'])])
  }
  if (found.length === 0 && document !== undefined) found.push(...documentedRoles(document))
  return Object.fromEntries(found.filter(([scope]) => scope.length <= SCOPE_CHARS_MAX))
}

/** `x-scopes-bindings`, as exports write it: role names with commas, by scope. */
function documentedRoles(file: YamlFile): readonly [scope: string, roles: readonly string[]][] {
  const schemes = ['components', 'securitySchemes']
  const flows = keysAt(file, schemes).flatMap(scheme => {
    const at = [...schemes, scheme, 'flows']
    return keysAt(file, at).map(flow => [...at, flow, 'x-scopes-bindings'])
  })
  return flows.flatMap(at =>
    keysAt(file, at)
      .slice(0, SCOPES_MAX)
      .map(scope => [scope, file.words([...at, scope]).flatMap(text => text.split(/[\s,]+/).filter(Boolean))] as const)
      .map(([scope, roles]): [string, readonly string[]] => [scope, roles]),
  )
}

function keysAt(file: YamlFile, path: Path): readonly string[] {
  const value = file.value(path)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
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
