/** A fault as the message that a sequence words: the properties under which sequences find what there is to say. */
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { FaultFacts } from '../fault/facts.ts'
import type { FaultFormat } from '../fault/format.ts'
import type { Message } from '../mediation/message.ts'

/** What limits are worded by; they tell when the next window begins. */
const THROTTLED = '_throttle_out_handler_'

export function fill(
  message: Message,
  exchange: Exchange,
  { code, status, message: said, description, sequence }: FaultFacts,
  failure: Failure | null,
  media: FaultFormat,
): void {
  message.set('default', 'ERROR_CODE', code)
  message.set('default', 'ERROR_MESSAGE', said)
  message.set('default', 'ERROR_DETAIL', description)
  // As in the log. It may name back ends, so no default sequence shows it.
  message.set('default', 'ERROR_EXCEPTION', failure === null ? '' : failure.cause)
  message.set('default', 'CUSTOM_HTTP_SC', status)
  message.set('default', 'HTTP_RESPONSE_STATUS_CODE', status)
  message.set('axis2', 'HTTP_SC', status)
  message.set('axis2', 'messageType', media)
  // A payloadFactory says what it has made; this is what the client asked for.
  message.set('default', 'FAULT_MESSAGE_TYPE', media)
  if (sequence === THROTTLED && exchange.retryAfterS > 0) {
    message.set('default', 'NEXT_ACCESS_UTC_TIME', utcIn(exchange.retryAfterS))
  }
  describeRequest(message, exchange)
  describeCors(message, exchange)
}

export function describeRequest(message: Message, exchange: Exchange): void {
  const { api, resource, method } = exchange
  message.set('default', 'REST_METHOD', method)
  message.set('axis2', 'HTTP_METHOD', method)
  message.set('axis2', 'REMOTE_ADDR', exchange.clientAddress)
  // What was matched, and what a backend gets: a sequence that decides by it must not be told anything else.
  const path = (api === null ? exchange.requestTarget : exchange.target).slice(exchange.pathAt)
  message.set('default', 'REST_FULL_REQUEST_PATH', path)
  message.to = path
  message.set('default', 'CORRELATION_ID', exchange.correlationId)
  if (api === null) return
  message.set('default', 'SYNAPSE_REST_API', api.name)
  message.set('default', 'SYNAPSE_REST_API_VERSION', api.version)
  message.set('default', 'REST_API_CONTEXT', api.path)
  message.set('default', 'REST_SUB_REQUEST_PATH', exchange.target.slice(exchange.restAt))
  if (resource !== null) message.set('default', 'API_ELECTED_RESOURCE', resource.template)
}

/** For `_cors_request_handler_`. */
function describeCors(message: Message, { grant }: Exchange): void {
  if (grant === null) return
  message.set('default', 'CORSConfiguration.Enabled', true)
  if (grant.origin === '') return
  message.set('default', 'Access-Control-Allow-Origin', grant.origin)
  if (grant.credentials) message.set('default', 'Access-Control-Allow-Credentials', 'true')
  if (grant.exposes !== '') message.set('default', 'Access-Control-Expose-Headers', grant.exposes)
}

/** As the reference platform writes it: `2026-Nov-21 18:42:00+0000 UTC`. */
function utcIn(seconds: number): string {
  const [, day, month, year, time] = new Date(Date.now() + seconds * 1000).toUTCString().split(/,? /)
  return `${year}-${month}-${day} ${time}+0000 UTC`
}
