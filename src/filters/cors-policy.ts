/**
 * CORS policy of an API or of the gateway: grants to origins and preflight responses (WHATWG Fetch, "CORS protocol").
 * Response lines are composed once: per policy for named origins, per origin for patterns, in a bounded cache. Patterns
 * are matched for an origin without a cached grant; every other request costs two map lookups at most.
 */
import { isAnyOrigin, isWildcardOrigin } from '../config/cors-rules.ts'
import type { CorsDefinition } from '../apis/api-definition.ts'
import { type CorsGrant, NO_OTHER_LINES } from '../proxy/exchange/exchange.ts'
import type { ResourcePath } from '../proxy/exchange/resource.ts'
import { isToken } from '../http1/token.ts'

/** Longest origin that is granted anything: a host name has at most 253 characters. */
const ORIGIN_CHARS_MAX = 300
/** Grants of origins that match a pattern and are kept. A client that invents origins displaces others, and no more. */
const MATCHED_ORIGINS_MAX = 256
/** Origins that `about` lists by name. */
const NAMES_SHOWN_MAX = 3
const VARY = 'Vary: Origin\r\n'

/** A grant with the start of its preflight response. */
interface PolicyGrant extends CorsGrant {
  /** Allow-Origin and Allow-Credentials, without Vary; '' where nothing is granted. */
  readonly preflightStart: string
}

export class CorsPolicy {
  /** Grant of every origin, where the policy allows `*`; else null. */
  readonly #any: PolicyGrant | null
  readonly #none: PolicyGrant
  readonly #named: ReadonlyMap<string, PolicyGrant>
  readonly #patterns: readonly OriginPattern[]
  /** Grants of origins that match a pattern, oldest first. */
  readonly #matched = new Map<string, PolicyGrant>()
  readonly #methods: readonly string[]
  /** End of a preflight response: Allow-Headers and Max-Age. */
  readonly #preflightEnd: string
  readonly #methodLines = new WeakMap<ResourcePath, string>()
  readonly #exposedHeaders: string
  readonly #credentials: boolean

  constructor({ origins, methods, headers, exposedHeaders, credentials, maxAgeS }: CorsDefinition) {
    const isOpen = origins.some(isAnyOrigin)
    // Fetch 3.2.5: browsers refuse `*` with credentials, and echoing every origin would give every site access.
    this.#credentials = credentials && !isOpen
    this.#exposedHeaders = listOf(exposedHeaders)
    this.#methods = methods.map(method => method.toUpperCase())
    const age = maxAgeS < 0 ? '' : `Access-Control-Max-Age: ${maxAgeS}\r\n`
    this.#preflightEnd = line('Access-Control-Allow-Headers', listOf(headers)) + age
    const vary = isOpen || origins.length === 0 ? '' : VARY
    this.#any = isOpen ? this.#grantOf('*', vary, false) : null
    this.#none = grantOfLines(vary, bytesOf(vary), vary, '')
    const lower = origins.filter(({ length }) => length <= ORIGIN_CHARS_MAX).map(origin => origin.toLowerCase())
    const named = lower.filter(origin => !origin.includes('*'))
    this.#named = new Map(named.map(origin => [origin, this.#grantOf(origin, vary, !isWildcardOrigin(origin))]))
    this.#patterns = lower.filter(origin => origin.includes('*')).map(origin => new OriginPattern(origin))
  }

  /** `origin`: the Origin field of the request; '' without one. */
  grant(origin: string): CorsGrant {
    if (this.#any !== null) return this.#any
    return origin === '' ? this.#none : this.#grantTo(origin)
  }

  #grantTo(origin: string): PolicyGrant {
    const known = this.#named.get(origin) ?? this.#matched.get(origin)
    if (known !== undefined) return known
    if (origin.length > ORIGIN_CHARS_MAX) return this.#none
    const matching = this.#patterns.filter(pattern => pattern.matches(origin))
    if (matching.length === 0) return this.#none
    const grant = this.#grantOf(origin, VARY, !matching.every(({ text }) => isWildcardOrigin(text)))
    if (this.#matched.size >= MATCHED_ORIGINS_MAX) this.#matched.delete(this.#matched.keys().next().value!)
    this.#matched.set(origin, grant)
    return grant
  }

  /** `mayHaveCredentials`: false for origins that any site can match. */
  #grantOf(origin: string, vary: string, mayHaveCredentials: boolean): PolicyGrant {
    const credentials = this.#credentials && mayHaveCredentials
    const allowed = credentials ? 'Access-Control-Allow-Credentials: true\r\n' : ''
    const preflightStart = `Access-Control-Allow-Origin: ${origin}\r\n${allowed}`
    const lines = preflightStart + line('Access-Control-Expose-Headers', this.#exposedHeaders) + vary
    return grantOfLines(lines, bytesOf(lines), vary, preflightStart)
  }

  /**
   * Grant of an OPTIONS request. `variesByMethod`: one without Access-Control-Request-Method goes to the backend.
   * `hasBytes`: the backend responds.
   */
  preflightGrant(origin: string, path: ResourcePath, variesByMethod: boolean, hasBytes: boolean): CorsGrant {
    const { preflightStart, vary } = this.#any ?? (origin === '' ? this.#none : this.#grantTo(origin))
    const varies = variesByMethod ? 'Vary: Origin, Access-Control-Request-Method\r\n' : vary
    const granted = preflightStart === '' ? '' : preflightStart + this.#methodLine(path) + this.#preflightEnd
    const lines = granted + varies
    return grantOfLines(lines, hasBytes ? bytesOf(lines) : NO_BYTES, varies, preflightStart)
  }

  #methodLine(path: ResourcePath): string {
    let text = this.#methodLines.get(path)
    if (text === undefined) {
      text = line('Access-Control-Allow-Methods', listOf(this.#methodsAt(path)))
      this.#methodLines.set(path, text)
    }
    return text
  }

  /** Methods of the path that the policy allows. OPTIONS counts everywhere, because the gateway answers it. */
  #methodsAt(path: ResourcePath): readonly string[] {
    if (this.#methods.includes('*')) return path.allow.split(', ')
    return this.#methods.filter(method => method === 'OPTIONS' || path.resource(method) !== undefined)
  }

  /** For `sluice api show`. */
  get about(): string {
    const named = [...this.#named.keys()]
    const patterns = this.#patterns.length
    if (this.#any !== null) return 'every origin'
    if (named.length + patterns === 0) return 'no origin'
    const isShort = patterns === 0 && named.length <= NAMES_SHOWN_MAX
    const origins = isShort ? named.join(', ') : `origins: ${named.length} by name, ${patterns} by pattern`
    return `${origins}${this.#credentials ? ', with credentials' : ''}`
  }
}

const DOT = 46
const HYPHEN = 45
const UNDERSCORE = 95

/**
 * Pattern of origins, such as `https://*.example.com` or `http://localhost:*`. A star matches one or more characters of
 * a host name or port and nothing else, so that no scheme, user, port or fragment hides behind it
 * (`https://evil.example#.example.com`). Matching is linear in both lengths.
 */
export class OriginPattern {
  readonly text: string
  /** Text before, between and after the stars. */
  readonly #pieces: readonly string[]

  /** Browsers send scheme and host in lower case (WHATWG URL), so the pattern is compared in lower case. */
  constructor(text: string) {
    this.text = text
    this.#pieces = text.toLowerCase().split(/\*+/)
  }

  matches(origin: string): boolean {
    const pieces = this.#pieces
    const first = pieces[0]!
    const last = pieces[pieces.length - 1]!
    if (!origin.startsWith(first) || !origin.endsWith(last)) return false
    let at = first.length
    // The first match of a piece decides: a character that no star matches stands before every later match as well.
    for (let i = 1; i < pieces.length - 1; i++) {
      const found = origin.indexOf(pieces[i]!, at + 1)
      if (found < 0 || !isStarMatch(origin, at, found)) return false
      at = found + pieces[i]!.length
    }
    return isStarMatch(origin, at, origin.length - last.length)
  }
}

function isStarMatch(origin: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const code = origin.charCodeAt(i)
    const isLetter = code >= 97 && code <= 122
    const isDigit = code >= 48 && code <= 57
    if (!isLetter && !isDigit && code !== DOT && code !== HYPHEN && code !== UNDERSCORE) return false
  }
  return to > from
}

const NO_BYTES = new Uint8Array(0)

function grantOfLines(lines: string, bytes: Uint8Array, vary: string, preflightStart: string): PolicyGrant {
  return { lines, bytes, vary, others: NO_OTHER_LINES, source: null, preflightStart }
}

/** In memory of its own: a slice of a pooled buffer would keep the whole pool alive. */
function bytesOf(lines: string): Uint8Array {
  return Uint8Array.from(Buffer.from(lines, 'latin1'))
}

function line(name: string, value: string): string {
  return value === '' ? '' : `${name}: ${value}\r\n`
}

/** The configuration readers verify the names already. This check keeps any other text out of a response head. */
function listOf(names: readonly string[]): string {
  return names.filter(isToken).join(', ')
}

/** By definition: APIs with the same definition share a policy and the lines composed for it. */
const policies = new WeakMap<CorsDefinition, CorsPolicy>()

/** Null where CORS is not enabled. */
export function corsPolicyOf(definition: CorsDefinition | null): CorsPolicy | null {
  if (definition === null || !definition.enabled) return null
  let policy = policies.get(definition)
  if (policy === undefined) {
    policy = new CorsPolicy(definition)
    policies.set(definition, policy)
  }
  return policy
}
