/** A parsed sequence: plain data, which the primary hands to each reactor. */

export interface MediatorPlan {
  /** Name of the element; the mediator of this name compiles `settings`. */
  readonly mediator: string
  /** Line in the file. */
  readonly line: number
  /** Plain data in the form of its mediator. */
  readonly settings: unknown
}

export interface SequencePlan {
  /** Key by which other sequences run it. */
  readonly name: string
  /** Name of its file, for the log. */
  readonly label: string
  readonly steps: readonly MediatorPlan[]
  /** Request fields that its expressions read, in lower case. */
  readonly requestFields: readonly string[]
  /** Names of the sequences that it runs. */
  readonly calls: readonly string[]
  /** It is the default sequence of the package, to the letter. */
  readonly isDefault: boolean
}
