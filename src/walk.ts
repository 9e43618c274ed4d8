/**
 * One request through the rooms, in order; the only file that knows the order.
 *
 * source -> route -> handlers -> target -> source. A refusal at any step goes to the fault room and back to the source.
 * With warm caches every step is synchronous, and so is the walk.
 */
import { NO_ENDPOINT_OF_KIND, NO_ENDPOINT_SEQUENCES } from './errors/catalogue.ts'
import type { Failure, Verdict } from './exchange/contract.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { BackendParty } from './exchange/tunnel.ts'
import { NO_SUCH_API, type Outcome, type OwnAnswer, type Refusal, refusal } from './exchange/outcome.ts'
import { METHODS } from './exchange/resource.ts'
import type { FaultAnswers } from './reactor/fault-answer.ts'
import type { Handshakes, Instead } from './reactor/handshakes.ts'
import { runRequest } from './handlers/chain.ts'
import type { CorsPolicy } from './handlers/cors-policy.ts'
import type { Head } from './http1/head.ts'
import { tracer } from './protocol/tracer.ts'
import type { Router } from './route/router.ts'

/** What the walk leads through. */
export interface Rooms {
  readonly router: Router
  /** Of what no API answers; null: nothing is said of CORS. */
  cors: CorsPolicy | null
  readonly faults: FaultAnswers
  readonly handshakes: Handshakes
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
    enter(exchange, verdict, rooms)
    return undefined
  }
  const caught = verdict.catch((error: unknown) => thrown(exchange, rooms, error))
  return caught.then(outcome => () => enter(exchange, outcome, rooms))
}

function decide(exchange: Exchange, rooms: Rooms): Verdict {
  try {
    return route(exchange, rooms.router) ?? admit(exchange)
  } catch (error) {
    return thrown(exchange, rooms, error)
  }
}

function thrown(exchange: Exchange, rooms: Rooms, error: unknown): Outcome {
  rooms.threw(exchange, error)
  return refusal(500)
}

function route(exchange: Exchange, router: Router): Outcome | undefined {
  const { requestTarget } = exchange
  exchange.target = requestTarget
  // OPTIONS * asks about the gateway itself (RFC 9110 9.3.7).
  if (requestTarget === '*') return exchange.method === 'OPTIONS' ? ABOUT_THE_GATEWAY : ASTERISK
  const refused = router.route(exchange)
  if (refused === undefined && tracer !== null) tracer.noted(exchange, 'route', routeText(exchange))
  return refused
}

function routeText({ api, place, requestTarget, target, pathAt }: Exchange): string {
  const canonical = target === requestTarget ? '' : `, as ${target.slice(pathAt).split('?')[0]}`
  return `${api!.name}, ${api!.path}, ${place === null ? 'no such resource' : place.template}${canonical}`
}

function admit(exchange: Exchange): Verdict {
  return runRequest(exchange.api!.handlers, exchange)
}

function enter(exchange: Exchange, outcome: Outcome | undefined, rooms: Rooms): void {
  if (outcome === undefined) send(exchange, rooms)
  else if (outcome.code === 0) exchange.downstream.answer(outcome.status, 'OK', outcome.lines, '')
  else {
    if (outcome === NO_SUCH_API) forgetApi(exchange)
    refuse(exchange, rooms, outcome, null)
  }
}

/** Nothing in the answer may tell an API that is not there for this request from one that is not there at all. */
function forgetApi(exchange: Exchange): void {
  exchange.api = null
  exchange.place = null
  exchange.resource = null
  exchange.replyLines = ''
  exchange.grant = null
}

function send(exchange: Exchange, rooms: Rooms): void {
  const { keyType } = exchange
  const { production, sandbox } = exchange.api!
  const target = keyType === 'PRODUCTION' ? production : sandbox
  if (target === null) refuse(exchange, rooms, NO_ENDPOINT, null, NO_ENDPOINT_SEQUENCES[keyType])
  else if (exchange.upgrade === '' || mayAsk(exchange, rooms)) target.send(exchange)
}

/** A sequence may answer in the place of a backend that is asked to switch protocols. */
function mayAsk(exchange: Exchange, rooms: Rooms): boolean {
  const instead = rooms.handshakes.ofRequest(exchange)
  if (instead !== null) answer(exchange, rooms, instead)
  return instead === null
}

/** What the client gets in place of the tunnel that its backend has agreed to; null: the tunnel. */
export function insteadOfTunnel(
  exchange: Exchange,
  head: Head,
  kind: BackendParty['kind'],
  rooms: Rooms,
): (() => void) | null {
  const instead = rooms.handshakes.ofReply(exchange, head, kind)
  return instead === null ? null : () => answer(exchange, rooms, instead)
}

function answer(exchange: Exchange, rooms: Rooms, instead: Instead): void {
  if (instead.kind === 'refusal') refuse(exchange, rooms, instead.refusal, null, instead.sequence)
  else rooms.faults.give(exchange, instead.answer, NOTHING_MORE)
}

/** The fault of an outcome, to the client. `sequence`: of a situation that has its code in common with others. */
export function refuse(
  exchange: Exchange,
  { faults, cors }: Rooms,
  outcome: Refusal,
  failure: Failure | null,
  sequence: string | null = null,
): void {
  // What is refused before it is known for which API has what the gateway says of CORS itself.
  if (exchange.api === null && cors !== null) exchange.grant = cors.grant(exchange.origin)
  faults.answer(exchange, outcome, failure, sequence)
}

const ABOUT_THE_GATEWAY: OwnAnswer = { code: 0, status: 200, lines: `Allow: ${METHODS.join(', ')}\r\n` }
const NOTHING_MORE = { lines: '' }
const NO_ENDPOINT: Refusal = { ...NO_ENDPOINT_OF_KIND, lines: '' }
const ASTERISK: Refusal = {
  code: 400,
  status: undefined,
  description: 'only OPTIONS takes "*" (RFC 9112 3.2.4)',
  lines: '',
}
