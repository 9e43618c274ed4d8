/** A second, naive implementation of searches: every resource is read whole, and nothing is indexed. */
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import type { SearchFilter, SearchQuery } from '../../../src/mounted/healthcare/search-query.ts'
import type { SearchValue } from '../../../src/mounted/healthcare/search-values.ts'
import { BASE } from './storage-databases.ts'

interface Coding {
  readonly system?: string
  readonly code?: string
  readonly display?: string
}

interface Member extends Coding {
  readonly coding?: readonly Coding[]
  readonly text?: string
  readonly value?: string
  readonly type?: { readonly coding?: readonly Coding[]; readonly text?: string }
  readonly reference?: string
  readonly identifier?: { readonly system?: string; readonly value?: string }
  readonly display?: string
}

/** Ids of all matches, in order. `resources`: as stored, in the order of their creation. */
export function modelSearch(resources: readonly JsonObject[], query: SearchQuery, nowMs: number): readonly string[] {
  const found = resources.filter(resource => query.filters.every(filter => matches(resource, filter, nowMs)))
  const lastKey = query.sort.at(-1)
  const numbered = found.map((resource, index) => ({ resource, index }))
  numbered.sort((one, other) => {
    for (const { parameter, isDescending } of query.sort) {
      const [a, b] = [one, other].map(({ resource }) =>
        sortText(membersOf(resource, parameter.path), parameter, isDescending),
      )
      const order = Buffer.compare(Buffer.from(a!), Buffer.from(b!))
      if (order !== 0) return isDescending ? -order : order
    }
    return lastKey?.isDescending === true ? other.index - one.index : one.index - other.index
  })
  return numbered.map(({ resource }) => String(resource.id))
}

function membersOf(resource: JsonObject, path: readonly string[]): readonly unknown[] {
  return path.reduce<readonly unknown[]>(
    (values, name) => values.flatMap(value => (value as JsonObject)[name] ?? []).filter(value => value !== null),
    [resource],
  )
}

function sortText(members: readonly unknown[], { shape }: SearchFilter['parameter'], isDescending: boolean): string {
  const texts = members.flatMap(member => {
    if (typeof member !== 'object') return shape === 'string' ? [folded(String(member))] : [String(member)]
    const { coding, text, value, reference, display, code } = member as Member
    if (shape === 'Reference') return [reference ?? folded(display ?? '')]
    if (shape === 'Identifier') return [(value ?? '').toLowerCase()]
    if (shape === 'Coding') return [(code ?? '').toLowerCase()]
    return coding === undefined ? [folded(text ?? '')] : coding.map(({ code = '' }) => code.toLowerCase())
  })
  const sorted = texts.filter(text => text !== '').sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return (isDescending ? sorted.at(-1) : sorted[0]) ?? ''
}

function folded(text: string): string {
  const plain = text.normalize('NFKD').toLowerCase().normalize('NFD')
  return [...plain]
    .filter(character => !/[\p{M}\p{P}]/u.test(character))
    .join('')
    .split(/\s+/u)
    .filter(word => word !== '')
    .join(' ')
}

function matches(resource: JsonObject, filter: SearchFilter, nowMs: number): boolean {
  const members = membersOf(resource, filter.parameter.path)
  if (filter.kind === 'missing') return (members.length === 0) === filter.isMissing
  const isMatch = filter.values.some(value => members.some(member => isMatched(member, value, filter, nowMs)))
  return filter.kind === 'none' ? !isMatch : isMatch
}

function isMatched(member: unknown, value: SearchValue, { parameter }: SearchFilter, nowMs: number): boolean {
  switch (value.kind) {
    case 'token':
      if (parameter.name === '_id') return member === value.code
      return codingsOf(member).some(coding => isCoding(coding, value))
    case 'of-type': {
      const { type, value: own = '' } = member as Member
      const isOfType = type?.coding?.some(({ system, code }) => system === value.system && same(code, value.code))
      return isOfType === true && same(own, value.value)
    }
    case 'string':
      return textsOf(member).some(text => isText(text, value))
    case 'reference':
      return isReference((member as Member).reference ?? '', value, parameter.target)
    case 'reference-identifier': {
      const { identifier } = member as Member
      return identifier !== undefined && isCoding({ ...identifier, code: identifier.value ?? '' }, value)
    }
    case 'date':
      return isTime(Date.parse(String(member)), value, nowMs)
    case 'uri':
      return isUri(String(member), value)
  }
}

function codingsOf(member: unknown): readonly Coding[] {
  if (typeof member !== 'object') return [{ code: String(member) }]
  const { coding, value, system, code } = member as Member
  if (coding !== undefined) return coding
  return [{ ...(system === undefined ? {} : { system }), code: value ?? code ?? '' }]
}

function same(one: string | undefined, other: string): boolean {
  return one?.toLowerCase() === other.toLowerCase()
}

function isCoding(coding: Coding, { system, code }: { readonly system: string | null; readonly code: string | null }) {
  const isSystem = system === null || (coding.system ?? '') === system
  return isSystem && (code === null || (code !== '' && same(coding.code, code)))
}

function textsOf(member: unknown): readonly string[] {
  if (typeof member === 'string') return [member]
  const { text, coding = [], display, type } = member as Member
  const displays = [...coding, ...(type?.coding ?? [])].map(({ display }) => display)
  return [text, display, type?.text, ...displays].filter(each => each !== undefined)
}

function isText(text: string, value: SearchValue & { readonly kind: 'string' }): boolean {
  if (value.match === 'exact') return text === value.text
  const wanted = folded(value.text)
  if (wanted === '') return false
  return value.match === 'starts' ? folded(text).startsWith(wanted) : folded(text).includes(wanted)
}

function isReference(text: string, value: SearchValue & { readonly kind: 'reference' }, target: string): boolean {
  if (text === '' || text.startsWith('#')) return false
  const absolute = (reference: string): string => (/^[a-z]+:/.test(reference) ? reference : `${BASE}/${reference}`)
  const [own = '', version = ''] = absolute(text).split('/_history/')
  const wanted = value.url === '' ? `${BASE}/${value.type || target}/${value.id}` : value.url
  return own === wanted && (value.version === '' || version === value.version)
}

function isUri(uri: string, { match, uri: wanted }: SearchValue & { readonly kind: 'uri' }): boolean {
  const [unversioned = ''] = uri.split('|')
  const isBelow = (one: string, other: string): boolean =>
    one === other || one.startsWith(`${other.replace(/\/$/, '')}/`)
  if (match === 'exact') return uri === wanted || unversioned === wanted
  return match === 'below' ? isBelow(unversioned, wanted) : isBelow(wanted, unversioned)
}

function isTime(
  ms: number,
  { prefix, startMs, endMs }: SearchValue & { readonly kind: 'date' },
  nowMs: number,
): boolean {
  const isWithin = ms >= startMs && ms < endMs
  const gap = 0.1 * Math.max(0, startMs - nowMs, nowMs - endMs)
  const rules = {
    eq: isWithin,
    ne: !isWithin,
    gt: ms >= endMs,
    lt: ms < startMs,
    ge: ms >= endMs || isWithin,
    le: ms < startMs || isWithin,
    sa: ms >= endMs,
    eb: ms < startMs,
    ap: ms >= startMs - gap && ms < endMs + gap,
  }
  return rules[prefix]
}
