/** What a refusal says, before anybody words it: code, status, message, description (D4, D49). */
import { FAULT, type FaultSequence } from '../errors/catalogue.ts'
import { transportCode } from '../errors/transport-code.ts'
import type { Failure } from '../exchange/contract.ts'
import type { Refusal } from '../exchange/outcome.ts'
import { STATUS_CODES } from './status-codes.ts'

export interface FaultFacts {
  /** As the client sees it: base and state summed. */
  readonly code: number
  readonly status: number
  readonly message: string
  readonly description: string
  /** File that words it. */
  readonly sequence: FaultSequence
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

/** `failure`: of the transport, whose code is base + state. */
export function factsOf(outcome: Refusal, failure: Failure | null): FaultFacts {
  const row = FAULT[outcome.code]
  const status = outcome.status ?? (failure === null || failure.status === 0 ? row.status : failure.status)
  return {
    code: failure === null ? outcome.code : transportCode(failure.base, failure.state),
    status,
    message: outcome.code === 400 ? reasonOf(status) : row.message,
    description: outcome.description ?? descriptionOf(failure) ?? row.description,
    sequence: row.sequence,
  }
}

export function reasonOf(status: number): string {
  return STATUS_CODES[status] ?? 'Error'
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
