/**
 * Finds API and resource of a request. The path is scanned once. Where it is not canonical, its canonical form replaces
 * it for every later step and for the backend, or the request is refused (D68).
 */
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { NO_SUCH_API, type Refusal, refusal } from '../proxy/exchange/outcome.ts'
import type { Settings } from '../proxy/exchange/connection-context.ts'
import type { Head } from '../http1/head.ts'
import { ESCAPED_SLASH, PathCanonicalizer, type PathError } from './canonical-path.ts'
import { ScannedPath } from './scanned-path.ts'
import type { ApiTable } from './api-table.ts'

const TOO_LONG: Refusal = Object.freeze({
  ...refusal(400),
  status: 414,
  description: 'canonical form of the request target is longer than target.max_bytes (RFC 9110 15.5.15)',
})

type Limits = Pick<Settings, 'targetBytesMax' | 'headerBytesMax'>

export class Router {
  readonly #apis: ApiTable
  readonly #bytes: Buffer
  readonly #limits: Limits
  /** Path of the request that is being routed; it holds no result once `route` has returned. */
  readonly #path = new ScannedPath()
  readonly #canonicalizer = new PathCanonicalizer()
  readonly #refusals = new Map<PathError, Refusal>()

  /** `bytes`: the memory that holds request heads. */
  constructor(apis: ApiTable, bytes: Buffer, limits: Limits) {
    this.#apis = apis
    this.#bytes = bytes
    this.#limits = limits
  }

  /** Sets API, resource and paths of the exchange. Returns a refusal where there is no API or the path is refused. */
  route(exchange: Exchange): Refusal | undefined {
    const path = this.#path
    const head = exchange.head!
    if (!path.read(this.#bytes, head.targetAt + exchange.pathAt, head.targetAt + head.targetLength)) {
      const refused = this.#canonicalize(exchange, head)
      if (refused !== undefined) return refused
    }
    const api = this.#apis.find(path, exchange.host)
    if (api === null) return NO_SUCH_API
    const resourcePath = api.resources.find(path, path.apiSegments)
    exchange.api = api
    exchange.keyType = api.keyType
    const { apiSegments } = path
    exchange.backendPathAt = (apiSegments === 0 ? 0 : path.segmentEnds[apiSegments - 1]! - path.from) + exchange.pathAt
    exchange.resourcePath = resourcePath
    exchange.resource = resourcePath === null ? null : (resourcePath.resource(exchange.method) ?? null)
    return undefined
  }

  /** Sets the canonical target and scans its path. The limits of target and head hold for the canonical form too. */
  #canonicalize(exchange: Exchange, head: Head): Refusal | undefined {
    const { requestTarget, pathAt } = exchange
    const from = head.targetAt + pathAt
    const end = head.targetAt + head.targetLength
    const query = requestTarget.indexOf('?', pathAt)
    const pathEnd = query < 0 ? end : head.targetAt + query
    const form = this.#canonicalForm(exchange, from, pathEnd)
    if (typeof form !== 'string') return this.#refusalOf(form)
    const growth = form.length - (pathEnd - from)
    const { targetBytesMax, headerBytesMax } = this.#limits
    const headBytes = head.end - head.targetAt
    if (head.targetLength + growth > targetBytesMax || headBytes + growth > headerBytesMax) return TOO_LONG
    exchange.canonicalTarget = requestTarget.slice(0, pathAt) + form + requestTarget.slice(pathEnd - head.targetAt)
    return undefined
  }

  /** The canonical form of a path, which is scanned; or the rule that the path violates. */
  #canonicalForm(exchange: Exchange, from: number, end: number): string | PathError {
    const form = this.#read(this.#bytes, from, end, false)
    return form === ESCAPED_SLASH ? this.#withEscapedSlashes(exchange, from, end) : form
  }

  /**
   * The form of a path with escaped slashes, if its API allows them (D158). A backend may decode them or not: the path
   * is read in both ways, and both must lead to one API at one path of it, without dot segments. If the slashes pass
   * as they are, the decoded path must lead to the same resource, or to none.
   */
  #withEscapedSlashes({ host }: Exchange, from: number, end: number): string | PathError {
    const path = this.#path
    const kept = this.#read(this.#bytes, from, end, true)
    if (typeof kept !== 'string' || this.#canonicalizer.hadDotSegments) return ESCAPED_SLASH
    const api = this.#apis.find(path, host)
    if (api === null || api.escapedSlashes === 'refuse') return ESCAPED_SLASH
    const segments = path.apiSegments
    const resource = api.resources.find(path, segments)
    const bytes = Buffer.from(kept.replaceAll('%2F', '/'), 'latin1')
    const decoded = this.#read(bytes, 0, bytes.length, false)
    if (typeof decoded !== 'string' || this.#canonicalizer.hadDotSegments) return ESCAPED_SLASH
    if (this.#apis.find(path, host) !== api || path.apiSegments !== segments) return ESCAPED_SLASH
    if (api.escapedSlashes === 'decode') return decoded
    const other = api.resources.find(path, segments)
    if (other !== null && other !== resource) return ESCAPED_SLASH
    return this.#read(this.#bytes, from, end, true)
  }

  /** Canonicalises a path and scans the form. */
  #read(bytes: Buffer, from: number, end: number, keepsSlashes: boolean): string | PathError {
    const length = this.#canonicalizer.path(bytes, from, end, keepsSlashes)
    if (typeof length !== 'number') return length
    const { out } = this.#canonicalizer
    const form = out.latin1Slice(0, length)
    if (!this.#path.read(out, 0, length, keepsSlashes)) throw new Error(`the canonical form ${form} is not canonical`)
    return form
  }

  #refusalOf(error: PathError): Refusal {
    let outcome = this.#refusals.get(error)
    if (outcome === undefined) {
      outcome = Object.freeze({ ...refusal(400), description: error.rule })
      this.#refusals.set(error, outcome)
    }
    return outcome
  }
}
