/**
 * Outcomes as answers: status, reason and the JSON fault body of the specification ("Error body shape"). Status of
 * transport faults: D4.
 */
import { FAULT } from '../errors/catalogue.ts'
import { transportCode } from '../errors/transport-code.ts'
import type { Failure } from '../exchange/contract.ts'
import type { Outcome } from '../exchange/outcome.ts'
import { STATUS_CODES } from './status-codes.ts'

interface RenderedFault {
  readonly status: number
  readonly reason: string
  readonly lines: string
  readonly body: string
}

const JSON_LINE = 'Content-Type: application/json; charset=UTF-8\r\n'

/** `failure`: of the transport, whose code is base + state. */
export function renderFault(outcome: Outcome, failure: Failure | null): RenderedFault {
  const row = FAULT[outcome.code]
  const status = outcome.status ?? (failure === null || failure.status === 0 ? row.status : failure.status)
  const code = failure === null ? outcome.code : transportCode(failure.base, failure.state)
  const reason = STATUS_CODES[status] ?? 'Error'
  const message = outcome.code === 400 ? reason : row.message
  // 101504 is both: a back end that is late, and one to which no further connection may be opened.
  const isFull = failure !== null && failure.status === 503
  const description = outcome.description ?? (isFull ? 'No further connection to the back end' : row.description)
  const fault = { code, type: 'Status report', message, description }
  return { status, reason, lines: JSON_LINE + outcome.lines, body: JSON.stringify({ fault }) }
}
