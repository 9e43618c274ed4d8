/**
 * Which API and which resource a request is for. The path is read once; where it is not canonical, its canonical form
 * takes its place for everything that follows, for the backend as well, or the request is refused.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { NO_SUCH_API, type Refusal, refusal } from '../exchange/outcome.ts'
import type { Settings } from '../exchange/surroundings.ts'
import type { Head } from '../http1/head.ts'
import { canonicalRoom, type PathFault, putCanonicalPath } from '../structure/canonical-path.ts'
import { ScannedPath } from '../structure/scanned-path.ts'
import { type ApiTable, match } from './api-table.ts'

const QUERY = 63
const TOO_LONG: Refusal = Object.freeze({
  ...refusal(400),
  status: 414,
  description: 'canonical form of the request target is longer than target.max_bytes (RFC 9110 15.5.15)',
})

type Limits = Pick<Settings, 'targetBytesMax' | 'headerBytesMax'>

export class Router {
  readonly #apis: ApiTable
  /** Where heads stand. */
  readonly #bytes: Buffer
  readonly #limits: Limits
  readonly #path = new ScannedPath()
  /** For canonical forms. */
  #scratch = Buffer.alloc(0)
  readonly #refusals = new Map<PathFault, Refusal>()

  constructor(apis: ApiTable, bytes: Buffer, limits: Limits) {
    this.#apis = apis
    this.#bytes = bytes
    this.#limits = limits
  }

  /** Fills the exchange with what its request is for; the refusal where that is nothing. */
  route(exchange: Exchange): Refusal | undefined {
    const path = this.#path
    const head = exchange.head!
    if (!path.read(this.#bytes, head.targetAt + exchange.pathAt, head.targetAt + head.targetLength)) {
      const refused = this.#straighten(exchange, head)
      if (refused !== undefined) return refused
    }
    if (!this.#apis.find(path, exchange.host)) return NO_SUCH_API
    const api = match.api!
    const { segments } = match
    const place = api.resources.find(path, segments)
    exchange.api = api
    exchange.keyType = api.keyType
    // From where it was read to where it stands in the target.
    exchange.restAt = path.ends[segments - 1]! - path.from + exchange.pathAt
    exchange.place = place
    exchange.resource = place === null ? null : (place.resource(exchange.method) ?? null)
    return undefined
  }

  /** Gives the exchange a canonical target, and reads it. What became longer counts as if it had come so. */
  #straighten(exchange: Exchange, head: Head): Refusal | undefined {
    const { requestTarget, pathAt } = exchange
    const from = head.targetAt + pathAt
    const end = head.targetAt + head.targetLength
    const query = this.#bytes.indexOf(QUERY, from)
    const pathEnd = query < 0 || query > end ? end : query
    const scratch = this.#room(canonicalRoom(pathEnd - from))
    const length = putCanonicalPath(scratch, this.#bytes, from, pathEnd)
    if (typeof length !== 'number') return this.#refusalOf(length)
    const growth = length - (pathEnd - from)
    const { targetBytesMax, headerBytesMax } = this.#limits
    const headBytes = head.end - head.targetAt
    if (head.targetLength + growth > targetBytesMax || headBytes + growth > headerBytesMax) return TOO_LONG
    const canonical = scratch.latin1Slice(0, length)
    exchange.target = requestTarget.slice(0, pathAt) + canonical + requestTarget.slice(pathEnd - head.targetAt)
    if (!this.#path.read(scratch, 0, length)) throw new Error('a canonical path that is none')
    return undefined
  }

  #room(bytes: number): Buffer {
    if (this.#scratch.length < bytes) this.#scratch = Buffer.alloc(bytes)
    return this.#scratch
  }

  #refusalOf(fault: PathFault): Refusal {
    let outcome = this.#refusals.get(fault)
    if (outcome === undefined) {
      outcome = Object.freeze({ ...refusal(400), description: fault.rule })
      this.#refusals.set(fault, outcome)
    }
    return outcome
  }
}
