/**
 * Terms of the search index. A term is a parameter with one searchable form of a value, hashed to 64 bits. Each
 * equality is then one lookup in one narrow index, in the order of resources.
 */
import { hash } from 'node:crypto'
import type { SearchParameter } from './search-parameters.ts'
import type { ReferenceValue, SearchValue, UriValue } from './search-values.ts'

/** Forms of values. */
type Form =
  | 'code'
  | 'code of system'
  | 'code without system'
  | 'system'
  | 'of type'
  | 'exact'
  | 'local id'
  | 'local'
  | 'local version'
  | 'url'
  | 'url version'
  | 'below'

const SEPARATOR = '\u0000'
/** Paths of a URL that are compared by `:above` and `:below`. */
const URL_PATHS_MAX = 32

/** 64 bits of SHA-256, signed: a client cannot choose values that collide. */
export function termOf(
  { number }: SearchParameter,
  form: Form | `identifier ${Form}`,
  ...parts: readonly string[]
): bigint {
  return hash('sha256', `${number}${SEPARATOR}${form}${SEPARATOR}${parts.join(SEPARATOR)}`, 'buffer').readBigInt64BE(0)
}

/** Codes are compared without case: R4 prefers a match too many to one too few. */
export function foldCode(code: string): string {
  return code.toLowerCase()
}

/** Case, combining marks, punctuation and repeated white space do not count. */
export function foldText(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\p{M}\p{P}\p{Cc}]+/gu, match => (/[\t\n\r]/.test(match) ? ' ' : ''))
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .replace(/\s+/gu, ' ')
    .trim()
}

/** All terms of a system and a code, '' where one is missing. `of`: of the identifier of a reference. */
export function tokenTerms(
  parameter: SearchParameter,
  system: string,
  code: string,
  of: '' | 'identifier ' = '',
): bigint[] {
  const terms: bigint[] = []
  if (system !== '') terms.push(termOf(parameter, `${of}system`, system))
  if (code === '') return terms
  const folded = foldCode(code)
  terms.push(termOf(parameter, `${of}code`, folded))
  if (system === '') terms.push(termOf(parameter, `${of}code without system`, folded))
  else terms.push(termOf(parameter, `${of}code of system`, system, folded))
  return terms
}

/** The URL itself and each of its paths, without a slash at the end; only the URL where it has no authority. */
export function urlPaths(url: string): readonly string[] {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/[^/]+/i.exec(url)?.[0]
  if (authority === undefined) return [url]
  const paths = [authority]
  for (const segment of url.slice(authority.length).split('/').slice(1)) {
    if (paths.length === URL_PATHS_MAX) break
    if (segment !== '') paths.push(`${paths.at(-1)}/${segment}`)
  }
  return paths
}

/**
 * Terms of which each is a match of `value`. `base`: the URL below which references are local, without a slash at its
 * end. Undefined for values that no term answers.
 */
export function searchedTerms(
  parameter: SearchParameter,
  value: SearchValue,
  base: string,
): readonly bigint[] | undefined {
  switch (value.kind) {
    case 'token':
    case 'reference-identifier':
      return [tokenTerm(parameter, value, value.kind === 'token' ? '' : 'identifier ')]
    case 'of-type':
      return [termOf(parameter, 'of type', value.system, foldCode(value.code), foldCode(value.value))]
    case 'string':
      return value.match === 'exact' ? [termOf(parameter, 'exact', value.text)] : undefined
    case 'reference':
      return referenceTerms(parameter, value, base)
    case 'uri':
      return uriTerms(parameter, value)
    case 'date':
      return undefined
  }
}

function tokenTerm(
  parameter: SearchParameter,
  { system, code }: { readonly system: string | null; readonly code: string | null },
  of: '' | 'identifier ',
): bigint {
  if (code === null) return termOf(parameter, `${of}system`, system!)
  const folded = foldCode(code)
  if (system === null) return termOf(parameter, `${of}code`, folded)
  if (system === '') return termOf(parameter, `${of}code without system`, folded)
  return termOf(parameter, `${of}code of system`, system, folded)
}

/** A local reference may be stored in its relative form and as an absolute URL. */
function referenceTerms(parameter: SearchParameter, value: ReferenceValue, base: string): readonly bigint[] {
  const isLocalUrl = value.url !== '' && base !== '' && value.url.startsWith(`${base}/`)
  const relative = isLocalUrl ? value.url.slice(base.length + 1) : ''
  const [type, id] = isLocalUrl ? relative.split('/') : [value.type || parameter.target, value.id]
  const path = isLocalUrl ? relative : `${type}/${id}`
  const url = value.url === '' ? `${base}/${path}` : value.url
  if (value.version !== '') {
    const ofUrl = termOf(parameter, 'url version', url, value.version)
    return value.url !== '' && !isLocalUrl ? [ofUrl] : [termOf(parameter, 'local version', path, value.version), ofUrl]
  }
  const ofUrl = termOf(parameter, 'url', url)
  if (value.url !== '' && !isLocalUrl) return [ofUrl]
  const isOfEveryType = value.url === '' && value.type === ''
  return [isOfEveryType ? termOf(parameter, 'local id', id!) : termOf(parameter, 'local', path), ofUrl]
}

function uriTerms(parameter: SearchParameter, { match, uri }: UriValue): readonly bigint[] {
  if (match === 'exact') return [termOf(parameter, 'exact', uri)]
  const paths = urlPaths(uri)
  if (match === 'below') return [termOf(parameter, 'below', paths.at(-1)!)]
  return paths.flatMap(path => [termOf(parameter, 'exact', path), termOf(parameter, 'exact', `${path}/`)])
}
