/**
 * Pipeline of a request, and the only file that knows the order of its phases: source, route, filters, target, source.
 * A refusal in any phase becomes a fault and goes back to the source. With warm caches every phase is synchronous, and
 * so is the pipeline.
 */
import {
  FAULT,
  type FaultCode,
  type FaultSequence,
  NO_ENDPOINT_FOR_KEY_TYPE,
  NO_ENDPOINT_SEQUENCES,
} from '../faults/error-codes.ts'
import type { Failure, FilterResult } from './exchange/contract.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { TraceContext } from './exchange/trace-context.ts'
import type { BackendTunnelPeer } from './exchange/tunnel-peer.ts'
import { NO_SUCH_API, type Outcome, type LocalResponse, type Refusal, refusal } from './exchange/outcome.ts'
import { METHODS } from './exchange/resource.ts'
import { reasonPhrase } from '../faults/fault-details.ts'
import type { FaultResponder } from '../faults/fault-responder.ts'
import type { CorsMediation } from './cors-mediation.ts'
import type { HandshakeResponse, WebSocketMediation } from './websocket-mediation.ts'
import { runFilters, runTimedFilters } from '../filters/filter-chain.ts'
import { allowOf } from '../filters/resources.ts'
import type { CorsPolicy } from '../filters/cors-policy.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import { FORWARDS_INVALID, spendForward } from '../http1/max-forwards.ts'
import { tracer } from '../protocol/tracer.ts'
import type { FormattedResponse } from '../mediation/formatter.ts'
import type { RaisedFault } from '../mediation/worker-task.ts'
import type { Router } from '../route/router.ts'

/** Parts of the pipeline; one per reactor. */
export interface Pipeline {
  readonly router: Router
  /** CORS policy of requests without an API; null: no CORS fields. */
  cors: CorsPolicy | null
  readonly faults: FaultResponder
  readonly corsMediation: CorsMediation
  readonly webSocketMediation: WebSocketMediation
  /** Target that tells whether the node takes traffic, where no API has it; '' for none. */
  readinessPath: string
  readonly isReady: () => boolean
  /** A filter threw: logs the bug; the request is refused with 500. */
  readonly onError: (exchange: Exchange, error: unknown) => void
}

/**
 * Runs the pipeline. Returns a promise only when a filter waits. The promise brings the rest of the pipeline. The
 * caller runs it in one turn with the first body part: heads are composed in one chunk per thread, so no other head may
 * come between.
 */
export function runPipeline(exchange: Exchange, pipeline: Pipeline): Promise<() => void> | undefined {
  const result = filter(exchange, pipeline)
  if (!(result instanceof Promise)) {
    proceed(exchange, result, pipeline)
    return undefined
  }
  return proceedLater(exchange, result, pipeline)
}

/** Apart from `runPipeline`, which would allocate the scope of these closures for every request. */
function proceedLater(
  exchange: Exchange,
  result: Promise<Outcome | undefined>,
  pipeline: Pipeline,
): Promise<() => void> {
  const caught = result.catch((error: unknown) => failed(exchange, pipeline, error))
  return caught.then(outcome => () => proceed(exchange, outcome, pipeline))
}

function filter(exchange: Exchange, pipeline: Pipeline): FilterResult {
  const { trace } = exchange
  try {
    if (trace?.isSampled) return timedFilter(exchange, trace, pipeline)
    return route(exchange, pipeline.router) ?? runFilters(exchange.api!.filters, exchange)
  } catch (error) {
    return failed(exchange, pipeline, error)
  }
}

/** Routes and filters a request of which a trace keeps the times. */
function timedFilter(exchange: Exchange, trace: TraceContext, { router }: Pipeline): FilterResult {
  trace.begin('route')
  const refused = route(exchange, router)
  trace.end('route')
  return refused ?? runTimedFilters(exchange.api!.filters, exchange, trace)
}

function failed(exchange: Exchange, pipeline: Pipeline, error: unknown): Outcome {
  pipeline.onError(exchange, error)
  return refusal(500)
}

function route(exchange: Exchange, router: Router): Outcome | undefined {
  const { requestTarget } = exchange
  exchange.canonicalTarget = requestTarget
  // OPTIONS * asks about the gateway itself (RFC 9110 9.3.7).
  if (requestTarget === '*') return exchange.method === 'OPTIONS' ? GATEWAY_OPTIONS : ASTERISK_REFUSED
  const refused = router.route(exchange)
  if (tracer !== null) {
    const { trace } = exchange
    if (trace !== null) tracer.note(exchange, 'trace', `${trace.traceId}, ${trace.isSampled ? '' : 'not '}sampled`)
    if (refused === undefined) tracer.note(exchange, 'route', routeText(exchange))
  }
  return refused
}

function routeText({ api, resourcePath, requestTarget, canonicalTarget, pathAt }: Exchange): string {
  const canonical = canonicalTarget === requestTarget ? '' : `, as ${canonicalTarget.slice(pathAt).split('?')[0]}`
  return `${api!.name}, ${api!.path}, ${resourcePath === null ? 'no such resource' : resourcePath.template}${canonical}`
}

function proceed(exchange: Exchange, outcome: Outcome | undefined, pipeline: Pipeline): void {
  if (outcome === undefined) send(exchange, pipeline)
  else if (outcome.code === 0) respondToOptions(exchange, outcome, pipeline)
  else {
    if (outcome === NO_SUCH_API) forgetApi(exchange)
    if (outcome === NO_SUCH_API && asksForReadiness(exchange, pipeline)) tellReadiness(exchange, pipeline)
    else refuseAtOnce(exchange, pipeline, outcome, null)
  }
}

function asksForReadiness({ method, requestTarget }: Exchange, { readinessPath }: Pipeline): boolean {
  return readinessPath !== '' && requestTarget === readinessPath && (method === 'GET' || method === 'HEAD')
}

function tellReadiness(exchange: Exchange, { isReady }: Pipeline): void {
  const status = isReady() ? 200 : 503
  exchange.client.sendLocalResponse(status, reasonPhrase(status), 'Cache-Control: no-store\r\n', '')
}

/** Sends a response without body, with the CORS lines of the exchange. */
function respondToOptions(exchange: Exchange, { status, lines }: LocalResponse, { corsMediation }: Pipeline): void {
  const mediated = corsMediation.isActive && exchange.corsGrant !== null ? corsMediation.mediate(exchange) : 0
  const sent = mediated === 0 ? status : mediated
  const corsLines = exchange.corsGrant === null ? '' : exchange.corsGrant.lines
  exchange.client.sendLocalResponse(sent, reasonPhrase(sent), lines + corsLines, '')
}

/** Removes all traces of an API that must look absent: its response must equal that of an unknown path (D75). */
function forgetApi(exchange: Exchange): void {
  exchange.api = null
  exchange.handlers = null
  exchange.resourcePath = null
  exchange.resource = null
  exchange.responseLines = ''
  exchange.corsGrant = null
}

function send(exchange: Exchange, pipeline: Pipeline): void {
  const outcome = exchange.method === 'OPTIONS' ? checkMaxForwards(exchange) : undefined
  if (outcome === undefined) sendToTarget(exchange, pipeline)
  else proceed(exchange, outcome, pipeline)
}

/** The own answer to OPTIONS in place of the target (RFC 9110 7.6.2, D14); undefined: the request goes on. */
function checkMaxForwards({ head, resourcePath }: Exchange): Outcome | undefined {
  const left = spendForward(arena.bytes, head!)
  if (left === FORWARDS_INVALID) return FORWARDS_REFUSED
  if (left !== 0) return undefined
  return resourcePath === null ? GATEWAY_OPTIONS : optionsOf(allowOf(resourcePath, true))
}

function sendToTarget(exchange: Exchange, pipeline: Pipeline): void {
  const { keyType } = exchange
  const { production, sandbox, mediation } = exchange.api!
  if (pipeline.corsMediation.isActive && exchange.corsGrant !== null) pipeline.corsMediation.mediate(exchange)
  const target = keyType === 'PRODUCTION' ? production : sandbox
  if (target === null) refuse(exchange, pipeline, NO_ENDPOINT, null, NO_ENDPOINT_SEQUENCES[keyType])
  else if (exchange.upgrade !== '' && respondsLocally(exchange, pipeline)) return
  else if (mediation === null) target.send(exchange)
  else {
    if (exchange.trace?.isSampled) exchange.trace.begin('mediation')
    mediation.send(exchange, target)
  }
}

function optionsOf(allow: string): LocalResponse {
  return { code: 0, status: 200, lines: `Allow: ${allow}\r\n` }
}

/** True if a sequence responds in place of the backend to a request to switch protocols. */
function respondsLocally(exchange: Exchange, pipeline: Pipeline): boolean {
  const response = pipeline.webSocketMediation.mediateRequest(exchange)
  if (response !== null) respond(exchange, pipeline, response)
  return response !== null
}

/** Response in place of the tunnel that a backend has agreed to; null: the tunnel opens. */
export function insteadOfTunnel(
  exchange: Exchange,
  head: Head,
  kind: BackendTunnelPeer['kind'],
  pipeline: Pipeline,
): (() => void) | null {
  const response = pipeline.webSocketMediation.mediateResponse(exchange, head, kind)
  return response === null ? null : () => respond(exchange, pipeline, response)
}

function respond(exchange: Exchange, pipeline: Pipeline, response: HandshakeResponse): void {
  if (response.kind === 'refusal') refuse(exchange, pipeline, response.refusal, null, response.sequence)
  else pipeline.faults.sendFormatted(exchange, response.response, NO_LINES)
}

/**
 * Sends the fault of a request that the filters have admitted; the fault flow of its API may keep it waiting.
 * `sequence`: words it in place of the sequence of its code.
 */
export function refuse(
  exchange: Exchange,
  pipeline: Pipeline,
  outcome: Refusal,
  failure: Failure | null,
  sequence: string | null = null,
): void {
  const mediation = exchange.api === null ? null : exchange.api.mediation
  const isWorded =
    mediation !== null &&
    isForFlow(outcome, sequence) &&
    mediation.refuse(exchange, { refusal: outcome, failure, sequence })
  if (!isWorded) refuseAtOnce(exchange, pipeline, outcome, failure, sequence)
}

/** Tells whether the fault flow of the API words a fault (D825). The number of a thrown fault chooses no sequence. */
function isForFlow({ code, raised }: Refusal, sequence: string | null): boolean {
  return sequence === null && (raised !== undefined || FAULT[code].sequence === PRIMARY_SEQUENCE)
}

/** Sends the response that a flow of an API has made in place of its message. */
export function respondWith(exchange: Exchange, { faults }: Pipeline, response: FormattedResponse): void {
  faults.sendFormatted(exchange, response, NO_LINES)
}

/** Sends the fault that a flow of an API has raised. A code that is not the gateway's is that of a failed mediation. */
export function refuseRaised(exchange: Exchange, pipeline: Pipeline, fault: RaisedFault): void {
  const { code, message, detail, cause, sequence, status, transport } = fault
  if (transport !== undefined) {
    const failure: Failure = { ...transport, kind: 'transport', code: '', cause, status: 0 }
    // The connection was that of a call, an exchange of its own.
    exchange.errorBase = transport.base
    exchange.errorState = transport.state
    refuse(exchange, pipeline, refusal(transport.base as FaultCode), failure, sequence === '' ? null : sequence)
    return
  }
  const known = Object.hasOwn(FAULT, code) ? (code as FaultCode) : 500
  const description = message === FAULT[known].message ? detail : message
  const told = description === '' ? undefined : description
  const outcome = { code: known, status, description: told, lines: '', raised: fault }
  refuse(exchange, pipeline, outcome, null, sequence === '' ? null : sequence)
}

/** Sends the fault of an outcome before it returns, worded by a fault sequence. */
export function refuseAtOnce(
  exchange: Exchange,
  { faults, cors, corsMediation }: Pipeline,
  outcome: Refusal,
  failure: Failure | null,
  sequence: string | null = null,
): void {
  // A refusal without an API gets the CORS fields of the gateway.
  if (exchange.api === null && cors !== null) exchange.corsGrant = cors.grant(exchange.origin)
  if (corsMediation.isActive && exchange.corsGrant !== null) corsMediation.mediate(exchange)
  // The code of a failure of a connection is there already, with its state.
  if (failure === null) {
    exchange.errorBase = outcome.code
    // The code of a refusal has no state.
    exchange.errorState = 0
    if (exchange.errorCause === '' && outcome.description !== undefined) exchange.errorCause = outcome.description
  }
  faults.respond(exchange, outcome, failure, sequence)
}

const GATEWAY_OPTIONS = optionsOf(METHODS.join(', '))
const FORWARDS_REFUSED: Refusal = {
  code: 400,
  status: undefined,
  description: 'Max-Forwards is one number (RFC 9110 7.6.2)',
  lines: '',
}
/** Words errors in the processing of a request, behind the fault flow of its API. */
const PRIMARY_SEQUENCE: FaultSequence = 'fault'
const NO_LINES = { lines: '' }
const NO_ENDPOINT_CHALLENGE = `error="invalid_token", error_description="${NO_ENDPOINT_FOR_KEY_TYPE.description}"`
/** RFC 9110 15.5.2: a 401 has a challenge. The key type is that of a token. */
const NO_ENDPOINT: Refusal = {
  ...NO_ENDPOINT_FOR_KEY_TYPE,
  lines: `WWW-Authenticate: Bearer realm="Sluice", ${NO_ENDPOINT_CHALLENGE}\r\n`,
}
const ASTERISK_REFUSED: Refusal = {
  code: 400,
  status: undefined,
  description: 'only OPTIONS takes "*" (RFC 9112 3.2.4)',
  lines: '',
}
