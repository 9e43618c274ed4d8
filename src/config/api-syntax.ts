/**
 * What a context, a version and an endpoint URL may look like. Routing compares bytes, so whatever two parties could
 * read as different paths (dot segments, escapes, doubled slashes) is refused here instead of being normalised there.
 */
import { SEGMENTS_MAX } from '../structure/scanned-path.ts'

/** What was expected, what to do, and how to show the value where it may hold credentials. */
export type Objection = readonly [expected: string, remedy: string, shown?: string]

// RFC 3986 3.3, pchar without escapes and without ";", which some backends take for the start of a parameter.
const SEGMENT = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/

const CONTEXT_CHARS_MAX = 2048
/** With its version half of what routing counts: the other half is for the templates behind it. */
const CONTEXT_SEGMENTS_MAX = SEGMENTS_MAX / 2 - 1

export function contextFault(context: string): Objection | undefined {
  if (context.length > CONTEXT_CHARS_MAX) return [`must have at most ${CONTEXT_CHARS_MAX} characters`, 'shorten it']
  if (!context.startsWith('/')) return ['must start with "/"', `write /${context}`]
  if (context === '/') return ['must name at least one segment', 'for example /orders']
  if (context.endsWith('/')) return ['must not end with "/"', `write ${context.replace(/\/+$/, '')}`]
  const segments = context.slice(1).split('/')
  if (segments.length > CONTEXT_SEGMENTS_MAX) {
    return [`must have at most ${CONTEXT_SEGMENTS_MAX} segments`, 'shorten it']
  }
  if (segments.includes('')) return ['must not hold "//"', `write ${context.replace(/\/+/g, '/')}`]
  if (context.includes('%')) return ['must not hold percent escapes', 'use letters that need none']
  if (segments.some(isDots)) return ['must not hold dot segments', 'write the path they lead to']
  if (segments.filter(segment => segment === '{version}').length > 1) return ['must hold {version} once', 'drop one']
  const odd = segments.find(segment => segment !== '{version}' && !SEGMENT.test(segment))
  if (odd === undefined) return undefined
  const expected = `the segment ${JSON.stringify(odd)} holds a character that is not allowed`
  return [expected, "use letters, digits and -._~!$&'()*+,=:@, or the segment {version}"]
}

function isDots(segment: string): boolean {
  return segment === '.' || segment === '..'
}

export function versionFault(version: string): Objection | undefined {
  if (/^[A-Za-z0-9._~-]{1,64}$/.test(version) && !isDots(version)) return undefined
  return ['must be one path segment of letters, digits and "-._~"', 'for example 1.0.0']
}

/** Its path is put in front of that of every request, and its host behind it: there is room for so much. */
const URL_CHARS_MAX = 2048
const PARTS = /^(?:http|ws)s?:\/\/([^/?#]*)([^?#]*)([?#]?)/i

export function endpointFault(url: string): Objection | undefined {
  const shown = withoutCredentials(url)
  const objection = endpointObjection(url)
  return objection === undefined ? undefined : [objection[0], objection[1], shown]
}

function endpointObjection(url: string): Objection | undefined {
  if (url.length > URL_CHARS_MAX) return [`must be at most ${URL_CHARS_MAX} characters long`, 'shorten its path']
  const parts = PARTS.exec(url)
  if (parts === null) return ['must be an http, https, ws or wss URL', 'for example http://backend.example:8080/base']
  const [, authority = '', path = '', rest] = parts
  if (authority.includes('@')) return ['must not hold a user or password', 'remove what stands before the "@"']
  if (rest === '#') return ['must not hold a fragment', 'remove the "#" and what follows']
  if (rest === '?') return ['must not hold a query', 'the query of a request is passed on as it is']
  // The URL parser drops tabs and line ends and repairs a good deal more; nothing here is repaired.
  const parsed = /[\s\\]/.test(url) ? null : URL.parse(url)
  if (parsed === null || authority === '' || !hasPort(authority) || !HOST.test(parsed.hostname)) {
    return ['must name a host, and a port from 1 to 65535 if any', 'for example http://backend.example:8080/base']
  }
  if (parsed.pathname === (path || '/')) return undefined
  return ['its path would be read differently by different parties', `write ${parsed.origin}${parsed.pathname}`]
}

/** The URL parser takes `{host}` and `${HOST}`, which are no names; an international one is ASCII behind it. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.-]+)$/

/** A port after the host, or none at all; the URL parser has checked that it is at most 65535. */
function hasPort(authority: string): boolean {
  const [, port] = /^(?:\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority) ?? []
  return port === undefined || /^0*[1-9]\d*$/.test(port)
}

function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//(set)@').replace(/\?[\s\S]*$/, '?(set)')
}
