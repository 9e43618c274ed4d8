/**
 * Validates resources against the definitions of R4: elements, JSON types, cardinality, primitive values, required
 * bindings, invariants, narratives and references. Every fault is reported, each with its place.
 */
import {
  definitionOf,
  type ElementDefinition,
  isPrimitive,
  type Member,
  resourceDefinition,
  type TypeDefinition,
  valueSetOf,
} from './definition-table.ts'
import { RULES } from './invariants.ts'
import { isObject, type JsonObject } from './json-text.ts'
import { type ContainedResource, isReferenceForm, LocalReferences, typeOfReference } from './local-references.ts'
import { narrativeFaults } from './narrative.ts'
import { type Issue, shown } from './outcome.ts'
import { primitiveFault } from './primitives.ts'
import { ValidationFaults } from './validation-faults.ts'

/** Levels of objects. */
const DEPTH_MAX = 64
const ELEMENT = definitionOf('Element')!
/** Types whose values may refer to a contained resource, besides references. */
const URI_TYPES = ['canonical', 'uri', 'url']
const SAMPLED_DATA = /^(?:-?\d+(?:\.\d+)?|[ELU])(?: (?:-?\d+(?:\.\d+)?|[ELU]))*$/
/** Rules that need a whole resource. */
const OF_RESOURCES = ['dom-2', 'dom-3', 'dom-4', 'dom-5', 'dom-6', 'ref-1', 'txt-1', 'txt-2']
const LISTED_CODES_MAX = 12

/**
 * All faults of a resource, warnings among them; [] for a valid one without any. `type`: the only type that is
 * expected. The value comes from `readJson`.
 */
export function validateResource(value: unknown, type?: string): readonly Issue[] {
  const faults = new ValidationFaults()
  if (isObject(value) && typeof value.resourceType === 'string') faults.enter(value.resourceType)
  new ResourceWalk(faults).resource(value, type)
  return faults.issues
}

class ResourceWalk {
  readonly #faults: ValidationFaults
  #locals = new LocalReferences()
  /** Ids of elements of the resource. */
  #ids = new Set<string>()
  #contained: ContainedResource | null = null
  #depth = 0

  constructor(faults: ValidationFaults) {
    this.#faults = faults
  }

  /** A resource that stands for itself: alone, in a Bundle, or in Parameters. */
  resource(value: unknown, expected?: string): void {
    const outer = { locals: this.#locals, ids: this.#ids, contained: this.#contained }
    this.#locals = new LocalReferences()
    this.#ids = new Set()
    this.#contained = null
    const type = this.#resourceObject(value, expected)
    this.#locals.check(this.#faults)
    if (type?.constraints.includes('dom-6') === true && !hasNarrative(value as JsonObject)) {
      this.#faults.addInvariant('dom-6')
    }
    this.#locals = outer.locals
    this.#ids = outer.ids
    this.#contained = outer.contained
  }

  #containedResource(value: unknown): void {
    const outer = { ids: this.#ids, contained: this.#contained }
    this.#ids = new Set()
    if (isObject(value)) {
      this.#contained = { resource: value, place: this.#faults.place() }
      // A resource within a contained one is a fault of its own (dom-2).
      if (outer.contained === null) this.#locals.contained.push(this.#contained)
    }
    this.#resourceObject(value)
    this.#ids = outer.ids
    this.#contained = outer.contained
  }

  #resourceObject(value: unknown, expected?: string): TypeDefinition | undefined {
    if (!isObject(value)) {
      this.#faults.add('no-object')
      return undefined
    }
    const { resourceType } = value
    const type = resourceDefinition(resourceType)
    if (resourceType === undefined) this.#faults.addAt('resourceType', 'no-type')
    else if (type === undefined) {
      const name = typeof resourceType === 'string' ? shown(resourceType) : 'its value is no string'
      this.#faults.addAt('resourceType', 'unknown-type', name)
    } else if (expected !== undefined && resourceType !== expected) {
      this.#faults.addAt('resourceType', 'type-mismatch', `it is no ${expected}`)
      return undefined
    } else this.#object(value, type)
    return type
  }

  /** `values`: 1 where a primitive value stands beside the object, which holds its id and extensions. */
  #object(object: JsonObject, type: TypeDefinition, values = 0): void {
    if (++this.#depth > DEPTH_MAX) this.#faults.add('depth', `more than ${DEPTH_MAX}`)
    else if (Object.keys(object).length === 0) this.#faults.add('empty')
    else this.#children(object, type, values)
    this.#depth--
  }

  #children(object: JsonObject, type: TypeDefinition, values: number): void {
    let children = values
    for (const name of Object.keys(object)) {
      if (this.#faults.isFull) return
      if (type.isResource && name === 'resourceType') continue
      const member = type.members.get(name)
      if (name !== 'id') children++
      else if (!type.isResource) this.#elementId(object.id)
      if (member !== undefined) this.#member(object, name, member)
      else if (type.isOpen) this.#openValue(object[name], name)
      else this.#shadowAlone(object, name, type)
    }
    if (children === 0 && !type.isResource) this.#faults.add('ele-1', 'it has only an id')
    for (const element of type.required) this.#required(object, element)
    this.#rules(object, type)
  }

  #member(object: JsonObject, name: string, member: Member): void {
    const { element } = member
    if (element.jsonNames.length > 1) this.#onlyType(object, name, element)
    this.#faults.enter(element.name)
    this.#values(object[name], member.hasShadow ? object[`_${name}`] : undefined, member)
    this.#faults.leave()
  }

  /** Reported once: at the first of the values. */
  #onlyType(object: JsonObject, name: string, { name: element, jsonNames }: ElementDefinition): void {
    const present = jsonNames.filter(other => Object.hasOwn(object, other))
    if (present.length > 1 && present[0] === name) this.#faults.addAt(element, 'several-types', present.join(', '))
  }

  /** A member without an element of its name: extensions of a primitive without a value, or unknown. */
  #shadowAlone(object: JsonObject, name: string, type: TypeDefinition): void {
    const member = name.startsWith('_') ? type.members.get(name.slice(1)) : undefined
    if (member?.hasShadow !== true) this.#faults.addAt(name, 'unknown-element', `in ${type.name}`)
    // With a value, it has been checked together with that.
    else if (!Object.hasOwn(object, name.slice(1))) {
      this.#faults.enter(member.element.name)
      this.#values(undefined, object[name], member)
      this.#faults.leave()
    }
  }

  /** `shadow`: what stands beside primitive values; undefined without. */
  #values(value: unknown, shadow: unknown, member: Member): void {
    const { isList } = member.element
    if (!isList) {
      if (Array.isArray(value) || Array.isArray(shadow)) this.#faults.add('no-list')
      else this.#value(value, shadow, member)
      return
    }
    const values = this.#list(value)
    const shadows = this.#list(shadow)
    if (values === undefined || shadows === undefined) return
    if (value !== undefined && shadow !== undefined && values.length !== shadows.length) this.#faults.add('shadow')
    for (let at = 0; at < Math.max(values.length, shadows.length); at++) {
      if (this.#faults.isFull) return
      const beside = shadows[at] ?? undefined
      this.#faults.enter(at)
      if ((values[at] ?? beside) === undefined) this.#faults.add('null')
      else this.#value(values[at] ?? undefined, beside, member)
      this.#faults.leave()
    }
  }

  /** [] for a list that is not there; undefined for something else, which is reported. */
  #list(value: unknown): readonly unknown[] | undefined {
    if (value === undefined) return []
    if (!Array.isArray(value)) this.#faults.add('list')
    else if (value.length === 0) this.#faults.add('empty')
    else return value
    return undefined
  }

  /** `value`: undefined where only extensions are there. */
  #value(value: unknown, shadow: unknown, member: Member): void {
    if (value === null || shadow === null) this.#faults.add('null')
    else if (isPrimitive(member.type)) {
      if (value !== undefined) this.#primitive(value, member)
      if (shadow !== undefined) this.#shadow(value, shadow)
    } else if (member.type === 'Resource') {
      if (member.element.name === 'contained') this.#containedResource(value)
      else this.#nestedResource(value)
    } else if (!isObject(value)) this.#faults.add('json-type', 'it is no object')
    else {
      this.#object(value, definitionOf(member.type)!)
      if (member.type === 'Reference') this.#reference(value, member.targets)
      else if (member.element.binding !== '') this.#codedBinding(value, member)
    }
  }

  #nestedResource(value: unknown): void {
    if (++this.#depth > DEPTH_MAX) this.#faults.add('depth', `more than ${DEPTH_MAX}`)
    else this.resource(value)
    this.#depth--
  }

  #primitive(value: unknown, { type, element }: Member): void {
    const fault = value === '' ? undefined : primitiveFault(type, value)
    if (value === '') this.#faults.add('empty')
    else if (fault !== undefined) {
      const found = typeof value === 'string' ? `${shown(value)} is not` : 'expected:'
      this.#faults.add(fault.kind === 'type' ? 'json-type' : 'value', `${found} ${fault.allowed}`)
    } else this.#allowedPrimitive(value, type, element)
  }

  #allowedPrimitive(value: unknown, type: string, element: ElementDefinition): void {
    if (element.binding !== '') this.#binding(value as string, element.binding)
    if (type === 'xhtml') this.#narrative(value as string)
    else if (URI_TYPES.includes(type) && (value as string).startsWith('#')) this.#locals.addText(value as string)
  }

  /** Id and extensions of a primitive value. */
  #shadow(value: unknown, shadow: unknown): void {
    if (!isObject(shadow)) this.#faults.add('json-type', 'its extensions are no object')
    else this.#object(shadow, ELEMENT, value === undefined ? 0 : 1)
  }

  #elementId(id: unknown): void {
    if (typeof id !== 'string') return
    if (this.#ids.has(id)) this.#faults.addAt('id', 'element-id', shown(id))
    this.#ids.add(id)
  }

  #binding(code: string, binding: string): void {
    const { codes, pattern } = valueSetOf(binding)
    if (pattern === null ? codes.has(code) : pattern.test(code)) return
    const allowed =
      codes.size > 0 && codes.size <= LISTED_CODES_MAX ? `none of ${[...codes].join(', ')}` : `not in ${binding}`
    this.#faults.add('code', `${shown(code)} is ${allowed}`)
  }

  /** One of the codings of a concept must be in the value set; text and extensions alone are allowed. */
  #codedBinding(value: JsonObject, { type, element }: Member): void {
    const codings = type === 'Coding' ? [value] : Array.isArray(value.coding) ? value.coding.filter(isObject) : []
    const codes = codings.map(({ code }) => code).filter(code => typeof code === 'string')
    if (codes.length > 0 && !codes.some(code => valueSetOf(element.binding).codes.has(code))) {
      this.#binding(codes[0]!, element.binding)
    }
  }

  #narrative(xhtml: string): void {
    for (const { key, diagnostics } of narrativeFaults(xhtml)) {
      if (key === 'xhtml') this.#faults.add('xhtml', diagnostics)
      else this.#faults.addInvariant(key, diagnostics)
    }
  }

  #required(object: JsonObject, { name, jsonNames }: ElementDefinition): void {
    if (jsonNames.some(json => Object.hasOwn(object, json) || Object.hasOwn(object, `_${json}`))) return
    this.#faults.addAt(name, 'missing-element')
  }

  #rules(object: JsonObject, { name, constraints }: TypeDefinition): void {
    for (const key of constraints) {
      if (!OF_RESOURCES.includes(key) && !RULES[key]!(object)) this.#faults.addInvariant(key)
    }
    if (name === 'SampledData') {
      const { data } = object
      if (typeof data === 'string' && !SAMPLED_DATA.test(data)) this.#faults.addAt('data', 'sampled-data')
    } else if (name === 'Bundle.entry') this.#fullUrl(object)
  }

  #fullUrl({ fullUrl, resource }: JsonObject): void {
    if (typeof fullUrl !== 'string' || fullUrl === '') return
    const isAbsolute = /^[A-Za-z][A-Za-z0-9+.-]*:/.test(fullUrl)
    const id = isObject(resource) ? resource.id : undefined
    const isConsistent = /^urn:/.test(fullUrl) || typeof id !== 'string' || fullUrl.endsWith(`/${id}`)
    if (!isAbsolute || !isConsistent) this.#faults.addAt('fullUrl', 'full-url', shown(fullUrl))
  }

  #reference(value: JsonObject, targets: readonly string[]): void {
    const { reference, type } = value
    const named = typeof reference === 'string' ? typeOfReference(reference) : ''
    if (typeof reference === 'string' && reference !== '') {
      if (reference.startsWith('#')) {
        const place = [...this.#faults.place(), 'reference']
        this.#locals.addReference({ text: reference, place, targets, from: this.#contained })
      } else if (!isReferenceForm(reference)) this.#faults.addAt('reference', 'reference-form', shown(reference))
    }
    if (typeof type === 'string' && named !== '' && type !== named) {
      this.#faults.addAt('type', 'reference-type', `${shown(type)} is not ${named}`)
    }
    const target = named === '' && typeof type === 'string' && resourceDefinition(type) !== undefined ? type : named
    if (target !== '' && targets.length > 0 && !targets.includes(target)) {
      this.#faults.addAt('reference', 'reference-target', `${target} is none of ${targets.join(', ')}`)
    }
  }

  /** A value of a type whose elements are not known: only the rules of JSON hold. */
  #openValue(value: unknown, step: string | number): void {
    this.#faults.enter(step)
    if (value === null) this.#faults.add('null')
    else if (value === '') this.#faults.add('empty')
    else if (typeof value === 'object' && !JSON.isRawJSON(value)) {
      const members = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
      if (members.length === 0) this.#faults.add('empty')
      if (++this.#depth > DEPTH_MAX) this.#faults.add('depth', `more than ${DEPTH_MAX}`)
      else for (const [name, member] of members) this.#openValue(member, name)
      this.#depth--
    }
    this.#faults.leave()
  }
}

/** Without one, dom-6 warns. */
function hasNarrative({ text }: JsonObject): boolean {
  return isObject(text) && typeof text.div === 'string'
}
