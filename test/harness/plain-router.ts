/**
 * Model of the router, simple and slow, with which tests compare the real one: it compares every API and every template
 * with the request, and decodes, splits and encodes paths. The model shares no code with the gateway.
 */

export interface PlainApi {
  readonly name: string
  /** As declared; APIs have distinct ones for each host. */
  readonly paths: readonly string[]
  /** Host names, in any case; none: all. */
  readonly hosts: readonly string[]
  /** Treatment of escaped slashes. */
  readonly slashes: 'refuse' | 'pass' | 'decode'
  /** `GET /a/{b}`, in the order of their declaration; none: everything. */
  readonly operations: readonly string[]
}

export interface PlainAnswer {
  readonly api: string
  readonly template: string
  /** Verb of the operation: `GET`, `*`, '' for none. */
  readonly verb: string
  /** Target for the backend, behind the path of the API, with the query. */
  readonly rest: string
}

/** Stands for an escaped "+", which is matched like a plain one and passed on escaped. */
const ESCAPED_PLUS = '\u{f8ff}'
/** Stands for an escaped slash that is part of a segment. */
const KEPT_SLASH = '\u{f8fe}'
const LETTERS = /[A-Za-z0-9\-._~!$&'()*+,=:@]/

interface PlainPath {
  /** Decoded. */
  readonly segments: readonly string[]
  readonly isSlashed: boolean
  /** Whether a segment was "." or "..". */
  readonly isDotted: boolean
}

/** An API at one of its paths. */
interface Place {
  readonly api: PlainApi
  readonly own: boolean
  readonly declared: readonly string[]
}

/** Finds API and operation of a request. `target`: one character per byte. `nobody`: no API has the path. */
export function plainRoute(
  apis: readonly PlainApi[],
  method: string,
  target: string,
  authority: string,
): PlainAnswer | 'refused' | 'nobody' {
  const at = target.indexOf('?')
  const query = at < 0 ? '' : target.slice(at)
  const text = at < 0 ? target : target.slice(0, at)
  const host = authority.replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase()
  const places = apis
    .flatMap(api =>
      api.paths.map(declared => ({
        api,
        own: api.hosts.length > 0,
        declared: declared === '/' ? [] : segmentsOf(declared),
      })),
    )
    .filter(({ api: { hosts } }) => hosts.length === 0 || hosts.some(name => name.toLowerCase() === host))
  if (!/%2f/i.test(text)) {
    const path = readPlainPath(text)
    if (path === undefined) return 'refused'
    const place = placeOf(places, path)
    return place === undefined ? 'nobody' : answer(place, method, path, query)
  }
  // Both readings of an escaped slash must lead to the same API at the same place.
  const kept = readPlainPath(text.replace(/%2f/gi, '\xef\xa3\xbe'))
  const decoded = readPlainPath(text.replace(/%2f/gi, '/'))
  if (kept === undefined || decoded === undefined || kept.isDotted || decoded.isDotted) return 'refused'
  const [place, other] = [placeOf(places, kept), placeOf(places, decoded)]
  if (place === undefined || place !== other || place.api.slashes === 'refuse') return 'refused'
  const [asKept, asDecoded] = [answer(place, method, kept, query), answer(place, method, decoded, query)]
  if (place.api.slashes === 'decode') return asDecoded
  return asDecoded.template === '' || asDecoded.template === asKept.template ? asKept : 'refused'
}

function placeOf(places: readonly Place[], { segments }: PlainPath): Place | undefined {
  const matched = segments.map(withoutEscapedPlus)
  return places
    .filter(({ declared }) => declared.every((segment, index) => segment === matched[index]))
    .sort((one, other) => other.declared.length - one.declared.length || Number(other.own) - Number(one.own))[0]
}

function answer({ api, declared }: Place, method: string, path: PlainPath, query: string): PlainAnswer {
  const rest = path.segments.slice(declared.length)
  const wanted = { ...path, segments: rest.map(withoutEscapedPlus) }
  const text = rest.map(segment => `/${encode(segment)}`).join('') + (path.isSlashed ? '/' : '')
  return { api: api.name, ...plainOperation(api.operations, method, wanted), rest: text + query }
}

/** Decodes and splits a path; undefined where the path has to be refused. */
function readPlainPath(text: string): PlainPath | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined
  if (/[\0-\x20#;\\\x7f]/.test(text)) return undefined
  if (/%(?:[01][0-9A-F]|2F|3B|5C|7F)/i.test(text)) return undefined
  const bytes = text.replace(/%2b/gi, '\xef\xa3\xbf').replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => {
    return String.fromCharCode(Number.parseInt(digits, 16))
  })
  const decoded = utf8(bytes)
  if (decoded === undefined || /%[0-9A-Fa-f]{2}/.test(decoded)) return undefined
  const kept: string[] = []
  const parts = decoded.split('/').slice(1)
  for (const part of parts) {
    if (part === '..' && kept.pop() === undefined) return undefined
    if (part !== '..' && part !== '.' && part !== '') kept.push(part)
  }
  const isDotted = parts.includes('.') || parts.includes('..')
  return { segments: kept, isSlashed: ['', '.', '..'].includes(parts.at(-1) ?? 'none'), isDotted }
}

function utf8(bytes: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes, 'latin1'))
  } catch {
    return undefined
  }
}

function withoutEscapedPlus(segment: string): string {
  return segment.replaceAll(ESCAPED_PLUS, '+')
}

/** Decoded segments of a declared path or template, whose literals may be escaped or not. */
function segmentsOf(declared: string): readonly string[] {
  const segments = declared.split('/').slice(1)
  return segments.map(segment => decodeURIComponent(segment.replace(/%(?![0-9A-F]{2})/g, '%25')))
}

function encode(segment: string): string {
  return [...segment]
    .map(character => {
      if (character === ESCAPED_PLUS) return '%2B'
      if (character === KEPT_SLASH) return '%2F'
      if (LETTERS.test(character)) return character
      return [...Buffer.from(character)].map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
    })
    .join('')
}

interface Candidate {
  readonly template: string
  /** The template without the names of variables: templates of one shape are one resource. */
  readonly shape: string
  readonly verbs: readonly string[]
}

function plainOperation(
  operations: readonly string[],
  method: string,
  path: PlainPath,
): Pick<PlainAnswer, 'template' | 'verb'> {
  if (operations.length === 0) return { template: '/*', verb: '*' }
  const candidates: Candidate[] = []
  for (const text of operations) {
    const verb = text.slice(0, text.indexOf(' '))
    const template = text.slice(verb.length + 1)
    const shape = template.replace(/\{[^/]*?\}/g, '{}')
    const known = candidates.findIndex(candidate => candidate.shape === shape)
    if (known < 0) candidates.push({ template, shape, verbs: [verb] })
    else candidates[known] = { ...candidates[known]!, verbs: [...candidates[known]!.verbs, verb] }
  }
  const fitting = candidates.filter(({ template }) => fits(template, path))
  const [best] = fitting.sort((one, other) => compare(one, other, path, candidates))
  if (best === undefined) return { template: '', verb: '' }
  const served = [method, method === 'HEAD' ? 'GET' : method, '*'].find(verb => best.verbs.includes(verb))
  return { template: best.template, verb: served ?? '' }
}

/** Splits a template such as `/a/*` or `/a/` into its segments and its end. */
function take(template: string): { readonly segments: readonly string[]; readonly end: '' | '/' | '/*' } {
  const all = template === '/' ? [''] : template.split('/').slice(1)
  const last = all.at(-1)
  const end = template === '/' ? '/' : last === '*' ? '/*' : last === '' ? '/' : ''
  return { segments: end === '' ? all : all.slice(0, -1), end }
}

function fits(template: string, path: PlainPath): boolean {
  const { segments, end } = take(template)
  if (end === '/*' ? path.segments.length < segments.length : path.segments.length !== segments.length) return false
  return segments.every((segment, index) => segmentFits(segment, path.segments[index]!))
}

function segmentFits(declared: string, segment: string): boolean {
  const pieces = piecesOf(declared)
  return new RegExp(`^${pieces.map(RegExp.escape).join('.+?')}$`, 'su').test(segment)
}

/** Decoded literals around the variables. */
function piecesOf(declared: string): readonly string[] {
  return declared.split(/\{[^}]*\}/).map(piece => segmentsOf(`/${piece}`)[0]!)
}

/** Negative where `one` is more specific; both fit the path. */
function compare(one: Candidate, other: Candidate, path: PlainPath, all: readonly Candidate[]): number {
  const [first, second] = [take(one.template), take(other.template)]
  for (let at = 0; at < Math.max(first.segments.length, second.segments.length); at++) {
    const [mine, theirs] = [first.segments[at], second.segments[at]]
    if (mine === undefined || theirs === undefined) return mine === undefined ? 1 : -1
    const difference = rank(mine) - rank(theirs)
    if (difference !== 0) return difference
    const [prefix, otherPrefix] = [prefixOf(one, at), prefixOf(other, at)]
    if (prefix !== otherPrefix) return declaredAt(all, prefix, at) - declaredAt(all, otherPrefix, at)
  }
  const ends = path.isSlashed ? ['/', '', '/*'] : ['', '/', '/*']
  return ends.indexOf(first.end) - ends.indexOf(second.end)
}

/** Smaller is more specific. */
function rank(segment: string): number {
  const pieces = piecesOf(segment)
  if (pieces.length === 1) return 0
  const literal = pieces.map(encode).join('').length
  return 1_000_000 - literal
}

function prefixOf({ shape }: Candidate, at: number): string {
  return take(shape)
    .segments.slice(0, at + 1)
    .join('/')
}

/** Index of the first candidate, in the order of declaration, that begins with the prefix. */
function declaredAt(all: readonly Candidate[], prefix: string, at: number): number {
  return all.findIndex(candidate => prefixOf(candidate, at) === prefix)
}
