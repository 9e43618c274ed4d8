/** What an API says of CORS: `corsConfiguration` of a project, `x-wso2-cors` of a document. */
import { isEverybodys } from './any-origin.ts'
import type { CorsStatement } from './api-definition.ts'
import { CORS_LINE_LIMIT, fitsCorsLine } from './cors-line.ts'
import { isFieldName } from './kinds.ts'
import type { Path, YamlFile } from './yaml-file.ts'

/** A year: browsers remember for less. */
const AGE_MAX_S = 31_536_000

/** Null where nothing is said: also where it is not enabled, as exports have it that leave it to the gateway. */
export function readCors(file: YamlFile, at: Path): CorsStatement | null {
  if (!file.has(at) || !file.flag(placeOf(file, at, 'corsConfigurationEnabled'), false)) return null
  const names = (name: string): readonly string[] | undefined => readNames(file, placeOf(file, at, name))
  const place = placeOf(file, at, 'accessControlAllowCredentials')
  const credentials = file.has(place) ? file.flag(place, false) : undefined
  const origins = readList(file, placeOf(file, at, 'accessControlAllowOrigins'))
  const open = credentials ? origins?.find(isEverybodys) : undefined
  if (open !== undefined) {
    const expected = `nobody gets credentials where the origin is "${open}"`
    file.warn(place, true, expected, 'name the origins, or set it to false')
  }
  return {
    enabled: true,
    ...said('origins', origins),
    ...said('methods', names('accessControlAllowMethods')),
    ...said('headers', names('accessControlAllowHeaders')),
    ...said('exposedHeaders', names('accessControlExposeHeaders')),
    ...said('credentials', credentials),
    ...said('maxAgeS', readAge(file, placeOf(file, at, 'accessControlMaxAge'))),
  }
}

function said<K extends keyof CorsStatement>(key: K, value: CorsStatement[K] | undefined): Partial<CorsStatement> {
  return value === undefined ? {} : { [key]: value }
}

/** `accessControlAllowOrigins`, or `access-control-allow-origins` as documents have it too. */
function placeOf(file: YamlFile, at: Path, name: string): Path {
  const path = [...at, name]
  if (file.has(path)) return path
  const dashed = [...at, name.replace(/[A-Z]/g, capital => `-${capital.toLowerCase()}`)]
  return file.has(dashed) ? dashed : path
}

function readList(file: YamlFile, path: Path): readonly string[] | undefined {
  return file.has(path) ? file.texts(path).map(text => text.trim()) : undefined
}

/**
 * Methods and names of fields are tokens both (RFC 9110 5.1, 9.1). What is none, or too long, is a fault and not among
 * them: what is written here stands in heads as it is. One text may hold several, as that of `[apim.cors]` may.
 */
function readNames(file: YamlFile, path: Path): readonly string[] | undefined {
  const listed = readList(file, path)
  if (listed === undefined) return undefined
  const isList = file.lengthOf(path) !== undefined
  const given = isList ? listed : listed.flatMap(text => text.split(',')).map(name => name.trim())
  for (const [item, name] of given.entries()) {
    if (name === '' || isFieldName(name)) continue
    const remedy = 'write one name an item, without spaces and colons'
    file.object(isList ? [...path, item] : path, name, 'expected the name of a method or field', remedy)
  }
  const names = given.filter(isFieldName)
  if (fitsCorsLine(names)) return names
  file.object(path, undefined, `must be ${CORS_LINE_LIMIT}`, 'leave some out')
  return []
}

function readAge(file: YamlFile, path: Path): number | undefined {
  const text = file.optional(path)
  if (text === '') return undefined
  const age = /^(?:-1|\d{1,8})$/.test(text) ? Number(text) : Number.NaN
  if (age <= AGE_MAX_S) return age
  file.object(path, text, `expected seconds, at most ${AGE_MAX_S}`, "or -1 for the browser's own default")
  return undefined
}
