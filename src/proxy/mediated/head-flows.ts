/**
 * Flows that need nothing but heads, run on the reactor: bodies stream past them. A flow of constant changes runs once,
 * when its first request comes, and becomes one edit for all messages.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { fieldsIn, type HeadEdit, isForwarding } from '../exchange/head-edit.ts'
import { type EditRules, requestEdit, responseEdit } from './message-edit.ts'
import { callerProperty, describeRequest } from '../exchange/request-properties.ts'
import { fieldNamed, type FieldKinds, KIND } from '../../http1/field-kinds.ts'
import { forwardedKinds } from '../../http1/forwarded.ts'
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import { type StrippedKinds, strippedKinds } from '../../http1/rewrite.ts'
import type { CompiledSequences } from '../../mediation/compiled-sequences.ts'
import type { FlowPlan } from '../../mediation/flow-plan.ts'
import { ACCEPTED, type FormattedResponse, formatResponse } from '../../mediation/formatter.ts'
import { MediationFault } from '../../mediation/mediation-fault.ts'
import { Message } from '../../mediation/message.ts'
import { type FlowResult, type MessageState, NO_STATE, type RaisedFault } from '../../mediation/worker-task.ts'
import { fieldsOf as transferable } from './fed-message.ts'
import { traceProperties } from './flow-trace.ts'
import type { Report } from '../exchange/connection-context.ts'
import { tracer } from '../../protocol/tracer.ts'

/** The outcome of a message. `state`: for the next flow of the exchange; null: as it was. */
export type HeadOutcome =
  /**
   * On its way to the endpoints of the API, with an edit: `send` to another endpoint needs a worker. `onError`: as of
   * ExchangeMediation.
   */
  | { readonly kind: 'continues'; readonly edit: HeadEdit | null; readonly state: State; readonly onError: string }
  /** The client gets another response at once. */
  | { readonly kind: 'responds'; readonly response: FormattedResponse; readonly state: State }
  | { readonly kind: 'faults'; readonly fault: RaisedFault; readonly state: State }
type State = MessageState | null

/** Services of a reactor for flows of one direction. */
export interface FlowContext {
  readonly requestKinds: FieldKinds
  readonly responseKinds: FieldKinds
  /** Form of the forwarding fields of requests. */
  readonly settings: { readonly forwardedFields: Parameters<typeof forwardedKinds>[0] }
  readonly report: Report
}

const FAILED: RaisedFault = { code: 0, message: '', detail: '', cause: 'the mediation failed', sequence: '' }
const OF_RESPONSES = strippedKinds()

export class HeadFlow {
  readonly plan: FlowPlan
  readonly #sequences: CompiledSequences
  readonly #context: FlowContext
  readonly #api: string
  readonly #direction: 'request' | 'response'
  /** The edit of a constant flow; null until its first message, and while no flow is constant. */
  #constant: HeadOutcome | null = null
  /** The message that `#constant` was made from, for traces. */
  #constantMessage: Message | null = null
  /** Versions that `#constant` was made from. */
  #version = 0
  #kindsVersion = 0

  /** `sequences`: those of the API. `api`: name and version, for the log. */
  constructor(
    plan: FlowPlan,
    direction: 'request' | 'response',
    api: string,
    sequences: CompiledSequences,
    context: FlowContext,
  ) {
    this.plan = plan
    this.#direction = direction
    this.#api = api
    this.#sequences = sequences
    this.#context = context
  }

  get #kinds(): FieldKinds {
    return this.#direction === 'request' ? this.#context.requestKinds : this.#context.responseKinds
  }

  get #rules(): EditRules {
    return { kinds: this.#kinds, report: this.#context.report, api: this.#api }
  }

  /** Runs the flow of a request, whose head is valid. `keepsState`: a later flow of the exchange sees its state. */
  request(exchange: Exchange, state: MessageState, keepsState = true): HeadOutcome {
    if (this.plan.needs === 'constant') return this.#constantFor(exchange)
    const { forwardedFields: form } = this.#context.settings
    const message = new Message(
      name => requestField(exchange, name, form),
      () => requestFields(exchange, form),
    )
    const target = exchange.canonicalTarget.slice(exchange.backendPathAt)
    message.receive({ method: exchange.method, target, status: 0, reason: '' }, null)
    prepare(message, exchange, state)
    const path = exchange.canonicalTarget.slice(exchange.pathAt)
    const contextLength = exchange.backendPathAt - exchange.pathAt
    return this.#outcome(message, exchange, keepsState, () => requestEdit(message, path, contextLength, this.#rules))
  }

  /** Runs the flow of a response, whose head is valid. */
  response(exchange: Exchange, head: Head, state: MessageState): HeadOutcome {
    if (this.plan.needs === 'constant') return this.#constantFor(exchange)
    const message = new Message(
      name => listedField(head, name, OF_RESPONSES),
      () => fieldsOf(head, OF_RESPONSES),
    )
    message.isFromBackend = true
    const target = exchange.canonicalTarget.slice(exchange.backendPathAt)
    message.receive({ method: exchange.method, target, status: head.status, reason: '' }, null)
    prepare(message, exchange, state)
    const edit = () => responseEdit(message, head.status, exchange.isHead, this.#rules)
    const trace = exchange.trace?.isSampled ? exchange.trace : null
    trace?.begin('response mediation')
    const outcome = this.#outcome(message, exchange, false, edit)
    trace?.end('response mediation')
    return outcome
  }

  #constantFor(exchange: Exchange): HeadOutcome {
    const outcome = this.constant
    this.traceConstant(exchange, outcome)
    return outcome
  }

  /** Notes of a trace about a constant flow. */
  traceConstant(exchange: Exchange, { kind }: HeadOutcome): void {
    if (tracer === null) return
    this.#trace(exchange, `constant, ${kind}`)
    traceProperties(exchange, this.#direction, this.#constantMessage!)
  }

  #trace(exchange: Exchange, what: string): void {
    tracer?.note(exchange, 'sequence', `${this.#direction} flow ${this.plan.sequences.join(', ')}: ${what}`)
  }

  /** Returns the outcome of a constant flow for every message. */
  get constant(): HeadOutcome {
    const { version } = this.#sequences
    const known = this.#constant
    if (known !== null && version === this.#version && this.#kinds.version === this.#kindsVersion) return known
    const message = new Message(() => undefined)
    // The state is the same as before: properties are not constant.
    this.#constant = this.#outcome(message, null, false, () =>
      this.#direction === 'request'
        ? requestEdit(message, '', 0, this.#rules)
        : responseEdit(message, 0, false, this.#rules),
    )
    this.#constantMessage = message
    this.#version = version
    this.#kindsVersion = this.#kinds.version
    return this.#constant
  }

  #outcome(message: Message, exchange: Exchange | null, keepsState: boolean, edit: () => HeadEdit | null): HeadOutcome {
    const ending = this.#sequences.runToEnd(this.plan.sequences, message)
    // The plan has no flow of the reactor in which a mediator waits.
    if (ending instanceof Promise) throw new Error('a flow of heads waits')
    if (exchange !== null && tracer !== null) {
      this.#trace(exchange, ending)
      traceProperties(exchange, this.#direction, message)
    }
    try {
      return this.#outcomeOf(message, ending, keepsState, edit)
    } catch (error) {
      const flow = this.plan.sequences.join(', ')
      if (error instanceof MediationFault)
        return { kind: 'faults', fault: error.locate(flow).raised, state: message.state() }
      const what = error instanceof Error ? error.message : String(error)
      const cause = `${flow}: failed: ${what}`
      return { kind: 'faults', fault: { ...FAILED, cause }, state: message.state() }
    }
  }

  #outcomeOf(
    message: Message,
    ending: FlowResult['kind'],
    keepsState: boolean,
    edit: () => HeadEdit | null,
  ): HeadOutcome {
    if (ending === 'faults' || ending === 'loops') {
      return { kind: 'faults', fault: message.fault ?? FAILED, state: message.state() }
    }
    if (ending === 'drops') return { kind: 'responds', response: ACCEPTED, state: null }
    if (ending === 'responds' && this.#direction === 'request') {
      return { kind: 'responds', response: formatResponse(message, this.#context.report), state: null }
    }
    const { sentOnError: onError } = message
    const state = keepsState || onError !== '' ? message.stateForNextFlow() : null
    return { kind: 'continues', edit: edit(), state, onError }
  }
}

/** The state of an earlier flow has the properties that describe the request. */
function prepare(message: Message, exchange: Exchange, state: MessageState): void {
  if (state === NO_STATE) {
    describeRequest(message, exchange)
    return
  }
  message.restore(state)
  message.findsOuter = (scope, name) => callerProperty(exchange, scope, name)
}

// ---- received fields ------------------------------------------------------------------------------------------------

type Transferred = ReturnType<typeof transferable>
type Fields = Iterable<readonly [name: string, value: string]>
type Form = FlowContext['settings']['forwardedFields']

/** Kinds of request fields that no backend gets, so that no sequence decides by what a client claims in them. */
const hidden = (form: Form, isTrusted: boolean): StrippedKinds =>
  strippedKinds(KIND.CORRELATION, KIND.CREDENTIAL, ...forwardedKinds(form, isTrusted))
const hiddenOfBoth = (form: Form) => ({ trusted: hidden(form, true), untrusted: hidden(form, false) })
const HIDDEN = {
  'x-forwarded': hiddenOfBoth('x-forwarded'),
  forwarded: hiddenOfBoth('forwarded'),
  both: hiddenOfBoth('both'),
  none: hiddenOfBoth('none'),
}

function hiddenKinds(form: Form, { isTrusted }: Exchange): StrippedKinds {
  return HIDDEN[form][isTrusted ? 'trusted' : 'untrusted']
}

/** A field as the backend gets it: with the gateway's own, and without credentials. */
function requestField(exchange: Exchange, name: string, form: Form): string | undefined {
  if (name === 'host') return exchange.host === '' ? undefined : exchange.host
  const value = listedField(exchange.head!, name, hiddenKinds(form, exchange))
  if (value !== undefined || !isForwarding(name)) return value
  return fieldsIn(exchange.forwardedLines).find(([each]) => each.toLowerCase() === name)?.[1]
}

function* requestFields(exchange: Exchange, form: Form): Fields {
  yield* fieldsOf(exchange.head!, hiddenKinds(form, exchange))
  yield* fieldsIn(exchange.forwardedLines)
}

/** The fields of a request as its flows on workers see them: the same that `requestFields` has, without framing. */
export function transferredFields(exchange: Exchange, form: Form): Transferred {
  const received = transferable(exchange.head!, hiddenKinds(form, exchange))
  const ofHost = ([name, value]: Transferred[number]) => [name, isHost(name) ? exchange.host : value] as const
  return [...received.map(ofHost), ...fieldsIn(exchange.forwardedLines)]
}

function isHost(name: string): boolean {
  return name.length === 4 && name.toLowerCase() === 'host'
}

/** Returns the fields that a flow on a worker leaves, without lines of the gateway, which every request gets. */
export function withoutForwarding(fields: Transferred, exchange: Exchange): Transferred {
  const own = fieldsIn(exchange.forwardedLines).map(([name, value]) => `${name}: ${value}`)
  const isOwn = ([name, value]: Transferred[number]) => {
    const at = own.indexOf(`${name}: ${value}`)
    if (at !== -1) own.splice(at, 1)
    return at !== -1
  }
  // Equal lines in front of the own ones are those of earlier hops through this node.
  return fields
    .toReversed()
    .filter(field => !isOwn(field))
    .toReversed()
}

/** All values of a name as a list (RFC 9110 5.3); undefined without any. */
function listedField(head: Head, name: string, hidden: StrippedKinds): string | undefined {
  const { bytes } = arena
  let list: string | undefined
  for (let field = fieldNamed(bytes, head, name); field >= 0; field = fieldNamed(bytes, head, name, field + 1)) {
    if (hidden[head.kinds[field]!] !== 0) continue
    const value = head.value(bytes, field)
    list = list === undefined ? value : `${list}, ${value}`
  }
  return list
}

function* fieldsOf(head: Head, hidden: StrippedKinds): Fields {
  const { bytes } = arena
  for (let field = 0; field < head.count; field++) {
    if (hidden[head.kinds[field]!] !== 0) continue
    const at = head.nameAt(field)
    yield [bytes.latin1Slice(at, at + head.nameLength(field)), head.value(bytes, field)]
  }
}
