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
import { type ApiTable, match } from './route/api-table.ts'

/** What the walk leads through; replaced as a whole when APIs are deployed. */
export interface Rooms {
  apis: ApiTable
}

/** Answers a promise only when some step has to wait. */
export function walk(exchange: Exchange, rooms: Rooms): Promise<void> | undefined {
  const verdict = route(exchange, rooms.apis) ?? admit(exchange)
  if (!(verdict instanceof Promise)) {
    enter(exchange, verdict)
    return undefined
  }
  // A handler that throws is a bug; its request is refused, not lost.
  return verdict
    .catch((): Outcome => refusal(500))
    .then(outcome => {
      // The client may be gone by now.
      if (exchange.doneMs === 0) enter(exchange, outcome)
    })
}

function route(exchange: Exchange, apis: ApiTable): Outcome | undefined {
  const { requestTarget, pathAt } = exchange
  // OPTIONS * asks about the gateway itself (RFC 9110 9.3.7).
  if (requestTarget === '*') return exchange.method === 'OPTIONS' ? ABOUT_THE_GATEWAY : ASTERISK
  if (!apis.find(requestTarget, pathAt)) return refusal(404)
  exchange.api = match.api
  exchange.restAt = match.end
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
  exchange.downstream.answer(status, reason, lines, body)
}

const METHODS = 'Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n'
const ABOUT_THE_GATEWAY: Outcome = { code: 404, status: 200, description: undefined, lines: METHODS }
const ASTERISK: Outcome = {
  code: 400,
  status: undefined,
  description: 'only OPTIONS takes "*" (RFC 9112 3.2.4)',
  lines: '',
}
