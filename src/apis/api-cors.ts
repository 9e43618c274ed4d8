/**
 * Reads the CORS settings of an API: `corsConfiguration` of a project, `x-wso2-cors` of an OpenAPI document. Settings
 * that the API omits come from `[apim.cors]`.
 */
import type { Configuration } from '../config/catalogue.ts'
import { CORS_LINE_LIMIT, fitsCorsLine, isWildcardOrigin } from '../config/cors-rules.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import type { ApiDefinition, CorsOverrides } from './api-definition.ts'
import { isFieldName } from '../config/kinds.ts'
import { dashed } from './project-members.ts'
import type { Path, YamlFile } from './yaml-file.ts'

/** A year. Browsers cache preflight responses for less. */
const AGE_MAX_S = 31_536_000

/** Null without CORS settings, and where they are not enabled: exported projects contain them switched off. */
export function readCors(file: YamlFile, at: Path): CorsOverrides | null {
  if (!file.has(at) || !file.flag(pathOf(file, at, 'corsConfigurationEnabled'), false)) return null
  const names = (name: string): readonly string[] | undefined => readNames(file, pathOf(file, at, name))
  const credentialsAt = pathOf(file, at, 'accessControlAllowCredentials')
  const credentials = file.has(credentialsAt) ? file.flag(credentialsAt, false) : undefined
  const origins = readList(file, pathOf(file, at, 'accessControlAllowOrigins'))
  const open = credentials ? origins?.find(isWildcardOrigin) : undefined
  if (open !== undefined) {
    const expected = `has no effect for the origin "${open}", which any site can match`
    file.warn(credentialsAt, true, expected, 'name the origins, or set it to false')
  }
  return {
    enabled: true,
    ...entry('origins', origins),
    ...entry('methods', names('accessControlAllowMethods')),
    ...entry('headers', names('accessControlAllowHeaders')),
    ...entry('exposedHeaders', names('accessControlExposeHeaders')),
    ...entry('credentials', credentials),
    ...entry('maxAgeS', readAge(file, pathOf(file, at, 'accessControlMaxAge'))),
  }
}

function entry<K extends keyof CorsOverrides>(key: K, value: CorsOverrides[K] | undefined): Partial<CorsOverrides> {
  return value === undefined ? {} : { [key]: value }
}

/** Documents also spell `accessControlAllowOrigins` as `access-control-allow-origins`. */
function pathOf(file: YamlFile, at: Path, name: string): Path {
  const path = [...at, name]
  if (file.has(path)) return path
  const other = [...at, dashed(name)]
  return file.has(other) ? other : path
}

function readList(file: YamlFile, path: Path): readonly string[] | undefined {
  return file.has(path) ? file.texts(path).map(text => text.trim()) : undefined
}

/**
 * Reads methods or field names; both are tokens (RFC 9110 5.1, 9.1). Invalid names and lists that are too long are
 * errors and left out, because the names go into response heads as they are. One text may hold several names.
 */
function readNames(file: YamlFile, path: Path): readonly string[] | undefined {
  const listed = readList(file, path)
  if (listed === undefined) return undefined
  const isList = file.lengthOf(path) !== undefined
  const given = isList ? listed : listed.flatMap(text => text.split(',')).map(name => name.trim())
  for (const [item, name] of given.entries()) {
    if (name === '' || isFieldName(name)) continue
    const hint = 'write one name an item, without spaces and colons'
    file.error(isList ? [...path, item] : path, name, 'expected the name of a method or field', hint)
  }
  const names = given.filter(isFieldName)
  if (fitsCorsLine(names)) return names
  file.error(path, undefined, `must be ${CORS_LINE_LIMIT}`, 'leave some out')
  return []
}

function readAge(file: YamlFile, path: Path): number | undefined {
  const text = file.optional(path)
  if (text === '') return undefined
  const age = /^(?:-1|\d{1,8})$/.test(text) ? Number(text) : Number.NaN
  if (age <= AGE_MAX_S) return age
  file.error(path, text, `expected seconds, at most ${AGE_MAX_S}`, "or -1 for the browser's own default")
  return undefined
}

/**
 * Warns where an API grants no credentials although `credentials` is set: one of `origins` and `credentials` is its
 * own, the other one that of `[apim.cors]`. Where one file sets both, the reader of that file warns.
 */
export function corsCredentialsWarning(
  { name, version, cors }: Pick<ApiDefinition, 'name' | 'version' | 'cors'>,
  configuration: Configuration,
): Diagnostic | undefined {
  if (cors === null || !cors.enabled) return undefined
  const shared = configuration['apim.cors']
  const { origins, credentials } = cors
  if ((origins === undefined) === (credentials === undefined)) return undefined
  const open = (credentials ?? shared.allow_credentials) && (origins ?? shared.allow_origins).find(isWildcardOrigin)
  if (typeof open !== 'string') return undefined
  const [own, omitted] = origins === undefined ? ['credentials', 'origins'] : ['origins', 'credentials']
  return {
    where: `API ${name} ${version}`,
    key: '',
    given: '',
    expected: `CORS grants no credentials to the origin "${open}"; its ${omitted} come from [apim.cors]`,
    hint: `set ${omitted} in the API beside ${own}`,
  }
}
