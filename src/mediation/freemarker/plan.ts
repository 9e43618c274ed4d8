/** A template as plain data: what the parser hands to the threads that run it. */

/** Where a node stands in the source of the template, as characters; an end of 0: not known. */
export interface Span {
  readonly from: number
  readonly to: number
}

export type RangeKind = 'inclusive' | 'exclusive' | 'length' | 'open'

export type Operator = '+' | '-' | '*' | '/' | '%' | '==' | '!=' | '<' | '<=' | '>' | '>=' | '&&' | '||'

/** An expression. */
export type Term = Span &
  (
    | { readonly kind: 'literal'; readonly value: string | number | boolean }
    /** A text in quotes with interpolations. */
    | { readonly kind: 'text'; readonly parts: readonly (string | Term)[] }
    | { readonly kind: 'sequence'; readonly of: readonly Term[] }
    | { readonly kind: 'hash'; readonly entries: readonly (readonly [name: Term, value: Term])[] }
    | { readonly kind: 'variable'; readonly name: string }
    /** `.now` and its like. */
    | { readonly kind: 'special'; readonly name: string }
    | { readonly kind: 'member'; readonly of: Term; readonly name: string }
    | { readonly kind: 'index'; readonly of: Term; readonly key: Term }
    | { readonly kind: 'call'; readonly of: Term; readonly args: readonly Term[] }
    | { readonly kind: 'built-in'; readonly of: Term; readonly name: string; readonly args: readonly Term[] }
    | { readonly kind: 'lambda'; readonly parameter: string; readonly body: Term }
    /** `of!otherwise`; null: nothing behind the mark. */
    | { readonly kind: 'default'; readonly of: Term; readonly otherwise: Term | null }
    | { readonly kind: 'exists'; readonly of: Term }
    /** In parentheses, which `!` and `??` look into. */
    | { readonly kind: 'group'; readonly of: Term }
    | { readonly kind: 'not' | 'negative' | 'positive'; readonly of: Term }
    | { readonly kind: 'operation'; readonly operator: Operator; readonly left: Term; readonly right: Term }
    | { readonly kind: 'range'; readonly range: RangeKind; readonly begin: Term; readonly end: Term | null }
  )

export type AssignmentScope = 'template' | 'local'
export type AssignmentOperator = '=' | '+' | '-' | '*' | '/' | '%'

interface Parameter {
  readonly name: string
  readonly otherwise: Term | null
}

/** Names of the loop variables; `key` is '' where items are listed. */
export interface LoopNames {
  readonly key: string
  readonly item: string
}

export interface MacroPlan extends Span {
  readonly kind: 'macro'
  readonly name: string
  readonly isFunction: boolean
  readonly parameters: readonly Parameter[]
  /** Takes all further arguments; '' for none. */
  readonly rest: string
  readonly body: readonly Directive[]
}

/** A part of a template. */
export type Directive =
  | { readonly kind: 'output'; readonly text: string }
  | (Span & { readonly kind: 'print'; readonly value: Term })
  /** The first branch whose condition holds; null: always. */
  | (Span & { readonly kind: 'if'; readonly branches: readonly Branch[] })
  /** `names` is null where `items` in the body has them. */
  | (Span & {
      readonly kind: 'list'
      readonly of: Term
      readonly names: LoopNames | null
      readonly body: readonly Directive[]
      readonly otherwise: readonly Directive[]
    })
  | (Span & { readonly kind: 'items'; readonly names: LoopNames; readonly body: readonly Directive[] })
  | (Span & { readonly kind: 'sep'; readonly body: readonly Directive[] })
  | { readonly kind: 'break' | 'continue' }
  | (Span & {
      readonly kind: 'assign'
      readonly scope: AssignmentScope
      readonly name: string
      readonly operator: AssignmentOperator
      readonly value: Term
    })
  | (Span & {
      readonly kind: 'capture'
      readonly scope: AssignmentScope
      readonly name: string
      readonly body: readonly Directive[]
    })
  | (Span & { readonly kind: 'switch'; readonly value: Term; readonly branches: readonly Branch[] })
  | MacroPlan
  | (Span & {
      readonly kind: 'invoke'
      readonly of: Term
      readonly args: readonly Term[]
      readonly named: readonly (readonly [name: string, value: Term])[]
      readonly body: readonly Directive[] | null
      readonly bodyParameters: readonly string[]
    })
  | (Span & { readonly kind: 'nested'; readonly args: readonly Term[] })
  | (Span & { readonly kind: 'return'; readonly value: Term | null })
  | { readonly kind: 'compress'; readonly body: readonly Directive[] }
  | { readonly kind: 'attempt'; readonly body: readonly Directive[]; readonly recover: readonly Directive[] }
  | { readonly kind: 'setting'; readonly name: SettingName; readonly value: string }
  | (Span & { readonly kind: 'stop'; readonly message: Term | null })

export interface Branch {
  readonly condition: Term | null
  readonly body: readonly Directive[]
}

export const SETTINGS = ['number_format', 'boolean_format', 'date_format', 'time_format', 'datetime_format'] as const
export type SettingName = (typeof SETTINGS)[number]

export interface TemplatePlan {
  readonly source: string
  readonly body: readonly Directive[]
  /** Prefixes that names of elements and attributes have in the template, with their namespaces. */
  readonly namespaces: readonly (readonly [prefix: string, namespace: string])[]
}

const SHOWN_MAX = 80

/** What a message about the span shows: its line and its text. */
export function describeSpan(source: string, { from, to }: Span): string {
  const text = source.slice(from, to).replace(/\s+/g, ' ')
  const shown = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text
  return `line ${lineAt(source, from)} of the template: ${shown}`
}

/** Line of a character, from 1. */
export function lineAt(source: string, at: number): number {
  return source.slice(0, at).split('\n').length
}
