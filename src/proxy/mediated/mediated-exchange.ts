/**
 * One exchange of which a flow runs on a worker. Stands between both sides: it collects the bodies that flows need,
 * hands messages to the worker, and feeds what comes back to the target or the client. Bodies that no flow needs pass
 * it without a copy. `transitions.ts` has its states.
 */
import { faultDetails } from '../../faults/fault-details.ts'
import { KIND } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import { mediaTypeOf } from '../../http1/media-type.ts'
import {
  type FlowResult,
  type FlowTask,
  type MessageState,
  NO_STATE,
  type TransferredMessage,
} from '../../mediation/worker-task.ts'
import { WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionAddresses } from '../../socket/proxy-header.ts'
import type { PendingFault } from '../exchange/api-mediation.ts'
import type { BodyPart, SourceSide, Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { HeadEdit } from '../exchange/head-edit.ts'
import type { KeptResponse } from '../exchange/outcome.ts'
import type { BackendTunnelPeer } from '../exchange/tunnel-peer.ts'
import { BodyCollector, type CollectorOwner } from './body-collector.ts'
import { BodyFeed } from './body-feed.ts'
import { type BodySource, dropHeld, emptySource } from './body-source.ts'
import { sendResponse } from './client-response.ts'
import { feedContinue, feedRequest, type Fields, fieldsOf, leavesBodyOut, reasonOf } from './fed-message.ts'
import { ClientSink, TargetSink } from './feed-sinks.ts'
import { dropResult, type FlowOutcome, runFlow } from './flow-run.ts'
import {
  editOfRequest,
  faultState,
  firstState,
  linesOfFault,
  type MessageHead,
  onErrorState,
  requestHead,
  withAbsent,
  withCallerProperties,
} from './flow-task.ts'
import { traceFailure, traceResult } from './flow-trace.ts'
import { transferredFields, withoutForwarding } from './head-flows.ts'
import { MediatedMessage, NO_HEAD } from './mediated-message.ts'
import {
  BACKEND_VIOLATES,
  isLateFault,
  refusalOfHead,
  refusalOfWorker,
  REQUEST_TOO_LONG,
  RESPONSE_TOO_LONG,
  UNSENDABLE,
} from './mediation-refusals.ts'
import { failureOf, type MediationServices, type OperationFlows } from './mediation-services.ts'
import { destinationOf, withoutCredentials } from './sequence-endpoint.ts'
import {
  checkTunnel,
  isExtension,
  isOfHandshake,
  opensSubscriptions,
  WITHOUT_EXTENSIONS,
} from './subscription-messages.ts'

const ACCEPTED: MessageHead = { ...NO_HEAD, status: 202 }
/** Largest status of a response (RFC 9110 15). */
const STATUS_MAX = 599

export class MediatedExchange extends MediatedMessage implements SourceSide, CollectorOwner {
  readonly #flows: OperationFlows
  /** The target of the key type; the null target of a fault is never sent to. */
  readonly #target: Target | null
  /** The receiver of the response: the client, or a flow that reads its head. */
  #downstream: SourceSide
  /** Fields of a WebSocket handshake, which no flow sees; none for another request. */
  #handshake: Fields = []
  onError = ''
  /** The fault that its flow words. */
  #fault: PendingFault | null = null

  constructor(exchange: Exchange, flows: OperationFlows, services: MediationServices, target: Target | null) {
    super(exchange, services)
    this.#flows = flows
    this.#target = target
    this.#downstream = exchange.client
    exchange.mediation = this
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** Takes a request, whose head is valid, for its flow on a worker. */
  mediateRequest(): void {
    const exchange = this.exchange
    const head = exchange.head!
    const fields = transferredFields(exchange, this.context.settings.forwardedFields)
    if (exchange.upgrade !== '') {
      const opens = opensSubscriptions(this.#flows, exchange)
      this.#handshake = fields.filter(field => isOfHandshake(field) && !(opens && isExtension(field)))
    }
    this.head = requestHead(exchange, exchange.upgrade === '' ? fields : fields.filter(field => !isOfHandshake(field)))
    exchange.source = this
    exchange.target = this
    if (exchange.requestFraming > this.services.store.limits.bytesMax) this.#refuseRequest()
    else if (exchange.requestFraming === 0) this.#mediate('request')
    else {
      this.collector = new BodyCollector(this, this.services.store)
      this.machine.advance(head.has(KIND.EXPECT) && exchange.minorVersion === 1 ? 'EXPECT' : 'COLLECT')
    }
  }

  /** Sends a request, whose head is valid, on as it comes: only its response, or a fault, needs a worker. */
  forwardRequest(): void {
    const exchange = this.exchange
    exchange.source = this
    if (opensSubscriptions(this.#flows, exchange)) exchange.requestEdit = WITHOUT_EXTENSIONS
    this.machine.advance('FORWARD')
    this.#prepareResponse()
    this.#target!.send(exchange)
  }

  requestBody(part: BodyPart): Written {
    const { state } = this.machine
    if (state === 'EXPECTED') {
      this.machine.advance('COLLECT')
      // A client that has sent a byte of its body waits for nothing.
      if (part.count === 0 && !part.last) {
        const { client } = this.exchange
        feedContinue(this.context, (head, at) => client.interimResponse(head, at))
      }
    }
    if (this.machine.state !== 'COLLECTING_REQUEST') return WRITE.DONE
    const collector = this.collector!
    if (!collector.add(part.spans, part.count)) {
      this.#refuseRequest()
      return WRITE.FAILED
    }
    if (part.last) collector.end()
    return collector.isBlocked ? WRITE.PENDING : WRITE.DONE
  }

  #refuseRequest(): void {
    this.refuseFor(REQUEST_TOO_LONG, 'the request is longer than mediation.body.max_bytes')
  }

  /** The other side takes no bytes now: the client for the target, or the mediation for the client. */
  get isBlocked(): boolean {
    switch (this.machine.state) {
      case 'COLLECTING_REQUEST':
      case 'COLLECTING_EARLY':
      case 'COLLECTING_RESPONSE':
        return this.collector!.isBlocked
      case 'REQUEST_AT_WORKER':
      case 'RESPONSE_AT_WORKER':
      case 'FAULT_AT_WORKER':
        return true
      case 'SENDING':
      case 'AWAITING_RESPONSE':
      case 'PASSING_EARLY':
      case 'PASSING':
        return this.#downstream.isBlocked
      default:
        return false
    }
  }

  collectorResumed(): void {
    this.guarded(() => {
      if (this.machine.state === 'COLLECTING_REQUEST') this.exchange.client.resumeRequest()
      else this.exchange.target?.resumeResponse()
    })
  }

  collected(): void {
    this.guarded(() => {
      this.held = this.collector!.take()
      this.collector = null
      this.#mediate(this.machine.state === 'COLLECTING_REQUEST' ? 'request' : 'response')
    })
  }

  /** The target takes bytes again. */
  resumeRequest(): void {
    if (this.feed === null) this.exchange.client.resumeRequest()
    else this.feed.resume()
  }

  // ---- the worker -------------------------------------------------------------------------------------------------

  #mediate(flow: 'request' | 'response'): void {
    this.machine.advance('MEDIATE')
    const state = this.state === NO_STATE ? firstState(this.exchange) : this.state
    this.#run(flow, this.#flows.plan[flow].sequences, state)
    // A client that still sends is not read meanwhile, and has no deadline.
    if (flow === 'response') this.exchange.client.resumeRequest()
  }

  #run(flow: FlowTask['flow'], sequences: readonly string[], state: MessageState): void {
    const { exchange, head, held, machine } = this
    const waits = machine.state
    const isAwaited = () => machine.state === waits
    const trace = flow !== 'request' && exchange.trace?.isSampled ? exchange.trace : null
    trace?.begin('response mediation')
    const own = withCallerProperties(exchange, this.#flows.plan[flow === 'onError' ? 'request' : flow].reads, state)
    const run = {
      ...{ flow, sequences, exchange, target: this.#target, flows: this.#flows, head, held },
      ...{ state: own, isAwaited },
    }
    const isLate = this.#fault !== null && isLateFault(this.#fault.refusal)
    const isOver = (): boolean => {
      if (!isAwaited()) {
        // The client has left, or the target has failed.
        if (held.kind === 'file') dropHeld(held, this.services.store)
        return true
      }
      this.flowEnded()
      trace?.end('response mediation')
      return false
    }
    runFlow(run, this.services, this.context, this.listener(isLate)).then(
      result => {
        if (result === null) return
        if (isOver()) dropResult(result)
        else this.guarded(() => (flow === 'onError' ? this.#finishOnError(result) : this.#finishFlow(flow, result)))
      },
      (error: unknown) => {
        if (!isOver()) this.guarded(() => this.#failFlow(flow, error))
      },
    )
  }

  #failFlow(flow: FlowTask['flow'], error: unknown): void {
    const failure = failureOf(error)
    traceFailure(this.exchange, flow, failure)
    if (flow === 'fault') {
      this.log('fault flow failed', failure.message)
      this.#answerFault()
    } else if (flow === 'onError') {
      this.log('onError failed', failure.message)
      this.services.refuse(this.exchange, this.#fault!)
    } else this.refuseFor(refusalOfWorker(failure.reason), failure.message)
  }

  #finishFlow(flow: FlowTask['flow'], result: FlowOutcome): void {
    traceResult(this.exchange, flow, result)
    if (result.kind === 'refused') {
      this.dropHeld()
      this.services.refuseAtOnce(this.exchange, { refusal: result.refusal, failure: null, sequence: null })
    } else if (flow === 'fault') this.#finishFault(result)
    else if (result.kind === 'faults') {
      this.state = result.state
      this.dropHeld()
      this.services.refuseRaised(this.exchange, result.fault)
    } else if (result.kind === 'drops') {
      this.dropHeld()
      this.#respond(ACCEPTED, emptySource())
    } else {
      const { message, onError = '' } = result
      this.keepState(message.state)
      this.onError = flow === 'request' && result.kind === 'continues' ? onError : ''
      if (flow === 'response' || result.kind === 'responds') this.#respond(message, this.sourceOf(message))
      else if (result.kind === 'loops') this.#loop(message)
      else this.#send(message, result.endpoint, result.isBodyOfAnswer === true)
    }
  }

  /** The response flow gets what the request flow has made. */
  #loop(message: TransferredMessage): void {
    if (this.#flows.plan.response.needs === 'nothing') {
      this.#respond(message, this.sourceOf(message))
      return
    }
    this.held = this.takeBody(message)
    this.head = { ...message, method: this.head.method, target: this.head.target }
    this.#mediate('response')
  }

  // ---- the fed request --------------------------------------------------------------------------------------------

  #send(message: TransferredMessage, endpoint: string, isBodyOfAnswer: boolean): void {
    const exchange = this.exchange
    const given = exchange.upgrade === '' ? this.sourceOf(message) : this.#withoutBody(message)
    const destination = destinationOf(endpoint, this.#target!, message, this.state, this.services.endpoints)
    if (typeof destination === 'string') {
      given.close()
      this.refuseFor(UNSENDABLE, destination)
      return
    }
    if (endpoint !== '') withoutCredentials(exchange)
    const { target, head: after } = destination
    const ofRequest = message.body.kind === 'untouched' ? exchange.method : undefined
    const isEmpty = leavesBodyOut(after.method, isBodyOfAnswer ? '' : ofRequest)
    if (isEmpty) given.close()
    const source = isEmpty ? emptySource() : given
    const edit = editOfRequest(this.head, after, this.context.requestKinds, this.state.secrets)
    const start = {
      method: after.method,
      target: exchange.canonicalTarget.slice(0, exchange.backendPathAt) + after.target,
      scheme: exchange.isSecured ? 'https' : 'http',
    } as const
    const use = (head: Head): void => {
      this.machine.advance('SEND')
      exchange.requestEdit = edit as HeadEdit | null
      exchange.requestFraming = source.length
      this.head = NO_HEAD
      this.#prepareResponse()
      exchange.head = head
      target.send(exchange)
      exchange.head = null
      if (this.machine.state === 'SENDING') {
        this.feed = new BodyFeed(source, new TargetSink(exchange, this), this.context)
        this.feed.begin()
      } else source.close()
    }
    const isValid = typeof edit !== 'string'
    const isBodiless = exchange.upgrade !== '' || isEmpty
    const passing = isBodiless ? message.fields.filter(field => !isOfBody(field)) : message.fields
    const fields = [...withoutForwarding(passing, exchange), ...this.#handshake]
    const broken = isValid ? feedRequest(start, fields, source.length, this.context, use) : edit
    if (broken === '') return
    source.close()
    this.refuseFor(refusalOfHead(broken), `the request of a flow is refused: ${broken}`)
  }

  /** Behind the head of a handshake come the bytes of its tunnel: a body there would be read as one of them. */
  #withoutBody(message: TransferredMessage): BodySource {
    const source = this.sourceOf(message)
    if (source.length !== 0) {
      const fields = { API: this.exchange.apiName, LENGTH: String(source.length) }
      this.context.report('warn', 'body of a handshake left out', fields)
    }
    source.close()
    return emptySource()
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  get addresses(): ConnectionAddresses | null {
    return this.exchange.client.addresses
  }

  interimResponse(head: Head, at: number): void {
    this.exchange.client.interimResponse(head, at)
  }

  /** A response flow that needs no worker is on its way before the response comes. */
  #prepareResponse(): void {
    this.#downstream = this.#flows.prepareResponse(this.exchange, this.state)
  }

  responseHead(head: Head, at: number, framing: number): void {
    this.onError = ''
    if (this.#flows.plan.response.needs !== 'worker') {
      this.machine.advance('PASS')
      this.#downstream.responseHead(head, at, framing)
      return
    }
    const { method, canonicalTarget, backendPathAt } = this.exchange
    const target = canonicalTarget.slice(backendPathAt)
    this.head = { method, target, status: head.status, reason: reasonOf(head, at), fields: fieldsOf(head) }
    this.machine.advance('COLLECT')
    this.collector = new BodyCollector(this, this.services.store)
    if (!this.#flows.hasToldOfStream && this.head.fields.some(isEventStream)) {
      this.#flows.hasToldOfStream = true
      this.log('event stream collected', 'a response flow that reads the body waits for the end of an event stream')
    }
    if (head.status > STATUS_MAX) this.refuseFor(BACKEND_VIOLATES, 'the status of the response is beyond 599')
    else if (framing > this.services.store.limits.bytesMax) this.#refuseResponse()
  }

  responseBody(part: BodyPart): Written {
    const { state } = this.machine
    if (state === 'PASSING' || state === 'PASSING_EARLY') return this.#downstream.responseBody(part)
    if (state !== 'COLLECTING_RESPONSE' && state !== 'COLLECTING_EARLY') return WRITE.DONE
    const collector = this.collector!
    if (!collector.add(part.spans, part.count)) {
      this.#refuseResponse()
      return WRITE.FAILED
    }
    if (part.last) {
      this.stopFeed()
      // The connection of the backend serves others from now on.
      this.exchange.target = this
      collector.end()
    }
    return collector.isBlocked ? WRITE.PENDING : WRITE.DONE
  }

  /** A cut response must not look whole. */
  #refuseResponse(): void {
    this.refuseFor(RESPONSE_TOO_LONG, 'the response is longer than mediation.body.max_bytes')
  }

  switchProtocols(head: Head, at: number, backend: BackendTunnelPeer): void {
    this.machine.advance('PASS')
    if (this.#flows.plan.response.needs === 'worker') this.log('response flow not run', 'a response 101 has no body')
    if (opensSubscriptions(this.#flows, this.exchange)) {
      const { check, isRefused } = checkTunnel(head, backend, this.exchange, this.#flows, this.services)
      this.messages = check
      if (isRefused) return
    }
    this.#downstream.switchProtocols(head, at, backend)
  }

  sendLocalResponse(status: number, reason: string, lines: string, body: string): void {
    this.exchange.client.sendLocalResponse(status, reason, lines, body)
  }

  sendKeptResponse(response: KeptResponse): void {
    this.exchange.client.sendKeptResponse(response)
  }

  /** The client takes bytes again. */
  resumeResponse(): void {
    this.feed?.resume()
  }

  /** Feeds a response to the client. */
  #respond(head: MessageHead, source: BodySource): void {
    const exchange = this.exchange
    exchange.target = this
    exchange.responseEdit = null
    const begins = (feed: BodyFeed): void => {
      this.machine.advance('RESPOND')
      this.stopFeed()
      this.feed = feed
    }
    const response = { head, source, sink: new ClientSink(exchange.client, this), client: exchange.client, begins }
    const broken = sendResponse(exchange, response, this.context)
    if (broken === '') return
    if (this.machine.state === 'FAULT_AT_WORKER') {
      this.log('fault flow failed', `its response is refused: ${broken}`)
      this.#answerFault()
    } else this.refuseFor(refusalOfHead(broken), `the response of a flow is refused: ${broken}`)
  }

  // ---- faults -----------------------------------------------------------------------------------------------------

  /** Has the fault flow of the API word a fault; the fault sequence of its code answers where that fails. */
  wordFault(fault: PendingFault): void {
    const { status } = faultDetails(fault.refusal, fault.failure)
    this.#takeFault(fault, status)
    this.#run('fault', this.#flows.plan.fault.sequences, faultState(this.exchange, this.state, fault))
  }

  /** Runs the onError of the `<send>` whose endpoint has failed; the fault goes on where it does not answer. */
  runOnError(fault: PendingFault, onError: string): void {
    this.#takeFault(fault, 0)
    this.#run('onError', [onError], onErrorState(this.exchange, this.state, fault))
  }

  #takeFault(fault: PendingFault, status: number): void {
    this.release()
    this.machine.advance('FAULT')
    this.#fault = fault
    this.exchange.target = this
    this.head = { ...requestHead(this.exchange, []), status }
  }

  #finishOnError(result: FlowOutcome): void {
    traceResult(this.exchange, 'onError', result)
    if (result.kind === 'drops') this.#respond(ACCEPTED, emptySource())
    else if (result.kind === 'responds') this.#respond(result.message, this.sourceOf(result.message))
    else if (result.kind === 'faults') {
      this.state = result.state
      this.services.refuseRaised(this.exchange, result.fault)
    } else {
      dropResult(result)
      if (result.kind !== 'refused') this.keepState(result.message.state)
      this.services.refuse(this.exchange, this.#fault!)
    }
  }

  #finishFault(result: FlowResult): void {
    if (result.kind === 'faults' || result.kind === 'drops') {
      this.log('fault flow failed', result.kind === 'drops' ? 'it dropped the fault' : result.fault.cause)
      this.#answerFault()
      return
    }
    const { message } = result
    const own = linesOfFault(this.exchange, this.#fault!)
    this.#respond({ ...message, fields: withAbsent(message.fields, own) }, this.sourceOf(message))
  }

  #answerFault(): void {
    this.services.refuseAtOnce(this.exchange, this.#fault!)
  }
}

function isEventStream([name, value]: Fields[number]): boolean {
  return name.toLowerCase() === 'content-type' && mediaTypeOf(value) === 'text/event-stream'
}

function isOfBody([name]: Fields[number]): boolean {
  return name.toLowerCase().startsWith('content-')
}
