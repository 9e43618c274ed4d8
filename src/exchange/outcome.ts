/**
 * What comes of a request that is not passed on. A refusal is a value: shared, frozen, without a stack, because floods
 * of it come.
 */
import type { FaultCode } from '../errors/catalogue.ts'

export interface Refusal {
  readonly code: FaultCode
  /** Overrides the status and description of the code's row; undefined keeps them. */
  readonly status: number | undefined
  readonly description: string | undefined
  /** Further response lines, each with its CRLF: `Allow: GET\r\n`. */
  readonly lines: string
}

/** An answer of the gateway's own that is no fault, as to a preflight request. It has no body. */
export interface OwnAnswer {
  readonly code: 0
  readonly status: number
  readonly lines: string
}

export type Outcome = Refusal | OwnAnswer

const shared = new Map<FaultCode, Refusal>()

/** The refusal of a code, made once. */
export function refusal(code: FaultCode): Refusal {
  let outcome = shared.get(code)
  if (outcome === undefined) {
    outcome = Object.freeze({ code, status: undefined, description: undefined, lines: '' })
    shared.set(code, outcome)
  }
  return outcome
}

/** As for a path that no API has, and for whatever must not be told from it: the hallway forgets which API it was. */
export const NO_SUCH_API = refusal(404)
