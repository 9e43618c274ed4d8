/** Messages between a worker and a script thread: a message as a script sees it, and the changes of the script. */

/** Scopes of properties, as scripts name them. */
export type ScriptScope = 'default' | 'axis2' | 'transport' | 'operation' | 'variable'

/** `{ json }` and `{ xml }`: values that are neither texts, numbers nor booleans. */
export type ScriptValue = string | number | boolean | { readonly json: unknown } | { readonly xml: string }

/**
 * `inline`: text of a sequence; `line` is its first line in `label`. `entry`: text of a local entry or file, whose
 * function is called; `line` is 1, or less behind the texts that it includes. `module`: an ES module inside the
 * configuration folder, whose exported function is called.
 */
export type ScriptSource =
  | { readonly kind: 'inline'; readonly text: string; readonly label: string; readonly line: number }
  | {
      readonly kind: 'entry'
      readonly text: string
      readonly label: string
      readonly line: number
      readonly function: string
    }
  | { readonly kind: 'module'; readonly path: string; readonly function: string }

/** A message on its way to a script. The texts stand apart from the rest, which is sent as JSON. */
export interface ScriptTask {
  readonly source: ScriptSource
  /** JSON of `ScriptState`. */
  readonly state: string
  /** The payload as text; of a SOAP message, the content of the Body. '' for none. */
  readonly payload: string
  /** The Envelope of a SOAP message; '' for other messages. */
  readonly envelope: string
  /** A payload of JSON or text as XML, for source text that reads it; '' for others. */
  readonly xml: string
}

/** The XML of the payload of a task; of modules, what makes it when it is read. */
export type ScriptXml = string | ((kind: 'json' | 'text', text: string) => string)

export interface ScriptState {
  readonly properties: readonly (readonly [scope: ScriptScope, name: string, value: ScriptValue])[]
  /** `binary`: scripts do not see it. */
  readonly kind: 'none' | 'json' | 'xml' | 'text' | 'binary'
  readonly to: string
  readonly isResponse: boolean
}

export type ScriptChange =
  | { readonly kind: 'set'; readonly scope: ScriptScope; readonly name: string; readonly value: ScriptValue }
  | { readonly kind: 'remove'; readonly scope: ScriptScope; readonly name: string }
  | { readonly kind: 'to'; readonly value: string }
  /** A block for the header of a SOAP message, as XML. */
  | { readonly kind: 'header'; readonly mustUnderstand: boolean; readonly xml: string }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn' | 'error' | 'debug'; readonly text: string }

/** `payload`: null where the script has not replaced it. `goesOn`: false ends the sequence. */
export type ScriptReply =
  | {
      readonly kind: 'done'
      readonly goesOn: boolean
      /** JSON of `ScriptChange[]`. */
      readonly changes: string
      readonly payload: { readonly kind: 'json' | 'xml' | 'text' | 'none'; readonly text: string } | null
    }
  /** `cause`: class of the error, its text where that stands in the script, and its place. */
  | { readonly kind: 'failed'; readonly cause: string }
