/**
 * Outcome of a request that is not forwarded. Refusals are shared frozen values without a stack, so a flood of them
 * costs nothing.
 */
import type { FaultCode } from '../../faults/error-codes.ts'
import type { RaisedFault } from '../../mediation/worker-task.ts'
import type { CorsGrant } from './exchange.ts'

export interface Refusal {
  readonly code: FaultCode
  /** Overrides status and description of the code's row; undefined keeps them. */
  readonly status: number | undefined
  readonly description: string | undefined
  /** Further response lines, each with its CRLF: `Allow: GET\r\n`. */
  readonly lines: string
  /** Fault that a sequence has raised, as fault flows read it; left out: a refusal of the gateway itself. */
  readonly raised?: Pick<RaisedFault, 'code' | 'message' | 'detail' | 'type'>
  /** Fields and times of a refusal by a limit; left out for others. */
  readonly throttling?: ThrottlingDetails
}

/** Fields and times of a refusal by a limit, beside its code. */
interface ThrottlingDetails {
  /** When the next request is allowed, in milliseconds since 1970; 0: not by time. */
  readonly nextAccessMs: number
  /** The last response, where nothing in it depends on the request. */
  kept: KeptResponse | null
}

/** A response that further requests get too. */
export interface KeptResponse {
  /** Version of the sequences, and name of the one that has made the response. */
  readonly version: number
  readonly sequence: string
  readonly corsGrant: CorsGrant | null
  readonly status: number
  /** Status line and fields, each with its CRLF; without Date, correlation id and Connection. */
  readonly start: Uint8Array
  readonly body: Uint8Array
}

/** Response of the gateway itself that is no fault, as to a preflight request. Has no body. */
export interface LocalResponse {
  readonly code: 0
  readonly status: number
  readonly lines: string
}

export type Outcome = Refusal | LocalResponse

const shared = new Map<FaultCode, Refusal>()

/** The shared refusal of a code. */
export function refusal(code: FaultCode): Refusal {
  let outcome = shared.get(code)
  if (outcome === undefined) {
    outcome = Object.freeze({ code, status: undefined, description: undefined, lines: '' })
    shared.set(code, outcome)
  }
  return outcome
}

/** A refusal of throttling that does not end with a window. */
export function throttledRefusal(code: FaultCode): Refusal {
  return { code, status: undefined, description: undefined, lines: '', throttling: { nextAccessMs: 0, kept: null } }
}

/** Refusal of a path without an API, and of APIs that must look absent: the pipeline removes all traces of the API. */
export const NO_SUCH_API = refusal(404)
