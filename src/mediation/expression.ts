/** Expressions as plain data, which the primary parses and a reactor compiles. */
import type { ReadScope } from './message.ts'

export interface JsonPath {
  readonly text: string
  /** Names and indexes of a path to one place; null for a path that the library evaluates. */
  readonly keys: readonly (string | number)[] | null
}

export type Operator = 'or' | 'and' | '=' | '!=' | '<' | '>' | '<=' | '>=' | '+' | '-' | '*' | 'div' | 'mod'

export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number }
  | { readonly kind: 'property'; readonly scope: ReadScope; readonly name: string }
  /** A variable of the environment. */
  | { readonly kind: 'environment'; readonly name: string }
  /** Property whose name or scope only the message tells; `of`: scope and name, or the name alone. */
  | { readonly kind: 'lookup'; readonly of: readonly Expression[] }
  /** Destination of the message. */
  | { readonly kind: 'to' }
  | { readonly kind: 'json-path'; readonly path: JsonPath }
  /** `name`: a row of FUNCTIONS. */
  | { readonly kind: 'call'; readonly name: string; readonly of: readonly Expression[] }
  | { readonly kind: 'operation'; readonly operator: Operator; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'negative'; readonly of: Expression }
  /** The time: milliseconds since 1970, or in a pattern. */
  | { readonly kind: 'clock'; readonly pattern: string }
  /** A path into a value, in `${…}`. */
  | { readonly kind: 'path'; readonly of: Expression; readonly path: JsonPath }
  /** A path in `${…}` whose filters compare with values from elsewhere; it begins at `{ of, outer }`. */
  | {
      readonly kind: 'filter'
      readonly of: Expression
      readonly path: JsonPath
      readonly outer: readonly Expression[]
    }
  /** An operator or function in `${…}`; `name`: a row of VALUE_FUNCTIONS. */
  | { readonly kind: 'apply'; readonly name: string; readonly of: readonly Expression[] }
  /** A choice in `${…}`. */
  | {
      readonly kind: 'choice'
      readonly condition: Expression
      readonly yes: Expression
      readonly otherwise: Expression
    }
  | XPathExpression

/** An expression with location paths into the payload or a variable, which the XPath library evaluates. */
export interface XPathExpression {
  readonly kind: 'xpath'
  readonly text: string
  /** Namespaces by the prefixes in the text. */
  readonly namespaces: Readonly<Record<string, string>>
  /** Arguments of its calls of json-eval. */
  readonly jsonPaths: readonly JsonPath[]
  /** Variables of the environment that it reads; left out: none. */
  readonly environment?: readonly string[]
  /** Variable that the paths go into; left out: the payload. */
  readonly variable?: string
}
