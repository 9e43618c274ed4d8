/** A parsed sequence: plain data, which the primary hands to each reactor. */
import type { SequenceEndpoint } from './endpoint-plan.ts'

export interface MediatorPlan {
  /** Name of the element; the mediator of this name compiles `settings`. */
  readonly mediator: string
  /** Line in the file. */
  readonly line: number
  /** Plain data in the form of its mediator. */
  readonly settings: unknown
}

/** A branch of a mediator: the sequence of that key, else the steps. */
export interface Branch {
  /** '' for none. */
  readonly key: string
  readonly steps: readonly MediatorPlan[]
}

/**
 * A file of the home that a mediator uses. `module`: an ES module. `text`, `script`, `schema`, `template`: the text of
 * a local entry or a file; that of a script is JavaScript, of a schema JSON Schema, of a template FreeMarker.
 */
export interface UsedFile {
  readonly kind: 'module' | 'text' | 'script' | 'schema' | 'template'
  /** Path inside the home, or name of a local entry. */
  readonly key: string
  readonly line: number
}

/** A parameter of a sequence template. */
export interface TemplateParameter {
  readonly name: string
  readonly isMandatory: boolean
  /** Value where a call gives none; '' for none. */
  readonly value: string
}

/** A `<call-template>`. */
export interface TemplateCall {
  readonly template: string
  /** Names of the parameters that it gives. */
  readonly given: readonly string[]
  readonly line: number
}

export interface SequencePlan {
  /** Key by which other sequences run it. */
  readonly name: string
  /** Name of its file, for the log. */
  readonly label: string
  readonly steps: readonly MediatorPlan[]
  /** Name of the sequence that runs when a mediator fails; '' for none. */
  readonly onError: string
  /** Request fields that its expressions read, in lower case. */
  readonly requestFields: readonly string[]
  /** Names of the sequences that it runs. */
  readonly calls: readonly string[]
  /** Endpoints that its mediators name or contain; left out: none. */
  readonly endpoints?: readonly SequenceEndpoint[]
  /** Files that its mediators use; left out: none. */
  readonly files?: readonly UsedFile[]
  /** Parameters of a template; left out: it is a sequence. */
  readonly parameters?: readonly TemplateParameter[]
  /** Templates that its mediators run; left out: none. */
  readonly templateCalls?: readonly TemplateCall[]
  /** It is the default sequence of the package, to the letter. */
  readonly isDefault: boolean
}
