/**
 * Context and version of an API: which are valid, and the paths that follow from them. Routing compares bytes, so a
 * context that two parties could read as different paths is refused here, not normalised later.
 */
import { SEGMENTS_MAX } from '../route/scanned-path.ts'
import type { Violation } from './yaml-file.ts'

// RFC 3986 3.3: pchar without escapes and without ";", which some backends read as the start of a parameter.
const SEGMENT = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/
const VERSION = /^[A-Za-z0-9._~-]{1,64}$/
const VERSION_SEGMENT = '/{version}'

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
  if (segments.filter(segment => segment === '{version}').length > 1) {
    return ['must hold {version} only once', 'remove the others']
  }
  const odd = segments.find(segment => segment !== '{version}' && !SEGMENT.test(segment))
  if (odd === undefined) return undefined
  const expected = `the segment ${JSON.stringify(odd)} holds a character that is not allowed`
  return [expected, "use letters, digits and -._~!$&'()*+,=:@, or the segment {version}"]
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
 * version in its place; for the default version that segment is left out. The path `/` leads to every path.
 */
export function apiPaths(context: string, version: string, isDefaultVersion: boolean): readonly string[] {
  const at = context.indexOf(VERSION_SEGMENT)
  const before = context === '/' ? '' : at < 0 ? context : context.slice(0, at)
  const after = at < 0 ? '' : context.slice(at + VERSION_SEGMENT.length)
  const versioned = `${before}/${version}${after}`
  return isDefaultVersion ? [versioned, `${before}${after}` || '/'] : [versioned]
}
