/**
 * Reads the table of definitions, a type at its first use. A row of `definitions.ts` is: name, base (`-` for none),
 * then invariants (`!per-1`), `?` where the elements are not known, and elements in the notation
 *
 *     name [x]? cardinality : types binding? ^? ~? @?
 *
 * `[x]`: an element with a choice of types, whose JSON names end with the type. Cardinality: nothing 0..1, `!` 1..1,
 * `*` 0..*, `+` 1..*. Types: separated by `|`, `*` for any, targets of a reference in parentheses. `=` and the name of
 * a value set: required binding. `^`: modifier element. `~`: part of summaries. `@`: text without a `_name` beside it.
 */
import { CONSTRAINTS, OPEN_TYPES, RESOURCES, TYPES, VALUE_SETS } from './definitions.ts'

export interface ElementDefinition {
  /** As FHIRPath names it: `value` for `value[x]`. */
  readonly name: string
  /** The names of the element in JSON; several for a choice of types. */
  readonly jsonNames: readonly string[]
  readonly isRequired: boolean
  readonly isList: boolean
  readonly isModifier: boolean
  readonly isSummary: boolean
  /** Name of the value set of a required binding; '' without one. */
  readonly binding: string
}

/** An element under one of its JSON names. */
export interface Member {
  readonly element: ElementDefinition
  /** Name of its type. */
  readonly type: string
  /** Types that a reference may point to; [] for any. */
  readonly targets: readonly string[]
  /** True if `_name` may stand beside it, with id and extensions of a primitive value. */
  readonly hasShadow: boolean
}

export interface TypeDefinition {
  readonly name: string
  /** In the order of the standard, inherited ones first. */
  readonly elements: readonly ElementDefinition[]
  readonly members: ReadonlyMap<string, Member>
  readonly required: readonly ElementDefinition[]
  /** Keys of invariants, of its bases too. */
  readonly constraints: readonly string[]
  /** Its elements are not known, besides those of its base. */
  readonly isOpen: boolean
  readonly isResource: boolean
}

interface Constraint {
  readonly severity: 'error' | 'warning'
  readonly text: string
}

/** Codes of a required binding. */
interface ValueSet {
  readonly codes: ReadonlySet<string>
  /** Null for a set with a list. */
  readonly pattern: RegExp | null
}

const ELEMENT = /^(\w+)(\[x\])?([!*+]?):([^=^~@]+)(?:=([\w-]+))?(\^?)(~?)(@?)$/
/** Profiles of Quantity: they have rules of their own, but their name in JSON is that of Quantity. */
const JSON_TYPES: Readonly<Record<string, string>> = { SimpleQuantity: 'Quantity', MoneyQuantity: 'Quantity' }

const rows = rowsOf(TYPES)
const types = new Map<string, TypeDefinition>()
const valueSets = new Map<string, ValueSet>()

/** Names of the resources of R4 that are no base of others. */
export const RESOURCE_TYPES: ReadonlySet<string> = new Set(RESOURCES.split(' '))

/** Rules that elements must meet, by key. */
export const INVARIANTS: ReadonlyMap<string, Constraint> = new Map(
  [...rowsOf(CONSTRAINTS)].map(([key, row]) => {
    const [severity, text] = cut(row)
    return [key, { severity: severity === 'warning' ? 'warning' : 'error', text }]
  }),
)

/** The definition of a data type, a resource, or a part such as `Bundle.entry`; undefined for primitive types. */
export function definitionOf(name: string): TypeDefinition | undefined {
  const known = types.get(name)
  if (known !== undefined) return known
  const row = rows.get(name)
  if (row === undefined) return undefined
  const made = parseType(name, row)
  types.set(name, made)
  return made
}

/** The definition of a resource that stands for itself; undefined for other names. */
export function resourceDefinition(name: unknown): TypeDefinition | undefined {
  return typeof name === 'string' && RESOURCE_TYPES.has(name) ? definitionOf(name) : undefined
}

/** The value set of a binding. */
export function valueSetOf(name: string): ValueSet {
  const known = valueSets.get(name)
  if (known !== undefined) return known
  const text = rowsOf(VALUE_SETS).get(name)!
  const isPattern = text.startsWith('/')
  const made: ValueSet = {
    codes: new Set(isPattern ? [] : text.split(' ')),
    pattern: isPattern ? new RegExp(`^(?:${text.slice(1, -1)})$`) : null,
  }
  valueSets.set(name, made)
  return made
}

function rowsOf(table: string): ReadonlyMap<string, string> {
  return new Map(table.trim().split('\n').map(cut))
}

/** The text before and after the first space. */
function cut(line: string): [string, string] {
  const at = line.indexOf(' ')
  return [line.slice(0, at), line.slice(at + 1)]
}

function parseType(name: string, row: string): TypeDefinition {
  const [base, ...words] = row.split(' ')
  const inherited = base === '-' ? undefined : definitionOf(base!)
  const elements = [...(inherited?.elements ?? [])]
  const members = new Map(inherited?.members)
  const constraints = [...(inherited?.constraints ?? [])]
  for (const word of words) {
    if (word.startsWith('!')) constraints.push(word.slice(1))
    else if (word !== '' && word !== '?') elements.push(parseElement(word, members))
  }
  return {
    name,
    elements,
    members,
    required: elements.filter(({ isRequired }) => isRequired),
    constraints,
    isOpen: words.includes('?'),
    isResource: name === 'Resource' || inherited?.isResource === true,
  }
}

/** Adds the members of the element. */
function parseElement(word: string, members: Map<string, Member>): ElementDefinition {
  const [, name, choice, cardinality, typeNames, binding, modifier, summary, attribute] = ELEMENT.exec(word)!
  const types = (typeNames === '*' ? OPEN_TYPES : typeNames!).split('|').map(type => {
    const [typeName, targets] = type.split(/[()]/)
    return { typeName: typeName!, targets: targets?.split(',') ?? [] }
  })
  const jsonNameOf = (type: string): string =>
    choice === undefined ? name! : name + capitalised(JSON_TYPES[type] ?? type)
  const element: ElementDefinition = {
    name: name!,
    jsonNames: types.map(({ typeName }) => jsonNameOf(typeName)),
    isRequired: cardinality === '!' || cardinality === '+',
    isList: cardinality === '*' || cardinality === '+',
    isModifier: modifier === '^',
    isSummary: summary === '~',
    binding: binding ?? '',
  }
  for (const { typeName, targets } of types) {
    const hasShadow = attribute === '' && isPrimitive(typeName)
    members.set(jsonNameOf(typeName), { element, type: typeName, targets, hasShadow })
  }
  return element
}

/** Primitive types have names in lower case, and no rows. */
export function isPrimitive(type: string): boolean {
  return /^[a-z]/.test(type)
}

function capitalised(type: string): string {
  return type[0]!.toUpperCase() + type.slice(1)
}
