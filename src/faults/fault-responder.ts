/**
 * Sends faults: runs the fault sequence of a refusal and sends the message that the sequence leaves. Where a sequence
 * fails or leaves no message, the client gets the default body; it always gets a response.
 */
import type { Failure } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Refusal } from '../proxy/exchange/outcome.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { type FaultDetails, faultDetails, reasonPhrase } from './fault-details.ts'
import { faultFormat, prefersTextXml } from './fault-format.ts'
import { withVaryAccept, linesAbsentFrom, linesWithout } from './response-fields.ts'
import { fillFaultMessage } from './fault-message.ts'
import { capturedValue } from '../http1/captured-fields.ts'
import { type FormattedResponse, formatResponse } from '../mediation/formatter.ts'
import { Message } from '../mediation/message.ts'
import type { CompiledSequences } from '../mediation/compiled-sequences.ts'
import { textOf } from '../mediation/value.ts'
import { type FaultPlan, TOKEN_API_NAMES } from '../plan/reactor-plan.ts'
import { tracer } from '../protocol/tracer.ts'

/** Least time between two reports of a sequence that left no fault. */
const REPORT_INTERVAL_MS = 1000
/** Fault sequence of `/token` and `/revoke`, for every code. */
const TOKEN_FAULT = '_token_fault_'

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
    const details = faultDetails(outcome, failure)
    const isAi = this.#aiSequence !== '' && exchange.api?.isAi === true
    const isTokenApi = TOKEN_API_NAMES.includes(exchange.api?.name ?? '')
    const usual = isTokenApi ? TOKEN_FAULT : (sequence ?? details.sequence)
    const name = isAi ? this.#aiSequence : usual
    if (tracer !== null) tracer.note(exchange, 'fault', `${details.code}, sequence ${name}`)
    this.sendFormatted(exchange, this.#runSafely(name, exchange, details, failure) ?? defaultFault(details), outcome)
  }

  /**
   * Sends what a sequence has left: a fault, or the response of a sequence to a WebSocket handshake. Its lines win over
   * those of the gateway (CORS, Retry-After, those of the refusal), which are added where it has no such field (D82).
   */
  sendFormatted(exchange: Exchange, formatted: FormattedResponse, outcome: Pick<Refusal, 'lines'>): void {
    const { status, reason = reasonPhrase(status), body } = formatted
    const lines = linesWithout(formatted.lines, this.#correlationField)
    const all = lines + linesAbsentFrom(lines, linesOf(exchange, outcome))
    exchange.source.sendLocalResponse(status, reason, withVaryAccept(status, all), body)
  }

  /** Undefined where the sequence throws: a bug in mediation must not cost the client its response. */
  #runSafely(
    name: string,
    exchange: Exchange,
    details: FaultDetails,
    failure: Failure | null,
  ): FormattedResponse | undefined {
    try {
      return this.#run(name, exchange, details, failure)
    } catch (error) {
      return this.#reportUnused(name, `failed: ${String(error)}`)
    }
  }

  /** Undefined where the sequence leaves no response. */
  #run(
    name: string,
    exchange: Exchange,
    details: FaultDetails,
    failure: Failure | null,
  ): FormattedResponse | undefined {
    if (!this.#sequences.has(name)) return this.#reportUnused(name, 'there is no such sequence')
    const { captured } = exchange
    const format = faultFormat(captured)
    const message = new Message(field => capturedValue(captured, field))
    fillFaultMessage(message, exchange, details, failure, format)
    const outcome = this.#sequences.run(name, message)
    const isResponse = outcome === 'sent' || outcome === 'responded'
    if (!isResponse) return this.#reportUnused(name, `it ended as "${outcome}", without a response`)
    // The formatter takes text/xml for SOAP. A client that asks for plain XML under that name gets the name it prefers.
    const isXml = textOf(message.get('axis2', 'ContentType')) === 'application/xml'
    if (isXml && prefersTextXml(captured)) message.set('axis2', 'ContentType', 'text/xml')
    return formatResponse(message, this.#report)
  }

  #reportUnused(name: string, cause: string): undefined {
    const now = this.#now()
    if (now - this.#reportedMs < REPORT_INTERVAL_MS) return undefined
    this.#reportedMs = now
    this.#report('warn', 'fault sequence gave no response', { SEQUENCE: name, CAUSE_OF_ERROR: cause })
    return undefined
  }
}

/** Request fields that the sequences read, in lower case. */
export function requestFieldsOf({ sequences }: FaultPlan): readonly string[] {
  return [...new Set(sequences.flatMap(({ requestFields }) => requestFields))]
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
