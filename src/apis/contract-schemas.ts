/**
 * Schemas of an OpenAPI document as JSON Schemas of draft 2020-12, for one direction: `nullable`, `discriminator`,
 * `readOnly`, `writeOnly` and the numbers of 3.0 become rules, references become names. Keywords that validate nothing
 * are left out.
 */
import { compilePattern } from '../runtime/pattern.ts'
import { allHidden, type Direction, ownHidden, requiredOf } from './hidden-properties.ts'
import { isObject, type OpenApiDocument } from './open-api-document.ts'
import type { Path } from './yaml-file.ts'

type Schema = Readonly<Record<string, unknown>>

/** Keywords that are copied. */
const PLAIN = [
  ...['enum', 'const', 'minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'pattern', 'minItems'],
  ...['maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'format'],
]
/** Further keywords of 3.1 that are copied. */
const PLAIN_31 = ['exclusiveMinimum', 'exclusiveMaximum', 'minContains', 'maxContains', 'dependentRequired']
const ONE = ['items', 'additionalProperties', 'not']
const ONE_31 = ['contains', 'propertyNames', 'if', 'then', 'else', 'unevaluatedItems', 'unevaluatedProperties']
const LISTS = ['allOf', 'oneOf', 'anyOf']
const LISTS_31 = [...LISTS, 'prefixItems']
const MAPS = ['properties']
const MAPS_31 = [...MAPS, 'patternProperties', 'dependentSchemas']
/** Keywords of 3.1 that move where references lead. */
const REFUSED = ['$id', '$dynamicRef', '$recursiveRef']

type Names = ReadonlySet<string>

const NO_NAMES: Names = new Set()

/** A schema in the document, and the messages that it is converted for. */
interface Place {
  readonly path: Path
  readonly direction: Direction
  /** False: what its discriminator asks for is left out. */
  readonly isWhole: boolean
  /** Properties that are not required, because a schema that extends it hides them. */
  readonly hidden: Names
}

/** Collects the schemas that the messages of one API are checked against. */
export class ContractSchemas {
  readonly #document: OpenApiDocument
  readonly #root: unknown
  readonly #names = new Map<string, string>()
  readonly schemas: Record<string, unknown> = {}
  /** Places of the schemas, by name. */
  readonly places = new Map<string, Path>()
  /** Children of schemas that other schemas extend with `allOf`, by the place of the parent. */
  #children: ReadonlyMap<string, readonly Path[]> | undefined

  constructor(document: OpenApiDocument) {
    this.#document = document
    this.#root = document.file.typed()
  }

  /** The value at a path, with numbers as numbers. */
  typed(path: Path): unknown {
    let value: unknown = this.#root
    for (const name of path) value = (value as Readonly<Record<string | number, unknown>> | undefined)?.[name]
    return value
  }

  /** Returns the name of the schema at a path. `isWhole`, `hidden`: see `Place`. */
  nameOf(path: Path, direction: Direction, isWhole = true, hidden = NO_NAMES): string {
    const key = JSON.stringify([direction, isWhole, path, [...hidden].sort()])
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const name = `s${this.#names.size}`
    this.#names.set(key, name)
    this.places.set(name, path)
    this.schemas[name] = this.#convert(this.typed(path), { path, direction, isWhole, hidden })
    return name
  }

  /** Adds a schema that is in no document. */
  add(schema: unknown, place: Path): string {
    const name = `s${this.#names.size}`
    this.#names.set(JSON.stringify(['made', name]), name)
    this.places.set(name, place)
    this.schemas[name] = schema
    return name
  }

  #convert(schema: unknown, given: Place): unknown {
    if (!isObject(schema)) return schema === false ? false : {}
    const { $ref: ref } = schema
    const is31 = this.#document.version === '3.1'
    const { path, direction, isWhole } = given
    const place = { ...given, hidden: given.hidden.union(allHidden(this.#document, schema, path, direction)) }
    const referred = typeof ref === 'string' ? this.#referred(ref, place) : undefined
    // Beside a reference nothing counts before 3.1; `nullable` there is meant all the same.
    if (referred !== undefined && !is31) return nullable(referred, schema)
    const converted: Record<string, unknown> = referred ?? {}
    this.#copyPlain(schema, converted, path, is31)
    this.#copyNested(schema, converted, place)
    this.#hideProperties(schema, converted, place)
    const discriminated = isWhole ? this.#discriminated(schema, converted, place) : converted
    return nullable(discriminated, schema)
  }

  #referred(ref: string, { path, direction, isWhole, hidden }: Place): Record<string, unknown> | undefined {
    const found = this.#document.resolve(ref)
    if (found !== undefined) {
      const left = requiredOf(this.#document, found.value, found.path, hidden)
      return { $ref: `#/$defs/${this.nameOf(found.path, direction, isWhole, left)}` }
    }
    this.#document.file.error([...path, '$ref'], ref, 'is an anchor', 'write the path: #/components/schemas/NAME')
    return undefined
  }

  #copyPlain(schema: Schema, converted: Record<string, unknown>, path: Path, is31: boolean): void {
    for (const name of REFUSED) {
      if (!is31 || schema[name] === undefined) continue
      this.#document.file.error([...path, name], undefined, 'is not supported in validation', 'use $ref with a path')
    }
    for (const name of is31 ? [...PLAIN, ...PLAIN_31] : PLAIN) {
      if (schema[name] !== undefined) converted[name] = schema[name]
    }
    if (schema.type !== undefined && schema.type !== 'file') converted.type = schema.type
    if (!is31) copyExclusive(schema, converted)
    if (isObject(schema.xml)) converted.xml = xmlTerms(schema.xml)
    if (typeof schema.pattern === 'string') this.#checkPattern(schema.pattern, [...path, 'pattern'])
    for (const name of is31 && isObject(schema.patternProperties) ? Object.keys(schema.patternProperties) : []) {
      this.#checkPattern(name, [...path, 'patternProperties', name])
    }
  }

  #checkPattern(pattern: string, path: Path): void {
    try {
      compilePattern(pattern)
    } catch {
      const expected = 'is no pattern that matches in linear time (RE2 syntax)'
      this.#document.file.error(path, pattern, expected, 'leave out lookarounds and back-references')
    }
  }

  #copyNested(schema: Schema, converted: Record<string, unknown>, { path, direction, hidden }: Place): void {
    const is31 = this.#document.version === '3.1'
    const inner = (value: unknown, at: Path, isWhole = true, above = NO_NAMES) =>
      this.#convert(value, { path: at, direction, isWhole, hidden: above })
    for (const name of is31 ? [...ONE, ...ONE_31] : ONE) {
      if (schema[name] !== undefined) converted[name] = inner(schema[name], [...path, name])
    }
    for (const name of is31 ? LISTS_31 : LISTS) {
      const list = schema[name]
      if (!Array.isArray(list) || list.length === 0) continue
      // A parent that is extended does not choose among its children once more.
      const isAll = name === 'allOf'
      const above = isAll ? hidden : NO_NAMES
      converted[name] = list.map((each, at) => inner(each, [...path, name, at], !isAll || !isExtension(each), above))
    }
    for (const name of is31 ? MAPS_31 : MAPS) {
      const map = schema[name]
      if (!isObject(map)) continue
      converted[name] = Object.fromEntries(
        Object.entries(map).map(([key, each]) => [key, inner(each, [...path, name, key])]),
      )
    }
  }

  /** Forbids read-only properties in requests and write-only ones in responses, and does not require them there. */
  #hideProperties(schema: Schema, converted: Record<string, unknown>, { path, direction, hidden }: Place): void {
    const { required } = schema
    if (Array.isArray(required)) {
      const left = required.filter(name => !hidden.has(name as string))
      if (left.length > 0) converted.required = left
    }
    const own = ownHidden(this.#document, schema, path, direction)
    if (own.length === 0) return
    converted.properties = {
      ...(converted.properties as Schema),
      ...Object.fromEntries(own.map(name => [name, this.#forbidden([...path, 'properties', name])])),
    }
  }

  /** A property that must not be there keeps its name in XML, by which it is found. */
  #forbidden(path: Path): unknown {
    const own = this.typed(path) as Schema
    const xml = isObject(own.xml) ? own.xml : this.#document.objectAt(path)?.value.xml
    return isObject(xml) ? { allOf: [false], xml: xmlTerms(xml) } : false
  }

  /** Adds the choice of a discriminator: the property that names the schema decides which one holds. */
  #discriminated(
    schema: Schema,
    converted: Record<string, unknown>,
    { path, direction }: Place,
  ): Record<string, unknown> {
    const { discriminator } = schema
    const property = isObject(discriminator) ? discriminator.propertyName : discriminator
    if (typeof property !== 'string') return converted
    const choices = this.#choices(schema, isObject(discriminator) ? discriminator.mapping : undefined, path)
    if (choices.size === 0) return converted
    const { oneOf, anyOf, ...rest } = converted
    const cases = Array.from(choices, ([value, target]) => {
      const isOwn = JSON.stringify(target) === JSON.stringify(path)
      const held = { $ref: `#/$defs/${this.nameOf(target, direction, !isOwn && (oneOf ?? anyOf) !== undefined)}` }
      return { if: { not: { properties: { [property]: { const: value } } } }, else: isOwn ? {} : held }
    })
    const choice = { required: [property], properties: { [property]: { enum: [...choices.keys()] } } }
    const all = [
      ...((rest.allOf as unknown[] | undefined) ?? []),
      choice,
      { if: { not: choice }, else: { allOf: cases } },
    ]
    const isChosen = (oneOf ?? anyOf) !== undefined
    return { ...rest, allOf: all, ...(isChosen ? this.#namesOf([...choices.values()], rest.xml) : {}) }
  }

  /** Names in XML of the schemas that a discriminator chooses among, where the schema has no name of its own. */
  #namesOf(targets: readonly Path[], own: unknown): Schema {
    if (isObject(own) && own.name !== undefined) return {}
    const names = targets.map(target => (this.typed(target) as Readonly<Record<string, Schema>>).xml?.name)
    return names.includes(undefined) ? {} : { xml: { ...(own as Schema | undefined), names } }
  }

  /** Schemas by the value of the discriminator. */
  #choices(schema: Schema, mapping: unknown, path: Path): ReadonlyMap<string, Path> {
    const choices = new Map<string, Path>()
    const listed = [schema.oneOf, schema.anyOf].find(Array.isArray) as readonly unknown[] | undefined
    const refs = listed?.flatMap(each => (isObject(each) && typeof each.$ref === 'string' ? each.$ref : []))
    if (listed !== undefined && refs!.length < listed.length) return choices
    const mapped = isObject(mapping) ? Object.entries(mapping) : []
    for (const [value, ref] of mapped) {
      if (typeof ref !== 'string') continue
      const target = this.#document.resolve(ref.startsWith('#') ? ref : `#/components/schemas/${ref}`)?.path
      if (target !== undefined) choices.set(value, target)
    }
    const known = new Set([...choices.values()].map(each => JSON.stringify(each)))
    const addImplicit = (target: Path): void => {
      if (!known.has(JSON.stringify(target))) choices.set(String(target.at(-1)), target)
    }
    const targets = refs?.flatMap(ref => {
      const target = this.#document.resolve(ref)?.path
      return target === undefined ? [] : [target]
    })
    for (const target of targets ?? this.#extensionsOf(path)) addImplicit(target)
    if (targets === undefined && choices.size > 0) addImplicit(path)
    return choices
  }

  /** Paths of the schemas that extend the one at a path. */
  #extensionsOf(path: Path): readonly Path[] {
    this.#children ??= this.#findChildren()
    const found: Path[] = []
    const pending = [JSON.stringify(path)]
    const seen = new Set(pending)
    for (let key = pending.pop(); key !== undefined; key = pending.pop()) {
      for (const child of this.#children.get(key) ?? []) {
        const childKey = JSON.stringify(child)
        if (seen.has(childKey)) continue
        seen.add(childKey)
        found.push(child)
        pending.push(childKey)
      }
    }
    return found
  }

  #findChildren(): ReadonlyMap<string, readonly Path[]> {
    const at = this.#document.version === '2.0' ? ['definitions'] : ['components', 'schemas']
    const children = new Map<string, Path[]>()
    for (const name of this.#document.file.keys(at)) {
      const { allOf } = (this.#document.file.value([...at, name]) ?? {}) as Schema
      for (const each of Array.isArray(allOf) ? allOf : []) {
        if (!isExtension(each)) continue
        const parent = JSON.stringify(this.#document.resolve((each as { $ref: string }).$ref)?.path)
        children.set(parent, [...(children.get(parent) ?? []), [...at, name]])
      }
    }
    return children
  }
}

function isExtension(schema: unknown): boolean {
  return isObject(schema) && typeof schema.$ref === 'string'
}

/** Copies `exclusiveMinimum: true` beside `minimum` (OpenAPI 2.0, 3.0) as the number that JSON Schema has. */
function copyExclusive(schema: Schema, converted: Record<string, unknown>): void {
  for (const [flag, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (schema[flag] !== true || schema[limit] === undefined) continue
    converted[flag] = schema[limit]
    delete converted[limit]
  }
}

/** Returns the terms of an `xml` object that decide names; without prefixes, which each message chooses. */
function xmlTerms({ name, namespace, attribute, wrapped }: Schema): Schema {
  const terms = { name, namespace, attribute: isTrue(attribute), wrapped: isTrue(wrapped) }
  return Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== undefined && value !== false))
}

/** Tells whether a value is true, as a boolean or as a text. */
function isTrue(value: unknown): boolean {
  return String(value) === 'true'
}

/** Applies `nullable` of OpenAPI 3.0, and `x-nullable` of 2.0, which many tools write. */
function nullable(converted: Record<string, unknown>, schema: Schema): unknown {
  if (schema.nullable !== true && schema['x-nullable'] !== true) return converted
  return { if: { type: 'null' }, else: converted }
}
