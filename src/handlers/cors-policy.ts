/**
 * What pages of other origins may do with an API, or with the gateway itself (WHATWG Fetch, "CORS protocol"). All that
 * a response says of it is put together once: per policy for named origins, per origin for those that fit a pattern,
 * of which the latest are kept. A request costs a look at a constant or in a map.
 */
import { isAnyOrigin, isEverybodys } from '../config/any-origin.ts'
import type { CorsDefinition } from '../config/api-definition.ts'
import type { CorsGrant } from '../exchange/cors-grant.ts'
import type { ResourcePath } from '../exchange/resource.ts'
import { isToken } from '../http1/token.ts'
import { OriginPattern } from './origin-pattern.ts'

/** Longer ones are none: a host name has 253 characters. */
const ORIGIN_CHARS_MAX = 300
/** Origins that fit a pattern and are kept. Whoever makes some up makes the gateway forget others, and no more. */
const ORIGINS_KEPT = 256
/** So many names are shown. */
const NAMED = 3
const VARY = 'Vary: Origin\r\n'

/** With what is said to a preflight request beside methods and headers. */
interface Granted extends CorsGrant {
  /** The same for the answer to a preflight request: Allow-Origin and Allow-Credentials, without Vary. */
  readonly start: string
}

export class CorsPolicy {
  /** Where every origin is granted the same. */
  readonly #any: Granted | null
  readonly #nothing: Granted
  readonly #named: ReadonlyMap<string, Granted>
  readonly #patterns: readonly OriginPattern[]
  readonly #fitting = new Map<string, Granted>()
  readonly #methods: readonly string[]
  /** What else is said to a preflight request: headers and age. */
  readonly #rest: string
  /** Access-Control-Allow-Methods by place, as a line. */
  readonly #methodLines = new WeakMap<ResourcePath, string>()
  readonly #exposes: string
  readonly #credentials: boolean

  constructor({ origins, methods, headers, exposedHeaders, credentials, maxAgeS }: CorsDefinition) {
    const isOpen = origins.some(isAnyOrigin)
    // Fetch 3.2.5: a browser takes no `*` where it sends credentials, and to echo every origin would open all to all.
    this.#credentials = credentials && !isOpen
    this.#exposes = listOf(exposedHeaders)
    this.#methods = methods.map(method => method.toUpperCase())
    const age = maxAgeS < 0 ? '' : `Access-Control-Max-Age: ${maxAgeS}\r\n`
    this.#rest = line('Access-Control-Allow-Headers', listOf(headers)) + age
    const vary = isOpen || origins.length === 0 ? '' : VARY
    this.#any = isOpen ? this.#granted('*', vary, false) : null
    this.#nothing = { origin: '', credentials: false, exposes: '', lines: vary, bytes: bytesOf(vary), vary, start: '' }
    const lower = origins.filter(({ length }) => length <= ORIGIN_CHARS_MAX).map(origin => origin.toLowerCase())
    const named = lower.filter(origin => !origin.includes('*'))
    this.#named = new Map(named.map(origin => [origin, this.#granted(origin, vary, !isEverybodys(origin))]))
    this.#patterns = lower.filter(origin => origin.includes('*')).map(origin => new OriginPattern(origin))
  }

  /** `origin`: as of the request, '' for none. */
  grant(origin: string): CorsGrant {
    if (this.#any !== null) return this.#any
    return origin === '' ? this.#nothing : this.#grantTo(origin)
  }

  #grantTo(origin: string): Granted {
    const known = this.#named.get(origin) ?? this.#fitting.get(origin)
    if (known !== undefined) return known
    if (origin.length > ORIGIN_CHARS_MAX) return this.#nothing
    const fitting = this.#patterns.filter(pattern => pattern.matches(origin))
    if (fitting.length === 0) return this.#nothing
    const granted = this.#granted(origin, VARY, !fitting.every(({ text }) => isEverybodys(text)))
    if (this.#fitting.size >= ORIGINS_KEPT) this.#fitting.delete(this.#fitting.keys().next().value!)
    this.#fitting.set(origin, granted)
    return granted
  }

  /** `isSomebody`: it is not everybody's. */
  #granted(origin: string, vary: string, isSomebody: boolean): Granted {
    const credentials = this.#credentials && isSomebody
    const exposes = this.#exposes
    const allowed = credentials ? 'Access-Control-Allow-Credentials: true\r\n' : ''
    const start = `Access-Control-Allow-Origin: ${origin}\r\n${allowed}`
    const lines = start + line('Access-Control-Expose-Headers', exposes) + vary
    return { origin, credentials, exposes, lines, bytes: bytesOf(lines), vary, start }
  }

  /** What answers a preflight request. `varies`: what asks for no method there gets another answer. */
  preflightLines(origin: string, place: ResourcePath, varies: boolean): string {
    const { start, vary } = this.#any ?? (origin === '' ? this.#nothing : this.#grantTo(origin))
    const said = varies ? 'Vary: Origin, Access-Control-Request-Method\r\n' : vary
    return start === '' ? said : start + this.#methodLine(place) + this.#rest + said
  }

  #methodLine(place: ResourcePath): string {
    let text = this.#methodLines.get(place)
    if (text === undefined) {
      text = line('Access-Control-Allow-Methods', listOf(this.#methodsAt(place)))
      this.#methodLines.set(place, text)
    }
    return text
  }

  /** Those of the place that may be granted. OPTIONS is there everywhere: the gateway answers it. */
  #methodsAt(place: ResourcePath): readonly string[] {
    if (this.#methods.includes('*')) return place.allow.split(', ')
    return this.#methods.filter(method => method === 'OPTIONS' || place.resource(method) !== undefined)
  }

  /** For `sluice api show`. */
  get about(): string {
    const named = [...this.#named.keys()]
    const patterns = this.#patterns.length
    if (this.#any !== null) return 'every origin'
    if (named.length + patterns === 0) return 'no origin'
    const isShort = patterns === 0 && named.length <= NAMED
    const origins = isShort ? named.join(', ') : `origins: ${named.length} by name, ${patterns} by pattern`
    return `${origins}${this.#credentials ? ', with credentials' : ''}`
  }
}

/** Of its own memory: a piece of a shared pool would keep all of that. */
export function bytesOf(lines: string): Uint8Array {
  return Uint8Array.from(Buffer.from(lines, 'latin1'))
}

function line(name: string, value: string): string {
  return value === '' ? '' : `${name}: ${value}\r\n`
}

/** They were judged where they were read, and fit a line. Whatever else comes here, no line of a head is made of it. */
function listOf(names: readonly string[]): string {
  return names.filter(isToken).join(', ')
}

/** By definition: APIs that have the same share it, and everything that has been made of it. */
const policies = new WeakMap<CorsDefinition, CorsPolicy>()

/** Null where nothing is said of CORS. */
export function policyOf(definition: CorsDefinition | null): CorsPolicy | null {
  if (definition === null || !definition.enabled) return null
  let policy = policies.get(definition)
  if (policy === undefined) {
    policy = new CorsPolicy(definition)
    policies.set(definition, policy)
  }
  return policy
}
