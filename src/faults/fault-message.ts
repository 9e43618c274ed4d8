/** Fills the message of a fault sequence: the properties under which sequences read a fault. */
import type { Failure } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { FaultDetails } from './fault-details.ts'
import type { FaultFormat } from './fault-format.ts'
import type { Refusal } from '../proxy/exchange/outcome.ts'
import { describeCors, describeRequest } from '../proxy/exchange/request-properties.ts'
import type { Message } from '../mediation/message.ts'
import { textOf } from '../mediation/value.ts'

/** `nextAccessMs`: when a throttled client may come back, in milliseconds since 1970; 0: not known. */
export function fillFaultMessage(
  message: Message,
  exchange: Exchange,
  details: FaultDetails,
  nextAccessMs: number,
  failure: Failure | null,
  format: FaultFormat,
): void {
  const { status } = details
  // A sequence of an earlier flow may have chosen the status of its faults.
  const chosen = textOf(message.get('default', 'CUSTOM_HTTP_SC'))
  describeFailure(message, details, failure)
  message.set('default', 'CUSTOM_HTTP_SC', /^[2-5]\d\d$/.test(chosen) ? Number(chosen) : status)
  message.set('default', 'HTTP_RESPONSE_STATUS_CODE', status)
  message.set('axis2', 'HTTP_SC', status)
  message.set('axis2', 'messageType', format)
  // payloadFactory overwrites messageType; this property keeps the type that the client asked for.
  message.set('default', 'FAULT_MESSAGE_TYPE', format)
  if (nextAccessMs > 0) message.set('default', 'NEXT_ACCESS_UTC_TIME', utcText(nextAccessMs))
  describeRequest(message, exchange)
  describeCors(message, exchange)
}

/** Sets the properties by which every sequence reads a fault. */
export function describeFailure(
  message: Message,
  { code, message: faultMessage, description }: FaultDetails,
  failure: Failure | null,
): void {
  message.set('default', 'ERROR_CODE', code)
  message.set('default', 'ERROR_MESSAGE', faultMessage)
  message.set('default', 'ERROR_DETAIL', description)
  // The cause from the log. It may name backends, so no default sequence shows it.
  message.set('default', 'ERROR_EXCEPTION', failure === null ? '' : failure.cause)
}

/** Sets the properties of a fault that a sequence has raised: fault flows read them as they were raised. */
export function describeRaised(message: Message, { raised }: Refusal): void {
  if (raised === undefined) return
  const { code, type, message: text, detail } = raised
  if (type !== undefined || code !== 0) message.set('default', 'ERROR_CODE', type ?? code)
  if (text !== '') message.set('default', 'ERROR_MESSAGE', text)
  if (detail !== '') message.set('default', 'ERROR_DETAIL', detail)
}

/** Sets the properties that `_threat_fault_` reads. */
export function describeThreat(message: Message, { code, message: threat, description }: FaultDetails): void {
  message.set('default', 'THREAT_CODE', code)
  message.set('default', 'THREAT_MSG', threat)
  message.set('default', 'THREAT_DESC', description)
}

/** The format of the reference platform: `2026-Nov-21 18:42:00+0000 UTC`. A part of a second counts as a whole one. */
function utcText(ms: number): string {
  const [, day, month, year, time] = new Date(Math.ceil(ms / 1000) * 1000).toUTCString().split(/,? /)
  return `${year}-${month}-${day} ${time}+0000 UTC`
}
