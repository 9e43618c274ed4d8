/** How a schema is written in XML: the `xml` objects of OpenAPI 2.0 to 3.1 (OpenAPI 3.1.1 4.8.26). */
import type { Definitions } from './schema-shape.ts'

type Schema = Readonly<Record<string, unknown>>

export interface XmlTerms {
  /** Local names that the schema gives to its element or attribute; none: that of the property. */
  readonly names: readonly string[]
  /** Undefined: any. */
  readonly namespace: string | undefined
  readonly isAttribute: boolean
  /** A list has an element of its own around its items. */
  readonly isWrapped: boolean
}

const NONE: XmlTerms = { names: [], namespace: undefined, isAttribute: false, isWrapped: false }

/** Returns the terms of a value that follows all of the schemas: the first one that says something wins. */
export function xmlTermsOf(schemas: readonly unknown[], definitions: Definitions): XmlTerms {
  return schemas.map(schema => termsOf(schema, definitions, new Set())).reduce(merged, NONE)
}

/** A reference, a nullable schema and an `allOf` of one schema have the terms of what they hold. */
function termsOf(schema: unknown, definitions: Definitions, seen: Set<unknown>): XmlTerms {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return NONE
  seen.add(schema)
  const { xml, $ref: ref, else: otherwise, if: condition, allOf, oneOf, anyOf } = schema as Schema
  const inner = (each: unknown): XmlTerms => termsOf(each, definitions, seen)
  let terms = ownTerms((xml ?? {}) as Schema)
  if (typeof ref === 'string') terms = merged(terms, inner(definitions[ref.slice(ref.lastIndexOf('/') + 1)]))
  if ((condition as Schema | undefined)?.type === 'null') terms = merged(terms, inner(otherwise))
  if (Array.isArray(allOf) && allOf.length === 1) terms = merged(terms, inner(allOf[0]))
  const choices = [oneOf, anyOf].flatMap(list => (Array.isArray(list) ? (list as readonly unknown[]).map(inner) : []))
  return merged(terms, { ...NONE, names: [...new Set(choices.flatMap(({ names }) => names))] })
}

/** `names`: of the schemas that a discriminator chooses among. */
function ownTerms({ name, names, namespace, attribute, wrapped }: Schema): XmlTerms {
  return {
    names: typeof name === 'string' ? [name] : ((names as readonly string[] | undefined) ?? []),
    namespace: typeof namespace === 'string' ? namespace : undefined,
    isAttribute: attribute === true,
    isWrapped: wrapped === true,
  }
}

function merged(one: XmlTerms, other: XmlTerms): XmlTerms {
  return {
    names: one.names.length > 0 ? one.names : other.names,
    namespace: one.namespace ?? other.namespace,
    isAttribute: one.isAttribute || other.isAttribute,
    isWrapped: one.isWrapped || other.isWrapped,
  }
}
