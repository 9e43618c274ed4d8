/**
 * The rules of an OpenAPI document about the messages of its API: plain data, which the primary reads from the document
 * and workers compile.
 */

/** Name of a schema within `ApiContract.schemas`; '' for any value. */
type SchemaName = string

export interface ApiContract {
  readonly operations: readonly OperationContract[]
  /** JSON Schemas (2020-12) by name; they refer to each other as `#/$defs/NAME`. */
  readonly schemas: Readonly<Record<SchemaName, unknown>>
}

export interface OperationContract {
  /** HTTP method in capitals. */
  readonly method: string
  /** Path template of the document: `/pets/{petId}`. */
  readonly template: string
  readonly parameters: readonly ParameterContract[]
  /** Null: the document describes no body. */
  readonly body: BodyContract | null
  /** By status (`200`, `4XX`, `default`); null: responses of the operation are not validated. */
  readonly responses: Readonly<Record<string, ResponseContract>> | null
}

interface BodyContract {
  readonly isRequired: boolean
  readonly content: ContentContract
}

export interface ResponseContract {
  readonly headers: readonly ParameterContract[]
  readonly content: ContentContract
}

/** By media type or range of media types, in lower case; empty: any content. */
export type ContentContract = Readonly<Record<string, MediaContract>>

export interface MediaContract {
  readonly schema: SchemaName
  /** Fields of a form that are written in a way of their own. */
  readonly fields: readonly FieldContract[]
}

/** How a list or an object is written (OpenAPI 3.1.1 4.8.12.4); `tabs`: `tsv` of OpenAPI 2.0. `json`: as JSON text. */
const STYLES = ['form', 'simple', 'label', 'matrix', 'spaceDelimited', 'pipeDelimited', 'deepObject', 'tabs'] as const
type ParameterStyle = (typeof STYLES)[number] | 'json'

/** The style of a document; undefined for an unknown one. */
export function styleNamed(name: string): ParameterStyle | undefined {
  return STYLES.find(style => style === name)
}

export interface ValueStyle {
  readonly name: string
  readonly style: ParameterStyle
  /** Each item or property of the value has a parameter or a separator of its own. */
  readonly explodes: boolean
  /** The name may stand without a value, whatever the schema says. */
  readonly allowsEmpty: boolean
}

export interface ParameterContract extends ValueStyle {
  readonly place: 'path' | 'query' | 'header' | 'cookie'
  readonly isRequired: boolean
  readonly schema: SchemaName
}

/** `style`: '' where the schema decides alone. */
export interface FieldContract extends Omit<ValueStyle, 'style'> {
  readonly style: ParameterStyle | ''
  /** Media types or ranges that a part may have; none: any. */
  readonly types: readonly string[]
  /** Header fields of the part. */
  readonly headers: readonly ParameterContract[]
}

/** A part of a message that breaks a rule of the document. */
export interface Violation {
  /** `query parameter limit`, `body /items/0/name`. */
  readonly place: string
  readonly rule: string
}
