/**
 * Sends faults: runs the fault sequence of a refusal and sends the message that the sequence leaves. Where a sequence
 * fails or leaves no message, the client gets the default body; it always gets a response.
 */
import type { PendingFault } from '../proxy/exchange/api-mediation.ts'
import type { Failure } from '../proxy/exchange/contract.ts'
import type { CorsGrant, Exchange } from '../proxy/exchange/exchange.ts'
import type { KeptResponse, Refusal } from '../proxy/exchange/outcome.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { FAULT } from './error-codes.ts'
import { type FaultDetails, faultDetails, reasonPhrase } from './fault-details.ts'
import { faultFormat, prefersTextXml } from './fault-format.ts'
import { withVaryAccept, linesAbsentFrom, linesWithout } from './response-fields.ts'
import { describeFailure, describeRaised, describeThreat, fillFaultMessage } from './fault-message.ts'
import { capturedValue } from '../http1/captured-fields.ts'
import { encoded } from '../http1/writer.ts'
import { ACCEPTED, completeFault, type FormattedResponse, formatResponse } from '../mediation/formatter.ts'
import { Message } from '../mediation/message.ts'
import type { CompiledSequences } from '../mediation/compiled-sequences.ts'
import { textOf } from '../mediation/value.ts'
import type { MessageState } from '../mediation/worker-task.ts'
import { type FaultPlan, TOKEN_API_NAMES } from '../plan/reactor-plan.ts'
import { tracer } from '../protocol/tracer.ts'

/** Least time between two reports of a sequence that left no fault. */
const REPORT_INTERVAL_MS = 1000
/** Fault sequence of `/token` and `/revoke`, for every code. */
const TOKEN_FAULT = '_token_fault_'
const THREAT_FAULT = '_threat_fault_'

/** Longer responses are composed for each request: heads of the gateway have this room at least. */
const KEPT_BYTES_MAX = 8192
/** Statuses whose responses have neither body nor length. */
const BODILESS = [204, 304]

interface WholeResponse {
  readonly status: number
  readonly reason: string
  readonly lines: string
  readonly body: string
}

interface SequenceResult {
  readonly response: FormattedResponse
  /** The sequence has read nothing of the request, so another one gets the same response. */
  readonly isRepeatable: boolean
}

export class FaultResponder {
  readonly #report: Report
  readonly #now: () => number
  readonly #correlationField: string
  readonly #sequences: CompiledSequences
  /** Fault sequence of AI APIs; '' for the usual ones. */
  #aiSequence = ''
  #reportedMs = Number.NEGATIVE_INFINITY

  /**
   * `correlationField`: the header field of the correlation id; sequences cannot set it. `now`: milliseconds of a
   * monotonic clock.
   */
  constructor(
    plan: FaultPlan,
    sequences: CompiledSequences,
    correlationField: string,
    report: Report,
    now: () => number,
  ) {
    this.#sequences = sequences
    this.#report = report
    this.#now = now
    this.#correlationField = correlationField.toLowerCase()
    this.update(plan)
  }

  update({ aiSequence }: FaultPlan): void {
    this.#aiSequence = aiSequence
  }

  /** `sequence`: the fault sequence of a situation that shares its code with others; null for that of the code. */
  respond(exchange: Exchange, outcome: Refusal, failure: Failure | null, sequence: string | null): void {
    const wordFault = exchange.api?.wordFault
    if (wordFault !== undefined) {
      const details = faultDetails(outcome, failure)
      if (tracer !== null) tracer.note(exchange, 'fault', `${details.code}, worded by the API`)
      this.sendFormatted(exchange, wordFault(exchange, details), outcome)
      return
    }
    const name = this.#sequenceOf(exchange, outcome, sequence)
    const kept = outcome.throttling?.kept
    if (kept !== undefined && kept !== null && this.#isSame(exchange, kept, name)) {
      exchange.client.sendKeptResponse(kept)
      return
    }
    const details = faultDetails(outcome, failure)
    if (tracer !== null) tracer.note(exchange, 'fault', `${details.code}, sequence ${name}`)
    const result = this.#runSafely(name, exchange, details, outcome, failure)
    const whole = this.#whole(exchange, result?.response ?? defaultFault(details), outcome)
    const { throttling } = outcome
    // Floods of refused requests run a sequence once a second, unless it reads something of the request.
    if (throttling !== undefined && result?.isRepeatable === true && isPlain(exchange)) {
      throttling.kept = this.#keptResponse(whole, name, exchange.corsGrant)
    }
    exchange.client.sendLocalResponse(whole.status, whole.reason, whole.lines, whole.body)
  }

  /**
   * Words a fault by the fault flow of an API, whose sequences run in order; the end of the last one sends the response
   * too. Returns false, and reports it, where they leave no response.
   */
  respondByFlow(
    exchange: Exchange,
    { refusal, failure }: PendingFault,
    sequences: CompiledSequences,
    names: readonly string[],
    state: MessageState,
  ): boolean {
    const { captured } = exchange
    const message = new Message(field => capturedValue(captured, field))
    message.restore(state)
    const details = faultDetails(refusal, failure)
    const nextAccessMs = refusal.throttling?.nextAccessMs ?? 0
    fillFaultMessage(message, exchange, details, nextAccessMs, failure, faultFormat(captured))
    describeRaised(message, refusal)
    if (tracer !== null) tracer.note(exchange, 'fault', `${details.code}, fault flow ${names.join(', ')}`)
    try {
      const ending = sequences.runToEnd(names, message)
      if (ending !== 'continues' && ending !== 'responds') {
        this.#reportUnused(names.join(', '), `it ended as "${String(ending)}", without a response`)
        return false
      }
      completeFault(message)
      this.sendFormatted(exchange, formatResponse(message, this.#report), refusal)
      return true
    } catch (error) {
      this.#reportUnused(names.join(', '), `failed: ${String(error)}`)
      return false
    }
  }

  /**
   * Answers by the onError of a `<send>` whose endpoint has failed. Returns false where it leaves no response: then the
   * fault is worded as any other one.
   */
  respondByOnError(
    exchange: Exchange,
    { refusal, failure }: PendingFault,
    sequences: CompiledSequences,
    onError: string,
    state: MessageState,
  ): boolean {
    const message = new Message(field => capturedValue(exchange.captured, field))
    message.restore(state)
    describeFailure(message, faultDetails(refusal, failure), failure)
    if (tracer !== null) tracer.note(exchange, 'fault', `${refusal.code}, onError ${onError}`)
    try {
      const ending = sequences.runToEnd([onError], message)
      if (ending === 'drops') this.sendFormatted(exchange, ACCEPTED, refusal)
      else if (ending === 'responds' || message.outcome === 'sent') {
        this.sendFormatted(exchange, formatResponse(message, this.#report), refusal)
      } else {
        if (ending !== 'continues') this.#reportUnused(onError, `it ended as "${String(ending)}", without a response`)
        return false
      }
      return true
    } catch (error) {
      this.#reportUnused(onError, `failed: ${String(error)}`)
      return false
    }
  }

  /** Null where the response is too long for the chunk in which heads are composed. */
  #keptResponse(
    { status, reason, lines, body }: WholeResponse,
    sequence: string,
    corsGrant: CorsGrant | null,
  ): KeptResponse | null {
    const content = Uint8Array.from(Buffer.from(body))
    const start = encoded(`HTTP/1.1 ${status} ${reason}\r\n${lines}Content-Length: ${content.length}\r\n`)
    if (start.length + content.length > KEPT_BYTES_MAX || BODILESS.includes(status)) return null
    return { version: this.#sequences.version, sequence, corsGrant, status, start, body: content }
  }

  #sequenceOf({ api }: Exchange, { code }: Refusal, sequence: string | null): string {
    if (api?.isAi === true && this.#aiSequence !== '') return this.#aiSequence
    if (api !== null && TOKEN_API_NAMES.includes(api.name)) return TOKEN_FAULT
    return sequence ?? FAULT[code].sequence
  }

  /** True if this request gets the kept response: it has nothing that the response was made from. */
  #isSame(exchange: Exchange, { version, sequence, corsGrant }: KeptResponse, name: string): boolean {
    if (version !== this.#sequences.version || sequence !== name || corsGrant !== exchange.corsGrant) return false
    return isPlain(exchange) && tracer === null
  }

  /**
   * Sends what a sequence has left: a fault, or the response of a sequence to a WebSocket handshake. Its lines win over
   * those of the gateway (CORS, Retry-After, those of the refusal), which are added where it has no such field (D82).
   */
  sendFormatted(exchange: Exchange, formatted: FormattedResponse, outcome: Pick<Refusal, 'lines'>): void {
    const { status, reason, lines, body } = this.#whole(exchange, formatted, outcome)
    exchange.client.sendLocalResponse(status, reason, lines, body)
  }

  #whole(exchange: Exchange, formatted: FormattedResponse, outcome: Pick<Refusal, 'lines'>): WholeResponse {
    const { status, reason = reasonPhrase(status), body } = formatted
    const lines = linesWithout(formatted.lines, this.#correlationField)
    const all = lines + linesAbsentFrom(lines, linesOf(exchange, outcome))
    return { status, reason, lines: withVaryAccept(status, all), body }
  }

  /** Undefined where the sequence throws: a bug in mediation must not cost the client its response. */
  #runSafely(
    name: string,
    exchange: Exchange,
    details: FaultDetails,
    outcome: Refusal,
    failure: Failure | null,
  ): SequenceResult | undefined {
    try {
      return this.#run(name, exchange, details, outcome, failure)
    } catch (error) {
      return this.#reportUnused(name, `failed: ${String(error)}`)
    }
  }

  /** Undefined where the sequence leaves no response. */
  #run(
    name: string,
    exchange: Exchange,
    details: FaultDetails,
    { throttling }: Refusal,
    failure: Failure | null,
  ): SequenceResult | undefined {
    if (!this.#sequences.has(name)) return this.#reportUnused(name, 'there is no such sequence')
    const { captured } = exchange
    const format = faultFormat(captured)
    const message = new Message(field => capturedValue(captured, field))
    fillFaultMessage(message, exchange, details, throttling?.nextAccessMs ?? 0, failure, format)
    // THREAT_CODE is the status too.
    if (name === THREAT_FAULT && details.code === details.status) describeThreat(message, details)
    const outcome = this.#sequences.run(name, message)
    const isResponse = outcome === 'sent' || outcome === 'responded'
    if (!isResponse) return this.#reportUnused(name, `it ended as "${outcome}", without a response`)
    // The formatter takes text/xml for SOAP. A client that asks for plain XML under that name gets the name it prefers.
    const isXml = textOf(message.get('axis2', 'ContentType')) === 'application/xml'
    if (isXml && prefersTextXml(captured)) message.set('axis2', 'ContentType', 'text/xml')
    const response = formatResponse(message, this.#report)
    return { response, isRepeatable: !message.dependsOnRequest }
  }

  #reportUnused(name: string, cause: string): undefined {
    const now = this.#now()
    if (now - this.#reportedMs < REPORT_INTERVAL_MS) return undefined
    this.#reportedMs = now
    this.#report('warn', 'fault sequence gave no response', { SEQUENCE: name, CAUSE_OF_ERROR: cause })
    return undefined
  }
}

/** Request fields that the sequences and OperationOutcomes depend on, in lower case. */
export function requestFieldsOf({ sequences, wordsOutcomes = false }: FaultPlan): readonly string[] {
  const own = wordsOutcomes ? ['accept'] : []
  return [...new Set([...sequences.flatMap(({ requestFields }) => requestFields), ...own])]
}

/** True if no field of the request, and nothing that an earlier phase found out, is part of the response. */
function isPlain({ captured, responseLines, retryAfterS, handlers }: Exchange): boolean {
  return captured.length === 0 && responseLines === '' && retryAfterS === 0 && handlers === null
}

/** The default body of the specification ("Error body shape"). */
function defaultFault({ code, status, message, description }: FaultDetails): FormattedResponse {
  return {
    status,
    reason: reasonPhrase(status),
    lines: 'Content-Type: application/json; charset=UTF-8\r\n',
    body: JSON.stringify({ fault: { code, type: 'Status report', message, description } }),
  }
}

function linesOf({ retryAfterS, responseLines, corsGrant }: Exchange, { lines }: Pick<Refusal, 'lines'>): string {
  const retry = retryAfterS === 0 ? '' : `Retry-After: ${retryAfterS}\r\n`
  return lines + retry + responseLines + (corsGrant === null ? '' : corsGrant.lines)
}
