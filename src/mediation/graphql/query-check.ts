/**
 * Checks one query against the schema of its API: which operations it asks for, how deep and how complex it is. Every
 * walk is linear in the tokens of the query, of which there are `TOKENS_MAX` at most.
 */
import type {
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLArgument,
  GraphQLNamedType,
  GraphQLSchema,
  OperationDefinitionNode,
  SelectionSetNode,
  ValueNode,
} from 'graphql'
import { clipped } from '../openapi/contract-schemas.ts'
import { type GraphqlLibrary, graphqlLibrary } from './graphql-library.ts'
import { INTROSPECTION, type QuerySettings } from './graphql-sequence.ts'

/** Characters and tokens of a query. */
const QUERY_MAX = 1_048_576
const TOKENS_MAX = 10_000
/** Nested fields; a subscription policy may allow fewer. */
const DEPTH_MAX = 200
/** Longer queries are not searched for fields that conflict, which takes quadratic time; the backend does it. */
const COMPARED_TOKENS_MAX = 1000
const ERRORS_MAX = 20
const ERROR_MAX = 200
/** Arguments that say how many items a list has. */
const SLICES = ['first', 'last', 'limit']

export interface Query {
  readonly text: string
  /** '' for none. */
  readonly operationName: string
  readonly variables: Readonly<Record<string, unknown>>
  /** GET changes nothing (RFC 9110 9.2.1). */
  readonly isSafe: boolean
}

interface CheckedQuery {
  /** `VERB field` of each root field, once, but for `__typename`. */
  readonly operations: readonly string[]
  readonly depth: number
  readonly complexity: number
}

/** The rules that a query breaks. `errors`: at most 20 texts, each bounded. */
export class InvalidQuery extends Error {
  override readonly name = 'InvalidQuery'
  readonly errors: readonly string[]

  constructor(...errors: readonly string[]) {
    super(`${errors.length} errors`)
    this.errors = errors.slice(0, ERRORS_MAX).map(error => clipped(error, ERROR_MAX))
  }
}

export class QueryCheck {
  readonly #graphql: GraphqlLibrary = graphqlLibrary()
  readonly #schema: GraphQLSchema
  readonly #settings: QuerySettings

  constructor(settings: QuerySettings) {
    this.#settings = settings
    this.#schema = this.#graphql.buildSchema(settings.schema, { assumeValidSDL: true })
  }

  /** Throws InvalidQuery. */
  check(query: Query): CheckedQuery {
    try {
      return this.#check(query)
    } catch (error) {
      // The parser and the rules descend with the query.
      if (error instanceof RangeError) throw new InvalidQuery('the query is nested too deeply')
      throw error
    }
  }

  #check(query: Query): CheckedQuery {
    const document = this.#parse(query.text)
    this.#validate(document)
    const operation = operationOf(document, query.operationName)
    const verb = operation.operation.toUpperCase()
    if (query.isSafe && verb !== 'QUERY') throw new InvalidQuery('a GET request must be a query')
    const variables = { ...defaultsOf(operation), ...query.variables }
    const walk = new QueryWalk(this.#graphql, this.#schema, document, this.#settings, variables)
    const names = walk.rootFields(operation)
    const introspects = INTROSPECTION.some(name => names.has(name))
    if (introspects && !this.#settings.allowsIntrospection) throw new InvalidQuery('introspection is switched off')
    const operations = [...names].filter(name => name !== '__typename').map(name => `${verb} ${name}`)
    const measure = walk.measure(operation)
    if (measure.depth > DEPTH_MAX) throw new InvalidQuery(`the query is nested more than ${DEPTH_MAX} deep`)
    return { operations, ...measure }
  }

  #parse(text: string): DocumentNode {
    if (text.length > QUERY_MAX) throw new InvalidQuery(`the query has more than ${QUERY_MAX} characters`)
    try {
      return this.#graphql.parse(text, { maxTokens: TOKENS_MAX, noLocation: false })
    } catch (error) {
      if (error instanceof this.#graphql.GraphQLError) throw new InvalidQuery(textOfError(error))
      throw error
    }
  }

  #validate(document: DocumentNode): void {
    const { specifiedRules, OverlappingFieldsCanBeMergedRule, validate } = this.#graphql
    const isShort = (document.tokenCount ?? TOKENS_MAX) <= COMPARED_TOKENS_MAX
    const rules = isShort ? specifiedRules : specifiedRules.filter(rule => rule !== OverlappingFieldsCanBeMergedRule)
    // Suggestions would show the schema.
    const hideSuggestions = !this.#settings.allowsIntrospection
    const errors = validate(this.#schema, document, rules, { maxErrors: ERRORS_MAX, hideSuggestions })
    if (errors.length > 0) throw new InvalidQuery(...errors.map(textOfError))
  }
}

interface LocatedError {
  readonly message: string
  readonly locations?: readonly { readonly line: number; readonly column: number }[] | undefined
}

function textOfError({ message, locations = [] }: LocatedError): string {
  const [first] = locations
  return first === undefined ? message : `${first.line}:${first.column} ${message}`
}

/** Throws InvalidQuery. */
function operationOf({ definitions }: DocumentNode, name: string): OperationDefinitionNode {
  const operations = definitions.filter(each => each.kind === 'OperationDefinition')
  const found = name === '' ? operations : operations.filter(each => each.name?.value === name)
  if (found.length === 1) return found[0]!
  if (name !== '') throw new InvalidQuery('operationName names no operation of the query')
  throw new InvalidQuery(
    operations.length === 0 ? 'there is no operation' : 'operationName must name one of the operations',
  )
}

interface Measure {
  readonly depth: number
  readonly complexity: number
}

const NOTHING: Measure = { depth: 0, complexity: 0 }

/** One query that is valid: its fragments have no cycles. */
class QueryWalk {
  readonly #graphql: GraphqlLibrary
  readonly #schema: GraphQLSchema
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly #settings: QuerySettings
  readonly #variables: Query['variables']
  readonly #measured = new Map<string, Measure>()

  constructor(
    graphql: GraphqlLibrary,
    schema: GraphQLSchema,
    { definitions }: DocumentNode,
    settings: QuerySettings,
    variables: Query['variables'],
  ) {
    this.#graphql = graphql
    this.#schema = schema
    this.#settings = settings
    this.#variables = variables
    const fragments = definitions.filter(each => each.kind === 'FragmentDefinition')
    this.#fragments = new Map(fragments.map(each => [each.name.value, each]))
  }

  /** Names of the fields of an operation, whatever @skip and @include say. */
  rootFields({ selectionSet }: OperationDefinitionNode): ReadonlySet<string> {
    const names = new Set<string>()
    const entered = new Set<string>()
    const enter = ({ selections }: SelectionSetNode): void => {
      for (const selection of selections) {
        if (selection.kind === 'Field') names.add(selection.name.value)
        else if (selection.kind === 'InlineFragment') enter(selection.selectionSet)
        else if (!entered.has(selection.name.value)) {
          entered.add(selection.name.value)
          enter(this.#fragments.get(selection.name.value)!.selectionSet)
        }
      }
    }
    enter(selectionSet)
    return names
  }

  measure({ operation, selectionSet }: OperationDefinitionNode): Measure {
    return this.#set(selectionSet, this.#schema.getRootType(operation))
  }

  #set({ selections }: SelectionSetNode, parent: GraphQLNamedType | null | undefined): Measure {
    let depth = 0
    let complexity = 0
    for (const selection of selections) {
      let measure = NOTHING
      if (selection.kind === 'Field') measure = this.#field(selection, parent)
      else if (selection.kind === 'FragmentSpread') measure = this.#fragment(selection.name.value)
      else {
        const condition = selection.typeCondition?.name.value
        measure = this.#set(selection.selectionSet, condition === undefined ? parent : this.#schema.getType(condition))
      }
      depth = Math.max(depth, measure.depth)
      complexity = Math.min(Number.MAX_SAFE_INTEGER, complexity + measure.complexity)
    }
    return { depth, complexity }
  }

  #fragment(name: string): Measure {
    let measure = this.#measured.get(name)
    if (measure === undefined) {
      const { selectionSet, typeCondition } = this.#fragments.get(name)!
      measure = this.#set(selectionSet, this.#schema.getType(typeCondition.name.value))
      this.#measured.set(name, measure)
    }
    return measure
  }

  /** Introspection reads no data of the backend. */
  #field(field: FieldNode, parent: GraphQLNamedType | null | undefined): Measure {
    const name = field.name.value
    if (name.startsWith('__')) return NOTHING
    const fields = parent !== null && parent !== undefined && 'getFields' in parent ? parent.getFields() : {}
    const definition = Object.hasOwn(fields, name) ? fields[name] : undefined
    const type = definition === undefined ? undefined : this.#graphql.getNamedType(definition.type)
    const { depth, complexity } = field.selectionSet === undefined ? NOTHING : this.#set(field.selectionSet, type)
    const key = `${parent?.name ?? ''}.${name}`
    const own = Object.hasOwn(this.#settings.complexity, key) ? this.#settings.complexity[key]! : 1
    const whole =
      (own + complexity) * this.#itemsOf(field, definition !== undefined && 'args' in definition ? definition.args : [])
    return { depth: depth + 1, complexity: Math.min(Number.MAX_SAFE_INTEGER, whole) }
  }

  /** Items that the arguments ask for, at least 1. An argument that is left out has the value of the schema. */
  #itemsOf({ arguments: given = [] }: FieldNode, args: readonly GraphQLArgument[]): number {
    const values = new Map(given.map(({ name, value }) => [name.value, value]))
    const counts = args
      .filter(({ name }) => SLICES.includes(name))
      .map(argument => {
        const value = values.get(argument.name)
        const own = value === undefined ? undefined : this.#countOf(value)
        return own ?? countOfLiteral(argument.default?.literal) ?? 1
      })
    return Math.max(1, ...counts.filter(count => Number.isFinite(count)))
  }

  /** Undefined for a variable without a value: the argument counts as left out. */
  #countOf(value: ValueNode): number | undefined {
    if (value.kind !== 'Variable') return countOfLiteral(value) ?? 1
    const given = Object.hasOwn(this.#variables, value.name.value) ? this.#variables[value.name.value] : undefined
    return given === undefined ? undefined : Number(given)
  }
}

/** Values of the variables that a request may leave out. */
function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): Query['variables'] {
  const entries = variableDefinitions.map(({ variable, defaultValue }) => [
    variable.name.value,
    countOfLiteral(defaultValue),
  ])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Query['variables']
}

function countOfLiteral(value: ValueNode | undefined): number | undefined {
  return value?.kind === 'IntValue' ? Number(value.value) : undefined
}
