/**
 * The access to an API, as `api.yaml` and the OpenAPI document declare it: security schemes, scopes and their roles,
 * subscription plans, tiers.
 */
import { nearest } from '../config/nearest.ts'
import type { ApiAccess, HardLimits } from './api-definition.ts'
import type { Path, Violation, YamlFile } from './yaml-file.ts'

/** As the only scheme: the API asks for no credentials. No export contains it, so none opens an API by accident. */
export const NO_SCHEME = 'none'
/** Security schemes as exports spell them. */
export const SCHEMES: Readonly<Record<string, 'oauth2' | 'basic' | 'api_key' | 'mutual_tls'>> = {
  oauth2: 'oauth2',
  basic_auth: 'basic',
  api_key: 'api_key',
  mutualssl: 'mutual_tls',
}
/** Values that make the certificate mandatory, or one of the other schemes beside it. */
export const MANDATORY = { certificate: 'mutualssl_mandatory', other: 'oauth_basic_auth_api_key_mandatory' } as const

const SCOPE_CHARS_MAX = 255
/** Each scope takes one bit per token and API. */
const SCOPES_MAX = 1024

/** Header fields that a hop or another handler reads, so that none can carry credentials (RFC 9110). */
const RESERVED_FIELDS = [
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade'],
  ...['te', 'trailer', 'expect', 'date'],
]

/** A path that exists in one of the two files. */
interface Declared {
  readonly file: YamlFile
  readonly path: Path
}

/** The project wins over the document. */
export function readAccess(project: YamlFile | undefined, document: YamlFile | undefined): ApiAccess {
  const declared = (inProject: string, inDocument: Path): Declared | undefined => {
    if (project?.has(['data', inProject])) return { file: project, path: ['data', inProject] }
    return document?.has(inDocument) ? { file: document, path: inDocument } : undefined
  }
  const header = declared('authorizationHeader', ['x-wso2-auth-header'])
  const schemes = declared('securityScheme', ['x-wso2-application-security', 'security-types'])
  const authHeader = header?.file.optional(header.path) ?? ''
  header?.file.report(header.path, authHeader, headerViolation(authHeader))
  const securitySchemes = schemes?.file.texts(schemes.path).flatMap(text => text.trim().toLowerCase() || []) ?? []
  if (schemes !== undefined) checkSchemes(schemes, securitySchemes)
  return {
    provider: project?.looseTexts(['data', 'provider'])[0] ?? '',
    plans: project?.looseTexts(['data', 'policies']) ?? [],
    tier: project?.looseTexts(['data', 'apiThrottlingPolicy'])[0] ?? '',
    authHeader,
    securitySchemes,
    scopeRoles: readScopeRoles(project, document),
  }
}

/** An unknown scheme is a warning beside a known one, and an error alone, because then no client gets in. */
function checkSchemes({ file, path }: Declared, schemes: readonly string[]): void {
  const known = [...Object.keys(SCHEMES), ...Object.values<string>(MANDATORY), NO_SCHEME]
  const unknown = schemes.find(text => !known.includes(text))
  const expected = `expected ${Object.keys(SCHEMES).join(', ')}`
  if (unknown !== undefined) {
    const hasKnown = schemes.some(text => Object.hasOwn(SCHEMES, text))
    if (hasKnown) file.warn(path, unknown, 'is no known scheme and admits no client', expected)
    else file.error(path, unknown, expected, 'leave it out for oauth2')
  }
  if (schemes.length > 1 && schemes.includes(NO_SCHEME)) {
    const hint = 'name it alone for an API that is open to everybody, or remove it'
    file.error(path, NO_SCHEME, 'means that no scheme is asked for, and others are named', hint)
  }
}

/** RFC 9110 5.1 */
function headerViolation(name: string): Violation | undefined {
  const isFree = /^[A-Za-z][A-Za-z0-9-]{0,63}$/.test(name) && !RESERVED_FIELDS.includes(name.toLowerCase())
  if (name === '' || isFree) return undefined
  return ['expected the name of a header for credentials alone', 'leave it out for the header of all APIs']
}

/** `data.scopes` of the project, or else the OAuth2 flows of the document. */
function readScopeRoles(project: YamlFile | undefined, document: YamlFile | undefined): ApiAccess['scopeRoles'] {
  const roles: [scope: string, roles: readonly string[]][] = []
  const count = project === undefined ? 0 : scopeCount(project)
  for (let item = 0; item < count; item++) {
    const at = ['data', 'scopes', item, 'scope']
    const name = project!.text([...at, 'name'])?.trim() ?? ''
    if (name.length > SCOPE_CHARS_MAX) {
      project!.error([...at, 'name'], name, `expected at most ${SCOPE_CHARS_MAX} characters`, 'shorten it')
    }
    if (name !== '') roles.push([name, project!.texts([...at, 'bindings'])])
  }
  if (roles.length > 0) checkScopesOfOperations(project!, new Set(roles.map(([name]) => name)))
  if (roles.length === 0 && document !== undefined) roles.push(...documentScopeRoles(document))
  return Object.fromEntries(roles.filter(([scope]) => scope.length <= SCOPE_CHARS_MAX))
}

/**
 * Warns once of each scope that an operation asks for and the API does not declare. An API that declares none leaves
 * its scopes to the issuers.
 */
function checkScopesOfOperations(project: YamlFile, declared: ReadonlySet<string>): void {
  const told = new Set<string>(declared)
  const operations = ['data', 'operations']
  for (let item = 0; item < (project.lengthOf(operations) ?? 0); item++) {
    const path = [...operations, item, 'scopes']
    for (const [index, name] of project.looseTexts(path).entries()) {
      if (told.has(name)) continue
      told.add(name)
      const meant = nearest(name, [...declared])
      const hint = meant === '' ? 'add it to data.scopes, with its roles' : `did you mean ${meant}?`
      const at = project.lengthOf(path) === undefined ? path : [...path, index]
      project.warn(at, name, 'is no declared scope, so every user is granted it', hint)
    }
  }
}

/** A scope that is not read would be open to every user: what is no list of scopes is an error. */
function scopeCount(project: YamlFile): number {
  const path = ['data', 'scopes']
  const count = project.lengthOf(path)
  if (count === undefined && project.has(path)) {
    project.error(path, undefined, 'expected a list', 'begin each scope with "- scope:"')
  }
  if (count === undefined || count <= SCOPES_MAX) return count ?? 0
  project.error(path, undefined, `holds more than ${SCOPES_MAX} scopes`, 'leave some out')
  return 0
}

/** `x-scopes-bindings` of every OAuth2 flow: role names separated by commas, by scope. */
function documentScopeRoles(file: YamlFile): [scope: string, roles: readonly string[]][] {
  const schemes = ['components', 'securitySchemes']
  const flows = file.keys(schemes).flatMap(scheme => {
    const at = [...schemes, scheme, 'flows']
    return file.keys(at).map(flow => [...at, flow, 'x-scopes-bindings'])
  })
  return flows.flatMap(at => {
    const scopes = file.keys(at).slice(0, SCOPES_MAX)
    return scopes.map((scope): [string, readonly string[]] => {
      return [scope, file.looseTexts([...at, scope]).flatMap(text => text.split(/[\s,]+/).filter(Boolean))]
    })
  })
}

const TPS_MAX = 1_000_000_000
const NO_LIMIT = ['', '0', '-1']
const TPS_UNITS = {
  sec: ['sec', 'second', 'seconds'],
  min: ['min', 'minute', 'minutes'],
  hour: ['hour', 'hours'],
} as const

/** `maxTps`: requests per unit of all callers together, by key type. */
export function readHardLimits(project: YamlFile): HardLimits {
  return { production: readHardLimit(project, 'production'), sandbox: readHardLimit(project, 'sandbox') }
}

function readHardLimit(file: YamlFile, keyType: keyof HardLimits): HardLimits[typeof keyType] {
  const at = ['data', 'maxTps', keyType]
  const unitAt = ['data', 'maxTps', `${keyType}TimeUnit`]
  const given = file.optional(at)
  if (NO_LIMIT.includes(given)) return null
  const limit = /^\d{1,10}$/.test(given) ? Number(given) : 0
  if (limit < 1 || limit > TPS_MAX) {
    file.error(at, given, `expected a whole number from 1 to ${TPS_MAX}`, 'leave it out for no limit')
    return null
  }
  const unit = (file.optional(unitAt) || 'second').toLowerCase()
  const known = (['sec', 'min', 'hour'] as const).find(each => (TPS_UNITS[each] as readonly string[]).includes(unit))
  if (known === undefined) file.error(unitAt, unit, 'expected SECOND, MINUTE or HOUR', 'leave it out for SECOND')
  return { limit, unit: known ?? 'sec' }
}
