/**
 * Outcomes as answers: status, reason and the JSON fault body of the specification ("Error body shape"). Status of
 * transport faults: D4.
 */
import { FAULT } from '../errors/catalogue.ts'
import { transportCode } from '../errors/transport-code.ts'
import type { Failure } from '../exchange/contract.ts'
import type { Refusal } from '../exchange/outcome.ts'
import { STATUS_CODES } from './status-codes.ts'

interface RenderedFault {
  readonly status: number
  readonly reason: string
  readonly lines: string
  readonly body: string
}

/** Causes in the words of src/socket/tls-verdict.ts, with the code that is the last thing in brackets. */
const TLS_CAUSE = /^(certificate of |handshake: |TLS: )(?:.*\(([A-Z][A-Z0-9_]*)[^()]*\))?/
const TLS_DESCRIPTIONS: Readonly<Record<string, string>> = {
  'certificate of ': 'The certificate of the back end is not accepted',
  'handshake: ': 'The TLS handshake with the back end failed',
  'TLS: ': 'TLS with the back end failed',
}
/** As causes in src/target begin of a proxy that answers in its own name: proxy-tunnel.ts, route.ts. */
const PROXY_CAUSE = /^proxy \S+ answered (\d{3})\b/
const JSON_LINE = 'Content-Type: application/json; charset=UTF-8\r\n'

/** `failure`: of the transport, whose code is base + state. */
export function renderFault(outcome: Refusal, failure: Failure | null): RenderedFault {
  const row = FAULT[outcome.code]
  const status = outcome.status ?? (failure === null || failure.status === 0 ? row.status : failure.status)
  const code = failure === null ? outcome.code : transportCode(failure.base, failure.state)
  const reason = STATUS_CODES[status] ?? 'Error'
  const message = outcome.code === 400 ? reason : row.message
  const description = outcome.description ?? descriptionOf(failure) ?? row.description
  const fault = { code, type: 'Status report', message, description }
  return { status, reason, lines: JSON_LINE + outcome.lines, body: JSON.stringify({ fault }) }
}

/** What the code alone does not say. Names, addresses and dates of backends and proxies are for the log. */
function descriptionOf(failure: Failure | null): string | undefined {
  if (failure === null) return undefined
  // 101504 is both: a back end that is late, and one to which no further connection may be opened.
  if (failure.status === 503) return 'No further connection to the back end'
  const refused = PROXY_CAUSE.exec(failure.cause)
  if (refused !== null) return `The forward proxy refused the request (${refused[1]})`
  const [, kind = '', code] = TLS_CAUSE.exec(failure.cause) ?? []
  const words = TLS_DESCRIPTIONS[kind]
  return words !== undefined && code !== undefined ? `${words} (${code})` : words
}
