/**
 * One request through the rooms, in order; the only file that knows the order.
 *
 * source -> route -> handlers -> target -> source. A refusal at any step goes to the fault room and back to the source.
 * With warm caches every step is synchronous, and so is the walk.
 */
import type { Failure, Verdict } from './exchange/contract.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Outcome, refusal } from './exchange/outcome.ts'
import { renderFault } from './fault/render.ts'
import { runRequest } from './handlers/chain.ts'
import { tracer } from './protocol/tracer.ts'
import { type ApiTable, match } from './route/api-table.ts'

/** What the walk leads through; replaced as a whole when APIs are deployed. */
export interface Rooms {
  apis: ApiTable
  /** A handler threw: a bug, whose request is refused, not lost. */
  readonly threw: (exchange: Exchange, error: unknown) => void
}

/**
 * Answers a promise only when some step has to wait: of the way on, to be taken in one go with what follows the head.
 * Heads are composed in one place per thread, so nothing else may come between.
 */
export function walk(exchange: Exchange, rooms: Rooms): Promise<() => void> | undefined {
  const verdict = decide(exchange, rooms)
  if (!(verdict instanceof Promise)) {
    enter(exchange, verdict)
    return undefined
  }
  const caught = verdict.catch((error: unknown) => thrown(exchange, rooms, error))
  return caught.then(outcome => () => enter(exchange, outcome))
}

function decide(exchange: Exchange, rooms: Rooms): Verdict {
  try {
    return route(exchange, rooms.apis) ?? admit(exchange)
  } catch (error) {
    return thrown(exchange, rooms, error)
  }
}

function thrown(exchange: Exchange, rooms: Rooms, error: unknown): Outcome {
  rooms.threw(exchange, error)
  return refusal(500)
}

function route(exchange: Exchange, apis: ApiTable): Outcome | undefined {
  const { requestTarget, pathAt } = exchange
  // OPTIONS * asks about the gateway itself (RFC 9110 9.3.7).
  if (requestTarget === '*') return exchange.method === 'OPTIONS' ? ABOUT_THE_GATEWAY : ASTERISK
  if (!apis.find(requestTarget, pathAt)) return refusal(404)
  exchange.api = match.api
  exchange.restAt = match.end
  if (tracer !== null) tracer.noted(exchange, 'route', `${exchange.apiName}, ${exchange.api?.path}`)
  return undefined
}

function admit(exchange: Exchange): Verdict {
  return runRequest(exchange.api!.handlers, exchange)
}

function enter(exchange: Exchange, outcome: Outcome | undefined): void {
  if (outcome === undefined) exchange.api!.target.send(exchange)
  else if (outcome === ABOUT_THE_GATEWAY) exchange.downstream.answer(200, 'OK', outcome.lines, '')
  else refuse(exchange, outcome, null)
}

/** The fault of an outcome, to the client. */
export function refuse(exchange: Exchange, outcome: Outcome, failure: Failure | null): void {
  const { status, reason, lines, body } = renderFault(outcome, failure)
  const { retryAfterS } = exchange
  const more = retryAfterS === 0 ? lines : `${lines}Retry-After: ${retryAfterS}\r\n`
  exchange.downstream.answer(status, reason, more, body)
}

const METHODS = 'Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n'
const ABOUT_THE_GATEWAY: Outcome = { code: 404, status: 200, description: undefined, lines: METHODS }
const ASTERISK: Outcome = {
  code: 400,
  status: undefined,
  description: 'only OPTIONS takes "*" (RFC 9112 3.2.4)',
  lines: '',
}
