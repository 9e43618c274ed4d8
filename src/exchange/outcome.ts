/** Why a request is not passed on. A refusal is a value: shared, frozen, without a stack, because floods of it come. */
import type { FaultCode } from '../errors/catalogue.ts'

export interface Outcome {
  readonly code: FaultCode
  /** Overrides the status and description of the code's row; undefined keeps them. */
  readonly status: number | undefined
  readonly description: string | undefined
  /** Further response lines, each with its CRLF: `Allow: GET\r\n`. */
  readonly lines: string
}

const shared = new Map<FaultCode, Outcome>()

/** The refusal of a code, made once. */
export function refusal(code: FaultCode): Outcome {
  let outcome = shared.get(code)
  if (outcome === undefined) {
    outcome = Object.freeze({ code, status: undefined, description: undefined, lines: '' })
    shared.set(code, outcome)
  }
  return outcome
}
