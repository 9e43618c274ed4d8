/** A deployed API, as the rooms see it. Built when it is deployed, replaced as a whole, never edited in place. */
import type { Handler, Target } from './contract.ts'

export interface Api {
  readonly name: string
  /** Context with its version, as in logs: `/echo/1.0.0`. */
  readonly path: string
  /** What a request must pass, in order. */
  readonly handlers: readonly Handler[]
  /** Where it is answered. */
  readonly target: Target
}
