/**
 * Context and version of an API: which are valid, and the paths that follow from them. Routing compares bytes, so a
 * context that two parties could read as different paths is refused here, not normalised later.
 */
import { SEGMENTS_MAX } from '../route/scanned-path.ts'
import type { Violation } from './yaml-file.ts'

// RFC 3986 3.3: pchar without escapes and without ";", which some backends read as the start of a parameter.
const SEGMENT = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/
const VERSION = /^[A-Za-z0-9._~-]{1,64}$/
const VERSION_PLACE = '{version}'
const VERSION_SEGMENT = `/${VERSION_PLACE}`
const VARIABLE = /^\{([A-Za-z_][\w.-]{0,63})\}$/

const CONTEXT_CHARS_MAX = 2048
/** With the version, half of what the router counts: the other half is for resource templates. */
const CONTEXT_SEGMENTS_MAX = SEGMENTS_MAX / 2 - 1

export function contextViolation(context: string): Violation | undefined {
  if (context.length > CONTEXT_CHARS_MAX) return [`must have at most ${CONTEXT_CHARS_MAX} characters`, 'shorten it']
  if (!context.startsWith('/')) return ['must start with "/"', `write /${context}`]
  if (context === '/') return undefined
  if (context.endsWith('/')) return ['must not end with "/"', `write ${context.replace(/\/+$/, '')}`]
  const segments = context.slice(1).split('/')
  if (segments.length > CONTEXT_SEGMENTS_MAX) {
    return [`must have at most ${CONTEXT_SEGMENTS_MAX} segments`, 'shorten it']
  }
  if (segments.includes('')) return ['must not hold "//"', `write ${context.replace(/\/+/g, '/')}`]
  if (context.includes('%')) return ['must not hold percent escapes', 'use letters that need none']
  if (segments.some(isDotSegment)) return ['must not hold dot segments', 'write the path they lead to']
  const odd = segments.find(segment => !VARIABLE.test(segment) && !SEGMENT.test(segment))
  if (odd === undefined) return variableViolation(segments.filter(segment => VARIABLE.test(segment)))
  const expected = `the segment ${JSON.stringify(odd)} holds a character that is not allowed`
  return [expected, "use letters, digits and -._~!$&'()*+,=:@, or the segments {version} and {name}"]
}

/** `variables`: the segments in braces, in order. */
function variableViolation(variables: readonly string[]): Violation | undefined {
  const twice = variables.find((variable, at) => variables.indexOf(variable) !== at)
  if (twice !== undefined) return [`must hold ${twice} only once`, 'remove the others']
  const misspelt = variables.find(variable => variable !== VERSION_PLACE && variable.toLowerCase() === VERSION_PLACE)
  if (misspelt !== undefined) return [`${misspelt} is a variable, not the version`, `write ${VERSION_PLACE}`]
  // The path of the default version leaves {version} out, and no other variable may move by that.
  if (variables.slice(0, -1).includes(VERSION_PLACE)) {
    return [`must not hold ${variables.at(-1)!} behind ${VERSION_PLACE}`, `put ${VERSION_PLACE} behind the variables`]
  }
  return undefined
}

/** Variables of a context, by the index of their segments. */
export function contextVariables(path: string): readonly (readonly [segment: number, name: string])[] {
  const segments = path.slice(1).split('/')
  return segments.flatMap((text, segment) => {
    const name = VARIABLE.exec(text)?.[1]
    return name === undefined ? [] : [[segment, name] as const]
  })
}

/** The path with every variable alike: two paths with one key serve the same requests. */
export function pathKey(path: string): string {
  return path.replace(/\{[^{}]*\}/g, '{}')
}

/** `isUnversioned`: the declared flag. */
export function unversionedViolation(context: string, isUnversioned: boolean): Violation | undefined {
  if (!isUnversioned || !context.includes(VERSION_PLACE)) return undefined
  return [`has ${VERSION_PLACE}, although the API is unversioned`, `remove ${VERSION_SEGMENT}, or isUnversioned`]
}

export function versionViolation(version: string): Violation | undefined {
  if (VERSION.test(version) && !isDotSegment(version)) return undefined
  return ['must be one path segment of letters, digits and "-._~"', 'for example 1.0.0']
}

function isDotSegment(segment: string): boolean {
  return segment === '.' || segment === '..'
}

/**
 * The paths of an API: `/context/version`, and `/context` for the default version. A context with `{version}` has the
 * version in its place; for the default version that segment is left out. An unversioned API has its context alone. The
 * path `/` leads to every path.
 */
export function apiPaths(
  context: string,
  version: string,
  isDefaultVersion: boolean,
  isUnversioned = false,
): readonly string[] {
  if (isUnversioned) return [context]
  const at = context.indexOf(VERSION_SEGMENT)
  const before = context === '/' ? '' : at < 0 ? context : context.slice(0, at)
  const after = at < 0 ? '' : context.slice(at + VERSION_SEGMENT.length)
  const versioned = `${before}/${version}${after}`
  return isDefaultVersion ? [versioned, `${before}${after}` || '/'] : [versioned]
}
