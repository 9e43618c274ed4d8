/**
 * Interface of handlers, ES modules of the operator (`[[synapse_handlers]]`). A module exports any of `request`,
 * `response` and `end`. With `export const synchronous = true` it runs on the thread that carries the traffic: it must
 * return at once, and is ended after `handlers.synchronous_timeout`. Other modules run on threads of their own; there
 * the request waits for `request`, and `response` and `end` are notifications, which change nothing. Both run for
 * refused requests too.
 */

/** One exchange in one phase. It holds no body, and is used up when the function returns or its promise settles. */
export interface ExchangeView {
  readonly phase: 'request' | 'response' | 'end'
  readonly method: string
  /** Canonical path and query as the client sent them. */
  readonly target: string
  readonly api: { readonly name: string; readonly version: string; readonly context: string }
  /** Path template; '' for none. */
  readonly resource: string
  readonly client: string
  readonly correlationId: string
  /** Null without authentication. */
  readonly caller: { readonly user: string; readonly application: string; readonly method: string } | null
  /** 0 before the response. */
  readonly status: number
  /** Milliseconds since the request began. */
  readonly latencyMs: number
  /** Values that handlers keep for later phases of the same exchange; plain data. */
  readonly attributes: Record<string, unknown>
  /** Value of a field of the message, in any case; undefined for none, and in the phase `end`. */
  field(name: string): string | undefined
  /** Throws a TypeError for a field that cannot be sent, and where the head is not to be changed any more. */
  setField(name: string, value: string): void
  removeField(name: string): void
}

/** A phase. What it returns counts in `request` alone. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` must have this type
export type PhaseFunction = (view: ExchangeView) => boolean | void | Promise<boolean | void>

export interface HandlerModule {
  /** Left out: false. */
  readonly synchronous?: boolean
  /** False refuses the request with 403; what it throws refuses it with 500. */
  readonly request?: PhaseFunction
  readonly response?: PhaseFunction
  readonly end?: PhaseFunction
}

/** The facts of a view, as plain data. */
export type ViewFacts = Omit<ExchangeView, 'field' | 'setField' | 'removeField'>

export interface FieldEdit {
  readonly name: string
  /** Undefined removes the field. */
  readonly value: string | undefined
}

/** A phase of one handler on a thread of its own. */
export interface HandlerTask {
  readonly path: string
  readonly facts: ViewFacts
  readonly fields: readonly (readonly [name: string, value: string])[]
}

export type HandlerReply =
  | {
      readonly kind: 'done'
      readonly goesOn: boolean
      readonly changes: readonly FieldEdit[]
      readonly attributes: Readonly<Record<string, unknown>>
    }
  /** `cause`: class of the error and its place. */
  | { readonly kind: 'failed'; readonly cause: string }
