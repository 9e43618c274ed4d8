/** A sequence file as the primary read it: plain data, from which each reactor makes its closures. */

/** One mediator with what its element says. */
export interface Step {
  /** Name of its element: which mediator reads `settings`. */
  readonly mediator: string
  /** Its line in the file. */
  readonly line: number
  /** Plain data, of the form that its mediator wrote. */
  readonly settings: unknown
}

export interface SequenceProgram {
  /** What other sequences call it by. */
  readonly name: string
  /** File it came from, for reports. */
  readonly label: string
  readonly steps: readonly Step[]
  /** Request fields that its expressions read, in lower case. */
  readonly requestFields: readonly string[]
  /** Keys of the sequences that it calls. */
  readonly calls: readonly string[]
}
