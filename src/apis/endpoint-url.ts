/** Rules for the URL of a backend: what two parties could read differently is refused (D15). */
import type { TemplatePiece } from '../mediation/endpoint-plan.ts'
import type { Violation } from './yaml-file.ts'

/** Path and host of the URL go into every request head, which has room for that much. */
const URL_CHARS_MAX = 2048
const URL_PARTS = /^(?:http|ws)s?:\/\/([^/?#]*)([^?#]*)([?#]?)/i
/** The URL parser accepts `{host}` and `${HOST}`, which are no names; it turns international names into ASCII. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.-]+)$/

/** Why the URL is no address of a backend, with a remedy; undefined for one that is. */
export function urlViolation(url: string): Violation | undefined {
  const violation = visibleUrlViolation(url)
  return violation === undefined ? undefined : [violation[0], violation[1], maskCredentials(url)]
}

/** Stands for a variable while the rest of its URL is checked. */
const SEGMENT = 'uri.var'
const VARIABLE = /\{(uri\.var\.[\w.-]+)\}/g

/** A URL with `{uri.var.NAME}` in its path, in two parts; null for another one. */
export function templateOf(url: string): { readonly base: string; readonly pieces: readonly TemplatePiece[] } | null {
  const [, authority = '', path = ''] = URL_PARTS.exec(url) ?? []
  const at = path.indexOf('{')
  if (at < 0 || authority.includes('{')) return null
  const start = url.indexOf('//') + '//'.length + authority.length + path.lastIndexOf('/', at)
  const parts = url.slice(start).split(VARIABLE)
  const pieces = parts.flatMap((part, index): TemplatePiece[] => {
    return index % 2 === 1 ? [{ name: part, keeps: false }] : part === '' ? [] : [part]
  })
  return { base: url.slice(0, start + 1), pieces }
}

/** As `urlViolation`, of a URL that may have variables in its path. */
export function templateViolation(url: string): Violation | undefined {
  if (templateOf(url) === null) return urlViolation(url)
  const violation = visibleUrlViolation(url.replace(VARIABLE, SEGMENT))
  if (violation === undefined) return undefined
  const [expected, remedy] = violation
  return [expected, remedy.replaceAll(SEGMENT, '{uri.var.…}'), maskCredentials(url)]
}

function visibleUrlViolation(url: string): Violation | undefined {
  if (url.length > URL_CHARS_MAX) return [`must be at most ${URL_CHARS_MAX} characters long`, 'shorten its path']
  const parts = URL_PARTS.exec(url)
  if (parts === null) return ['must be an http, https, ws or wss URL', 'for example http://backend.example:8080/base']
  const [, authority = '', path = '', rest] = parts
  if (authority.includes('@')) return ['must not hold a user or password', 'remove what stands before the "@"']
  if (rest === '#') return ['must not hold a fragment', 'remove the "#" and what follows']
  if (rest === '?') return ['must not hold a query', 'the query of each request is passed on unchanged']
  if (/\{\+?uri\.var\./.test(url)) {
    const remedy =
      'write endpoint_type: default, and <send> with <http uri-template="…"> in a sequence of the request flow'
    return ['has a variable that endpoints of APIs do not take', remedy]
  }
  // The URL parser drops tabs and line ends and repairs much else; a URL that needs repair is refused.
  const parsed = /[\s\\]/.test(url) ? null : URL.parse(url)
  if (parsed === null || authority === '' || !hasValidPort(authority) || !HOST.test(parsed.hostname)) {
    return ['must name a host, and a port from 1 to 65535 if any', 'for example http://backend.example:8080/base']
  }
  if (parsed.pathname === (path || '/')) return undefined
  return ['its path would be read differently by different parties', `write ${parsed.origin}${parsed.pathname}`]
}

/** No port, or one that is not 0; the URL parser refuses ports above 65535. */
function hasValidPort(authority: string): boolean {
  const [, port] = /^(?:\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority) ?? []
  return port === undefined || /^0*[1-9]\d*$/.test(port)
}

function maskCredentials(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//(set)@').replace(/\?[\s\S]*$/, '?(set)')
}
