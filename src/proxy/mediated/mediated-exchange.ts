/**
 * One exchange of which a flow runs on a worker. Stands between both sides: it collects the bodies that flows need,
 * hands messages to the worker, and feeds what comes back to the target or the client. Bodies that no flow needs pass
 * it without a copy. `transitions.ts` has its states.
 */
import { faultDetails } from '../../faults/fault-details.ts'
import { KIND } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import {
  type FlowResult,
  type FlowTask,
  type MessageState,
  NO_STATE,
  type TransferredMessage,
} from '../../mediation/worker-task.ts'
import { WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionAddresses } from '../../socket/proxy-header.ts'
import type { ExchangeMediation, PendingFault } from '../exchange/api-mediation.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BodyPart, Failure, SourceSide, Target, TargetSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { HeadEdit } from '../exchange/head-edit.ts'
import type { MessageCheck } from '../exchange/message-inspection.ts'
import { type KeptResponse, type Refusal, refusal } from '../exchange/outcome.ts'
import { type BackendTunnelPeer, declineTunnel } from '../exchange/tunnel.ts'
import { runAdmitted } from './admitted-flow.ts'
import { BodyCollector, type CollectorOwner, type HeldBody } from './body-collector.ts'
import { deleteFile } from './body-store.ts'
import { BodyFeed, type FeedSink } from './body-feed.ts'
import { type BodySource, dropHeld, emptySource, heldOf, sourceOfHeld } from './body-source.ts'
import { cutResponse, sendResponse } from './client-response.ts'
import { feedContinue, feedRequest, fieldsOf, reasonOf } from './fed-message.ts'
import {
  editOfRequest,
  faultState,
  firstState,
  linesOfFault,
  withAbsent,
  flowTask,
  type MessageHead,
  requestHead,
} from './flow-task.ts'
import {
  NOT_KEPT,
  refusalOfHead,
  refusalOfWorker,
  reportRefusal,
  REQUEST_TOO_LONG,
  RESPONSE_TOO_LONG,
  UNSENDABLE,
} from './mediation-refusals.ts'
import { traceFailure, traceResult, traceTask } from './flow-trace.ts'
import { transferredFields, withoutForwarding } from './head-flows.ts'
import { failureOf, type MediationServices, type OperationFlows, timedWorkers } from './mediation-services.ts'
import { type Destination, destinationOf } from './sequence-endpoint.ts'
import { checkOfTunnel, isNoExtension, opensSubscriptions, WITHOUT_EXTENSIONS } from './subscription-messages.ts'
import { MediatedMachine } from './transitions.ts'

const NO_HEAD: MessageHead = { method: '', target: '', status: 0, reason: '', fields: [] }
const NO_BODY: HeldBody = { kind: 'none' }
const ACCEPTED: MessageHead = { ...NO_HEAD, status: 202 }

export class MediatedExchange implements SourceSide, TargetSide, ExchangeMediation, CollectorOwner {
  state: MessageState
  messages: MessageCheck | null = null
  readonly #exchange: Exchange
  readonly #flows: OperationFlows
  readonly #services: MediationServices
  readonly #context: ConnectionContext
  readonly #machine = new MediatedMachine()
  /** The target of the key type; the null target of a fault is never sent to. */
  readonly #target: Target | null
  /** What takes the response: the client, or a flow that reads its head. */
  #downstream: SourceSide
  /** The body that is collected. */
  #collector: BodyCollector | null = null
  /** The body that is sent. */
  #feed: BodyFeed | null = null
  /** The fault that its flow words. */
  #fault: PendingFault | null = null
  /** Head and body of the message at the worker. */
  #head = NO_HEAD
  #held: HeldBody = NO_BODY

  constructor(exchange: Exchange, flows: OperationFlows, services: MediationServices, target: Target | null) {
    this.#exchange = exchange
    this.#flows = flows
    this.#services = services
    this.#target = target
    this.#downstream = exchange.client
    this.#context = exchange.isSecured ? services.contexts.secured : services.contexts.plain
    this.state = exchange.mediation?.state ?? NO_STATE
    exchange.mediation = this
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** Takes a request, whose head is valid, for its flow on a worker. */
  mediateRequest(): void {
    const exchange = this.#exchange
    const head = exchange.head!
    this.#head = requestHead(exchange, transferredFields(exchange, this.#context.settings.forwardedFields))
    exchange.source = this
    exchange.target = this
    if (exchange.requestFraming > this.#services.store.limits.bytesMax) this.#refuseRequest()
    else if (exchange.requestFraming === 0) this.#mediate('request')
    else {
      this.#collector = new BodyCollector(this, this.#services.store)
      this.#machine.advance(head.has(KIND.EXPECT) && exchange.minorVersion === 1 ? 'EXPECT' : 'COLLECT')
    }
  }

  /** Sends a request, whose head is valid, on as it comes: only its response, or a fault, needs a worker. */
  forwardRequest(): void {
    const exchange = this.#exchange
    exchange.source = this
    if (opensSubscriptions(this.#flows, exchange)) exchange.requestEdit = WITHOUT_EXTENSIONS
    this.#machine.advance('FORWARD')
    this.#prepareResponse()
    this.#target!.send(exchange)
  }

  requestBody(part: BodyPart): Written {
    const { state } = this.#machine
    if (state === 'EXPECTED') {
      this.#machine.advance('COLLECT')
      // A client that has sent a byte of its body waits for nothing.
      if (part.count === 0 && !part.last) this.#continue()
    }
    if (this.#machine.state !== 'COLLECTING_REQUEST') return WRITE.DONE
    const collector = this.#collector!
    if (!collector.add(part.spans, part.count)) {
      this.#refuseRequest()
      return WRITE.FAILED
    }
    if (part.last) collector.end()
    return collector.isBlocked ? WRITE.PENDING : WRITE.DONE
  }

  #refuseRequest(): void {
    this.#refuseFor(REQUEST_TOO_LONG, 'the request is longer than mediation.body.max_bytes')
  }

  #continue(): void {
    const { client } = this.#exchange
    feedContinue(this.#context, (head, at) => client.interimResponse(head, at))
  }

  /** The other side takes no bytes now: the client for the target, or the mediation for the client. */
  get isBlocked(): boolean {
    switch (this.#machine.state) {
      case 'COLLECTING_REQUEST':
      case 'COLLECTING_EARLY':
      case 'COLLECTING_RESPONSE':
        return this.#collector!.isBlocked
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
    this.#guarded(() => {
      if (this.#machine.state === 'COLLECTING_REQUEST') this.#exchange.client.resumeRequest()
      else this.#exchange.target?.resumeResponse()
    })
  }

  collected(): void {
    this.#guarded(() => {
      this.#held = this.#collector!.take()
      this.#collector = null
      this.#mediate(this.#machine.state === 'COLLECTING_REQUEST' ? 'request' : 'response')
    })
  }

  collectorFailed(cause: string): void {
    this.#guarded(() => this.#refuseFor(NOT_KEPT, `a body cannot be written to its file (${cause})`))
  }

  /** The target takes bytes again. */
  resumeRequest(): void {
    if (this.#feed === null) this.#exchange.client.resumeRequest()
    else this.#feed.resume()
  }

  // ---- the worker -------------------------------------------------------------------------------------------------

  #mediate(flow: 'request' | 'response'): void {
    this.#machine.advance('MEDIATE')
    const state = this.state === NO_STATE ? firstState(this.#exchange) : this.state
    this.#run(flow, this.#flows.plan[flow].sequences, state)
    // A client that still sends is not read meanwhile, and has no deadline.
    if (flow === 'response') this.#exchange.client.resumeRequest()
  }

  #run(flow: FlowTask['flow'], sequences: readonly string[], state: MessageState): void {
    const exchange = this.#exchange
    const held = this.#held
    const length = held.kind === 'none' ? 0 : held.length
    traceTask(exchange, { flow, sequences }, this.#head.fields, held, state)
    const waits = this.#machine.state
    const { mediate, account } = timedWorkers(this.#services, exchange, this.#context.now)
    const admission = flow === 'request' && exchange.upgrade === '' ? this.#flows.admission : null
    const gathering = flow === 'request' ? this.#flows.plan.response : null
    const own = { exchange, api: this.#flows.api, sequences, gathering, head: this.#head, held, state, mediate }
    const run = () =>
      admission === null
        ? mediate(flowTask(this.#flows.api, flow, sequences, own.head, held, state, gathering), length)
        : runAdmitted({ ...own, admission, isAwaited: () => this.#machine.state === waits })
    // A refusal may come at once, and what follows must not run inside of the caller.
    void Promise.resolve()
      .then(run)
      .finally(() => this.#machine.state === waits && account())
      .then(
        result => {
          // The client has left, or the target has failed.
          if (this.#machine.state !== waits) dropResult(result)
          else this.#guarded(() => this.#finishFlow(flow, result))
        },
        (error: unknown) => {
          if (this.#machine.state === waits) this.#guarded(() => this.#failFlow(flow, error))
        },
      )
  }

  #failFlow(flow: FlowTask['flow'], error: unknown): void {
    const failure = failureOf(error)
    traceFailure(this.#exchange, flow, failure)
    if (flow === 'fault') {
      this.#log('fault flow failed', failure.message)
      this.#answerFault()
    } else this.#refuseFor(refusalOfWorker(failure.reason), failure.message)
  }

  #finishFlow(flow: FlowTask['flow'], result: Awaited<ReturnType<typeof runAdmitted>>): void {
    traceResult(this.#exchange, flow, result)
    if (result.kind === 'refused') {
      this.#dropHeld()
      this.#services.refuse(this.#exchange, { refusal: result.refusal, failure: null, sequence: null })
    } else if (flow === 'fault') this.#finishFault(result)
    else if (result.kind === 'faults') {
      this.state = result.state
      this.#dropHeld()
      this.#services.refuseRaised(this.#exchange, result.fault)
    } else if (result.kind === 'drops') {
      this.#dropHeld()
      this.#respond(ACCEPTED, emptySource())
    } else {
      const { message } = result
      this.state = message.state
      if (flow === 'response' || result.kind === 'responds') this.#respond(message, this.#sourceOf(message))
      else if (result.kind === 'loops') this.#loop(message)
      else this.#send(message, result.endpoint)
    }
  }

  /** The body that a flow leaves: its own, or the one that the reactor holds. */
  #sourceOf(message: TransferredMessage): BodySource {
    return sourceOfHeld(this.#takeBody(message), this.#services.store)
  }

  #takeBody({ body }: TransferredMessage): HeldBody {
    const held = this.#held
    this.#held = NO_BODY
    if (body.kind === 'untouched') return held
    dropHeld(held, this.#services.store)
    return heldOf(body, this.#services.store)
  }

  /** The response flow gets what the request flow has made. */
  #loop(message: TransferredMessage): void {
    if (this.#flows.plan.response.needs === 'nothing') {
      this.#respond(message, this.#sourceOf(message))
      return
    }
    this.#held = this.#takeBody(message)
    this.#head = { ...message, method: this.#head.method, target: this.#head.target }
    this.#mediate('response')
  }

  // ---- the fed request --------------------------------------------------------------------------------------------

  #send(message: TransferredMessage, endpoint: string): void {
    const exchange = this.#exchange
    const source = this.#sourceOf(message)
    const destination = this.#destinationOf(endpoint, message)
    if (destination === null) {
      source.close()
      return
    }
    const { target, head: after } = destination
    const edit = editOfRequest(this.#head, after, this.#context.requestKinds)
    const start = {
      method: after.method,
      target: exchange.canonicalTarget.slice(0, exchange.backendPathAt) + after.target,
      scheme: exchange.isSecured ? 'https' : 'http',
    } as const
    const use = (head: Head): void => {
      this.#machine.advance('SEND')
      exchange.requestEdit = edit as HeadEdit | null
      exchange.requestFraming = source.length
      this.#head = NO_HEAD
      this.#prepareResponse()
      exchange.head = head
      target.send(exchange)
      exchange.head = null
      if (this.#machine.state === 'SENDING') {
        this.#feed = new BodyFeed(source, this.#toTarget, this.#context)
        this.#feed.begin()
      } else source.close()
    }
    const isValid = typeof edit !== 'string'
    const passing = opensSubscriptions(this.#flows, exchange) ? message.fields.filter(isNoExtension) : message.fields
    const fields = withoutForwarding(passing, exchange)
    const broken = isValid ? feedRequest(start, fields, source.length, this.#context, use) : edit
    if (broken === '') return
    source.close()
    this.#refuseFor(refusalOfHead(broken), `the request of a flow is refused: ${broken}`)
  }

  get #toTarget(): FeedSink {
    const exchange = this.#exchange
    return {
      get isBlocked() {
        return exchange.target === null || exchange.target.isBlocked
      },
      take: part => exchange.target!.requestBody(part),
      feedEnds: () => this.#machine.advance('SENT'),
      feedFailed: cause => this.#feedFailed(cause),
      feedThrew: error => this.#threw(error),
    }
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  get addresses(): ConnectionAddresses | null {
    return this.#exchange.client.addresses
  }

  interimResponse(head: Head, at: number): void {
    this.#exchange.client.interimResponse(head, at)
  }

  /** A response flow that needs no worker is on its way before the response comes. */
  #prepareResponse(): void {
    this.#downstream = this.#flows.prepareResponse(this.#exchange, this.state)
  }

  responseHead(head: Head, at: number, framing: number): void {
    if (this.#flows.plan.response.needs !== 'worker') {
      this.#machine.advance('PASS')
      this.#downstream.responseHead(head, at, framing)
      return
    }
    const { method, canonicalTarget, backendPathAt } = this.#exchange
    const target = canonicalTarget.slice(backendPathAt)
    this.#head = { method, target, status: head.status, reason: reasonOf(head, at), fields: fieldsOf(head) }
    this.#machine.advance('COLLECT')
    this.#collector = new BodyCollector(this, this.#services.store)
    if (framing > this.#services.store.limits.bytesMax) this.#refuseResponse()
  }

  responseBody(part: BodyPart): Written {
    const { state } = this.#machine
    if (state === 'PASSING' || state === 'PASSING_EARLY') return this.#downstream.responseBody(part)
    if (state !== 'COLLECTING_RESPONSE' && state !== 'COLLECTING_EARLY') return WRITE.DONE
    const collector = this.#collector!
    if (!collector.add(part.spans, part.count)) {
      this.#refuseResponse()
      return WRITE.FAILED
    }
    if (part.last) {
      this.#stopFeed()
      // The connection of the backend serves others from now on.
      this.#exchange.target = this
      collector.end()
    }
    return collector.isBlocked ? WRITE.PENDING : WRITE.DONE
  }

  /** A cut response must not look whole. */
  #refuseResponse(): void {
    this.#refuseFor(RESPONSE_TOO_LONG, 'the response is longer than mediation.body.max_bytes')
  }

  switchProtocols(head: Head, at: number, backend: BackendTunnelPeer): void {
    this.#machine.advance('PASS')
    if (this.#flows.plan.response.needs === 'worker') this.#log('response flow not run', 'a response 101 has no body')
    if (!opensSubscriptions(this.#flows, this.#exchange) || this.#checkMessages(head, backend)) {
      this.#downstream.switchProtocols(head, at, backend)
    }
  }

  /** Has the messages of a tunnel checked, whose 101 has come. False: the client gets a fault in place of it. */
  #checkMessages(head: Head, backend: BackendTunnelPeer): boolean {
    const exchange = this.#exchange
    const service = this.#services.workers[exchange.isSecured ? 'secured' : 'plain']
    const { check, refused } = checkOfTunnel(head, {
      ...{ exchange, admission: this.#flows.admission!, api: this.#flows.api },
      mediate: (task, bytes) => service.mediate(task, bytes),
      refused: (reason, cause) => this.#log('operation refused', cause, reason),
    })
    this.messages = check
    if (refused === undefined) return true
    declineTunnel(exchange, backend)
    this.#services.refuse(exchange, { refusal: refused, failure: null, sequence: null })
    return false
  }

  sendLocalResponse(status: number, reason: string, lines: string, body: string): void {
    this.#exchange.client.sendLocalResponse(status, reason, lines, body)
  }

  sendKeptResponse(response: KeptResponse): void {
    this.#exchange.client.sendKeptResponse(response)
  }

  /** The client takes bytes again. */
  resumeResponse(): void {
    this.#feed?.resume()
  }

  /** Feeds a response to the client. */
  #respond(head: MessageHead, source: BodySource): void {
    const exchange = this.#exchange
    exchange.target = this
    exchange.responseEdit = null
    const begins = (feed: BodyFeed): void => {
      this.#machine.advance('RESPOND')
      this.#stopFeed()
      this.#feed = feed
    }
    const response = { head, source, sink: this.#toClient, client: exchange.client, begins }
    const broken = sendResponse(exchange, response, this.#context)
    if (broken === '') return
    if (this.#machine.state === 'FAULT_AT_WORKER') {
      this.#log('fault flow failed', `its response is refused: ${broken}`)
      this.#answerFault()
    } else this.#refuseFor(refusalOfHead(broken), `the response of a flow is refused: ${broken}`)
  }

  get #toClient(): FeedSink {
    const { client } = this.#exchange
    return {
      get isBlocked() {
        return client.isBlocked
      },
      take: part => client.responseBody(part),
      feedEnds: () => undefined,
      feedFailed: cause => this.#feedFailed(cause),
      feedThrew: error => this.#threw(error),
    }
  }

  // ---- faults -----------------------------------------------------------------------------------------------------

  /** Has the fault flow of the API word a fault; the fault sequence of its code answers where that fails. */
  wordFault(fault: PendingFault): void {
    this.#release()
    this.#machine.advance('FAULT')
    this.#fault = fault
    const { status } = faultDetails(fault.refusal, fault.failure)
    this.#exchange.target = this
    this.#head = { ...requestHead(this.#exchange, []), status }
    this.#run('fault', this.#flows.plan.fault.sequences, faultState(this.#exchange, this.state, fault))
  }

  #finishFault(result: FlowResult): void {
    if (result.kind === 'faults' || result.kind === 'drops') {
      this.#log('fault flow failed', result.kind === 'drops' ? 'it dropped the fault' : result.fault.cause)
      this.#answerFault()
      return
    }
    const { message } = result
    const own = linesOfFault(this.#exchange, this.#fault!)
    this.#respond({ ...message, fields: withAbsent(message.fields, own) }, this.#sourceOf(message))
  }

  #answerFault(): void {
    this.#services.refuseAtOnce(this.#exchange, this.#fault!)
  }

  /** The target has failed; nothing of its response was sent where a flow needs it. */
  fail(failure: Failure): void {
    this.#release()
    this.#exchange.client.fail(failure)
  }

  #refuseFor(reason: Refusal, cause: string): void {
    this.#log('message not mediated', cause, reason)
    this.#abandonTarget(cause)
    this.#services.refuse(this.#exchange, { refusal: reason, failure: null, sequence: null })
  }

  /** A body that is on its way cannot be read to its end. */
  #feedFailed(cause: string): void {
    const { state } = this.#machine
    if (state !== 'RESPONDING' && state !== 'PASSING_EARLY') {
      this.#refuseFor(NOT_KEPT, cause)
      return
    }
    this.#log('message not mediated', cause, NOT_KEPT)
    this.#cut(cause)
  }

  /** The client has a part of a response. */
  #cut(cause: string): void {
    this.#abandonTarget(cause)
    cutResponse(this.#exchange.client, cause)
  }

  /** Code of the gateway threw. */
  #threw(error: unknown): void {
    const { state } = this.#machine
    this.#services.bug(this.#exchange, error)
    if (state === 'ENDED') return
    if (['RESPONDING', 'PASSING', 'PASSING_EARLY'].includes(state)) this.#cut('internal error')
    else {
      this.#abandonTarget('internal error')
      this.#services.refuseAtOnce(this.#exchange, { refusal: refusal(500), failure: null, sequence: null })
    }
  }

  #guarded(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#threw(error)
    }
  }

  #log(event: string, cause: string, reason: Refusal | null = null): void {
    reportRefusal(this.#services.report, this.#exchange, event, cause, reason)
  }

  // ---- endings ----------------------------------------------------------------------------------------------------
  /** The client has left, or gets no more. */
  abort(): void {
    this.ended()
  }

  ended(): void {
    this.#release()
    this.#machine.advance('END')
  }

  /** `cause`: why the backend is given up. */
  #abandonTarget(cause: string): void {
    const { target } = this.#exchange
    this.#exchange.target = null
    if (target !== this) target?.abort(cause)
    this.#release()
  }

  #release(): void {
    this.#collector?.cancel()
    this.#collector = null
    this.#stopFeed()
    this.#dropHeld()
  }

  #stopFeed(): void {
    this.#feed?.cancel()
    this.#feed = null
  }

  #dropHeld(): void {
    dropHeld(this.#held, this.#services.store)
    this.#held = NO_BODY
  }

  /** Where a request goes, with its method and path there; null where it cannot: the exchange is refused then. */
  #destinationOf(endpoint: string, head: MessageHead): Destination | null {
    const found = destinationOf(endpoint, this.#target!, head, this.state, this.#services.endpoints)
    if (typeof found !== 'string') {
      // D300: the gateway's own credentials and its JWT are for the endpoints of the API.
      if (endpoint !== '') {
        this.#exchange.callerLines = ''
        this.#exchange.ownCredential = null
      }
      return found
    }
    this.#refuseFor(UNSENDABLE, found)
    return null
  }
}

/** A result that nobody waits for. */
function dropResult(result: Awaited<ReturnType<typeof runAdmitted>>): void {
  if ('message' in result && result.message.body.kind === 'file') deleteFile(result.message.body.path)
}
