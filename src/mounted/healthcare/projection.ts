/**
 * Parts of resources (R4, search.html#summary, #elements). A resource with elements left out has the tag SUBSETTED, so
 * that no client takes it for the whole.
 */
import {
  definitionOf,
  type ElementDefinition,
  isPrimitive,
  type Member,
  resourceDefinition,
  type TypeDefinition,
} from './definition-table.ts'
import { isObject, type JsonObject, setMember } from './json-text.ts'

/** Values of `_summary` that leave out elements. */
type SummaryMode = 'true' | 'text' | 'data'

const SUBSETTED = {
  system: 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue',
  code: 'SUBSETTED',
  display: 'subsetted',
} as const
/** Every projection keeps them. */
const KEPT = ['id', 'meta']

/** The part of a valid resource that `_summary` names. */
export function summaryOf(resource: JsonObject, mode: SummaryMode): JsonObject {
  if (mode === 'true') return summaryElements(resource)
  if (mode === 'data') return subsetted(resource, ({ name }) => name !== 'text')
  return subsetted(resource, ({ name, isRequired }) => name === 'text' || isRequired)
}

/** The part of a valid resource with these elements of its base level, with mandatory and modifier elements. */
export function elementsOf(resource: JsonObject, names: readonly string[]): JsonObject {
  return subsetted(resource, ({ name, isRequired, isModifier }) => isRequired || isModifier || names.includes(name))
}

/** Names that `_elements` gives and the resource type does not have. */
export function unknownElements(type: string, names: readonly string[]): readonly string[] {
  const elements = resourceDefinition(type)?.elements ?? []
  return names.filter(name => !elements.some(element => element.name === name))
}

function subsetted(resource: JsonObject, keeps: (element: ElementDefinition) => boolean): JsonObject {
  const { members } = resourceDefinition(resource.resourceType)!
  const part: JsonObject = {}
  for (const [name, value] of Object.entries(resource)) {
    const member = members.get(name) ?? members.get(name.slice(1))
    if (member === undefined || KEPT.includes(member.element.name) || keeps(member.element)) {
      setMember(part, name, value)
    }
  }
  return tagged(part)
}

function summaryElements(resource: JsonObject): JsonObject {
  const part = summaryObject(resource, resourceDefinition(resource.resourceType)!)
  return tagged(resource.meta === undefined ? part : { ...part, meta: resource.meta })
}

/** Extensions and ids of elements are no part of a summary; of a mandatory element they stay. */
function summaryObject(object: JsonObject, type: TypeDefinition): JsonObject {
  const part: JsonObject = {}
  for (const [name, value] of Object.entries(object)) {
    const member = type.members.get(name)
    const isShadowKept = member === undefined && type.members.get(name.slice(1))?.element.isRequired === true
    if (name === 'resourceType' || isShadowKept) part[name] = value
    else if (member !== undefined && (member.element.isSummary || member.element.isRequired)) {
      const kept = Array.isArray(value) ? summaryList(value, member) : summaryValue(value, member)
      if (kept !== undefined) part[name] = kept
    }
  }
  return part
}

function summaryList(values: readonly unknown[], member: Member): unknown {
  const kept = values.map(value => summaryValue(value, member)).filter(value => value !== undefined && value !== null)
  return kept.length === 0 ? undefined : kept
}

/** Undefined where nothing is left. */
function summaryValue(value: unknown, { type }: Member): unknown {
  if (isPrimitive(type) || !isObject(value)) return value
  const definition = type === 'Resource' ? resourceDefinition(value.resourceType) : definitionOf(type)
  const part = definition === undefined || definition.isOpen ? value : summaryObject(value, definition)
  return Object.keys(part).length === 0 ? undefined : part
}

/** A copy with the tag; `meta` stands behind `id`, as in most resources. */
function tagged(resource: JsonObject): JsonObject {
  const meta = isObject(resource.meta) ? resource.meta : {}
  const tags = Array.isArray(meta.tag) ? (meta.tag as readonly unknown[]) : []
  const others = tags.filter(tag => !isObject(tag) || tag.code !== SUBSETTED.code || tag.system !== SUBSETTED.system)
  const { resourceType, id, ...rest } = resource
  return {
    resourceType,
    ...(id === undefined ? {} : { id }),
    ...rest,
    meta: { ...meta, tag: [...others, { ...SUBSETTED }] },
  }
}
