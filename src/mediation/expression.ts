/** An expression as plain data: what the primary makes of its text, and a reactor makes a closure of. */
import type { Scope } from './message.ts'

/** `keys`: members and elements one below the other; null for a path that takes the library. */
export interface JsonPath {
  readonly text: string
  readonly keys: readonly (string | number)[] | null
}

export type Operator = 'or' | 'and' | '=' | '!=' | '<' | '>' | '<=' | '>=' | '+' | '-' | '*' | 'div' | 'mod'

export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number }
  | { readonly kind: 'property'; readonly scope: Scope; readonly name: string }
  /** Where the message goes. */
  | { readonly kind: 'to' }
  | { readonly kind: 'json-path'; readonly path: JsonPath }
  /** `name`: a row of functions.ts. */
  | { readonly kind: 'call'; readonly name: string; readonly of: readonly Expression[] }
  | { readonly kind: 'operation'; readonly operator: Operator; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'negative'; readonly of: Expression }
  | TreeExpression

/** One that looks into the payload as XML: its text, for the library. */
export interface TreeExpression {
  readonly kind: 'tree'
  readonly text: string
  /** Prefixes in it. */
  readonly namespaces: Readonly<Record<string, string>>
  /** Of its calls of json-eval, by their text. */
  readonly jsonPaths: readonly JsonPath[]
}
