/**
 * Properties that messages of one direction may not have: read-only ones of requests, write-only ones of responses. A
 * schema has also those of the schemas that it extends.
 */
import { isObject, type OpenApiDocument } from './open-api-document.ts'
import type { Path } from './yaml-file.ts'

type Schema = Readonly<Record<string, unknown>>
export type Direction = 'request' | 'response'

const MARKS = { request: 'readOnly', response: 'writeOnly' } as const

/** Names of the properties that the schema itself hides. */
export function ownHidden(document: OpenApiDocument, schema: Schema, path: Path, direction: Direction): string[] {
  const { properties } = schema
  const mark = MARKS[direction]
  return Object.entries(isObject(properties) ? properties : {}).flatMap(([name, property]) => {
    const own = isObject(property) ? property[mark] : undefined
    const marked = own ?? document.objectAt([...path, 'properties', name])?.value[mark]
    return String(marked) === 'true' ? [name] : []
  })
}

/** Names of the properties that the schema or one that it extends hides. */
export function allHidden(document: OpenApiDocument, schema: Schema, path: Path, direction: Direction): Set<string> {
  const names = new Set<string>()
  for (const [each, at] of extended(document, schema, path)) {
    for (const name of ownHidden(document, each, at, direction)) names.add(name)
  }
  return names
}

/** Returns those of the names that the schema or one that it extends requires. */
export function requiredOf(
  document: OpenApiDocument,
  schema: unknown,
  path: Path,
  names: ReadonlySet<string>,
): ReadonlySet<string> {
  if (names.size === 0) return names
  const required = extended(document, schema, path).flatMap(([each]) =>
    Array.isArray(each.required) ? each.required : [],
  )
  return names.intersection(new Set(required as readonly string[]))
}

/** The schema, and those that it refers to or joins with `allOf`. */
function extended(document: OpenApiDocument, schema: unknown, path: Path): readonly (readonly [Schema, Path])[] {
  const found: (readonly [Schema, Path])[] = []
  const seen = new Set<Schema>()
  const enter = (each: unknown, at: Path): void => {
    if (!isObject(each) || seen.has(each)) return
    seen.add(each)
    found.push([each, at])
    const target = typeof each.$ref === 'string' ? document.resolve(each.$ref) : undefined
    if (target !== undefined) enter(target.value, target.path)
    for (const [index, branch] of Array.isArray(each.allOf) ? each.allOf.entries() : []) {
      enter(branch, [...at, 'allOf', index])
    }
  }
  enter(schema, path)
  return found
}
