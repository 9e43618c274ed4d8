/**
 * FHIRPath Patch (R4, fhirpatch.html): a Parameters resource with one parameter `operation` for each change. The whole
 * patch or nothing. The result is not validated here.
 */
import { definitionOf, isPrimitive, type TypeDefinition } from './definition-table.ts'
import {
  type ElementPath,
  ElementPathError,
  type ElementPlace,
  elementsAt,
  parseElementPath,
  typeOfPlace,
} from './element-path.ts'
import { copyJson, isObject, type JsonObject } from './json-text.ts'
import { finishPatch, OPERATIONS_MAX, PatchError } from './patch-result.ts'

interface Operation {
  readonly type: 'add' | 'insert' | 'delete' | 'replace' | 'move'
  readonly path: ElementPath
  /** Name of the element that `add` makes; '' for other operations. */
  readonly name: string
  /** The part `value` of the operation; undefined where it has none. */
  readonly value: JsonObject | undefined
  /** Positions in a list; -1 where the operation has none. */
  readonly index: number
  readonly source: number
  readonly destination: number
}

/** A value that an operation gives, and the type that its name says; '' for one of nested parts. */
interface GivenValue {
  readonly type: string
  readonly value: unknown
}

/** One list of an object, or the place of one. */
interface List {
  readonly owner: JsonObject
  readonly jsonName: string
  readonly isPrimitive: boolean
  readonly typeName: string
}

const TYPES: readonly string[] = ['add', 'insert', 'delete', 'replace', 'move']
const VALUE = /^value[A-Z]/
/** Parts that an operation must have, by type. */
const NEEDED: Readonly<Record<Operation['type'], readonly string[]>> = {
  add: ['name', 'value'],
  insert: ['value', 'index'],
  delete: [],
  replace: ['value'],
  move: ['source', 'destination'],
}

/**
 * The patched resource; `resource` stays as it is. `parameters`: a valid Parameters resource. Throws PatchError.
 */
export function applyFhirPathPatch(resource: JsonObject, parameters: JsonObject): JsonObject {
  const given = Array.isArray(parameters.parameter) ? (parameters.parameter as readonly JsonObject[]) : []
  if (given.length > OPERATIONS_MAX) throw new PatchError('patch-malformed', `More than ${OPERATIONS_MAX} operations`)
  if (given.length === 0) throw new PatchError('patch-malformed', 'The patch has no operation')
  const resourceType = String(resource.resourceType)
  const operations = given.map((parameter, at) => atOperation(at, () => parseOperation(parameter, resourceType)))
  const result = copyJson(resource)
  for (const [at, operation] of operations.entries()) atOperation(at, () => apply(result, operation))
  return finishPatch(resource, result)
}

/** Adds the number of the operation to what fails. */
function atOperation<T>(at: number, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof ElementPathError) throw new PatchError('patch-not-applicable', error.message, at)
    if (error instanceof PatchError) throw new PatchError(error.situation, error.message, at)
    throw error
  }
}

function malformed(message: string): PatchError {
  return new PatchError('patch-malformed', message)
}

function notApplicable(message: string): PatchError {
  return new PatchError('patch-not-applicable', message)
}

function parseOperation(parameter: JsonObject, resourceType: string): Operation {
  if (parameter.name !== 'operation') throw malformed('Each parameter of a patch has the name "operation"')
  const parts = new Map<string, JsonObject>()
  for (const part of (parameter.part ?? []) as readonly JsonObject[]) {
    const name = String(part.name)
    if (!['type', 'path', 'name', 'value', 'index', 'source', 'destination'].includes(name)) {
      throw malformed('It has a part that no operation has')
    }
    if (parts.has(name)) throw malformed(`It has several parts "${name}"`)
    parts.set(name, part)
  }
  const textOf = (name: string): string => {
    const value = primitiveOf(parts.get(name))
    return typeof value === 'string' ? value : ''
  }
  const numberOf = (name: string): number => {
    const value = primitiveOf(parts.get(name))
    return typeof value === 'number' && value >= 0 ? value : -1
  }
  const type = textOf('type') as Operation['type']
  if (!TYPES.includes(type)) throw malformed(`Its "type" is none of ${TYPES.join(', ')}`)
  if (textOf('path') === '') throw malformed('It has no "path"')
  for (const name of NEEDED[type]) if (!parts.has(name)) throw malformed(`The operation "${type}" needs "${name}"`)
  return {
    ...{ type, path: pathOf(textOf('path'), resourceType), name: textOf('name'), value: parts.get('value') },
    ...{ index: numberOf('index'), source: numberOf('source'), destination: numberOf('destination') },
  }
}

/** A malformed path is a fault of the patch; one that names no element cannot be applied. */
function pathOf(text: string, resourceType: string): ElementPath {
  try {
    return parseElementPath(text, resourceType)
  } catch (error) {
    throw error instanceof ElementPathError ? malformed(error.message) : error
  }
}

function primitiveOf(part: JsonObject | undefined): unknown {
  const name = part === undefined ? undefined : Object.keys(part).find(key => VALUE.test(key))
  return name === undefined ? undefined : part![name]
}

function apply(resource: JsonObject, operation: Operation): void {
  const { type, path } = operation
  if (type === 'add') add(onlyPlace(resource, path), operation)
  else if (type === 'insert') insert(listAt(resource, path), operation)
  else if (type === 'move') move(listAt(resource, path), operation)
  else if (type === 'replace') replace(onlyPlace(resource, path), operation)
  else {
    const places = elementsAt(resource, path)
    if (places.length > 1) throw notApplicable('The path names several elements')
    if (places.length === 1) remove(places[0]!)
  }
}

function onlyPlace(resource: JsonObject, path: ElementPath): ElementPlace {
  const places = elementsAt(resource, path)
  if (places.length !== 1) throw notApplicable(`The path names ${places.length === 0 ? 'no' : 'several'} elements`)
  return places[0]!
}

/** The list whose items a path names: its last step is the name of a child. */
function listAt(resource: JsonObject, path: ElementPath): List {
  const last = path.at(-1)
  if (last?.kind !== 'child') throw notApplicable('The path names no list')
  const parent = onlyPlace(resource, path.slice(0, -1))
  const type = typeOfPlace(parent)
  const member = type.members.get(last.name)
  if (member === undefined || !member.element.isList || !isObject(parent.value)) {
    throw notApplicable('The path names no list')
  }
  return listOf(parent.value, last.name, member.type)
}

function listOf(owner: JsonObject, jsonName: string, typeName: string): List {
  return { owner, jsonName, isPrimitive: isPrimitive(typeName), typeName }
}

function add(place: ElementPlace, { name, value }: Operation): void {
  const isOfPrimitive = place.member !== undefined && isPrimitive(place.member.type)
  const type = isOfPrimitive ? definitionOf('Element')! : typeOfPlace(place)
  const owner = isOfPrimitive ? shadowOf(place) : (place.value as JsonObject)
  const element = type.elements.find(child => child.name === name)
  if (element === undefined) throw notApplicable(`${type.name} has no element of this name`)
  const given = givenValue(value!, type, name)
  const jsonName = jsonNameOf(type, name, given)
  const member = type.members.get(jsonName)!
  if (element.isList) {
    const list = listOf(owner, jsonName, member.type)
    splice(list, lengthOf(list), 0, [given.value])
    return
  }
  const isPresent = element.jsonNames.some(json => Object.hasOwn(owner, json) || Object.hasOwn(owner, `_${json}`))
  if (isPresent) throw notApplicable('The element is there, and does not repeat')
  owner[jsonName] = given.value
}

/** The object with id and extensions of a primitive value, made where it is not there. */
function shadowOf({ owner, jsonName, index }: ElementPlace): JsonObject {
  const name = `_${jsonName}`
  if (index < 0) {
    const shadow = isObject(owner[name]) ? owner[name] : {}
    owner[name] = shadow
    return shadow
  }
  const values = owner[jsonName] as readonly unknown[]
  const shadows = Array.isArray(owner[name]) ? (owner[name] as unknown[]) : values.map(() => null)
  const shadow = isObject(shadows[index]) ? shadows[index] : {}
  shadows[index] = shadow
  owner[name] = shadows
  return shadow
}

function insert(list: List, { value, index }: Operation): void {
  if (index < 0 || index > lengthOf(list)) throw notApplicable('The list has no such index')
  splice(list, index, 0, [givenValueOf(value!, list.typeName)])
}

function move(list: List, { source, destination }: Operation): void {
  const length = lengthOf(list)
  if (source < 0 || source >= length) throw notApplicable('The list has no such source')
  if (destination < 0 || destination >= length) throw notApplicable('The list has no such destination')
  for (const name of [list.jsonName, `_${list.jsonName}`]) {
    const items = list.owner[name]
    if (Array.isArray(items)) {
      while (items.length < length) items.push(null)
      items.splice(destination, 0, ...items.splice(source, 1))
    }
  }
}

function replace({ owner, jsonName, index, member }: ElementPlace, { value }: Operation): void {
  if (member === undefined) throw notApplicable('The resource as a whole cannot be replaced')
  const { element } = member
  if (index >= 0) {
    splice(listOf(owner, jsonName, member.type), index, 1, [givenValueOf(value!, member.type)])
    return
  }
  const isChoice = element.jsonNames.length > 1
  const given = isChoice ? givenChoice(value!) : { type: '', value: givenValueOf(value!, member.type) }
  const name = isChoice ? element.name + given.type : jsonName
  if (!element.jsonNames.includes(name)) throw notApplicable('The element cannot have a value of this type')
  // A replaced member keeps its place among the others.
  delete owner[`_${jsonName}`]
  if (name !== jsonName) delete owner[jsonName]
  owner[name] = given.value
}

function remove({ owner, jsonName, index, member }: ElementPlace): void {
  if (member === undefined) throw notApplicable('The resource as a whole cannot be deleted')
  if (index >= 0) splice(listOf(owner, jsonName, member.type), index, 1, [])
  else {
    delete owner[jsonName]
    delete owner[`_${jsonName}`]
  }
}

function lengthOf({ owner, jsonName, isPrimitive }: List): number {
  const lists = [owner[jsonName], isPrimitive ? owner[`_${jsonName}`] : undefined]
  return Math.max(...lists.map(list => (Array.isArray(list) ? list.length : 0)))
}

/** Changes the list and, of primitive values, that of their extensions; lists without items are left out. */
function splice(list: List, index: number, deleted: number, added: readonly unknown[]): void {
  const { owner, jsonName } = list
  const length = lengthOf(list)
  const shadow = list.isPrimitive ? owner[`_${jsonName}`] : undefined
  const values = Array.isArray(owner[jsonName]) ? (owner[jsonName] as unknown[]) : []
  while (values.length < length) values.push(null)
  values.splice(index, deleted, ...added)
  if (values.length > 0 && values.some(value => value !== null)) owner[jsonName] = values
  else delete owner[jsonName]
  if (!Array.isArray(shadow)) return
  shadow.splice(index, deleted, ...added.map(() => null))
  if (shadow.every(item => item === null)) delete owner[`_${jsonName}`]
}

/** The value of `add`, for the child `name` of a type. */
function givenValue(part: JsonObject, type: TypeDefinition, name: string): GivenValue {
  const element = type.elements.find(child => child.name === name)!
  if (element.jsonNames.length > 1) return givenChoice(part)
  return { type: '', value: givenValueOf(part, type.members.get(name)!.type) }
}

function jsonNameOf(type: TypeDefinition, name: string, given: GivenValue): string {
  const jsonName = name + given.type
  if (!type.members.has(jsonName)) throw notApplicable('The element cannot have a value of this type')
  return jsonName
}

/** A value of an element with a choice of types: its name in the part says which. */
function givenChoice(part: JsonObject): GivenValue {
  const key = Object.keys(part).find(name => VALUE.test(name))
  if (key === undefined) throw malformed('"value" has no value[x]')
  return { type: key.slice('value'.length), value: copyJson(part[key]) }
}

/** The value of a part: value[x], or an object of its nested parts for a type that value[x] has not. */
function givenValueOf(part: JsonObject, typeName: string): unknown {
  const key = Object.keys(part).find(name => VALUE.test(name))
  if (key !== undefined) return copyJson(part[key])
  if (isObject(part.resource)) return copyJson(part.resource)
  const type = definitionOf(typeName)
  if (type === undefined || !Array.isArray(part.part)) throw malformed('"value" has neither value[x] nor parts')
  const object: JsonObject = {}
  for (const child of part.part as readonly JsonObject[]) {
    const name = String(child.name)
    const element = type.elements.find(({ name: other }) => other === name)
    if (element === undefined) throw notApplicable(`${type.name} has no element of this name`)
    const given = givenValue(child, type, name)
    const jsonName = jsonNameOf(type, name, given)
    if (element.isList) object[jsonName] = [...((object[jsonName] as readonly unknown[]) ?? []), given.value]
    else if (Object.hasOwn(object, jsonName)) throw malformed('A part that does not repeat is repeated')
    else object[jsonName] = given.value
  }
  return object
}
